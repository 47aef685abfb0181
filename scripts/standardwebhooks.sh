#!/usr/bin/env bash
# Installs the library of Standard Webhooks for Python, which other people wrote, and prints where.
#
#   STEERSMAN_STANDARDWEBHOOKS=$(scripts/standardwebhooks.sh) cargo test -p steersman-server --test it -- --ignored webhook_clients::
set -euo pipefail
exec "$(dirname "$0")/venv.sh" standardwebhooks==1.1.0
