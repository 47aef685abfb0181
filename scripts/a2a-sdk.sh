#!/usr/bin/env bash
# Installs the official SDK of the Agent2Agent protocol for Python, which other people wrote, and prints where.
#
#   STEERSMAN_A2A=$(scripts/a2a-sdk.sh) cargo test -p steersman-server --test it -- --ignored a2a_sdk::
#
# It is kept in $STEERSMAN_CACHE, else ~/.cache/steersman.
set -euo pipefail

cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/a2a-sdk-1

mkdir -p "$cache"
if [ ! -e "$place/ready" ]; then
  echo "installing the SDK of A2A" >&2
  rm -rf "$place"
  mkdir -p "$place"
  python3 -m venv "$place/python" >&2
  "$place/python/bin/pip" install --quiet --disable-pip-version-check a2a-sdk==1.3.0 >&2
  touch "$place/ready"
fi
echo "$place"
