#!/usr/bin/env bash
# Installs zig and cargo-zigbuild, which compile C and link for other targets, and prints the folder of their programs.
#
#   $(scripts/zig.sh)/cargo-zigbuild zigbuild --release --target aarch64-unknown-linux-musl     # `cargo xtask dist` does it
#
# They are kept in $STEERSMAN_CACHE, else ~/.cache/steersman, and take 400 MB. Needs Python with venv.
set -euo pipefail

zig=0.17.1
zigbuild=0.24.1
cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/zig-$zig-$zigbuild

if [ ! -e "$place/ready" ]; then
  echo "installing zig $zig and cargo-zigbuild $zigbuild" >&2
  rm -rf "$place"
  mkdir -p "$cache"
  python3 -m venv "$place" >&2
  "$place/bin/pip" install --quiet --disable-pip-version-check "ziglang==$zig" "cargo-zigbuild==$zigbuild" >&2
  touch "$place/ready"
fi
echo "$place/bin"
