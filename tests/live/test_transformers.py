"""A sample of models is built by transformers itself, here and now, and compared.

Published configs, and configs that nobody published: class defaults with some keys changed.
"""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import KvplanError
from kvplan.core.formats import FORMATS
from kvplan.readers import catalogue
from kvplan.readers.hf_config import read_config
from tests.live.mutations import mutate

pytestmark = pytest.mark.oracle

PUBLISHED = [
    "meta-llama/Llama-3.1-8B-Instruct",
    "Qwen/Qwen3-32B",
    "Qwen/Qwen3-30B-A3B",
    "openai/gpt-oss-20b",
    "google/gemma-2-9b",
    "deepseek-ai/DeepSeek-V3",
    "mistralai/Mistral-7B-v0.1",
    "microsoft/phi-4",
    "tiiuae/falcon-7b-instruct",
]
MUTATED = [
    ("llama", "LlamaForCausalLM"),
    ("qwen2", "Qwen2ForCausalLM"),
    ("qwen3_moe", "Qwen3MoeForCausalLM"),
    ("gemma3_text", "Gemma3ForCausalLM"),
    ("gemma2", "Gemma2ForCausalLM"),
    ("cohere2", "Cohere2ForCausalLM"),
    ("deepseek_v3", "DeepseekV3ForCausalLM"),
    ("glm4_moe", "Glm4MoeForCausalLM"),
    ("gpt_oss", "GptOssForCausalLM"),
    ("falcon", "FalconForCausalLM"),
    ("mamba2", "Mamba2ForCausalLM"),
    ("qwen3_next", "Qwen3NextForCausalLM"),
    ("lfm2", "Lfm2ForCausalLM"),
    ("olmo3", "Olmo3ForCausalLM"),
]
SEEDS = range(3)
LENGTHS = (1, 9, 700)


def compare(config: dict[str, Any]) -> None:
    """Bytes at several lengths, and parameters, are transformers' own."""
    from tests.live import transformers_oracle as oracle

    try:
        built = oracle.build(config)
        measured = [oracle.cache_bytes(built, tokens) for tokens in LENGTHS]
    except Exception as error:  # whatever transformers raises of a config it refuses
        pytest.skip(f"transformers itself refuses this config: {str(error)[:80]}")
    model = read_config(config)
    curve = model.curve(FORMATS["bf16"])

    assert measured == [curve.bytes(tokens) for tokens in LENGTHS]
    assert model.weights is not None
    assert oracle.parameters(built) == model.weights.parameters


@pytest.mark.parametrize("name", PUBLISHED)
def test_published(name: str) -> None:
    """A published model, at full size."""
    found = catalogue.find(name)
    assert found is not None
    compare(catalogue.config_of(found.entry))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("model_type", "architecture"), MUTATED)
def test_mutated(model_type: str, architecture: str, seed: int) -> None:
    """A rule holds for other sizes and switches than the defaults."""
    compare(mutate(model_type, architecture, seed, share=0.4))


def test_what_transformers_lacks_is_refused_by_name() -> None:
    """A type that nobody knows, with a key of another kind of cache, is named."""
    with pytest.raises(KvplanError, match="state_size"):
        read_config({"model_type": "novel", "state_size": 16, "num_hidden_layers": 2})
