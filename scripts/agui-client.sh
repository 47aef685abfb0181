#!/usr/bin/env bash
# Installs the official client of AG-UI for JavaScript, which other people wrote, and prints where.
#
#   STEERSMAN_AGUI=$(scripts/agui-client.sh) cargo test -p steersman-server --test it -- --ignored agui_clients::
set -euo pipefail

exec "$(dirname "$0")/npm.sh" @ag-ui/client@1.0.0
