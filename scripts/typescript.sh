#!/usr/bin/env bash
# Installs the compiler of TypeScript and the types of Node, and prints where. The client in TypeScript needs nothing else.
#
#   STEERSMAN_TYPESCRIPT=$(scripts/typescript.sh) cargo test -p steersman-cli --test it -- --ignored typescript_client::
#
# They are kept in $STEERSMAN_CACHE, else ~/.cache/steersman.
set -euo pipefail

cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/typescript-7.0.2-1

mkdir -p "$cache"
if [ ! -e "$place/ready" ]; then
  echo "installing TypeScript" >&2
  rm -rf "$place"
  mkdir -p "$place"
  npm install --silent --no-fund --no-audit --prefix "$place" typescript@7.0.2 @types/node@26.6.7 >&2
  touch "$place/ready"
fi
echo "$place"
