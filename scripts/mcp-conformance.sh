#!/usr/bin/env bash
# Installs the conformance suite of the Model Context Protocol, which other people wrote, with the version of Node that it needs, and
# prints where.
#
#   STEERSMAN_MCP_CONFORMANCE=$(scripts/mcp-conformance.sh) cargo test -p steersman-cli --test it -- --ignored mcp_conformance::
#
# They are kept in $STEERSMAN_CACHE, else ~/.cache/steersman.
set -euo pipefail

cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/mcp-conformance-1

mkdir -p "$cache"
if [ ! -e "$place/ready" ]; then
  echo "installing the conformance suite of MCP" >&2
  rm -rf "$place"
  mkdir -p "$place"
  npm install --silent --no-fund --no-audit --prefix "$place" @modelcontextprotocol/conformance@0.1.16 node@22.23.3 >&2
  touch "$place/ready"
fi
echo "$place"
