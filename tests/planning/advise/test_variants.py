"""Published copies of a model: the same one, stored otherwise."""

from __future__ import annotations

import pytest

from kvplan.planning.advise.variants import copies
from kvplan.readers.open_model import open_model


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("qwen3-30b-a3b", ["Qwen/Qwen3-30B-A3B-FP8"]),
        ("qwen2.5-7b", []),
        ("llama-3.1-8b", []),
        ("qwen3-235b-a22b", ["Qwen/Qwen3-235B-A22B-FP8", "nvidia/Qwen3-235B-A22B-NVFP4"]),
    ],
)
def test_another_training_is_another_model(model: str, names: list[str]) -> None:
    """Neither ``-Instruct`` nor ``-Thinking-2507`` is a copy of the one without."""
    found = copies(open_model(model, offline=True))

    assert names == [copy.model.name for copy in found]
