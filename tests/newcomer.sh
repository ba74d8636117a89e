#!/usr/bin/env bash
# Types every line of the README as somebody would who has just cloned the repository, and says what
# was typed, what was printed and how long it took. `cargo xtask prove newcomer` records it.
#
#   tests/newcomer.sh                            a clean clone, with both programs built: minutes
#   SEALANE_PROGRAMS=target/debug tests/newcomer.sh      programs that are built already: seconds
#
# It needs git, curl and cargo, and the port 9087 to be free. Everything that it writes is in a
# folder of its own, which is removed in the end.
set -u

source_folder=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
patience=${SEALANE_PATIENCE:-600}
failed=0
count=0
running=()

end_all() {
  for id in "${running[@]}"; do kill "$id" 2>/dev/null; done
  wait 2>/dev/null
  rm -rf "$work"
}
trap end_all EXIT

# Toolchain and crates are the user's own; programs, keys and data are not.
export CARGO_HOME=${CARGO_HOME:-$HOME/.cargo} RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}
export CARGO_INSTALL_ROOT=$work/installed CARGO_TERM_COLOR=never
unset CARGO_TARGET_DIR
export SEALANE_PASSPHRASE='a passphrase of a newcomer'
mkdir -p "$work/installed/bin" "$work/home"
PATH=$work/installed/bin:$PATH

git clone --quiet "$source_folder" "$work/sealane" || exit 1
cd "$work/sealane" || exit 1
if [ -n "${SEALANE_PROGRAMS:-}" ]; then
  programs=$(cd "$source_folder" && cd "$SEALANE_PROGRAMS" && pwd) || exit 1
  ln -s "$programs/sealane" "$programs/sealane-bench" "$work/installed/bin/"
fi

now() { date +%s%N; }

seconds_since() { awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%.2f", (to - from) / 1e9 }'; }

# The first lines of a file, without the folder of the machine, and how many more there are.
show() {
  sed "s|$work|~|g; s|^|  |" "$1" | cut -c 1-160 | head -n 12
  lines=$(wc -l < "$1")
  if [ "$lines" -gt 12 ]; then echo "  ... $((lines - 12)) more lines"; fi
}

# Whether a line is ended by who typed it.
goes_on() {
  case $1 in
  *'&' | 'sealane up'* | 'curl -N '* | 'sealane sub fleet/7/orders '*) return 0 ;;
  *) return 1 ;;
  esac
}

# A line that goes on: it has to print something, or to stay.
follow() {
  bash -c "exec ${2%&}" > "$printed" 2>&1 &
  id=$!
  running+=("$id")
  until=$(($(date +%s) + patience))
  case $2 in
  'sealane up'*) shows() { curl -fs http://127.0.0.1:9087/ready > /dev/null; } ;;
  "sealane sub 'fleet/**'"*)
    shows() { curl -fs http://127.0.0.1:9087/metrics | grep -q 'sealane_read_connections 1'; } ;;
  *) shows() { [ -s "$printed" ]; } ;;
  esac
  until shows; do
    if ! kill -0 "$id" 2>/dev/null || [ "$(date +%s)" -ge "$until" ]; then
      failed=$((failed + 1))
      echo "  FAILED: it ended, or nothing came for $patience s"
      break
    fi
    sleep 0.05
  done
  took=$(seconds_since "$1")
  show "$printed"
  echo "  # goes on, there after $took s"
}

# Whether a line that installs has put the program of this commit where it is found from here on.
is_installed() {
  case $1 in
  *crates/sealane-bench*) program=sealane-bench ;;
  *) program=sealane ;;
  esac
  "$program" --version | sed 's/^/  /'
  [ "$(command -v "$program")" = "$work/installed/bin/$program" ] &&
    "$program" --version | grep -q "$(git rev-parse --short=7 HEAD)"
}

type_line() {
  who=$1 line=$2
  count=$((count + 1))
  printed=$work/printed.$count
  mkdir -p "$work/home/$who"
  export HOME=$work/home/$who
  echo
  echo "$who\$ $line"
  case $line in
  'cargo install'*) if [ -n "${SEALANE_PROGRAMS:-}" ]; then echo '  # built already'; return; fi ;;
  esac
  began=$(now)
  if goes_on "$line"; then
    follow "$began" "$line"
    return
  fi
  bash -c "$line" > "$printed" 2>&1
  code=$?
  took=$(seconds_since "$began")
  show "$printed"
  echo "  # exit $code, $took s"
  if [ "$code" -ne 0 ]; then failed=$((failed + 1)); fi
  case $line in
  'cargo install'*)
    hash -r
    if ! is_installed "$line"; then
      failed=$((failed + 1))
      echo '  FAILED: what was installed is not what is found'
    fi ;;
  esac
}

# The lines of the README's blocks of shell, those that end with a backslash joined.
typed() {
  awk '/^```/ { inside = ($0 == "```sh"); next } inside && NF' README.md |
    sed -e ':join' -e '/\\$/N' -e 's/\\\n */ /' -e 'tjoin' -e 's/  *#.*$//' -e 's/ *$//'
}

began_all=$(now)
while IFS= read -r line <&3; do
  who=newcomer
  case $line in
  [a-z]*'$ '*)
    prompt=${line%%\$ *}
    case $prompt in
    *[!a-z]*) ;;
    *) who=$prompt line=$(printf '%s' "${line#*\$ }" | sed 's/^ *//') ;;
    esac ;;
  esac
  type_line "$who" "$line"
done 3< <(typed)

# The snippet of JavaScript, where this machine's Node.js has WebSockets.
if node --eval 'process.exit(typeof WebSocket === "function" ? 0 : 1)' 2>/dev/null; then
  awk '/^```/ { inside = ($0 == "```js"); next } inside' README.md > snippet.mjs
  type_line newcomer "timeout 3 node snippet.mjs; true"
else
  echo
  echo 'The snippet of JavaScript was not run: this machine has no Node.js 22.'
fi

echo
echo "$count lines typed, $failed failed, $(seconds_since "$began_all") s in all"
[ "$failed" -eq 0 ]
