"""Which layers' modules a list of names, stars and expressions speaks of.

Recipes name modules one by one (``model.layers.3.mlp.gate``), with stars (``model.layers.0*``), by
a part of the name (``lm_head``, ``self_attn``) or as a small expression (``re:.*self_attn.*``). A
role of the inventory stands for modules of usual names; what is named of it is a share of the
layers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

from kvplan.core import weights as w

MAX_PATTERNS = 100_000
MAX_PATTERN_LENGTH = 200
MAX_STARS = 8
EVERY_LAYER = -1
MAX_EXPRESSIONS = 512  # a published recipe has a few dozen

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

_LAYER = re.compile(r"layers\.(\d{1,4})(?=\D|$)")
_STARS_OR_WORDS = re.compile(r"(\*+|\([\w|]{1,120}\))")

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


class Named(NamedTuple):
    """What patterns name in a layer: dotted names, and expressions where there are stars."""

    literals: frozenset[str]
    expressions: tuple[re.Pattern[str], ...]

    def holds(self, module: str) -> bool:
        """Whether a module is named, whole or by a part of its name."""
        if not self.literals.isdisjoint(_dotted_parts(module)):
            return True
        whole = f".model.layers.0.{module}."
        return any(expression.search(whole) for expression in self.expressions)


class Sorted(NamedTuple):
    """Patterns by the layer they name, those that name none, and whether a router has a block.

    ``routed_beside`` is on where experts stand beside the MLP: their router is named without it.
    """

    by_layer: Mapping[int, Named]
    everywhere: Named
    routed_beside: bool


def share(role: str, patterns: list[str], depth: int) -> float:
    """The part of a role's layers that some patterns name.

    Of a role whose modules have several usual names the one that is named most counts.
    """
    if not patterns or depth < 1:
        return 0.0
    found = _sorted_patterns(tuple(patterns))
    modules = MODULES.get(role, ())
    if found.routed_beside:
        modules = BESIDE_MLP.get(role, modules)
    return max((_layers(module, found, depth) / depth for module in modules), default=0.0)


def _layers(module: str, found: Sorted, depth: int) -> int:
    """The layers whose module is named."""
    if found.everywhere.holds(module):
        return depth
    return sum(place < depth and own.holds(module) for place, own in found.by_layer.items())


@lru_cache(maxsize=4)  # asked of one recipe's few lists, role after role
def _sorted_patterns(patterns: tuple[str, ...]) -> Sorted:
    """Patterns made ready to be asked; expressions beyond ``MAX_EXPRESSIONS`` are left out."""
    literals: dict[int, set[str]] = {}
    starred: dict[int, set[str]] = {}
    for pattern in patterns:
        place, text = _place_and_name(pattern)
        kind = starred if _STARS_OR_WORDS.search(text) else literals
        kind.setdefault(place, set()).add(text)
    left = MAX_EXPRESSIONS
    named = {}
    for place in sorted(literals.keys() | starred.keys()):
        texts = sorted(starred.get(place, ()))[:left]
        left -= len(texts)
        built = tuple(filter(None, map(_expression, texts)))
        named[place] = Named(frozenset(literals.get(place, ())), built)
    everywhere = named.pop(EVERY_LAYER, Named(frozenset(), ()))
    beside = any(".router" in pattern and ".mlp" not in pattern for pattern in patterns)
    return Sorted(named, everywhere, beside)


def _place_and_name(pattern: str) -> tuple[int, str]:
    """The layer that a pattern names, and its text with that layer as the first.

    Of an expression (``re:``) only ``.*``, alternatives of words and escaped dots are kept, so
    that no file can make matching slow.
    """
    text = pattern
    if pattern.startswith("re:"):
        text = pattern[3:].replace("\\.", ".").replace(".*", "*").strip("^$")
    if "language_model." in text:
        for prefix in ("model.language_model.", "language_model.model.", "language_model."):
            text = text.replace(prefix, "model.")
    place = _LAYER.search(text)
    if place is None:
        return EVERY_LAYER, text.replace("layers.*.", "layers.0.")
    return int(place[1]), _LAYER.sub("layers.0", text)


def _expression(text: str) -> re.Pattern[str] | None:
    """A name as an expression over dotted names: stars match anything, the rest is literal."""
    pieces = _STARS_OR_WORDS.split(text)  # what stands at odd places is a star or words
    if not text.strip("*") or len(pieces) > 2 * MAX_STARS:
        return None
    built = "".join(
        _starred(piece) if place % 2 else re.escape(piece) for place, piece in enumerate(pieces)
    )
    ending = "" if text.endswith("*") else r"\."
    return re.compile(rf"{'' if text.startswith('*') else '[.]'}{built}{ending}")


def _starred(piece: str) -> str:
    return ".*" if piece.startswith("*") else f"(?:{piece[1:-1]})"


@cache
def _dotted_parts(module: str) -> frozenset[str]:
    """Every run of whole words of a usual module's name."""
    words = f"model.layers.0.{module}".split(".")
    ends = range(1, len(words) + 1)
    return frozenset(".".join(words[a:b]) for b in ends for a in range(b))
