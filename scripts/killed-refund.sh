#!/usr/bin/env bash
# Kills the same refund in the same place, once in a LangGraph program with its SQLite saver and once in Steersman, lets
# each continue in a new process, and counts the refunds in the shop's book. No model and no key is needed.
#
#   scripts/killed-refund.sh
#
# LangGraph is installed in $STEERSMAN_CACHE, else ~/.cache/steersman, in the versions that the benchmarks use. The
# program is $STEERSMAN_PROGRAM; if that is not set, it is built. Needs Python 3.10 or newer with venv.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
wanted=$here/../benches/peers/py/requirements/langgraph.txt
cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/langgraph-$(sha256sum "$wanted" | cut -c1-12)

if [ ! -e "$place/ready" ]; then
  echo "installing $(tr '\n' ' ' < "$wanted")" >&2
  rm -rf "$place"
  mkdir -p "$cache"
  python3 -m venv "$place"
  "$place/bin/pip" install --quiet --disable-pip-version-check -r "$wanted" >&2
  touch "$place/ready"
fi
if [ -z "${STEERSMAN_PROGRAM:-}" ]; then
  cargo build --quiet --manifest-path "$here/../Cargo.toml" -p steersman-cli
  STEERSMAN_PROGRAM=${CARGO_TARGET_DIR:-$here/../target}/debug/steersman
fi
exec "$place/bin/python" "$here/killed-refund/compare.py" "$STEERSMAN_PROGRAM"
