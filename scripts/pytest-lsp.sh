#!/usr/bin/env bash
# Installs pytest-lsp, a client of the Language Server Protocol that other people wrote, and prints where.
#
#   STEERSMAN_PYTEST_LSP=$(scripts/pytest-lsp.sh) cargo test -p steersman-cli --test it -- --ignored pytest_lsp::
#
# It is kept in $STEERSMAN_CACHE, else ~/.cache/steersman.
set -euo pipefail

cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
version=1.0.1
place=$cache/pytest-lsp-$version

mkdir -p "$cache"
if [ ! -e "$place/ready" ]; then
  echo "installing pytest-lsp $version" >&2
  rm -rf "$place"
  python3 -m venv "$place" >&2
  "$place/bin/pip" install --quiet --disable-pip-version-check "pytest-lsp==$version" >&2
  touch "$place/ready"
fi
echo "$place"
