"""A real server, a real browser, and what must never happen in it."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
PICTURES = ROOT / "build" / "screenshots"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
DESK, PHONE = (1360, 900), (390, 844)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server of its own, from its start until it answers to its end."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "kvplan", "ui", "--port", str(port), "--offline"],
        stdout=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(1200):
            try:
                urllib.request.urlopen(f"{address}/static/icon.svg", timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait(10)


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    with serving() as address:
        yield address


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Debian's Chromium."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    assert path, f"none of {', '.join(BROWSERS)} is installed"
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watched:
    """A page on which every message and every request is noted."""

    def __init__(self, page: Any, server: str) -> None:
        self.page = page
        self.server = server
        self.messages: list[str] = []
        self.elsewhere: list[str] = []
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("request", self._asked)

    def _said(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.messages.append(message.text)

    def _asked(self, request: Any) -> None:
        own = request.url.startswith((self.server, "data:", "blob:"))
        if not own:
            self.elsewhere.append(request.url)

    def open(self, path: str) -> Any:
        """Open a page and wait for its plots."""
        self.page.goto(self.server + path)
        return self.drawn()

    def drawn(self) -> Any:
        """The page when its answer and plots are there."""
        if self.page.locator("#answer").count():
            self.page.wait_for_selector("#answer[aria-busy='false'][data-drawn]", timeout=30_000)
        return self.page

    def says(self, text: str) -> None:
        """Wait until the answer has a text."""
        found = self.page.locator("#answer").get_by_text(re.compile(re.escape(text))).first
        found.wait_for(timeout=10_000)

    def picture(self, name: str) -> None:
        """Keep what is seen."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)

    def faults(self) -> list[str]:
        """What axe finds serious or critical."""
        self.page.evaluate(axe())
        found = self.page.evaluate(
            "() => axe.run(document, {resultTypes: ['violations']}).then(r => r.violations"
            ".filter(v => ['serious', 'critical'].includes(v.impact))"
            ".map(v => `${v.id}: ${v.nodes.slice(0, 4).map(n => n.html.slice(0, 160))}`))"
        )
        return list(found)


def axe() -> str:
    folder = Path(os.environ.get("AXE") or ROOT / ".venv-ui" / "node_modules" / "axe-core")
    return (folder / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture
def watched(request: Any, chromium: Any, server: str) -> Iterator[Watched]:
    """A page of the size and theme that the test asks for; nothing may go wrong on it."""
    size, scheme = getattr(request, "param", (DESK, "light"))
    context = chromium.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, bypass_csp=False
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server)
    found = Watched(context.new_page(), server)
    yield found
    context.close()
    assert [] == found.messages
    assert [] == found.elsewhere
