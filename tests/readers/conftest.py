"""What the readers' tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.readers.hub_server import FakeHub, serving


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub on this machine that kvplan takes for the hub."""
    for name in ("KVPLAN_OFFLINE", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving(FakeHub()) as found:
        monkeypatch.setenv("HF_ENDPOINT", found.url)
        yield found
