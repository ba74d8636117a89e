#!/usr/bin/env bash
# A release as one folder and one archive below the target folder: `cargo xtask dist` runs this.
# The binary is static: it runs on any Linux of its processor, whatever C library is there, and in
# an empty container.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${CARGO_TARGET_DIR:-target}
processor=$(uname -m)
triple=$processor-unknown-linux-gnu

cargo build --profile ship --locked --package sealane-cli --target "$triple" \
  --config "target.$triple.rustflags=['-Ctarget-feature=+crt-static']"
binary=$target/$triple/ship/sealane
# What is linked against shared libraries names a loader.
if readelf --program-headers --wide "$binary" | grep --quiet INTERP; then
  echo "$binary is not static" >&2
  exit 1
fi

# The binary, its pages and completions, and what it takes to run it as a service.
folder=$target/dist/sealane
rm -rf "$folder"
mkdir -p "$folder/completions"
cp "$binary" README.md SECURITY.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT \
  packaging/sealane.service packaging/sealane-relay.service packaging/sealane-mesh@.service \
  packaging/Containerfile packaging/grafana-dashboard.json packaging/prometheus-rules.yml "$folder"
"$binary" man --to "$folder/man"
for shell in bash zsh fish; do
  "$binary" completions $shell >"$folder/completions/sealane.$shell"
done

version=$("$binary" --version | cut -d ' ' -f 2)
archive=$target/dist/sealane-$version-$processor-linux.tar.gz
# The same content gives the same archive.
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --directory "$target/dist" \
  --use-compress-program='gzip -9 --no-name' --create --file "$archive" sealane
stat --format '%s bytes  %n' "$binary" "$archive"
echo "sha256 $(sha256sum "$archive" | cut -d ' ' -f 1)"
