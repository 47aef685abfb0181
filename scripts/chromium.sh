#!/usr/bin/env bash
# Installs Chromium from the packages of Debian, unless it is there, and prints the folder of the program.
#
#   STEERSMAN_CHROMIUM=$(scripts/chromium.sh) cargo test -p steersman-cli --test it -- --ignored chromium::
#
# Needs apt-get and the right to install.
set -euo pipefail

if ! command -v chromium >/dev/null; then
  echo "installing Chromium" >&2
  apt-get -qq update >&2
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends chromium fonts-dejavu-core >&2
fi
dirname "$(command -v chromium)"
