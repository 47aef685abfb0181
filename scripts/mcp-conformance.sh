#!/usr/bin/env bash
# Installs the conformance suite of the Model Context Protocol, which other people wrote, with the version of Node that it needs, and
# prints where.
#
#   STEERSMAN_MCP_CONFORMANCE=$(scripts/mcp-conformance.sh) cargo test -p steersman-cli --test it -- --ignored mcp_conformance::
set -euo pipefail

exec "$(dirname "$0")/npm.sh" @modelcontextprotocol/conformance@0.1.16 node@22.23.3
