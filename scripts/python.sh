#!/usr/bin/env bash
# Prints the path of Python 3, of which the guides with programs in Python need only the standard library.
#
#   cargo test -p steersman-cli --test it -- --ignored python::
set -euo pipefail

command -v python3 || { echo "python3 is missing: install the package of your system" >&2; exit 1; }
