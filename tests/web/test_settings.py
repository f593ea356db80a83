"""The page and the API where a kvplan.toml holds: as the command's, and said."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from kvplan.readers.settings import Settings, read_settings, use
from kvplan.web.app import create_app
from kvplan.web.jobs import Job, Reply
from kvplan.web.workers import Workers
from tests.web.conftest import Here

FILE = """
engine = "sglang"
gpu = "ours"
currency = "EUR"
exchange-rate = 0.5
[cards.ours]
like = "l4"
memory = "40GiB"
price = 2
"""
NOTE = "kvplan.toml: engine = sglang, gpu = ours, currency = EUR, exchange-rate = 0.5"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    path = tmp_path / "kvplan.toml"
    path.write_text(FILE)
    return read_settings(path, "kvplan.toml")


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    class Told(Here):
        async def do(self, job: Job) -> Reply:
            with use(settings):
                return await super().do(job)

    with TestClient(create_app(workers=Told(), offline=True)) as found:
        yield found


def test_the_api_takes_what_is_not_asked(client: TestClient) -> None:
    """As the command does, with what was taken; keys that are given win, empty ones do not."""
    found = client.get("/api/fit?model=gpt2&gpu=").json()
    other = client.post("/api/fit", json={"model": "gpt2", "gpu": "l4", "engine": "vllm"}).json()

    assert ("sglang", "ours", 2.0) == (
        found["engine"]["name"], found["device"]["name"], found["cost"]["per_gpu_hour"],
    )  # fmt: skip
    assert {"engine", "gpu", "currency", "exchange_rate"} == set(found["defaults"])
    assert ("vllm", "l4") == (other["engine"]["name"], other["device"]["name"])
    assert {"currency", "exchange_rate"} == set(other["defaults"])


def test_the_page_shows_what_it_took(client: TestClient) -> None:
    """In its form, in its command, and as a line; the address of a plot holds all of it."""
    page = client.get("/fit?model=gpt2&context=1k").text
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())

    assert NOTE in text
    assert 'name="gpu" type="text" value="ours"' in page
    assert "--engine sglang --gpu ours --currency EUR --exchange-rate 0.5" in text
    assert "2.00 EUR an hour" in text
    assert "&amp;currency=EUR&amp;exchange_rate=0.5" in page
    assert '<option value="ours">' in page


def test_a_line_of_flags_is_the_engines(client: TestClient) -> None:
    """The engine that holds reads them."""
    page = client.get("/fit?model=gpt2&flags=--mem-fraction-static+0.5").text

    assert "It fits" in page
    assert "--mem-fraction-static" in page


def test_columns_side_by_side(client: TestClient) -> None:
    """Each takes what it lacks."""
    page = client.get("/compare?model=gpt2&model=gpt2&gpu=l4").text

    assert "1 × ours" in page
    assert "1 × l4" in page


def test_nothing_asked_is_nothing_answered(client: TestClient) -> None:
    """What holds is no question."""
    assert "Try an example" in client.get("/fit?part=answer").text


def test_what_is_not_known_is_a_sentence(tmp_path: Path) -> None:
    """On the page and in the API."""
    path = tmp_path / "kvplan.toml"
    path.write_text("engine = 'vlm'")

    class Told(Here):
        async def do(self, job: Job) -> Reply:
            with use(read_settings(path, "kvplan.toml")):
                return await super().do(job)

    with TestClient(create_app(workers=Told(), offline=True)) as client:
        page, api = client.get("/fit?model=gpt2&gpu=l4"), client.get("/api/fit?model=gpt2&gpu=l4")

    assert (400, 400) == (page.status_code, api.status_code)
    assert "kvplan.toml: engine: No engine is named 'vlm'." == api.json()["error"]["message"]


def test_each_process_has_them(settings: Settings) -> None:
    """Also one that is started in the place of another."""
    job = Job("api", "fit", {"model": "gpt2"}, offline=True)
    found = []

    async def act() -> None:
        async with Workers(number=1, settings=settings).running() as pool:
            found.append(await pool.do(job))
            for process in list(pool._alive):
                process.kill()
                await process.wait()
            found.append(await pool.do(job._replace(given={"model": "gpt2", "context": "512"})))

    asyncio.run(act())

    assert ["ours", "ours"] == [json.loads(one.body)["device"]["name"] for one in found]
