"""The tiers that vLLM keeps in host memory: its own KV offload, and LMCache.

    --kv-offloading-size 40                                        GiB of all ranks together
    --kv-transfer-config {"kv_connector": "OffloadingConnector",   the same, or blocks by number
      "kv_connector_extra_config": {"cpu_bytes_to_use": …}}
    LMCACHE_MAX_LOCAL_CPU_SIZE=50  (--lmcache-max-local-cpu-size)   GiB of each rank

vLLM 0.32.0: config/vllm.py (_post_init_kv_transfer_config), v1/kv_offload/cpu/spec.py; LMCache
0.5.6: v1/storage_backend/local_cpu_backend.py, v1/config.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kvplan.core.errors import BadValue
from kvplan.core.tier import Tier
from kvplan.core.units import GIB, round_up
from kvplan.engines.vllm.rules import Rules
from kvplan.engines.vllm.specs import FullSpec, LatentSpec, StateSpec

if TYPE_CHECKING:
    from kvplan.engines.vllm.plan import VllmPlan

OFFLOADING: Final = "OffloadingConnector"
SIMPLE: Final = "SimpleCPUOffloadConnector"
LMCACHE: Final = ("LMCacheConnectorV1", "LMCacheConnector")
MULTI: Final = "MultiConnector"
PAGE_BYTES: Final = 4096  # mmap.PAGESIZE of x86 hosts
LMCACHE_GIB: Final = 5.0
LMCACHE_CHUNK: Final = 256
SERVER_OWNS = (
    "LMCache's own server (LMCacheMPConnector) has the memory: vLLM sets none of it aside."
)


class Connector(NamedTuple):
    """A connector by name with its settings."""

    name: str
    extra: Mapping[str, Any]

    def number(self, *names: str) -> float | None:
        """The first of some settings that is a number."""
        for name in names:
            value = self.extra.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
                return float(value)
        return None


def connectors_of(flags: Mapping[str, Any], rules: Rules, ranks: int) -> tuple[Connector, ...]:
    """The connectors that the flags ask for.

    Raises:
        BadValue: a version that takes no size.
    """
    size, transfer = flags.get("--kv-offloading-size"), flags.get("--kv-transfer-config") or {}
    found = list(_named(transfer))
    if size is not None:
        found.append(
            _of_size(size, str(flags.get("--kv-offloading-backend", "native")), rules, ranks)
        )
    own = flags.get("--lmcache-max-local-cpu-size")
    if own is not None and not any(each.name in LMCACHE for each in found):
        found.append(Connector(LMCACHE[0], {}))
    return tuple(found)


def _named(transfer: Mapping[str, Any]) -> Iterator[Connector]:
    name, extra = str(transfer.get("kv_connector") or ""), transfer.get("kv_connector_extra_config")
    extra = extra if isinstance(extra, Mapping) else {}
    if name == MULTI:
        parts = extra.get("connectors")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, Mapping):
                yield from _named(part)
    elif name:
        yield Connector(name, extra)


def _of_size(size: int, backend: str, rules: Rules, ranks: int) -> Connector:
    """What ``--kv-offloading-size`` stands for."""
    if backend == "lmcache":
        if rules.lmcache_server:
            return Connector("LMCacheMPConnector", {})
        return Connector(LMCACHE[0], {"lmcache.max_local_cpu_size": size / ranks / GIB})
    if not rules.offload_by_bytes:
        raise BadValue(
            f"vLLM {rules.name} sets no number of blocks for --kv-offloading-size and does not "
            "start with it.",
            "Pass --kv-transfer-config with num_cpu_blocks, or take 0.14 or later.",
        )
    return Connector(OFFLOADING, {"cpu_bytes_to_use": size})


def disables_hybrid(connectors: tuple[Connector, ...], rules: Rules) -> bool:
    """Whether a connector turns the hybrid manager off: every one, later those without SupportsHMA
    (LMCache's).
    """
    if not rules.offload_hybrid:
        return bool(connectors)
    return any(each.name.startswith("LMCache") for each in connectors)


def tiers_of(plan: VllmPlan, connectors: tuple[Connector, ...], rules: Rules) -> tuple[Tier, ...]:
    """The tiers of a plan, in the order in which they are asked for."""
    found = []
    for connector in connectors:
        if connector.name in (OFFLOADING, SIMPLE):
            found.append(_native(plan, connector, rules))
        elif connector.name in LMCACHE:
            found.append(_lmcache(plan, connector))
    return tuple(found)


def _native(plan: VllmPlan, connector: Connector, rules: Rules) -> Tier:
    """The offload of vLLM itself: chunks of the bytes of all ranks, one buffer that they share."""
    layout = plan.settings.layout
    ranks = layout.tp * layout.pp
    factor = _blocks_per_chunk(plan, connector)
    part = plan.bytes_per_block * factor
    copies = 1 if rules.offload_one_copy and _is_replicated(plan) else ranks
    chunk = round_up(part * copies, PAGE_BYTES if rules.offload_aligned else 1)
    if rules.offload_by_bytes:
        total = connector.number("cpu_bytes_to_use") or 0
        own = connector.number("cpu_bytes_to_use_per_rank")
        chunks = int(own * ranks if own else total) // max(1, chunk)
    else:
        chunks = int(connector.number("num_cpu_blocks") or 0)
    notes = []
    if copies < ranks:
        notes.append("The latent rows of all ranks are equal: one copy is kept.")
    if len(plan.groups) > 1:
        notes.append(
            "Windows and states are counted with a block for every block of tokens: what no prefix "
            "can end at may be left out."
        )
    return Tier(
        name="kv_offload",
        rank_bytes=chunks * part,
        host_bytes=chunks * chunk * layout.replicas,
        ranks=ranks,
        block_tokens=_tokens_of_block(plan) * factor,
        rank_block_bytes=_growing(plan) * part,
        fixed_bytes=_fixed_blocks(plan) * plan.bytes_per_block,
        tokens=int(chunks * factor / _blocks_a_token(plan)) if plan.groups else 0,
        source=f"{connector.name}: {chunks:,} chunks of {chunk:,} B over {copies} "
        f"rank{'s' if copies > 1 else ''}",
        notes=tuple(notes),
    )


def _blocks_per_chunk(plan: VllmPlan, connector: Connector) -> int:
    """Blocks of the card that are kept as one."""
    blocks = connector.number("blocks_per_chunk")
    if blocks:
        return int(blocks)
    tokens = connector.number("block_size")
    block = _tokens_of_block(plan)
    if not tokens:
        return 1
    if tokens % block:
        raise BadValue(
            f"A block_size of {int(tokens)} in --kv-transfer-config is no multiple of the card's "
            f"{block}.",
            f"Pass {round_up(int(tokens), block)}.",
        )
    return int(tokens) // block


def _is_replicated(plan: VllmPlan) -> bool:
    """Whether tensor parallelism alone copies latent rows to every rank."""
    layout = plan.settings.layout
    latent = all(isinstance(spec, LatentSpec) for group in plan.groups for spec, _ in group.members)
    return latent and layout.tp > 1 and layout.pp == 1 and layout.dcp == 1


def _tokens_of_block(plan: VllmPlan) -> int:
    """Tokens of a block that keeps every token; of the smallest group where none does."""
    sizes = [g.spec.block_size for g in plan.groups if isinstance(g.spec, FullSpec)]
    smallest = min((g.spec.block_size for g in plan.groups), default=1)
    return min(sizes, default=smallest) * plan.request.dcp


def _growing(plan: VllmPlan) -> int:
    """Groups whose blocks a prefix needs for all of its tokens."""
    return sum(isinstance(group.spec, FullSpec) for group in plan.groups)


def _fixed_blocks(plan: VllmPlan) -> int:
    """Blocks of windows and states that a long prefix needs beside."""
    long = plan.max_len
    return sum(g.held(long, plan.request) for g in plan.groups if not isinstance(g.spec, FullSpec))


def _blocks_a_token(plan: VllmPlan) -> float:
    """Blocks that are kept for each token of a prefix, over all groups."""
    return sum(1 / (group.spec.block_size * plan.request.dcp) for group in plan.groups)


def _lmcache(plan: VllmPlan, connector: Connector) -> Tier:
    """LMCache: every rank keeps chunks of its own part, in memory of its own."""
    layout, flags = plan.settings.layout, plan.settings.flags
    ranks = layout.tp * layout.pp
    size = flags.get("--lmcache-max-local-cpu-size")
    if size is None:
        size = int((connector.number("lmcache.max_local_cpu_size") or LMCACHE_GIB) * GIB)
    chunk = flags.get("--lmcache-chunk-size") or int(
        connector.number("lmcache.chunk_size") or LMCACHE_CHUNK
    )
    token = _token_bytes(plan)
    chunks = size // (chunk * token) if token else 0
    notes = ["max_local_cpu_size is of each rank, in GiB."] if ranks > 1 else []
    if any(isinstance(group.spec, StateSpec) for group in plan.groups):
        notes.append("LMCache keeps no recurrent states: a prefix is computed again for them.")
    if _is_replicated(plan):
        notes.append("Of latent rows the first rank's alone are kept (save_only_first_rank).")
    return Tier(
        name="lmcache",
        rank_bytes=size,
        host_bytes=size * ranks * layout.replicas,
        ranks=ranks,
        block_tokens=chunk,
        rank_block_bytes=chunk * token,
        tokens=chunks * chunk,
        source=f"LMCache: {chunks:,} chunks of {chunk} tokens × {token:,} B on each rank",
        notes=tuple(notes),
    )


def _token_bytes(plan: VllmPlan) -> int:
    """Bytes of one token on one rank in all layers that keep tokens, windows at full length."""
    stages = range(plan.settings.layout.pp)
    members = [
        (spec, at)
        for group in plan.groups
        for spec, at in group.members
        if not isinstance(spec, StateSpec)
    ]
    return max(
        (
            sum(s.page_bytes * at.count(stage) // s.block_size for s, at in members)
            for stage in stages
        ),
        default=0,
    )
