"""Flags resolved by a build's defaults: slots, context, cells, batches, types, attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kvplan.core.errors import BadValue
from kvplan.core.formats import FORMATS, Blocked, Format
from kvplan.core.model import Model
from kvplan.core.units import MIB, ceil_div, round_up
from kvplan.engines.chosen import Chosen
from kvplan.engines.llamacpp.flags import AUTO
from kvplan.engines.llamacpp.geometry import Geometry
from kvplan.engines.llamacpp.rules import IK, Rules, Windows

AUTO_SLOTS: Final = 4  # tools/server/server.cpp (b11434): --parallel -1
UNTRAINED_CONTEXT: Final = 4096  # of a source that names no trained length
FIT_TARGET: Final = 1024 * MIB  # common/common.h (b11434), fit_params_target
FIT_CONTEXT: Final = 4096
HOST_CACHE: Final = 8192 * MIB  # --cache-ram
SPECULATIVE: Final = ("mtp", "draft-mtp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a start is asked for. ``context`` counts all slots together, before it is rounded."""

    rules: Rules
    mla: int
    slots: int
    unified: bool
    context: int
    context_given: bool
    trained: int
    batch: int
    ubatch: int
    k: Format
    v: Format
    flash_attention: bool
    full_windows: bool
    compressed_windows: bool
    offload_cache: bool
    snapshots: int
    draft_layers: int

    @property
    def streams(self) -> int:
        """Caches side by side: one that all slots share, or one a slot."""
        return self.slots if self.rules.streams and not self.unified else 1

    @property
    def padding(self) -> int:
        """What cells are rounded up to."""
        return self.rules.padding[self.flash_attention]

    @property
    def cells(self) -> int:
        """Cells of one stream.

        ``-c 20000`` is 20,224 cells; over two streams ceil(20,224 / 2) in whole 256 each.
        """
        whole = round_up(self.context, self.padding)
        if self.streams == 1:
            return whole
        return max(self.padding, round_up(whole // self.streams, self.padding))

    @property
    def slot_context(self) -> int:
        """The most tokens that one slot takes."""
        if self.unified or self.streams > 1:
            return self.cells
        return self.cells // self.slots

    @property
    def window_cache(self) -> bool:
        """Whether layers with a window have a cache of their own."""
        return self.rules.windows is not Windows.FULL or self.compressed_windows

    def window_cells(self, window: int) -> int:
        """Cells of one stream in the layers that look back ``window`` tokens.

        src/llama-kv-cache-iswa.cpp: the window of each sequence of the stream, and room for the
        batch that is being written.
        """
        if self.full_windows or not self.window_cache:
            return self.cells
        room = self.batch if self.rules.windows is Windows.BATCH else self.ubatch
        sequences = self.slots if self.unified or self.streams == 1 else 1
        needed = window * sequences + room
        if self.rules.window_padding:
            return round_up(min(self.cells, needed), self.rules.window_padding)
        return min(self.cells, round_up(needed, self.padding))


def resolve(model: Model, geometry: Geometry, rules: Rules, choose: Chosen, mla: int) -> Settings:
    """The settings of a start.

    Raises:
        BadValue: values below f16 without flash attention, or slots that contradict each other.
    """
    slots, unified = _slots(rules, choose)
    trained = model.max_context_tokens or UNTRAINED_CONTEXT
    context, given = _context(rules, choose, trained)
    batch = min(choose("--batch-size", 2048), context)
    ubatch = min(choose("--ubatch-size", 512) or batch, batch)
    k = choose("--cache-type-k", FORMATS["f16"])
    v = choose("--cache-type-v", FORMATS["f16"])
    flash = choose("--flash-attn", rules.flash_attention, _build(rules)) != "off"
    if isinstance(v, Blocked) and not flash and _keeps_values(geometry, rules):
        raise BadValue(
            f"--cache-type-v {v.name} needs flash attention, and it is off.",
            "Pass --flash-attn on, or keep values in f16.",
        )
    return Settings(
        rules=rules,
        mla=mla,
        slots=slots,
        unified=unified,
        context=context,
        context_given=given,
        trained=trained,
        batch=batch,
        ubatch=ubatch,
        k=k,
        v=v,
        flash_attention=flash,
        full_windows=bool(choose("--swa-full")),
        compressed_windows=bool(choose("--swa-compress")),
        offload_cache=not choose("--no-kv-offload"),
        snapshots=_snapshots(rules, choose) if geometry.recurrent or geometry.compressed else 0,
        draft_layers=model.traits.draft_layers if _drafts(choose) else 0,
    )


def _build(rules: Rules) -> str:
    return f"default of this build of {rules.flavour}"


def _slots(rules: Rules, choose: Chosen) -> tuple[int, bool]:
    """Slots, and whether they share one cache."""
    asked = choose("--parallel", rules.slots or AUTO, _build(rules))
    automatic = asked == AUTO
    slots = (AUTO_SLOTS if rules.slots == 0 else 1) if automatic else asked
    if choose("--kv-unified") and choose("--no-kv-unified"):
        raise BadValue("--kv-unified and --no-kv-unified contradict each other.")
    if choose("--kv-unified") or (automatic and slots > 1):
        return slots, not choose("--no-kv-unified")
    return slots, not rules.streams and rules.flavour != IK and slots == 1


def _context(rules: Rules, choose: Chosen, trained: int) -> tuple[int, bool]:
    asked = choose("--ctx-size", rules.context, _build(rules))
    return asked or trained, "--ctx-size" in choose.given and asked > 0


def _drafts(choose: Chosen) -> bool:
    return str(choose("--spec-type") or "") in SPECULATIVE


def _snapshots(rules: Rules, choose: Chosen) -> int:
    """States kept to roll a draft back: as many as tokens are drafted at once."""
    drafted: int = choose("--spec-draft-n-max") or 0
    return drafted if rules.snapshots else 0


def _keeps_values(geometry: Geometry, rules: Rules) -> bool:
    return any(kept.rows and kept.rows.v for kept in geometry.blocks.kinds)


def given_context(flags: Mapping[str, Any]) -> int | None:
    """The tokens that one slot is asked to take, where the flags say."""
    asked, slots = flags.get("--ctx-size"), flags.get("--parallel")
    if not isinstance(asked, int) or not asked:
        return None
    if isinstance(slots, int) and slots > 1 and not flags.get("--kv-unified"):
        return ceil_div(asked, slots)
    return asked
