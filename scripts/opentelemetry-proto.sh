#!/usr/bin/env bash
# Installs the OpenTelemetry protocol for Python, which other people wrote, and prints where.
#
#   STEERSMAN_OPENTELEMETRY=$(scripts/opentelemetry-proto.sh) cargo test -p steersman-cli --test it -- --ignored opentelemetry::
set -euo pipefail

exec "$(dirname "$0")/venv.sh" opentelemetry-proto==1.45.2
