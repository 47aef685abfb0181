#!/usr/bin/env bash
# Installs the library of the CycloneDX project, which validates bills of materials, and prints the path of a Python that has it.
#
#   $(scripts/sbom.sh) scripts/sbom.py sbom.cdx.json     # `cargo xtask dist` does it
#
# It takes 60 MB.
set -euo pipefail

place=$("$(dirname "$0")/venv.sh" 'cyclonedx-python-lib[json-validation]==11.12.0')
echo "$place/bin/python"
