#!/usr/bin/env bash
# Installs the compiler of TypeScript and the types of Node, and prints where. The client in TypeScript needs nothing else.
#
#   STEERSMAN_TYPESCRIPT=$(scripts/typescript.sh) cargo test -p steersman-cli --test it -- --ignored typescript_client::
set -euo pipefail

exec "$(dirname "$0")/npm.sh" typescript@7.0.2 @types/node@26.6.7
