"""What BERT's kin keep and hold as decoders where a config uses a rarer switch.

The figures are those of transformers 5.24.0: bytes of the cache after 64 tokens in bfloat16, and
parameters.
"""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.formats import FORMATS
from kvplan.readers.families.base import Options
from kvplan.readers.hf_config import read_config

BERT = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "intermediate_size": 96,
    "vocab_size": 100,
    "is_decoder": True,
}

# Type, class, keys, the encoder's length, bytes, parameters.
CASES: dict[str, tuple[str, str, dict[str, Any], int | None, int, int]] = {
    "bert_untied_has_its_bias_twice": ("bert", "BertLMHeadModel", BERT | {"tie_word_embeddings":
        False}, None, 49152, 138344),
    "bert_cross_attention": ("bert", "BertLMHeadModel", BERT | {"add_cross_attention": True},
        None, 49152, 182148),
    "big_bird_keeps_its_pooler": ("big_bird", "BigBirdForCausalLM", BERT | {"use_bias": False,
        "attention_type": "original_full"}, None, 49152, 364804),
    "electra_projected": ("electra", "ElectraForCausalLM", BERT | {"embedding_size": 32,
        "tie_word_embeddings": False}, None, 49152, 115300),
    "rembert_is_never_tied": ("rembert", "RemBertForCausalLM", BERT | {"input_embedding_size": 32,
        "output_embedding_size": 48, "tie_word_embeddings": True}, None, 49152, 117972),
    "roc_bert_without_shapes": ("roc_bert", "RoCBertForCausalLM", BERT | {"enable_shape": False,
        "pronunciation_embed_dim": 16, "shape_embed_dim": 8, "pronunciation_vocab_size": 20,
        "shape_vocab_size": 30}, None, 49152, 137588),
    "xmod_adapters": ("xmod", "XmodForCausalLM", BERT | {"languages": ["en_XX", "de_DE", "fr_XX"],
        "default_language": "en_XX", "pre_norm": True, "adapter_layer_norm": True}, None, 49152,
        170084),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bytes_and_parameters(case: str) -> None:
    """Both are what transformers has for the same config."""
    model_type, built, keys, source, num_bytes, parameters = CASES[case]
    config = {"model_type": model_type, "architectures": [built]} | keys

    model = read_config(config, options=Options(encoder_tokens=source))

    assert model.weights is not None
    assert parameters == model.weights.parameters
    assert num_bytes == model.curve(FORMATS["bf16"]).bytes(64)


def test_cross_attention_is_kept_over_a_known_encoder() -> None:
    """A decoder alone keeps an encoder's tokens where the asker says how many there are."""
    config = {"model_type": "bert", "add_cross_attention": True} | BERT

    alone = read_config(config).curve(FORMATS["bf16"])
    reading = read_config(config, options=Options(encoder_tokens=10)).curve(FORMATS["bf16"])

    assert 0 == alone.fixed_bytes
    assert 3 * 2 * 10 * 64 * 2 == reading.fixed_bytes


ENCODER = {key: value for key, value in BERT.items() if key != "is_decoder"}


@pytest.mark.parametrize(
    ("built", "parameters"),
    [("BertForMaskedLM", 131_844), ("BertForSequenceClassification", 131_616)],
)
def test_an_encoder_keeps_nothing(built: str, parameters: int) -> None:
    """What transformers 5.24.0 returns and counts; a classifier's own head is left out."""
    model = read_config({"model_type": "bert", "architectures": [built]} | ENCODER)

    assert model.weights is not None
    assert (0, parameters) == (
        model.curve(FORMATS["bf16"]).bytes(64),
        model.weights.parameters,
    )
    assert f"{built} is an encoder" in model.warnings[0]


def test_a_bare_model_is_sized_as_a_decoder_and_that_is_said() -> None:
    """BertModel can be either, and its config says which only by ``is_decoder``."""
    bare = {"model_type": "bert", "architectures": ["BertModel"]}
    undecided, decoder = read_config(bare | ENCODER), read_config(bare | BERT)

    assert 49152 == undecided.curve(FORMATS["bf16"]).bytes(64)
    assert "as an encoder it keeps no cache" in undecided.warnings[0]
    assert () == decoder.warnings
