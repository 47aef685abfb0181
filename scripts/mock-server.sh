#!/usr/bin/env bash
# Starts aimock, a scripted stand-in for model providers that other people wrote, with this repository's fixtures.
#
#   scripts/mock-server.sh [PORT] [ARGUMENTS OF aimock]     # default port 18096; runs until it is stopped
#   STEERSMAN_MOCK_SERVER=http://127.0.0.1:18096/v1 cargo test -p steersman-adapters --test it -- --ignored aimock::
#
# The package is kept in $STEERSMAN_CACHE, else ~/.cache/steersman.
set -euo pipefail

port=18096
if [ $# -gt 0 ] && [[ $1 =~ ^[0-9]+$ ]]; then
  port=$1
  shift
fi
version=1.43.0
cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/aimock-$version
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

mkdir -p "$cache"
if [ ! -e "$place/ready" ]; then
  echo "installing @copilotkit/aimock $version" >&2
  rm -rf "$place"
  mkdir -p "$place"
  npm install --silent --no-fund --no-audit --prefix "$place" "@copilotkit/aimock@$version" >&2
  touch "$place/ready"
fi
exec "$place/node_modules/.bin/llmock" -p "$port" -f "$here/crates/steersman-adapters/tests/it/aimock" "$@"
