"""transformers' caches against tensors that it really kept, and what a batch needs."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import BadValue
from kvplan.engines.transformers.caches import QuantisedCache
from kvplan.engines.transformers.plan import TransformersPlan
from kvplan.planning.fit import fit
from tests.engines.aliases import CONFIGS

SMOL = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 576,
    "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
    "num_key_value_heads": 3, "vocab_size": 49152, "tie_word_embeddings": True,
    "max_position_embeddings": 8192,
}  # fmt: skip
WINDOWED = SMOL | {"model_type": "mistral", "architectures": ["MistralForCausalLM"]}
A_TOKEN = 46080  # SmolLM2-135M in float32


def planned(model: Any = SMOL, **flags: Any) -> TransformersPlan:
    given = {"gpu_memory": "24GiB", "dtype": "float32"} | flags
    plan = fit(model, engine="transformers", **given).plan
    assert isinstance(plan, TransformersPlan)
    return plan


# SmolLM2-135M in float32 after a prompt of 512 and 24 generated tokens, of which the last is not
# fed back: bytes of the tensors that transformers 5.24 held.
MEASURED = [
    ({}, 24_652_800),
    ({"cache_implementation": "static", "max_cache_len": 536}, 24_699_120),
    ({"cache_implementation": "quantized", "cache_backend": "hqq", "nbits": 8}, 7_695_360),
    ({"cache_implementation": "quantized", "cache_backend": "hqq", "nbits": 4}, 4_746_240),
    ({"cache_implementation": "quantized", "cache_backend": "quanto", "nbits": 2}, 3_271_680),
    ({"cache_implementation": "quantized", "cache_backend": "fp8"}, 6_163_440),
]


@pytest.mark.parametrize(("flags", "num_bytes"), MEASURED)
def test_measured_bytes(flags: dict[str, Any], num_bytes: int) -> None:
    """Equal, to the byte."""
    cache = planned(**flags).cache
    held = cache.by_prompt(512, 535) if isinstance(cache, QuantisedCache) else cache.kept(535)

    assert num_bytes == held


def test_a_static_window() -> None:
    """256 tokens and a counter a layer: 11,796,720 bytes, measured."""
    flags = {"cache_implementation": "static", "set": {"sliding_window": 256}}

    assert 11_796_720 == planned(WINDOWED, **flags).cache.kept(535)


def test_a_window_holds_the_whole_prompt_until_the_next_step() -> None:
    """47.2 MB held for 11.75 MB of window after a prompt of 1,024, measured."""
    cache = planned(WINDOWED, set={"sliding_window": 256}).cache

    assert (1024 * A_TOKEN, 255 * A_TOKEN) == (cache.after_prefill(1024), cache.kept(1025))


def test_static_reserves_the_length_of_generate() -> None:
    """max_length − 1 positions, from the first on."""
    cache = planned(cache_implementation="static").cache

    assert 535 * A_TOKEN + 30 * 8 == cache.kept(536)


def test_offloaded_keeps_two_layers_on_the_card() -> None:
    """The layer at work and the one that is fetched; the others are in host memory."""
    cache = planned(cache_implementation="offloaded").cache

    assert 600 * A_TOKEN // 30 * 2 == cache.kept(600)
    assert 600 * A_TOKEN == cache.host(600)


def test_the_residual_waits_whole() -> None:
    """127 tokens at most are kept in the model's type; at 128 all is quantised."""
    cache = planned(cache_implementation="quantized").cache
    assert isinstance(cache, QuantisedCache)

    assert cache.packed(640) == cache.by_prompt(512, 640)
    assert cache.packed(512) + 127 * A_TOKEN == cache.by_prompt(512, 639)
    assert cache.by_prompt(512, 639) == cache.kept(639)


REFUSED = [
    (WINDOWED, {"set": {"sliding_window": 256}}, "sliding window"),
    (SMOL, {"nbits": 8}, "quanto has no 8 bits"),
    (SMOL, {"cache_backend": "hqq", "nbits": 5}, "hqq has no 5 bits"),
    (CONFIGS / "Qwen--Qwen3.5-9B.json", {}, "linear attention"),
]


@pytest.mark.parametrize(("model", "flags", "said"), REFUSED)
def test_what_cannot_be_quantised(model: Any, flags: dict[str, Any], said: str) -> None:
    """Layers other than full attention, and bits that a backend does not have."""
    with pytest.raises(BadValue, match=said):
        planned(model, cache_implementation="quantized", **flags)


def test_a_batch_needs_its_prefill() -> None:
    """Cache and activations of the prompt, times the batch, fill the room."""
    plan = planned(max_new_tokens=100)
    each = 4000 * A_TOKEN + 3900 * plan.activation_bytes - 100 * A_TOKEN

    assert max(each, 4000 * A_TOKEN + plan.activation_bytes) == plan.needed(4000)
    assert plan.room // plan.needed(4000) == plan.capacity(4000).sequences


def test_longest_is_what_fits() -> None:
    """One token more does not fit."""
    plan = planned(gpu_memory="3GiB")
    found = plan.longest(7)

    assert plan.capacity(found).sequences >= 7 > plan.capacity(found + 1).sequences


def test_ranks_share_the_heads() -> None:
    """p055: on four ranks a token costs each a quarter, so the pool has four times the tokens."""
    qwen = CONFIGS / "Qwen--Qwen3-32B.json"
    one, four = (planned(qwen, gpus=count, kv_pool="8GiB", dtype="auto") for count in (1, 4))

    assert 4.0 == one.sequence_bytes(256) / four.sequence_bytes(256)


def test_weights_that_do_not_fit() -> None:
    """The verdict has both figures."""
    answer = fit(CONFIGS / "Qwen--Qwen3-32B.json", gpu="rtx-4090", engine="transformers")

    assert not answer.fits
    assert "nothing is left for a cache" in str(answer.reason)
