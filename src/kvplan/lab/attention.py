"""Attention that tells a cache how much each of its rows was attended to.

transformers lets a program add an attention function (5.24.0, AttentionInterface). Ours computes
what sdpa computes and, where the keys come from a cache that asks (they carry it as an attribute),
the probabilities as well: summed over the queries and over the query heads of each KV head.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from kvplan.core.errors import BadValue

NAME = "kvplan_observed"
QUERIES_AT_ONCE = 256  # a long prompt's probabilities are computed in parts


def observed_attention(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, **options: Any
) -> tuple[Any, Any]:
    """sdpa, and what the cache asked for."""
    observer = getattr(key, "observer", None)
    output = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
    if observer is not None:
        observer(query, key, float(options.get("scaling") or query.shape[-1] ** -0.5))
    return output  # type: ignore[no-any-return]


def attended(query: Any, key: Any, scaling: float, last: int | None = None) -> Any:
    """Attention that each key of ``(1, kv heads, keys, dim)`` has from the queries, or the last.

    The queries are the newest tokens: the one before the last does not see the last.
    """
    heads, total, new = key.shape[1], key.shape[-2], query.shape[-2]
    grouped = query[0].float().unflatten(0, (heads, -1))
    keys = key[0].float()[:, None].mT
    sums = torch.zeros(heads, total, device=key.device)
    for start in range(0 if last is None else max(0, new - last), new, QUERIES_AT_ONCE):
        end = min(new, start + QUERIES_AT_ONCE)
        logits = grouped[:, :, start:end] @ keys * scaling
        place = torch.arange(start, end, device=key.device)[:, None] + total - new
        hidden = torch.arange(total, device=key.device)[None] > place
        sums += logits.masked_fill(hidden, -torch.inf).softmax(-1).sum((1, 2))
    return sums


@contextmanager
def observing(model: Any) -> Iterator[None]:
    """The model computes with the observed attention as long as the context lasts.

    Raises:
        BadValue: its own attention is another than sdpa, which ours stands for.
    """
    before = model.config._attn_implementation
    if before not in ("sdpa", NAME):
        raise BadValue(
            f"What was looked at is told by sdpa attention; this model computes with {before}."
        )
    AttentionInterface.register(NAME, observed_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    model.set_attn_implementation(NAME)
    try:
        yield
    finally:
        model.set_attn_implementation(before)
