#!/usr/bin/env bash
# Installs Firefox ESR from the packages of Debian, unless it is there. Prints its folder.
#
#   STEERSMAN_FIREFOX=$(scripts/firefox.sh) cargo test -p steersman-cli --test it -- --ignored firefox::
#
# Needs apt-get and the right to install.
set -euo pipefail

if ! command -v firefox-esr >/dev/null; then
  echo "installing Firefox" >&2
  apt-get -qq update >&2
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends firefox-esr fonts-dejavu-core >&2
fi
dirname "$(command -v firefox-esr)"
