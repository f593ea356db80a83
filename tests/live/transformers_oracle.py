"""What transformers itself keeps and counts: a model is built without weights and asked.

Models are built on torch's meta device, which computes shapes alone, so that one of 671 billion
parameters takes seconds. A prefill fills the cache; every tensor it holds is summed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

# Tensors of a cache layer that count something and hold no state of a token.
COUNTERS = ("_sliding_window_tensor", "cumulative_length")


def build(config: dict[str, Any]) -> Any:
    """The class that a config names, without weights, in bfloat16."""
    import torch
    import transformers
    from transformers.initialization import no_init_weights
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    keys = {key: value for key, value in config.items() if key != "quantization_config"}
    parsed = CONFIG_MAPPING[config["model_type"]].from_dict(keys)
    cls = getattr(transformers, config["architectures"][0])
    options: list[dict[str, Any]] = [
        {"attn_implementation": "eager", "experts_implementation": "batched_mm"},
        {"attn_implementation": "eager"},
    ]
    for option in options:
        with contextlib.suppress(ValueError, TypeError), torch.device("meta"), no_init_weights():
            model = cls._from_config(parsed, dtype=torch.bfloat16, **option)
            model.tie_weights()
            return model.eval()
    raise ValueError(f"{config['architectures'][0]} cannot be built on the meta device")


def parameters(model: Any) -> int:
    """Parameters, tied ones once."""
    return sum(parameter.numel() for parameter in model.parameters())


def cache_bytes(model: Any, tokens: int) -> int:
    """Bytes that the cache of one sequence holds after a prefill of ``tokens`` tokens."""
    import torch

    with torch.no_grad():
        found = model(torch.zeros(1, tokens, dtype=torch.long, device="meta"), use_cache=True)
    cache = found.get("past_key_values")
    if cache is None:
        cache = found.get("cache_params")
    seen = {}
    for layer in cache.layers:
        for tensor in _tensors(layer):
            view = (tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.shape))
            seen[view] = tensor.numel() * tensor.element_size()
    return sum(seen.values())


def _tensors(value: Any, depth: int = 0) -> Iterator[Any]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _tensors(item, depth + 1)
    elif depth == 0:
        for name, item in vars(value).items():
            if name not in COUNTERS:
                yield from _tensors(item, depth + 1)
