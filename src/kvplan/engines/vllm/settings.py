"""Flags and defaults to the settings that planning needs, each with its source.

vLLM 0.32.0, engine/arg_utils.py (EngineArgs.create_engine_config) and config/vllm.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kvplan.core.launch import Launch, Setting
from kvplan.core.model import Model
from kvplan.core.states import RecurrentState
from kvplan.engines.base import Asked, Node
from kvplan.engines.vllm.batches import batch_defaults
from kvplan.engines.vllm.devices import DeviceTraits, device_traits
from kvplan.engines.vllm.draft import Draft, draft_of
from kvplan.engines.vllm.flags import AUTO_LENGTH
from kvplan.engines.vllm.layout import Layout
from kvplan.engines.vllm.offload import Connector, connectors_of, disables_hybrid
from kvplan.engines.vllm.rules import Rules

FLOAT32 = ("float", "float32")
UNKNOWN_LENGTH = 2048  # config/model.py, where a config has no length
LONG_IN_V0 = 32768  # tokens of a model whose prompts V0 cuts unasked (engine/arg_utils.py 0.6.6)
# Tokens of the largest item that has to fit in one step (the log's "Raising
# max_num_batched_tokens from 2048 to 2496 to accommodate 'video' input").
ITEM_TOKENS = {"gemma4": 2496}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What planning reads: one value for each flag that it depends on.

    ``batch`` is max_num_batched_tokens; ``in_flight`` what may be scheduled and not yet settled,
    ``asynchronous`` whether a step is scheduled while the one before it runs.
    ``max_len`` is the longest sequence; where ``auto_length`` is on it is the most there may be.
    ``in_parts`` is whether a prompt may take several steps, so that a batch can be shorter than it.
    """

    layout: Layout
    device: DeviceTraits
    utilization: float
    max_len: int
    auto_length: bool
    max_seqs: int
    in_parts: bool
    batch: int
    in_flight: int
    asynchronous: bool
    kv_dtype: str
    model_bytes: int
    block_size: int | None
    prefix_caching: bool
    mamba_mode: str
    hybrid_manager: bool
    connectors: tuple[Connector, ...]
    eager: bool
    draft: Draft | None
    blocks_override: int | None
    backend: str
    flags: Mapping[str, Any]

    @property
    def draft_tokens(self) -> int:
        """Tokens that a step drafts."""
        return self.draft.tokens if self.draft else 0


class Sourced:
    """Values with their sources, collected on the way."""

    __slots__ = ("flags", "found")

    def __init__(self, flags: Mapping[str, Any]) -> None:
        self.flags = flags
        self.found: dict[str, Setting] = {}

    def take(self, flag: str, default: Any, source: str) -> Any:
        """The flag's value if it was given, else the default."""
        value = self.flags.get(flag)
        found = Setting(default, source) if value is None else Setting(value, "flag")
        self.found[flag] = found
        return found.value

    def switch(self, on: str, default: bool, source: str) -> bool:
        """A switch that has a form with ``no-``."""
        off = f"--no-{on.removeprefix('--')}"
        given = True if self.flags.get(on) else False if self.flags.get(off) else None
        if on in self.flags and given is None:
            given = bool(self.flags[on])
        value = default if given is None else given
        self.found[on] = Setting(value, source if given is None else "flag")
        return value


def settings_of(
    model: Model, node: Node, asked: Asked, layout: Layout, rules: Rules
) -> tuple[Settings, Launch]:
    """The settings of a start, and the launch that shows them.

    Raises:
        BadValue: a flag's value that no start can have.
    """
    flags = asked.flags
    device = device_traits(node.device.kind, node.device.vendor)
    if flags.get("--device", "auto") != "auto":
        device = device._replace(platform=flags["--device"])
    to = Sourced(flags)
    version = f"default of vLLM {rules.name}"
    layout.show(to.found, flags)
    utilization = to.take("--gpu-memory-utilization", rules.utilization, version)
    asked_length = to.take("--max-model-len", derived_length(model), "the model's maximum")
    auto = asked_length == AUTO_LENGTH
    max_len = derived_length(model) if auto else asked_length
    draft = draft_of(model, flags)
    batch, max_seqs = _batch(model, node, device, to, max_len, layout, rules)
    prefix = to.switch("--enable-prefix-caching", _caches_prefixes(model, rules), version)
    kv_dtype = _kv_dtype(model, device, to, rules)
    eager = to.switch("--enforce-eager", False, version)
    asynchronous = to.switch(
        "--async-scheduling", rules.asynchronous and device.platform != "cpu", version
    )
    steps = _steps_in_flight(model, layout, asynchronous, rules)
    connectors = connectors_of(flags, rules, layout.tp * layout.pp)
    return Settings(
        layout=layout,
        device=device,
        utilization=utilization,
        max_len=max_len,
        auto_length=auto,
        max_seqs=max_seqs,
        in_parts=_in_parts(model, device, flags, max_len, rules),
        batch=batch,
        in_flight=steps * batch,
        asynchronous=asynchronous,
        kv_dtype=kv_dtype,
        model_bytes=4 if flags.get("--dtype") in FLOAT32 else 2,
        block_size=flags.get("--block-size"),
        prefix_caching=prefix,
        mamba_mode=_mamba_mode(model, flags, prefix, rules),
        hybrid_manager=not (
            flags.get("--disable-hybrid-kv-cache-manager", False)
            or disables_hybrid(connectors, rules)
        ),
        connectors=connectors,
        eager=eager,
        draft=draft,
        blocks_override=flags.get("--num-gpu-blocks-override"),
        backend=flags.get("--attention-backend", ""),
        flags=flags,
    ), Launch(to.found | _others(flags, to.found))


