"""vLLM as an engine: flags and defaults, pages and groups, the ledger, the pool, the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from kvplan.core.cross import CrossAttention
from kvplan.core.launch import Launch, Setting
from kvplan.core.ledger import Ledger
from kvplan.core.model import Model
from kvplan.core.pool import Group, Pool
from kvplan.engines.base import Asked, Change, Engine, EnginePlan, Node
from kvplan.engines.flags import FlagTable
from kvplan.engines.vllm import prints, reasons
from kvplan.engines.vllm.admission import longest_that_fits, needed_bytes
from kvplan.engines.vllm.changes import changes_of
from kvplan.engines.vllm.command import CPU_SPACE, command
from kvplan.engines.vllm.flags import FLAGS
from kvplan.engines.vllm.grouping import CannotGroup, Groups, count_equal, group
from kvplan.engines.vllm.groups import CacheGroup
from kvplan.engines.vllm.layout import Layout, layout_of
from kvplan.engines.vllm.memory import claim_of, host_ledger, total_of
from kvplan.engines.vllm.memory import ledger as memory_ledger
from kvplan.engines.vllm.memory.ledger import rank_weights_of
from kvplan.engines.vllm.notes import notes
from kvplan.engines.vllm.pages import Pages, pages_of
from kvplan.engines.vllm.plan import VllmPlan
from kvplan.engines.vllm.pool import Printed, block_bytes, printed
from kvplan.engines.vllm.rules import NEWEST, OLDEST, Rules, rules_of
from kvplan.engines.vllm.settings import Settings, settings_of
from kvplan.engines.vllm.specs import Request, StateSpec
from kvplan.engines.vllm.whole import whole_pages


class VllmEngine(Engine):
    """One server or LLM class of vLLM."""

    name: ClassVar[str] = "vllm"
    how: ClassVar[str] = "pages by layer kind in one pool of blocks"
    versions: ClassVar[tuple[str, str]] = (OLDEST, NEWEST)
    flags: ClassVar[FlagTable] = FLAGS
    not_on: ClassVar[tuple[str, ...]] = ("Apple",)
    length_flag: ClassVar[str] = "--max-model-len"

    def plan(self, model: Model, node: Node, asked: Asked) -> VllmPlan:
        """The plan by the rules of the asked version.

        Raises:
            BadValue: ranks that do not divide or are more than the cards, a version that is not
                modelled, a value that no start takes.
        """
        rules = rules_of(asked.version or NEWEST)
        layout, said = layout_of(model, node, asked.flags)
        if layout.cards > node.gpus:
            node = replace(node, gpus=layout.cards)
        settings, launch = settings_of(model, node, asked, layout, rules)
        return _Start(model, node, asked, rules, settings, launch, tuple(said)).plan()

    def changes(self, plan: EnginePlan) -> Iterator[Change]:
        """The levers that apply to a plan."""
        if isinstance(plan, VllmPlan):
            yield from changes_of(plan, rules_of(plan.version or NEWEST))


@dataclass(slots=True)
class _Start:
    """One start of the engine, worked out step by step."""

    model: Model
    node: Node
    asked: Asked
    rules: Rules
    settings: Settings
    launch: Launch
    said: tuple[str, ...]

    @property
    def layout(self) -> Layout:
        """Its ranks."""
        return self.settings.layout

    def plan(self) -> VllmPlan:
        """Pages, groups, pool and verdict."""
        pages = self._pages()
        ledger = self._ledger()
        available = max(0, ledger.pool_bytes)
        try:
            groups = group(pages.layers, self.rules, hybrid=self.settings.hybrid_manager)
        except CannotGroup as why:
            return self._build(pages, (), ledger, 0, reasons.cannot_group(str(why), self.rules))
        if not groups:
            return self._build(pages, groups, ledger, 1, None)
        block = block_bytes(groups, self.rules, self.layout.pp)
        override = self.settings.blocks_override
        blocks = available // block if override is None else override
        if override is not None and self.rules.override_checked:
            available = override * block
        request, reason = self._admitted(pages, groups, block, available, ledger)
        if reason is None and self._lacks_states(groups, blocks):
            short = reasons.too_few_states(self.settings.max_seqs, blocks)
            if self.asked.pool_bytes is None:
                reason = short
            else:  # a log's pool: the lines that it is from were printed before
                self.said += (short,)
        return self._build(pages, groups, ledger, blocks, reason, request)

    def _lacks_states(self, groups: Groups, blocks: int) -> bool:
        """Whether graphs would be made for more sequences than there are states."""
        settings = self.settings
        if not self.rules.states_bound_sequences or settings.eager:
            return False
        stateful = any(isinstance(group.spec, StateSpec) for group in groups)
        return stateful and settings.device.platform != "cpu" and settings.max_seqs > blocks

    def _pages(self) -> Pages:
        if self._is_paged:
            return pages_of(self.model, self.settings, self.rules)
        return whole_pages(self.model, self.settings, self.rules)

    @property
    def _is_paged(self) -> bool:
        """Whether V1 serves it, with pages by the kind of layer."""
        if not self.rules.paged_by_kind:
            return False
        return self.rules.encoder_decoders_paged or not any(
            isinstance(layer, CrossAttention)
            for block in self.model.blocks.kinds
            for layer in block
        )

    def _ledger(self) -> Ledger:
        if self.settings.device.platform == "cpu":
            return self._host_ledger()
        return memory_ledger(
            self.model,
            self.node,
            self.launch,
            self.rules.version,
            weights_bytes=self.asked.weights_bytes,
            pool_bytes=self.asked.pool_bytes,
        )

    def _host_ledger(self) -> Ledger:
        asked, version = self.asked, self.rules.version
        weights = rank_weights_of(self.model, self.node, self.launch, version, asked.weights_bytes)
        set_by = (asked.flags.get(flag) for flag in ("--kv-cache-memory-bytes", CPU_SPACE))
        given = next((size for size in (asked.pool_bytes, *set_by) if size is not None), None)
        return host_ledger(
            self.node.memory_bytes,
            weights,
            utilization=self.settings.utilization,
            pool_bytes=given,
        )

    def _request(self, max_len: int) -> Request:
        return Request(
            max_len,
            self.settings.in_flight,
            self.layout.dcp,
            self.model.encoder_tokens or 0,
        )

    def _admitted(
        self, pages: Pages, groups: Groups, block: int, available: int, ledger: Ledger
    ) -> tuple[Request, str | None]:
        """The request that the start is checked with, and why it fails; ``auto`` is settled."""
        settings, rules = self.settings, self.rules
        request = self._request(settings.max_len)
        claim = claim_of(self.node, self.launch)
        if claim is not None and claim.requested > claim.free and self.asked.pool_bytes is None:
            weights = next((t.num_bytes for t in ledger if t.name == "weights"), 0)
            return request, reasons.not_free(claim, settings.utilization, weights, rules)
        if settings.batch < settings.max_len and not settings.in_parts:
            said = reasons.batch_below_length(settings.batch, settings.max_len)
            return request, said
        if settings.batch < settings.max_seqs:
            return request, reasons.batch_below_sequences(settings.batch, settings.max_seqs)
        if available <= 0:
            return request, self._no_memory(ledger)
        if not self._is_paged:
            tokens = available // block * pages.block_size
            if settings.max_len <= tokens:
                return request, None
            return request, reasons.too_long_v0(settings.max_len, tokens)
        usable = available - block if rules.null_block else available
        layers = count_equal(pages.layers)
        checked = max(g.page_bytes if g.is_mixed else g.layers * g.page_bytes for g in groups)
        if not rules.all_stages_checked:
            checked = block

        def needed(length: int) -> int:
            return needed_bytes(groups, layers, checked, request._replace(max_len=length), rules)

        need = needed(settings.max_len)
        if need <= usable:
            return request, None
        longest = longest_that_fits(needed, usable, settings.max_len)
        if settings.auto_length and longest:
            return self._request(longest), None
        return request, reasons.too_long(settings.max_len, need, usable, longest, rules)

    def _no_memory(self, ledger: Ledger) -> str:
        weights = next((t.num_bytes for t in ledger if t.name == "weights"), 0)
        if weights > self.node.memory_bytes:
            return reasons.weights_alone(weights, self.node.memory_bytes)
        asked = f"--gpu-memory-utilization {self.settings.utilization:g}"
        return reasons.no_memory(ledger.pool_bytes, asked)

    def _build(
        self,
        pages: Pages,
        groups: Groups,
        ledger: Ledger,
        blocks: int,
        reason: str | None,
        request: Request | None = None,
    ) -> VllmPlan:
        asked = request or self._request(self.settings.max_len)
        block = block_bytes(groups, self.rules, self.layout.pp) if groups else 0
        figures = printed(groups, blocks, asked, self.rules) if groups else None
        pool = max(0, ledger.pool_bytes)
        null = 1 if self._is_paged and blocks else 0
        return VllmPlan(
            engine="vllm",
            version=self.asked.version or NEWEST,
            model=self.model,
            node=self.node,
            asked=self.asked,
            launch=self._settled(asked),
            ledger=ledger,
            pool=Pool(
                num_bytes=pool,
                block_size=pages.block_size,
                num_blocks=blocks,
                bytes_per_block=block or None,
                kv_tokens=figures.tokens if figures else None,
                max_concurrency=figures.concurrency if figures else None,
                max_model_len=asked.max_len,
                groups=tuple(_shown(g, asked) for g in groups),
            ),
            starts=reason is None,
            reason=reason,
            prints=(
                *self._prints(pool, blocks, block, figures, asked),
                *self._graph_prints(ledger),
            )
            if reason is None
            else (),
            command=command(self.model, self.asked, self.layout),
            replicas=self.layout.replicas,
            warnings=(*self.said, *notes(self.model, self.settings, self.rules)),
            settings=self.settings,
            groups=groups,
            request=asked,
            usable_blocks=max(0, blocks - null),
            bytes_per_block=block,
        )

    def _settled(self, request: Request) -> Launch:
        """The launch with the length that ``auto`` came to."""
        if not self.settings.auto_length:
            return self.launch
        settled = Setting(request.max_len, "auto: the longest that fits")
        return Launch({**self.launch.settings, "--max-model-len": settled})

    def _prints(
        self, pool: int, blocks: int, block: int, figures: Printed | None, request: Request
    ) -> tuple[str, ...]:
        if figures is None:
            return ()
        return prints.lines(
            pool,
            blocks,
            block,
            figures,
            request.max_len,
            platform=self.settings.device.platform,
            swap=self.settings.flags.get("--swap-space", prints.V0_SWAP_BYTES),
            dcp=self.layout.dcp,
            rules=self.rules,
            paged=self._is_paged,
        )

    def _graph_prints(self, ledger: Ledger) -> tuple[str, ...]:
        """What the log says of graphs where it counts them; of a stated pool nothing is known."""
        graphs = next((t for t in ledger if t.name == "cuda_graphs" and t.inside_budget), None)
        stated = self.asked.pool_bytes is not None
        if graphs is None or stated or not self.rules.graphs_converted:
            return ()
        total = total_of(self.node)
        return prints.graph_lines(graphs.num_bytes, total, self.settings.utilization)


def _shown(found: CacheGroup, request: Request) -> Group:
    return Group(
        kind=found.spec.kind,
        layers=found.layers,
        block_size=found.spec.block_size,
        page_bytes=found.page_bytes,
        blocks_per_sequence=found.blocks(request),
    )
