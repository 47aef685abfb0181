#!/usr/bin/env bash
# Installs pytest-lsp, a client of the Language Server Protocol that other people wrote, and prints where.
#
#   STEERSMAN_PYTEST_LSP=$(scripts/pytest-lsp.sh) cargo test -p steersman-cli --test it -- --ignored pytest_lsp::
set -euo pipefail

exec "$(dirname "$0")/venv.sh" pytest-lsp==1.0.1
