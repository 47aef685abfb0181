#!/usr/bin/env bash
# Installs the official clients of OpenAI for Python and JavaScript, which other people wrote, and prints where.
#
#   STEERSMAN_OPENAI=$(scripts/openai-clients.sh) cargo test -p steersman-server --test it -- --ignored openai_clients::
#
# They are kept in $STEERSMAN_CACHE, else ~/.cache/steersman.
set -euo pipefail

cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/openai-clients-1

mkdir -p "$cache"
if [ ! -e "$place/ready" ]; then
  echo "installing the clients of OpenAI" >&2
  rm -rf "$place"
  mkdir -p "$place/js"
  python3 -m venv "$place/python" >&2
  "$place/python/bin/pip" install --quiet --disable-pip-version-check openai==3.54.0 >&2
  npm install --silent --no-fund --no-audit --prefix "$place/js" openai@7.57.0 >&2
  touch "$place/ready"
fi
echo "$place"