def _steps_in_flight(model: Model, layout: Layout, asynchronous: bool, rules: Rules) -> int:
    """Steps that are scheduled and not settled (VllmConfig.max_concurrent_batches).

    The second model runner takes one more than there are stages; the first only without stages.
    """
    if not rules.in_flight:
        return 1
    weights = model.weights
    mixture = weights is not None and weights.active_parameters != weights.parameters
    one_more = layout.pp == 1 or rules.second_runner_everywhere or not mixture
    return layout.pp + 1 if asynchronous and one_more else layout.pp


def _others(flags: Mapping[str, Any], shown: Mapping[str, Setting]) -> dict[str, Setting]:
    """Every other flag that was given, as it was given."""
    return {
        flag: Setting(value, "flag")
        for flag, value in flags.items()
        if flag not in shown and not flag.startswith("--no-")
    }


def derived_length(model: Model) -> int:
    """The longest context that vLLM takes from the config."""
    return model.traits.served_context or model.max_context_tokens or UNKNOWN_LENGTH


def _batch(
    model: Model,
    node: Node,
    device: DeviceTraits,
    to: Sourced,
    max_len: int,
    layout: Layout,
    rules: Rules,
) -> tuple[int, int]:
    """Tokens and sequences of a step; what is not given follows device, usage and length."""
    usage = to.flags.get("--usage-context", "server")
    defaults = batch_defaults(device, node.memory_bytes, layout.tp * layout.pp, rules)
    tokens, sequences = defaults.of(usage)
    if to.flags.get("--performance-mode") == "throughput":
        tokens, sequences = 2 * tokens, 2 * sequences
    sequences = to.flags.get("--max-num-seqs") or sequences
    if to.flags.get("--no-enable-chunked-prefill") or not rules.paged_by_kind:
        tokens = max(tokens, max_len)
    if rules.item_in_batch and model.traits.multimodal:
        floor = ITEM_TOKENS.get(model.model_type, 0)
        tokens = max(tokens, 0 if to.flags.get("--language-model-only") else floor)
    tokens = min(tokens, sequences * max_len)
    where = f"default of vLLM {rules.name} on this device ({usage})"
    batch = to.take("--max-num-batched-tokens", tokens, where)
    max_seqs = to.take("--max-num-seqs", min(sequences, batch), where)
    return batch, max_seqs


def _in_parts(
    model: Model, device: DeviceTraits, flags: Mapping[str, Any], max_len: int, rules: Rules
) -> bool:
    """Whether prompts are cut: in V1 unless it is forbidden, in V0 where asked or for long models.

    vllm/engine/arg_utils.py, create_engine_config (0.6.6).
    """
    if flags.get("--no-enable-chunked-prefill"):
        return False
    if rules.paged_by_kind or flags.get("--enable-chunked-prefill"):
        return True
    apart = any(flags.get(flag) for flag in ("--speculative-config", "--enable-lora"))
    windows = any(getattr(layer, "window", None) for layer, _ in model.layers())
    return (
        max_len > LONG_IN_V0
        and device.platform == "cuda"
        and not (model.traits.multimodal or windows or apart)
    )


def has_states(model: Model) -> bool:
    """Whether a layer keeps a recurrent state."""
    return any(isinstance(layer, RecurrentState) for block in model.blocks.kinds for layer in block)


def has_attention(model: Model) -> bool:
    """Whether a layer keeps something of every token."""
    return any(
        layer.kind not in ("none", "shared") and not isinstance(layer, RecurrentState)
        for block in model.blocks.kinds
        for layer in block
    )


def _caches_prefixes(model: Model, rules: Rules) -> bool:
    """ModelConfig.is_prefix_caching_supported: off without attention and with an encoder."""
    if model.encoder_tokens or not rules.prefix_caching or not has_attention(model):
        return False
    return rules.hybrid_prefix_caching or not has_states(model)


def _mamba_mode(model: Model, flags: Mapping[str, Any], prefix: bool, rules: Rules) -> str:
    """MambaModelConfig.verify_and_update_config: ``none`` without prefix caching.

    With it ``all`` for state spaces and ``align`` for the others, from 0.30 ``align`` for every
    kind; before there was ``align``, no prefix was cached beside the others.
    """
    if not prefix:
        return "none"
    given = flags.get("--mamba-cache-mode")
    if given in ("align", "all") and (given != "all" or rules.all_mode):
        return str(given)
    keeps_all = rules.all_mode and any(
        layer.__class__ is RecurrentState for block in model.blocks.kinds for layer in block
    )
    if keeps_all:
        return "all"
    return "align" if rules.align_mode else "none"


def _kv_dtype(model: Model, device: DeviceTraits, to: Sourced, rules: Rules) -> str:
    """The flag's; with ``auto`` what the checkpoint's KV scheme says."""
    given = to.take("--kv-cache-dtype", "auto", "default")
    if given != "auto":
        return str(given)
    scheme = model.traits.kv_cache_format
    if scheme and rules.checkpoint_kv_format:
        to.found["--kv-cache-dtype"] = Setting(scheme, "the checkpoint's KV scheme")
        return scheme
    sparse = model.model_type.startswith("glm_moe_dsa")
    if sparse and rules.sm100_sparse_fp8 and device.major == 10 and device.platform == "cuda":
        to.found["--kv-cache-dtype"] = Setting("fp8_e4m3", "default for this model on SM 10")
        return "fp8_e4m3"
    return "auto"
