#!/usr/bin/env bash
# Installs cargo-deny and prints the path of the program.
#
#   $(scripts/cargo-deny.sh) deny check bans licenses sources     # as CI does
#   $(scripts/cargo-deny.sh) deny check advisories                # where there is a network: fetches the advisory database
#
# It is kept in $STEERSMAN_CACHE, else ~/.cache/steersman, and built without optimisation: it runs once and is quick enough.
set -euo pipefail

version=0.20.2
cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/cargo-deny-$version

if [ ! -x "$place/bin/cargo-deny" ]; then
  echo "installing cargo-deny $version" >&2
  cargo install --quiet --locked --debug --root "$place" "cargo-deny@$version" >&2
fi
echo "$place/bin/cargo-deny"
