#!/usr/bin/env bash
# Installs what tests and proofs need beside Rust, where it is missing. If it may not install
# something, it names that and fails.
#
#   tests/needs.sh tests         what the tests need (`cargo xtask needs`)
#   tests/needs.sh network       the same, and programs that the proof of relays runs over them
#   tests/needs.sh babel         what the proof of routes beside Babel runs
#   tests/needs.sh sumo          what drives the vehicles of a proof
#   tests/needs.sh peers         the servers of the race, built from their pinned sources
#   tests/needs.sh prometheus    a Prometheus
#   tests/needs.sh node FOLDER   the npm packages of a folder
#   tests/needs.sh python        the Python environment of the tests
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.."
PATH=$PATH:/usr/sbin:/sbin
failed=0

# Each line: a program, the Debian package that brings it, and what is not tested without it.
for_tests='mkfs.ext4 e2fsprogs power cut and full disk
losetup mount power cut and full disk
faketime faketime retention over a day
ip iproute2 a blind hub and of what pages say
curl curl what pages say
script bsdutils what a terminal is shown
chrt util-linux a hostile crowd
unshare util-linux what pages say
zsh zsh what shells complete
fish fish what shells complete
chromium-headless-shell chromium-headless-shell the console'
for_network='iperf3 iperf3 relays
ping iputils-ping relays
tcpdump tcpdump relays
tshark tshark relays
ethtool ethtool relays'
for_babel='ip iproute2 routes beside Babel
ping iputils-ping routes beside Babel
babeld babeld routes beside Babel
iperf3 iperf3 routes beside Babel
chromium-headless-shell chromium-headless-shell routes beside Babel'
for_sumo='sumo sumo vehicles that SUMO drives
netgenerate sumo vehicles that SUMO drives
/usr/share/sumo/tools/randomTrips.py sumo-tools vehicles that SUMO drives'

lacks() {
  echo "$1" >&2
  failed=1
}

has() { [ -f "$1" ] || command -v "$1" >/dev/null; }

is_root() { [ "$(id -u)" = 0 ]; }

# Tools come from the distribution.
bring() {
  local program package purpose packages=() named=()
  while read -r program package purpose; do
    has "$program" && continue
    packages+=("$package")
    named+=("\`$program\` is missing, for the tests of $purpose: package $package of Debian")
  done <<<"$1"
  [ ${#packages[@]} = 0 ] && return
  if ! is_root || ! has apt-get; then
    for one in "${named[@]}"; do lacks "$one"; done
    return
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get update && apt-get install --yes --no-install-recommends "${packages[@]}" ||
    lacks "apt-get install ${packages[*]} failed"
}

# The list that was last installed is kept, to be compared with the one of today.
stamp_of() { echo "target/installed/${1//\//-}"; }
is_current() { cmp -s "$1" "$(stamp_of "$2")"; }
keep() { mkdir -p target/installed && cp "$1" "$(stamp_of "$2")"; }

node_packages() {
  local folder=$1 program
  [ -f "$folder/package.json" ] || return
  for program in node npm; do
    has $program && continue
    lacks "\`$program\` is missing: $folder needs Node.js 20 or later and npm"
    return
  done
  [ -d "$folder/node_modules" ] && is_current "$folder/package-lock.json" "$folder" && return
  npm ci --no-audit --no-fund --prefix "$folder" &&
    keep "$folder/package-lock.json" "$folder" || lacks "npm ci --prefix $folder failed"
}

python_environment() {
  [ -x target/venv/bin/python ] && return
  has python3 || { lacks '`python3` is missing: the Python tests need 3.10 or later'; return 1; }
  python3 -m venv target/venv && return
  # A half-made environment would pass for a whole one the next time.
  rm -rf target/venv
  lacks 'python3 -m venv failed; on Debian the module comes with the package python3-venv'
  return 1
}

python_packages() {
  local list=tests/python/requirements.txt
  [ -f $list ] && python_environment || return
  is_current $list $list && return
  target/venv/bin/python -m pip install --quiet --requirement $list && keep $list $list ||
    lacks "pip install --requirement $list failed"
}

# Debian's Prometheus is unpacked: installed it would run as a service.
prometheus() {
  local folder=target/prometheus
  [ -f $folder/usr/bin/prometheus ] && [ -f $folder/usr/bin/promtool ] && return
  has prometheus && has promtool && return
  # A clean machine has no lists of packages, and only root may bring them.
  mkdir -p $folder && (
    cd $folder &&
      { apt-get download prometheus || { is_root && apt-get update && apt-get download prometheus; }; } &&
      dpkg-deb --extract prometheus_*.deb . && rm prometheus_*.deb
  ) && return
  # A half-unpacked program would pass for a whole one the next time.
  rm -rf $folder
  lacks '`prometheus` is missing, for the tests of metrics: package prometheus of Debian'
}

# Builds the programs of a folder in tests/peers, at the versions that its `go.sum` holds. Where
# authors write their version into a variable when they release, that is its name.
peer() {
  local folder=tests/peers/$1 variable=$2 version flags=()
  shift 2
  [ -d target/peers ] && is_current "$folder/go.sum" "$folder" && return
  mkdir -p target/peers
  if [ -n "$variable" ]; then
    version=$(go list -C "$folder" -m -f '{{.Version}}' "$1") || { lacks "no version of $1"; return; }
    flags=("-ldflags=-X $1/$variable=${version#v}")
  fi
  go build -C "$folder" -mod=readonly -trimpath -buildvcs=false ${flags[@]+"${flags[@]}"} \
    -o "$PWD/target/peers" "$@" && keep "$folder/go.sum" "$folder" || lacks "go build $* failed"
}

peers() {
  has go || { lacks '`go` is missing: the peers of the race need Go 1.26 or later'; return; }
  peer nats '' github.com/nats-io/nats-server/v2 github.com/nats-io/natscli/nats
  peer centrifugo internal/build.Version github.com/centrifugal/centrifugo/v5
}

# It goes on as far as it goes: what fails in one language leaves the others tested.
tests() {
  bring "$for_tests"
  node_packages tests/js
  python_packages
  prometheus
}

case ${1-} in
  tests) tests ;;
  network) tests; bring "$for_network" ;;
  babel) bring "$for_babel" ;;
  sumo) bring "$for_sumo" ;;
  peers) peers ;;
  prometheus) prometheus ;;
  node) node_packages "$2" ;;
  python) python_environment ;;
  *) lacks "there is nothing named \`${1-}\`; see the head of tests/needs.sh" ;;
esac
exit $failed
