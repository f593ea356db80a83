"""The shapes that the profile run computes with, on the rank that decides."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kvplan.core import weights as w
from kvplan.core.launch import Launch
from kvplan.core.model import Model
from kvplan.core.units import ceil_div, round_up
from kvplan.core.version import Version
from kvplan.core.weights import Weight

VOCABULARY_MULTIPLE: Final = 64
FLOAT_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """Of a mixture: experts of a token, and a rank's inner width, gate and up together."""

    drawn: int
    inner: int
    wide: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One profile run: so many tokens of so many sequences, by a model of these widths.

    ``inner`` is the widest dense network of a rank; ``attention`` the width of a rank's queries,
    keys and values together.
    """

    tokens: int
    sequences: int
    hidden: int
    vocabulary: int
    inner: int
    attention: int
    experts: Experts | None
    element_bytes: int
    tp: int
    pp: int

    @property
    def hidden_bytes(self) -> int:
        """Hidden states of all tokens."""
        return self.tokens * self.hidden * self.element_bytes


def batch_of(model: Model, launch: Launch) -> Batch:
    """The profile run of a launch.

    A model without a known width counts as the narrowest: its terms are then all error.
    """
    tensors = model.weights.tensors if model.weights is not None else ()
    tp = int(setting(launch, "--tensor-parallel-size", 1))
    widths = _widths(tensors, tp, bool(setting(launch, "--enable-expert-parallel", False)))
    dtype = str(setting(launch, "--dtype", "auto"))
    return Batch(
        tokens=int(setting(launch, "--max-num-batched-tokens", 8192)),
        sequences=int(setting(launch, "--max-num-seqs", 256)),
        hidden=model.hidden_size or 0,
        vocabulary=round_up(model.vocab_size or 0, VOCABULARY_MULTIPLE),
        inner=widths.inner,
        attention=widths.attention,
        experts=widths.experts,
        element_bytes=FLOAT_BYTES if dtype in ("float32", "float") else 2,
        tp=tp,
        pp=int(setting(launch, "--pipeline-parallel-size", 1)),
    )


class _Widths(NamedTuple):
    """Widths of a rank's layers."""

    inner: int
    attention: int
    experts: Experts | None


@lru_cache(maxsize=512)
def _widths(tensors: tuple[Weight, ...], tp: int, whole: bool) -> _Widths:
    """The widest of each kind on a rank, ``whole`` where experts are not cut."""
    inner = _widest(tensors, w.MLP_IN, tp)
    return _Widths(inner, _attention(tensors, tp), _experts(tensors, tp, whole))


def setting(launch: Launch, flag: str, default: Any) -> Any:
    """A flag's value, or a default where the launch does not have it."""
    found = launch.settings.get(flag)
    return default if found is None or found.value is None else found.value


def _widest(tensors: tuple[Weight, ...], role: str, tp: int) -> int:
    return max((ceil_div(t.rows, tp) for t in tensors if t.role == role), default=0)


def _attention(tensors: tuple[Weight, ...], tp: int) -> int:
    queries = _widest(tensors, w.QUERY, tp)
    keys = max((t.rows for t in tensors if t.role in (w.KEY, w.VALUE)), default=0)
    states = _widest(tensors, w.STATE_IN, tp)
    return max(queries + 2 * ceil_div(keys, tp), states)


def _experts(tensors: tuple[Weight, ...], tp: int, whole: bool) -> Experts | None:
    """From the down projections of the experts: how many there are, and how many are drawn."""
    downs = [t for t in tensors if t.role == w.EXPERT_OUT and t.active > 0]
    routers = [t for t in tensors if t.role == w.ROUTER and t.cols > 1]
    if not downs or not routers:
        return None
    down = max(downs, key=lambda weight: weight.parameters)
    count = next((r.rows for r in routers if down.copies % r.rows == 0), 0)
    layers = down.copies // count if count else 1
    ups = [t for t in tensors if t.role == w.EXPERT_IN and t.rows == down.cols]
    gates = max(1, ups[0].copies // down.copies) if ups else 2
    inner = down.cols if whole else ceil_div(down.cols, tp)
    return Experts(drawn=max(1, down.active // layers), inner=inner, wide=inner * gates)


def runner_two(model: Model, version: Version, pooling: bool, mixture: bool) -> bool:
    """Whether the second model runner serves it by default.

    vllm/config/vllm.py, VllmConfig.use_v2_model_runner and DEFAULT_V2_MODEL_RUNNER_ARCHITECTURES
    in 0.22.1, 0.23.0, 0.24.0, 0.25.1, 0.28.0 and 0.29.0.
    """
    if version >= Version((0, 29)):
        return True
    if pooling or version < Version((0, 22)):
        return False
    if version >= Version((0, 25)):
        states = any(layer.kind in STATE_KINDS for layer, _ in model.layers())
        return not states and (not mixture or model.architecture in EARLY_MIXTURES)
    listed = next(names for since, names in EARLY if version >= since)
    return model.architecture in listed


STATE_KINDS = frozenset({"recurrent_state", "linear_attention", "convolution_state"})
EARLY_MIXTURES = frozenset({
    "DeepseekV2ForCausalLM", "Qwen2MoeForCausalLM", "GraniteMoeForCausalLM",
})  # fmt: skip
DENSE = frozenset({"LlamaForCausalLM", "MistralForCausalLM", "Qwen3ForCausalLM"})
EARLY = (
    (Version((0, 24)), DENSE | EARLY_MIXTURES),
    (Version((0, 23)), DENSE),
    (Version((0, 22)), frozenset({"Qwen3ForCausalLM"})),
)
