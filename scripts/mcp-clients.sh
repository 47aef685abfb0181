#!/usr/bin/env bash
# Installs the official clients of the Model Context Protocol for Python and JavaScript, which other people wrote, and prints where.
#
#   STEERSMAN_MCP_CLIENTS=$(scripts/mcp-clients.sh) cargo test -p steersman-cli --test it -- --ignored mcp_clients::
#
# They are kept in $STEERSMAN_CACHE, else ~/.cache/steersman.
set -euo pipefail

cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/mcp-clients-1

mkdir -p "$cache"
if [ ! -e "$place/ready" ]; then
  echo "installing the clients of MCP" >&2
  rm -rf "$place"
  mkdir -p "$place/js"
  python3 -m venv "$place/python" >&2
  "$place/python/bin/pip" install --quiet --disable-pip-version-check mcp==2.3.0 >&2
  npm install --silent --no-fund --no-audit --prefix "$place/js" @modelcontextprotocol/sdk@1.32.2 >&2
  touch "$place/ready"
fi
echo "$place"
