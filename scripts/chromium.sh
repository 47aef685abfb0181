#!/usr/bin/env bash
# Installs Chromium from the packages of Debian, unless it is there, and axe-core, which looks for what keeps people out. Prints a folder that has both.
#
#   STEERSMAN_CHROMIUM=$(scripts/chromium.sh) cargo test -p steersman-cli --test it -- --ignored chromium::
#
# Needs Node with npm, apt-get and the right to install.
set -euo pipefail

if ! command -v chromium >/dev/null; then
  echo "installing Chromium" >&2
  apt-get -qq update >&2
  DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends chromium fonts-dejavu-core >&2
fi
place=$("$(dirname "$0")/npm.sh" axe-core@4.14.1)
ln -sfn "$(command -v chromium)" "$place/chromium"
echo "$place"
