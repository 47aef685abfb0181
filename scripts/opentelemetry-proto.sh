#!/usr/bin/env bash
# Installs the OpenTelemetry protocol for Python, which other people wrote, and prints where.
#
#   STEERSMAN_OPENTELEMETRY=$(scripts/opentelemetry-proto.sh) cargo test -p steersman-cli --test it -- --ignored opentelemetry::
#
# It is kept in $STEERSMAN_CACHE, else ~/.cache/steersman.
set -euo pipefail

cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
version=1.45.2
place=$cache/opentelemetry-proto-$version

mkdir -p "$cache"
if [ ! -e "$place/ready" ]; then
  echo "installing opentelemetry-proto $version" >&2
  rm -rf "$place"
  python3 -m venv "$place" >&2
  "$place/bin/pip" install --quiet --disable-pip-version-check "opentelemetry-proto==$version" >&2
  touch "$place/ready"
fi
echo "$place"
