#!/usr/bin/env bash
# Installs packages of npm, in the versions that are named, into a folder of their own, and prints the folder. The scripts beside it call it.
#
#   scripts/npm.sh typescript@7.0.2
#
# The folder is in $STEERSMAN_CACHE, else ~/.cache/steersman. Needs Node with npm.
set -euo pipefail

cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/npm-$(printf '%s+' "$@" | tr -c 'A-Za-z0-9.\n' '-' | sed 's/-*$//')

mkdir -p "$cache"
# Two tests may need the same packages at the same time.
exec 9>"$place.lock"
flock 9
if [ ! -e "$place/ready" ]; then
  echo "installing $*" >&2
  rm -rf "$place"
  mkdir -p "$place"
  npm install --silent --no-fund --no-audit --prefix "$place" "$@" >&2
  touch "$place/ready"
fi
echo "$place"
