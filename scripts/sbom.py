"""Validates a bill of materials by the schema of CycloneDX 1.5, and the licences in it by the list of SPDX.

   python sbom.py FILE
"""

import json
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from license_expression import get_spdx_licensing

text = open(sys.argv[1], encoding="utf-8").read()
fault = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
if fault is not None:
    sys.exit(f"{sys.argv[1]} is not valid by the schema: {fault}")

bill = json.loads(text)
licences = get_spdx_licensing()
names = set()
for part in [bill["metadata"]["component"], *bill["components"]]:
    names.add(part["bom-ref"])
    for licence in part["licenses"]:
        faults = licences.validate(licence["expression"]).errors
        if faults:
            sys.exit(f"{part['bom-ref']}: {faults}")
for row in bill["dependencies"]:
    for name in [row["ref"], *row["dependsOn"]]:
        if name not in names:
            sys.exit(f"{name} is used and not listed")
print(f"valid: {len(names)} parts")
