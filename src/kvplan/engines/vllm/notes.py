"""What a person should know of a start that vLLM does not refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kvplan.core.model import Model
from kvplan.core.version import Version
from kvplan.engines.experts import EPLB, NOT_COUNTED
from kvplan.engines.vllm.memory.encoder import prompt_items
from kvplan.engines.vllm.rules import NEWEST, Rules
from kvplan.engines.vllm.settings import Settings, derived_length, has_states

NEWEST_VERSION: Final = Version.parse(NEWEST)
NEWER: Final = (
    "vLLM {} is newer than the newest that is modelled ({}): planned by that one's rules."
)
TOO_LONG: Final = (
    "vLLM refuses --max-model-len {:,}, more than the {:,} of the model, unless "
    "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 is set."
)
STATES_APART: Final = (
    "vLLM {} keeps recurrent states beside the pool, --max-num-seqs of them: they are not in it."
)
ITEMS: Final = (
    "--limit-mm-per-prompt allows {:,} images and videos in a prompt: {:,} tokens at the largest "
    "that the processor makes. Fewer of them, or fewer pixels (--mm-processor-kwargs), take less."
)


def notes(model: Model, settings: Settings, rules: Rules) -> Iterator[str]:
    """The notes of a start, in the order of their weight."""
    if rules.version > NEWEST_VERSION:
        yield NEWER.format(rules.name, NEWEST)
    if not rules.states_paged and has_states(model):
        yield STATES_APART.format(rules.name)
    most = derived_length(model)
    if settings.max_len > most:
        yield TOO_LONG.format(settings.max_len, most)
    items = prompt_items(model, settings.flags.get("--limit-mm-per-prompt") or {})
    if items is not None:
        yield ITEMS.format(*items)
    if settings.flags.get(EPLB):
        yield NOT_COUNTED
