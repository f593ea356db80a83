"""Files that a hub could have: a small Llama as config, safetensors and GGUF."""

from __future__ import annotations

import json
import struct
from math import prod
from typing import Any

from tests.readers.gguf_bytes import header

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 32,
}
SHAPES: dict[str, tuple[int, ...]] = {
    "model.embed_tokens.weight": (32, 8),
    "lm_head.weight": (32, 8),
    "model.norm.weight": (8,),
    "model.layers.0.input_layernorm.weight": (8,),
    "model.layers.0.post_attention_layernorm.weight": (8,),
    "model.layers.0.mlp.gate_proj.weight": (16, 8),
    "model.layers.0.mlp.up_proj.weight": (16, 8),
    "model.layers.0.mlp.down_proj.weight": (8, 16),
    **{f"model.layers.0.self_attn.{name}_proj.weight": (8, 8) for name in "qkvo"},
}
PARAMETERS = sum(prod(shape) for shape in SHAPES.values())
FIRST, SECOND = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def safetensors(names: list[str] | None = None, *, padding: int = 0) -> bytes:
    """A file of float32 tensors; ``padding`` makes its header longer."""
    entries: dict[str, Any] = {"__metadata__": {"padding": "x" * padding}}
    place = 0
    for name in sorted(SHAPES) if names is None else names:
        end = place + 4 * prod(SHAPES[name])
        entries[name] = {"dtype": "F32", "shape": SHAPES[name], "data_offsets": [place, end]}
        place = end
    head = json.dumps(entries).encode()
    return struct.pack("<Q", len(head)) + head + bytes(place)


def shards() -> dict[str, bytes]:
    """The Llama in two files with their index."""
    names = sorted(SHAPES)
    share = {FIRST: names[:6], SECOND: names[6:]}
    weight_map = {name: file for file, part in share.items() for name in part}
    index = {"metadata": {"total_size": 4 * PARAMETERS}, "weight_map": weight_map}
    files = {file: safetensors(part) for file, part in share.items()}
    return files | {"model.safetensors.index.json": json.dumps(index).encode()}


def gguf(*, vocabulary: int = 0, **split: int) -> bytes:
    """A GGUF of two layers with one tensor; ``split_no=0, split_count=2`` makes it one of two."""
    keys: dict[str, Any] = {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "llama.embedding_length": 64,
        "llama.attention.head_count": 4,
    }
    if vocabulary:
        keys["tokenizer.ggml.tokens"] = [f"token number {place:,}" for place in range(vocabulary)]
    keys |= {key.replace("_", "."): found for key, found in split.items()}
    name = f"blk.{split.get('split_no', 0)}.attn_q.weight"
    return header(keys, [(name, (64, 8), 0, 0)]) + bytes(4096)
