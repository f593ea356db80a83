"""What each build of llama.cpp does, and what ik_llama.cpp does otherwise.

A build is the number of commits (b7551). Boundaries are the build that merged a change, or the
first one that was run with it; where both sides were run they are in the tests. Sources:
src/llama-context.cpp, llama-kv-cache*.cpp, llama-model.cpp, common/common.h, tools/server
(b11434, and the sources of b4905, b5353, b5704, b6097, b8175).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final

from kvplan.core.version import ByVersion, Version

LLAMA_CPP: Final = "llama.cpp"
IK: Final = "ik_llama.cpp"
VERSIONS: Final = ("b1500", "b11549")
IK_VERSIONS: Final = ("3400", "4840")


class Windows(Enum):
    """How many cells the layers with a window have."""

    FULL = "as many as the others"
    BATCH = "window × sequences + n_batch"
    UBATCH = "window × sequences + n_ubatch"


class Latent(Enum):
    """What is kept of a latent row."""

    DECOMPRESSED = "keys and values of every head"
    TWICE = "the row as K, its latent part again as V"
    ROW = "the row alone"


class Line(Enum):
    """The form of the line that states a cache's size."""

    SELF_SIZE = "KV self size"
    SEQUENCES = "size = … seqs"
    WIDE_STREAMS = "size = … seqs/ streams"
    STREAMS = "size = … seqs/streams"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The rules of one build.

    ``padding`` is what cells are rounded up to without and with flash attention;
    ``window_padding`` the same for windows, 0 as the other cells. ``slots`` is the default of
    ``--parallel``; 0 chooses 4 that share one cache. ``layers`` is the default of
    ``--n-gpu-layers``, -1 all. ``output_is_layer`` counts the output layer first among those.
    ``every_logit`` keeps logits of a whole batch on the device, not of one token a sequence.
    """

    flavour: str
    padding: tuple[int, int]
    window_padding: int
    windows: Windows
    streams: bool
    slots: int
    flash_attention: str
    latent: Latent
    indexers: bool
    context: int
    layers: int
    output_is_layer: bool
    automatic_fit: bool
    every_logit: bool
    snapshots: bool
    state_parts: int
    v_as_wide_as_widest: bool
    line: Line
    cache_name: str
    reserve_name: str


# Without and with flash attention 32 and 256; none from October 2025 (b6628 pads, b6900 does not);
# always 256 since #17046 (November 2025).
_PADDING = ByVersion((("b0", (32, 256)), ("b6868", (1, 1)), ("b6977", (256, 256))))
_WINDOW_PADDING = ByVersion((("b0", 0), ("b6977", 256)))
# Windows of their own (#13194, May 2025): b5353 has none, b5456 counts n_batch, b5586 n_ubatch.
_WINDOWS = ByVersion((("b0", Windows.FULL), ("b5434", Windows.BATCH), ("b5554", Windows.UBATCH)))
# #14363 (July 2025) behind a variable: b5937 has one stream, b6123 one a slot.
_STREAMS = ByVersion((("b0", False), ("b6074", True)))
_SLOTS = ByVersion((("b0", 1), ("b6924", 0)))  # #16736, November 2025
_FLASH = ByVersion((("b0", "off"), ("b6325", "auto")))  # #15434, August 2025
# DeepSeek absorbed (#12801, April 2025); a cache without V (#19067, January 2026).
_LATENT = ByVersion((("b0", Latent.DECOMPRESSED), ("b5143", Latent.TWICE), ("b7827", Latent.ROW)))
# Keys of an indexer (#21149): b9294 announces none, b9538 does.
_INDEXERS = ByVersion((("b0", False), ("b9538", True)))
_CONTEXT = ByVersion((("b0", 512), ("b3200", 0), ("b3680", 4096), ("b7406", 0)))
_LAYERS = ByVersion((("b0", 0), ("b7406", -1)))
# With the automatic fit (#16653, December 2025): b6097 has neither, b7551 both.
_FIT = ByVersion((("b0", False), ("b7406", True)))
# Logits of the outputs alone: b9294 reserves a batch of them, b9538 one a slot.
_EVERY_LOGIT = ByVersion((("b0", True), ("b9538", False)))
# Snapshots of states: b9093 prints none, b9294 does; a third part of the state: b10566, b10809.
_SNAPSHOTS = ByVersion((("b0", False), ("b9294", True)))
_STATE_PARTS = ByVersion((("b0", 2), ("b10809", 3)))
_WIDEST_V = ByVersion((("b0", False), ("b6050", True)))  # b5704 has it not, b6097 has
_LINE = ByVersion(
    (
        ("b0", Line.SELF_SIZE),
        ("b5434", Line.SEQUENCES),
        ("b5912", Line.WIDE_STREAMS),
        ("b6074", Line.STREAMS),
    )
)
_CACHE_NAME = ByVersion(
    (
        ("b0", "llama_new_context_with_model"),
        ("b4520", "llama_init_from_model"),
        ("b4880", "llama_context"),
        ("b5263", "llama_kv_cache_unified"),
        ("b6290", "llama_kv_cache"),
    )
)
_RESERVE_NAME = ByVersion(
    (
        ("b0", "llama_new_context_with_model"),
        ("b4520", "llama_init_from_model"),
        ("b4880", "llama_context"),
        ("b7900", "sched_reserve"),
    )
)


@lru_cache(maxsize=256)
def rules_of(version: Version) -> Rules:
    """The rules of a build of llama.cpp."""
    return Rules(
        flavour=LLAMA_CPP,
        padding=_PADDING.at(version),
        window_padding=_WINDOW_PADDING.at(version),
        windows=_WINDOWS.at(version),
        streams=_STREAMS.at(version),
        slots=_SLOTS.at(version),
        flash_attention=_FLASH.at(version),
        latent=_LATENT.at(version),
        indexers=_INDEXERS.at(version),
        context=_CONTEXT.at(version),
        layers=_LAYERS.at(version),
        output_is_layer=_FIT.at(version),
        automatic_fit=_FIT.at(version),
        every_logit=_EVERY_LOGIT.at(version),
        snapshots=_SNAPSHOTS.at(version),
        state_parts=_STATE_PARTS.at(version),
        v_as_wide_as_widest=_WIDEST_V.at(version),
        line=_LINE.at(version),
        cache_name=_CACHE_NAME.at(version),
        reserve_name=_RESERVE_NAME.at(version),
    )


# ik_llama.cpp: flash attention by default since #863 (October 2025), -mla 3 since #943 (November).
_IK_FLASH = ByVersion((("0", "off"), ("3940", "on")))
IK_MLA_DEFAULT = ByVersion((("0", 0), ("3983", 3)))


@lru_cache(maxsize=256)
def ik_rules_of(version: Version) -> Rules:
    """The rules of a build of ik_llama.cpp: one cache for all slots, windows at full length.

    ik_llama.cpp, src/llama.cpp (August 2026), llama_kv_cache_init and llama_new_context_with_model.
    """
    return Rules(
        flavour=IK,
        padding=(32, 256),
        window_padding=0,
        windows=Windows.FULL,
        streams=False,
        slots=1,
        flash_attention=_IK_FLASH.at(version),
        latent=Latent.DECOMPRESSED,
        indexers=False,
        context=0,
        layers=0,
        output_is_layer=False,
        automatic_fit=False,
        every_logit=True,
        snapshots=False,
        state_parts=2,
        v_as_wide_as_widest=False,
        line=Line.SELF_SIZE,
        cache_name="llama_new_context_with_model",
        reserve_name="llama_new_context_with_model",
    )
