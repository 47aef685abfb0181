#!/usr/bin/env bash
# Installs Schemathesis, which makes requests from an OpenAPI document, and prints where.
#
#   STEERSMAN_SCHEMATHESIS=$(scripts/schemathesis.sh) cargo test -p steersman-cli --test it -- --ignored schemathesis::
set -euo pipefail
exec "$(dirname "$0")/venv.sh" schemathesis==4.32.5
