#!/usr/bin/env bash
# Installs zig and cargo-zigbuild, which compile C and link for other targets, and prints the folder of their programs.
#
#   $(scripts/zig.sh)/cargo-zigbuild zigbuild --release --target aarch64-unknown-linux-musl     # `cargo xtask dist` does it
#
# They take 400 MB.
set -euo pipefail

place=$("$(dirname "$0")/venv.sh" ziglang==0.17.1 cargo-zigbuild==0.24.1)
echo "$place/bin"
