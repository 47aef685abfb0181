#!/usr/bin/env bash
# Installs what the client in Python needs, and mypy, and prints where.
#
#   STEERSMAN_PYTHON_CLIENT=$(scripts/python-client.sh) cargo test -p steersman-cli --test it -- --ignored python_client::
exec "$(dirname "$0")/venv.sh" httpx2==2.16.2 mypy==2.4.1
