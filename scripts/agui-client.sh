#!/usr/bin/env bash
# Installs the official client of AG-UI for JavaScript, which other people wrote, and prints where.
#
#   STEERSMAN_AGUI=$(scripts/agui-client.sh) cargo test -p steersman-server --test it -- --ignored agui_clients::
#
# It is kept in $STEERSMAN_CACHE, else ~/.cache/steersman.
set -euo pipefail

cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/agui-client-1

mkdir -p "$cache"
if [ ! -e "$place/ready" ]; then
  echo "installing the client of AG-UI" >&2
  rm -rf "$place"
  mkdir -p "$place"
  npm install --silent --no-fund --no-audit --prefix "$place" @ag-ui/client@1.0.0 >&2
  touch "$place/ready"
fi
echo "$place"
