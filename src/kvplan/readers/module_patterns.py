"""Which layers' modules a list of names, stars and expressions speaks of.

Recipes name modules one by one (``model.layers.3.mlp.gate``), with stars (``model.layers.0*``), by
a part of the name (``lm_head``, ``self_attn``) or as a small expression (``re:.*self_attn.*``). A
role of the inventory stands for modules of usual names; what is named of it is a share of the
layers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from kvplan.core import weights as w

MAX_PATTERNS = 100_000
MAX_PATTERN_LENGTH = 200
MAX_STARS = 8

# The modules that a role stands for, below ``model.layers.N``.
MODULES: dict[str, tuple[str, ...]] = {
    w.QUERY: ("self_attn.q_proj", "self_attn.q_b_proj"),
    w.KEY: ("self_attn.k_proj", "self_attn.kv_b_proj"),
    w.VALUE: ("self_attn.v_proj", "self_attn.kv_b_proj"),
    w.OUTPUT: ("self_attn.o_proj",),
    w.LATENT: ("self_attn.kv_a_proj_with_mqa", "self_attn.q_a_proj"),
    w.INDEXER: ("self_attn.indexer.wq_b", "self_attn.indexer.wk"),
    w.MLP_IN: ("mlp.gate_proj", "mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj"),
    w.MLP_OUT: ("mlp.down_proj", "mlp.shared_experts.down_proj", "mlp.shared_expert.down_proj"),
    w.EXPERT_IN: ("mlp.experts.0.gate_proj", "block_sparse_moe.experts.0.w1"),
    w.EXPERT_OUT: ("mlp.experts.0.down_proj", "block_sparse_moe.experts.0.w2"),
    w.ROUTER: ("mlp.gate",),
    w.STATE_IN: ("linear_attn.in_proj_qkvz", "mixer.in_proj", "linear_attn.in_proj_qkv"),
    w.STATE_OUT: ("linear_attn.out_proj", "mixer.out_proj"),
}

# Gemma 4: ``layers.N.router`` and ``layers.N.experts``, a dense ``layers.N.mlp`` beside them.
BESIDE_MLP: dict[str, tuple[str, ...]] = {
    w.EXPERT_IN: ("experts.0.gate_proj",),
    w.EXPERT_OUT: ("experts.0.down_proj",),
}


def strings(found: Any) -> list[str]:
    """The texts of a list, or of a list that was shortened to counted patterns."""
    if isinstance(found, Mapping):
        return [name for name, _ in counted(found)]
    if not isinstance(found, list):
        return []
    texts = [item for item in found[:MAX_PATTERNS] if isinstance(item, str)]
    return [text for text in texts if len(text) <= MAX_PATTERN_LENGTH]


def counted(found: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """A mapping's items; of one that was shortened to counted patterns, each pattern's."""
    rows = found.get("counted_patterns")
    if not isinstance(rows, list):
        return list(found.items())[:MAX_PATTERNS]
    return [(str(row[0]), row[1]) for row in rows if isinstance(row, list) and len(row) > 1]


def is_all(targets: Iterable[str]) -> bool:
    """Whether targets are every linear layer."""
    return any(target in ("Linear", "re:.*", "*") for target in targets)


def share(role: str, patterns: list[str], depth: int) -> float:
    """The part of a role's layers that some patterns name.

    Of a role whose modules have several usual names the one that is named most counts.
    """
    if not patterns or depth < 1:
        return 0.0
    by_layer, everywhere = _sorted_patterns(tuple(patterns))
    best = 0.0
    for module in _modules(role, everywhere, by_layer):
        of_all = any(_names(pattern, module) for pattern in everywhere)
        hits = depth if of_all else sum(
            any(_names(pattern, module) for pattern in own)
            for place, own in by_layer.items()
            if place < depth
        )  # fmt: skip
        best = max(best, hits / depth)
    return best


def _modules(
    role: str, everywhere: tuple[str, ...], by_layer: Mapping[int, tuple[str, ...]]
) -> tuple[str, ...]:
    """The usual names of a role; experts that stand beside the MLP where their router does."""
    named = (*everywhere, *next(iter(by_layer.values()), ()))
    beside = any(".router" in name and ".mlp" not in name for name in named)
    return BESIDE_MLP.get(role, MODULES.get(role, ())) if beside else MODULES.get(role, ())


@lru_cache(maxsize=64)
def _sorted_patterns(
    patterns: tuple[str, ...],
) -> tuple[dict[int, tuple[str, ...]], tuple[str, ...]]:
    """Patterns by the layer they name, and those that name none."""
    by_layer: dict[int, list[str]] = {}
    everywhere = []
    for pattern in patterns:
        place = re.search(r"layers\.(\d{1,4})(?=\D|$)", pattern)
        if place and not pattern.startswith("re:"):
            by_layer.setdefault(int(place[1]), []).append(pattern)
        else:
            everywhere.append(pattern)
    return {place: tuple(found) for place, found in by_layer.items()}, tuple(everywhere)


def _names(pattern: str, module: str) -> bool:
    """Whether a pattern names a module of the layer it speaks of, whole or by a part."""
    expression = _expression(pattern)
    return expression is not None and expression.search(f".model.layers.0.{module}.") is not None


@lru_cache(maxsize=4096)
def _expression(pattern: str) -> re.Pattern[str] | None:
    """A pattern as an expression over a dotted name: stars match anything, the rest is literal.

    Of an expression (``re:``) only ``.*``, alternatives of words and escaped dots are kept, so
    that no file can make matching slow.
    """
    text = pattern
    if pattern.startswith("re:"):
        text = pattern[3:].replace("\\.", ".").replace(".*", "*").strip("^$")
    for prefix in ("model.language_model.", "language_model.model.", "language_model."):
        text = text.replace(prefix, "model.")
    text = re.sub(r"layers\.\d{1,4}(?=\D|$)", "layers.0", text).replace("layers.*.", "layers.0.")
    pieces = re.split(r"(\*+|\([\w|]{1,120}\))", text)
    if not text.strip("*") or len(pieces) > 2 * MAX_STARS:
        return None
    built = "".join(map(_piece, pieces))
    ending = "" if text.endswith("*") else r"\."
    return re.compile(rf"{'' if text.startswith('*') else '[.]'}{built}{ending}")


def _piece(text: str) -> str:
    if text.startswith("*"):
        return ".*"
    return f"(?:{text[1:-1]})" if text.startswith("(") else re.escape(text)
