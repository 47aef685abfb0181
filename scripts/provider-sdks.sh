#!/usr/bin/env bash
# Installs the SDKs that OpenAI, Anthropic, Google and Amazon publish for Python, and prints where.
#
#   STEERSMAN_PROVIDER_SDKS=$(scripts/provider-sdks.sh) cargo test -p steersman-adapters --test it -- --ignored provider_sdks::
set -euo pipefail

exec "$(dirname "$0")/venv.sh" openai==3.54.0 anthropic==2.10.0 google-genai==3.3.0 google-auth==2.62.2 botocore==1.44.8
