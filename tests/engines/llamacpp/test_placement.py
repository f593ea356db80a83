"""Which layers are on a card: splits of caches and weights that start-up reports printed."""

from __future__ import annotations

from typing import NamedTuple

import pytest

import kvplan
from kvplan.core.errors import BadValue
from kvplan.core.units import MIB
from kvplan.engines.llamacpp.placement import place, shares_of
from kvplan.engines.llamacpp.plan import LlamaPlan
from tests.engines.aliases import CONFIGS


class Report(NamedTuple):
    """A start, and the caches that it printed for host memory and each card, in MiB."""

    id: str
    config: str
    build: str
    cards: int
    flags: dict[str, object]
    host: float
    held: tuple[float, ...]


LLAMA_2 = "meta-llama--Llama-2-7b-hf.json"
QWEN_9B = "Qwen--Qwen3.5-9B.json"
REPORTS = (
    Report("llamacpp-0140", LLAMA_2, "b3000", 1, {"c": 2048, "ngl": 25, "fa": "off"}, 224, (800,)),
    Report("llamacpp-0142", "Qwen--Qwen2.5-3B.json", "b8179", 1, {"c": 2048, "ngl": 35}, 4, (68,)),
    Report(
        "llamacpp-0149",
        "mistralai--Mistral-Nemo-Instruct-2407.json",
        "b8133",
        1,
        {"c": 8192, "ngl": 40, "ctk": "q8_0", "ctv": "q8_0"},
        17,
        (663,),
    ),
    # attention 96 and 160 MiB, states 20.94 and 29.31 MiB
    Report(
        "llamacpp-0192", QWEN_9B, "b9010", 1, {"c": 8192, "np": 1, "ngl": 20}, 116.94, (189.31,)
    ),
    # attention 320 each, states 134 and 117.25 MiB
    Report(
        "llamacpp-0143",
        "Qwen--Qwen3.5-35B-A3B.json",
        "b9010",
        2,
        {"c": 32768, "ngl": "all"},
        0,
        (454, 437.25),
    ),
)


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.id)
def test_caches_are_split_as_printed(report: Report) -> None:
    """Layers go to the cards from the back, their caches with them."""
    plan = kvplan.fit(
        CONFIGS / report.config,
        gpu_memory="100TiB",
        gpus=report.cards,
        engine="llama.cpp",
        engine_version=report.build,
        **{name_of(flag): value for flag, value in report.flags.items()},
    ).plan
    assert isinstance(plan, LlamaPlan)
    layout = plan.layout

    assert report.host == pytest.approx(layout.host.cache / MIB, abs=0.011)
    assert report.held == pytest.approx([card.cache / MIB for card in layout.cards], abs=0.011)


def name_of(flag: str) -> str:
    return {"c": "ctx_size", "np": "parallel", "ngl": "n_gpu_layers", "fa": "flash_attn",
            "ctk": "cache_type_k", "ctv": "cache_type_v"}[flag]  # fmt: skip


def test_before_the_automatic_fit_the_output_came_last() -> None:
    """32 of 33 layers: every block and no output, where it is now the output and 31 blocks."""
    old = place(32, 32, (1.0,), output_is_layer=False)
    new = place(32, 32, (1.0,), output_is_layer=True)

    assert (0, 32, False) == tuple(old.cards[0])
    assert (1, 32, True) == tuple(new.cards[0])


def test_proportions_deal_out_layers() -> None:
    """3 to 1 of 33 layers: 25 blocks on the first card, the rest and the output on the second."""
    found = place(32, 33, (3.0, 1.0), output_is_layer=True)

    assert [(0, 25, False), (25, 32, True)] == [tuple(card) for card in found.cards]


def test_more_proportions_than_cards() -> None:
    """A third card that is not there is named."""
    with pytest.raises(BadValue, match="names 3 cards, and there are 2"):
        shares_of(2, (1.0, 1.0, 1.0), "layer", 0)


def test_caches_in_host_memory() -> None:
    """--no-kv-offload leaves weights on the card and no cache."""
    plan = kvplan.fit(
        CONFIGS / LLAMA_2, gpu="rtx-4090", engine="llama.cpp", ctx_size=4096, no_kv_offload=True
    ).plan

    assert plan.ledger.pool_bytes == 0
    host = {term.name: term.num_bytes for term in plan.ledger if term.on_host}
    assert host["host_kv_pool"] == 2048 * MIB
