#!/usr/bin/env bash
# Installs packages of PyPI, in the versions that are named, into a folder of their own, and prints the folder. The scripts beside it call it.
#
#   scripts/venv.sh pytest-lsp==1.0.1
#
# The folder is in $STEERSMAN_CACHE, else ~/.cache/steersman. Needs Python with venv.
set -euo pipefail

cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/$(printf '%s+' "$@" | tr -c 'A-Za-z0-9.\n' '-' | sed 's/-*$//')

mkdir -p "$cache"
# Two tests may need the same packages at the same time.
exec 9>"$place.lock"
flock 9
if [ ! -e "$place/ready" ]; then
  echo "installing $*" >&2
  rm -rf "$place"
  python3 -m venv "$place" >&2
  "$place/bin/pip" install --quiet --disable-pip-version-check "$@" >&2
  touch "$place/ready"
fi
echo "$place"
