"""What decoders of the GPT era keep and hold where a config uses a rarer switch or an older key.

The figures are those of transformers 5.24.0: bytes of the cache after that many tokens in bfloat16
(0 tokens where it cannot run such a config), and parameters.
"""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import BadFile
from kvplan.core.formats import FORMATS
from kvplan.readers.hf_config import read_config

SMALL = {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100}

# Type, keys, tokens, bytes, parameters.
CASES: dict[str, tuple[str, dict[str, Any], int, int, int]] = {
    "bigcode_all_heads": (
        "gpt_bigcode",
        {"n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 100, "multi_query": False},
        300,
        153600,
        172032,
    ),
    "bloom_older_width": (
        "bloom",
        {"n_embed": 32, "n_head": 4, "n_layer": 2, "vocab_size": 100, "hidden_size": 64},
        300,
        76800,
        28736,
    ),
    "cpmant_prompt": (
        "cpmant",
        SMALL
        | {"dim_head": 8, "dim_ff": 100, "prompt_length": 8, "prompt_types": 3, "segment_types": 4},
        300,
        78848,
        71808,
    ),
    "falcon_grouped": (
        "falcon",
        SMALL
        | {
            "num_kv_heads": 2,
            "new_decoder_architecture": True,
            "num_ln_in_parallel_attn": 1,
            "ffn_hidden_size": 100,
        },
        300,
        153600,
        56960,
    ),
    "falcon_old": (
        "falcon",
        {
            "n_embed": 64,
            "num_attention_heads": 4,
            "num_hidden_layers": 2,
            "vocab_size": 100,
            "multi_query": False,
            "parallel_attn": False,
            "bias": True,
            "alibi": True,
        },
        300,
        153600,
        106496,
    ),
    "gpt2_standard_names": (
        "gpt2",
        SMALL | {"n_inner": 100, "add_cross_attention": True},
        300,
        153600,
        165320,
    ),
    "gptj_tied": (
        "gptj",
        {
            "n_embd": 64,
            "n_head": 4,
            "n_layer": 2,
            "rotary_dim": 8,
            "vocab_size": 100,
            "tie_word_embeddings": True,
        },
        300,
        153600,
        105828,
    ),
    "neox_no_bias": (
        "gpt_neox",
        {
            "hidden_size": 64,
            "num_attention_heads": 4,
            "num_hidden_layers": 4,
            "intermediate_size": 96,
            "vocab_size": 100,
            "attention_bias": False,
            "tie_word_embeddings": True,
        },
        300,
        307200,
        122880,
    ),
    "opt_narrow": (
        "opt",
        SMALL
        | {
            "ffn_dim": 100,
            "word_embed_proj_dim": 32,
            "do_layer_norm_before": False,
            "enable_bias": False,
            "tie_word_embeddings": False,
        },
        300,
        153600,
        200576,
    ),
    "opt_no_affine": (
        "opt",
        SMALL | {"ffn_dim": 100, "layer_norm_elementwise_affine": False},
        300,
        153600,
        196808,
    ),
    "reformer_rows": (
        "reformer",
        {
            "is_decoder": True,
            "hidden_size": 64,
            "num_attention_heads": 4,
            "attention_head_size": 16,
            "attn_layers": ["lsh", "local", "lsh"],
            "axial_pos_embds": False,
            "feed_forward_size": 100,
            "max_position_embeddings": 512,
            "num_hashes": 2,
            "num_buckets": 4,
        },
        64,
        24576,
        175724,
    ),
    "xlm_languages": (
        "xlm",
        {"emb_dim": 64, "n_heads": 4, "n_layers": 2, "n_words": 100, "n_langs": 3},
        300,
        153600,
        139556,
    ),
    "xlnet_everything": (
        "xlnet",
        {
            "d_model": 64,
            "n_head": 4,
            "n_layer": 2,
            "d_inner": 100,
            "vocab_size": 100,
            "mem_len": None,
        },
        64,
        32768,
        74604,
    ),
    "xlnet_memory": (
        "xlnet",
        {
            "d_model": 64,
            "n_head": 4,
            "n_layer": 2,
            "d_inner": 100,
            "vocab_size": 100,
            "mem_len": 20,
        },
        64,
        10240,
        74604,
    ),
}


@pytest.mark.parametrize(
    ("model_type", "keys", "tokens", "num_bytes", "parameters"), CASES.values(), ids=CASES
)
def test_bytes_and_parameters(
    model_type: str, keys: dict[str, Any], tokens: int, num_bytes: int, parameters: int
) -> None:
    """The cache to the byte, the weights to the parameter."""
    model = read_config({"model_type": model_type, **keys})

    assert model.weights is not None
    assert (num_bytes, parameters) == (
        model.curve(FORMATS["bf16"]).bytes(tokens),
        model.weights.parameters,
    )


def test_an_engine_keeps_falcons_groups_once() -> None:
    """The layer says 8 groups, and the 128 heads that transformers broadcasts them to."""
    keys = {"num_attention_heads": 128, "hidden_size": 8192, "num_kv_heads": 8}
    model = read_config({"model_type": "falcon", "new_decoder_architecture": True, **keys})
    (layer, _), *rest = model.layers()

    assert not rest
    assert (8, 32 * 2 * 128 * 64 * 2) == (layer.heads, model.curve(FORMATS["bf16"]).per_token)


def test_unknown_attention_of_reformer_is_refused() -> None:
    """Only local and hashed layers exist."""
    with pytest.raises(BadFile, match="attn_layers"):
        read_config({"model_type": "reformer", "attn_layers": ["global"]})
