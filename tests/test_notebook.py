"""Answers in a notebook: the command's tables and the same plots."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable

import pytest

import kvplan
from kvplan.charts import parts_of
from kvplan.core.errors import BadValue
from kvplan.planning.answer import Answer

ANSWERS: dict[str, Callable[[], Answer]] = {
    "size": lambda: kvplan.size("gemma-3-27b"),
    "sizes": lambda: kvplan.size(["gpt2", "mamba-2.8b"]),
    "fit": lambda: kvplan.fit("llama-3.1-8b", gpu="h100-sxm-80gb"),
    "explain": lambda: kvplan.explain(
        "Available KV cache memory: 5 GiB\nGPU KV cache size: 9,600 tokens\n"
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_tables_and_warnings(name: str) -> None:
    """Each shows its tables and what was assumed, with every value escaped."""
    answer = ANSWERS[name]()
    page = answer._repr_html_()

    assert page is not None
    assert "<table>" in page
    assert page.count("<em>") == len(answer.warnings)


def test_plots() -> None:
    """Every plot of the verb is there as a picture with words beside it."""
    page = ANSWERS["fit"]()._repr_html_() or ""
    found = re.findall(r'<img alt="([^"]{20,})" src="data:image/svg\+xml;base64,([^"]+)">', page)

    assert len(parts_of("fit")) == len(found)
    assert all(b64decode(picture).startswith(b"<svg") for _, picture in found)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables alone, where nothing can be drawn."""

    def missing() -> None:
        raise BadValue("A plot needs the plot extra.")

    for module in ("bars", "batch", "concurrency", "growth"):
        monkeypatch.setattr(f"kvplan.charts.{module}.load_altair", missing)
    page = ANSWERS["fit"]()._repr_html_() or ""

    assert "<table>" in page
    assert "<img" not in page


def test_where_no_page_can_be_shown() -> None:
    """The bundle has the page, and one line with the names of the figures."""
    bundle = ANSWERS["size"]()._repr_mimebundle_(include=None)

    assert {"text/plain", "text/html"} == set(bundle)
    assert "bytes_per_token" in bundle["text/plain"]
    assert "\n" not in bundle["text/plain"]
