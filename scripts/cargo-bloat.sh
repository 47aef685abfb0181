#!/usr/bin/env bash
# Installs cargo-bloat, which attributes the code of a program to crates, and prints the path of the tool.
#
#   $(scripts/cargo-bloat.sh) bloat --release --crates -p steersman-cli     # `cargo xtask bench --size` does it
#
# It is kept in $STEERSMAN_CACHE, else ~/.cache/steersman, and built without optimisation: it runs once and is quick enough.
set -euo pipefail

version=0.12.1
cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/cargo-bloat-$version

if [ ! -x "$place/bin/cargo-bloat" ]; then
  echo "installing cargo-bloat $version" >&2
  cargo install --quiet --locked --debug --root "$place" "cargo-bloat@$version" >&2
fi
echo "$place/bin/cargo-bloat"
