#!/usr/bin/env bash
# Installs the library of the CycloneDX project, which validates bills of materials, and prints the path of a Python that has it.
#
#   $(scripts/sbom.sh) scripts/sbom.py sbom.cdx.json     # `cargo xtask dist` does it
#
# It is kept in $STEERSMAN_CACHE, else ~/.cache/steersman, and takes 60 MB. Needs Python with venv.
set -euo pipefail

version=11.12.0
cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
place=$cache/cyclonedx-$version

if [ ! -e "$place/ready" ]; then
  echo "installing the library of CycloneDX $version" >&2
  rm -rf "$place"
  mkdir -p "$cache"
  python3 -m venv "$place" >&2
  "$place/bin/pip" install --quiet --disable-pip-version-check "cyclonedx-python-lib[json-validation]==$version" >&2
  touch "$place/ready"
fi
echo "$place/bin/python"
