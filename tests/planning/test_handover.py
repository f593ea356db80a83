"""Prompts on cards of their own: what is moved, how long it takes, what the flags refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest

import kvplan
from kvplan.cli import run
from kvplan.core.errors import BadValue, UnknownName

ASKED: dict[str, Any] = {
    "gpu": "h200", "prompt": 8000, "output": 500, "concurrency": 16, "offline": True,
}  # fmt: skip


def apart(model: str = "qwen3-32b", **changed: Any) -> dict[str, Any]:
    """The JSON's object."""
    asked = {**ASKED, "prefill_gpu": "h100-sxm-80gb", "link": "50GB/s"} | changed
    answer = kvplan.fit(model, **asked)
    found = answer.to_dict()["disaggregated"]
    assert isinstance(found, dict)
    return found


def test_what_crosses_the_link() -> None:
    """The prompt's cache, in whole blocks, at the link's rate."""
    found = apart()

    assert pytest.approx(8000 * 262_144, rel=0.01) == found["moved_bytes"]
    assert pytest.approx(found["moved_bytes"] / 50e9) == found["transfer_s"]


def test_a_slower_link_shows_in_the_first_token_alone() -> None:
    """Decoding does not wait for links."""
    fast, slow = apart(), apart(link="500MB/s")

    assert fast["tpot_s"] == slow["tpot_s"]
    assert slow["ttft_s"] > fast["ttft_s"] + 2


def test_the_prompt_is_computed_on_the_named_cards() -> None:
    """As fit estimates it there, and beside it on the decoding card."""
    there = kvplan.fit("qwen3-32b", **{**ASKED, "gpu": "h100-sxm-80gb", "gpus": 2}).to_dict()
    here = kvplan.fit("qwen3-32b", **ASKED).to_dict()
    found = apart(prefill_gpus=2)

    assert pytest.approx(there["speed"]["estimate"]["prefill_s"]) == found["prefill_s"]
    assert pytest.approx(here["speed"]["estimate"]["prefill_s"]) == found["prefill_here_s"]


def test_the_decoding_layout_is_not_that_of_the_prompts() -> None:
    """--tensor-parallel-size is of --gpu."""
    found = apart(gpus=2, tensor_parallel_size=2, prefill_gpus=4)

    assert 4 == found["gpus"]
    assert found["fits"]


def test_cards_that_do_not_hold_the_model() -> None:
    """It is said, not refused: an estimate is given as if they did."""
    assert not apart(prefill_gpu="l4")["fits"]


def test_without_the_flag() -> None:
    """Null."""
    assert kvplan.fit("qwen3-32b", **ASKED).to_dict()["disaggregated"] is None


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"link": "50GB/s"}, "--link is of --prefill-gpu."),
        ({"prefill_gpus": 2}, "--prefill-gpus is of --prefill-gpu."),
        ({"prefill_gpu": "h100-sxm-80gb"}, "--prefill-gpu sends caches over a link."),
        ({"prefill_gpu": "h100-sxm-80gb", "link": 0}, "--link 0 moves nothing."),
        (
            {"prefill_gpu": "h100-sxm-80gb", "link": "1GB/s", "prefill_gpus": 0},
            "--prefill-gpus 0 is not a whole number from 1 to 4,096.",
        ),
        (
            {"prefill_gpu": "h100-sxm-80gb", "link": "1GB/s", "prompt": None, "output": None},
            "--prefill-gpu computes prompts.",
        ),
    ],
)
def test_what_is_refused(changed: dict[str, Any], said: str) -> None:
    """One sentence each."""
    with pytest.raises(BadValue) as wrong:
        kvplan.fit("qwen3-32b", **(ASKED | changed))

    assert said == wrong.value.message


def test_an_unknown_card() -> None:
    """Named like any other."""
    with pytest.raises(UnknownName):
        apart(prefill_gpu="h1000")


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The flags give the same object."""
    words = ["fit", "qwen3-32b", "--gpu", "h200", "--prefill-gpu", "h100-sxm-80gb", "--link",
             "50GB/s", "--prompt", "8000", "--output", "500", "--concurrency", "16",
             "--offline"]  # fmt: skip
    assert 0 == run([*words, "--json"])
    assert apart() == json.loads(capsys.readouterr().out)["disaggregated"]
    assert 0 == run(words)
    assert "its cache over the link" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("model", "changed", "whole", "ranks"),
    [
        ("qwen3-32b", {"gpus": 2, "tensor_parallel_size": 2}, 8000 * 262_144, 2),
        (
            "deepseek-v3",
            {"gpus": 8, "tensor_parallel_size": 1, "data_parallel_size": 8,
             "enable_expert_parallel": True, "prefill_gpu": "h200", "prefill_gpus": 8},
            8000 * 70_272,
            1,
        ),
    ],
)  # fmt: skip
def test_every_rank_of_a_request_takes_its_part(
    model: str, changed: dict[str, Any], whole: int, ranks: int
) -> None:
    """Tensor parallel ranks share a request's cache and have a link each; under attention's data
    parallelism it is on one of them.
    """
    found = apart(model, **changed)

    assert pytest.approx(whole, rel=0.02) == found["moved_bytes"]
    assert pytest.approx(whole / ranks / 50e9, rel=0.02) == found["transfer_s"]
