"""Pages without script: the address is the question, and what is sent is answered."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import kvplan
from kvplan.core.errors import BadQuestion
from kvplan.web.app import create_app
from kvplan.web.jobs import Job, Reply, refusal
from tests.readers.gguf_bytes import header
from tests.web.conftest import Here

LOG = """\
INFO 06-05 vLLM API server version 0.19.0
INFO non-default args: {'model': 'meta-llama/Llama-3.1-8B-Instruct', 'max_model_len': 8192}
INFO nothing here
INFO Available KV cache memory: 50.00 GiB
INFO GPU KV cache size: 409,600 tokens
"""
CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
}  # fmt: skip
HEADER = {
    "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 64,
    "llama.attention.head_count": 4, "llama.context_length": 512,
}  # fmt: skip


def text(page: str) -> str:
    """What a person reads of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_the_first_page_is_an_answer(client: TestClient) -> None:
    """Nothing asked shows an example, so that a newcomer sees what it does."""
    page = text(client.get("/").text)

    assert "What would you run?" in page
    assert "It fits:" in page


FIT = "model=qwen3-32b&gpu=h100-sxm-80gb&gpus=2&context=32k"
SHOWN = [
    (f"/?{FIT}", ["It fits: 9 conversations of 32,768 tokens", "Qwen/Qwen3-32B on 2 × H100"]),
    (f"/?{FIT}&concurrency=50", ["No: 9 of 50 conversations fit.", "The nearest that fits"]),
    (f"/?{FIT}&price=3", ["6.00 USD an hour"]),
    (f"/?{FIT}&kv=fp8", ["It fits: 18", "--kv-cache-dtype fp8"]),
    (f"/?{FIT}&flags=--max-num-seqs+4", ["It fits: 4", "the max num seqs stops more"]),
    (f"/?config={json.dumps(CONFIG)}&gpu=l4&engine=none", ["config.json", "It fits:"]),
    ("/size?model=gemma-3-27b&context=4k", ["sliding window", "771,325,952"]),
    (f"/compare?{FIT}&model=gpt2&gpu=l4&gpus=1", ["Qwen/Qwen3-32B", "gpt2", "conversations at"]),
    ("/compare?model=gpt2&gpu=h1000", ["No device is named 'h1000'."]),
    ("/explain", ["Paste it here, or drop the file."]),
    ("/api", ["GET /api/fit", "tensor_parallel_size"]),
]  # fmt: skip


@pytest.mark.parametrize(("address", "words"), SHOWN, ids=[row[0] for row in SHOWN])
def test_an_address_is_a_question(client: TestClient, address: str, words: list[str]) -> None:
    """Each page shows its answer without any script."""
    answer = client.get(address)
    page = text(answer.text) + html.unescape(answer.text)

    assert 200 == answer.status_code
    assert [] == [word for word in words if word not in page]


def test_a_form_shows_what_was_asked(client: TestClient) -> None:
    """Each control has the address's value, so that it can be changed and sent again."""
    page = client.get(f"/?{FIT}&flags=--max-num-seqs+4").text

    assert 'value="qwen3-32b"' in page
    assert 'value="--max-num-seqs 4"' in page


def test_values_are_escaped(client: TestClient) -> None:
    """What an address holds is text on the page, never markup."""
    page = client.get("/", params={"model": "<script>alert(1)</script>", "gpu": '"><b>'}).text

    assert "<script>alert" not in page
    assert '"><b>' not in page


def test_a_wrong_name_offers_near_ones(client: TestClient) -> None:
    """The sentence, and an address for each name that may have been meant."""
    answer = client.get("/?model=qwen3-33b&gpu=h100")

    assert 404 == answer.status_code
    assert "No model is named" in text(answer.text)
    assert 'href="?model=Qwen%2FQwen3-32B&amp;gpu=h100"' in answer.text


def test_a_part_is_the_answer_alone(client: TestClient) -> None:
    """What script asks for has no form; a refusal is an answer there."""
    part = client.get(f"/?{FIT}&part=answer")
    refused = client.get("/?model=qwen3-33b&part=answer")

    assert "<form" not in part.text
    assert (200, 200) == (part.status_code, refused.status_code)
    assert "No model is named" in refused.text


def test_the_explanation_has_sources(client: TestClient) -> None:
    """How it is computed: each term of the ledger with its source, each flag with its own."""
    answer = kvplan.fit("qwen3-32b", gpu="h100-sxm-80gb", gpus=2, context="32k")
    page = text(client.get(f"/?{FIT}").text)

    assert [] == [term.source for term in answer.plan.ledger if term.source not in page]
    assert "default" in page


def test_a_pasted_log(client: TestClient) -> None:
    """Its lines that say something are marked, with what they say."""
    page = client.post("/explain", data={"log": LOG, "gpu": "h100"}).text

    assert "<mark>INFO Available KV cache memory: 50.00 GiB</mark>" in page
    assert "<mark>INFO nothing here" not in page
    assert "available kv: 50 GiB" in text(page)
    assert "predicted" in text(page)


UPLOADS = [
    ("/", "model.gguf", header(HEADER), {"gpu": "l4", "engine": "llama.cpp"}, "model.gguf on"),
    ("/", "config.json", json.dumps(CONFIG).encode(), {"gpu": "l4", "engine": "none"}, "It fits:"),
    ("/", "start.log", LOG.encode(), {"gpu": "l4"}, "available kv: 50 GiB"),
    ("/explain", "start.log", LOG.encode(), {}, "available kv: 50 GiB"),
    ("/size", "config.json", json.dumps(CONFIG).encode(), {"context": "1k"}, "262,144"),
]


@pytest.mark.parametrize(("path", "name", "data", "keys", "said"), UPLOADS)
def test_a_file_that_is_sent(
    client: TestClient, path: str, name: str, data: bytes, keys: dict[str, str], said: str
) -> None:
    """A header, a config and a log are told by what they hold."""
    answer = client.post(path, data=keys, files={"file": (name, data)})

    assert 200 == answer.status_code
    assert said in text(answer.text)


def test_a_header_alone_is_enough(client: TestClient) -> None:
    """Script sends a model's beginning with the size of the whole."""
    keys = {"gpu": "l4", "engine": "llama.cpp", "file_size": "5000000000"}
    answer = client.post("/", data=keys, files={"file": ("x.gguf", header(HEADER))})

    assert 200 == answer.status_code


PLOTS = ["fit/card", "fit/concurrency", "fit/speed", "fit/growth"]


@pytest.mark.parametrize("plot", PLOTS)
def test_plots(client: TestClient, plot: str) -> None:
    """Each plot is Altair's own definition, with words for who does not see it."""
    spec = client.get(f"/chart/{plot}?{FIT}").json()

    assert "vega-lite" in spec["$schema"]
    assert 20 < len(spec["description"])


def test_a_picture_for_a_browser_without_script(client: TestClient) -> None:
    """The same definition as SVG."""
    answer = client.get(f"/picture/fit/card?{FIT}")

    assert "image/svg+xml" == answer.headers["content-type"]
    assert answer.text.startswith("<svg")


def test_nothing_to_plot_is_no_error(client: TestClient) -> None:
    """A plot of a question that is refused is empty: the sentence stands beside it."""
    assert 204 == client.get("/chart/fit/card?model=qwen3-33b&gpu=h100").status_code


@pytest.mark.parametrize("path", ["/nothing", "/chart/nothing/card", "/static/../app.py"])
def test_what_is_not_there(client: TestClient, path: str) -> None:
    """A sentence, and no page of the server's."""
    answer = client.get(path)

    assert 404 == answer.status_code
    assert answer.json()["error"]["message"]


def test_templates_name_no_other_host() -> None:
    """Nothing is loaded from another machine, and no script or style stands in a page."""
    folder = Path(kvplan.__file__).parent / "web"
    found = [
        (path.name, match[0])
        for path in [*folder.glob("templates/*"), *folder.glob("static/*")]
        for match in re.finditer(
            r"(?:src|href|url)[=(]\W?https?://[^\s\"']+|<script>|\sstyle=|\son\w+=\"",
            path.read_text("utf-8"),
        )
    ]

    assert [] == found


@pytest.mark.parametrize(
    ("path", "name"),
    [("/simulate", "trace.csv"), ("/simulate", "trace.jsonl"), ("/prefix", "a.jsonl")],
)
def test_a_file_of_lines_is_what_the_page_asks_for(
    client: TestClient, path: str, name: str
) -> None:
    """A trace on its page, requests on theirs: no log is seen in them."""
    rows = '{"timestamp": 0, "input_length": 100, "output_length": 9, "hash_ids": [1]}\n' * 3
    texts = {"trace.csv": "prompt,output,arrival\n9,9,0\n9,9,1\n8,8,2\n", "trace.jsonl": rows}
    data = texts.get(name, '{"prompt": "one two"}\n' * 3).encode()
    form = {"model": "gpt2", "gpu": "h100-sxm-80gb"} if path == "/simulate" else {}
    page = client.post(f"{path}?part=answer", data=form, files={"file": (name, data)})

    assert re.search("3 (of 3 )?requests", text(page.text)), text(page.text)


FIRST = {
    "/size?model=llama-3.1-8b&context=4k,32k,1m": ["32,768 tokens keeps 4 GiB", "131,072 B", "4 ×"],
    "/simulate?model=gpt2&gpu=l4&rate=4&requests=9&prompt=2k": ["No request is served: 9 are too"],
    "/size?model=mamba-2.8b": ["none", "22.5 MiB"],
    "/advise?model=gpt2&users=2&context=1k": ["an hour for each user", "Plan the choice"],
    "/simulate?model=gpt2&gpu=h100-sxm-80gb&rate=4&requests=20&prompt=99": [
        "p95; half within",
        "at most",
    ],
}


@pytest.mark.parametrize(("address", "said"), FIRST.items())
def test_what_is_shown_first(client: TestClient, address: str, said: list[str]) -> None:
    """The figures that were asked for stand before any table."""
    page = client.get(address).text
    first = text(page[page.index('class="verdict') : page.index('class="plots')])

    assert [word for word in said if word not in first + text(page[page.index("Take it") :])] == []


def test_the_choice_can_be_planned(client: TestClient) -> None:
    """The plan of an advice's choice is that of its card and its command."""
    page = client.get("/advise?model=qwen3-32b&users=50&context=32k").text
    (link,) = re.findall(r'href="(/[?]from=[^"]+)">Plan the choice', page)
    best = kvplan.advise("qwen3-32b", users=50, context="32k", offline=True).best

    assert best is not None
    assert f"It fits: {best.to_dict()['sequences']}" in text(client.get(html.unescape(link)).text)


@pytest.mark.parametrize("path", ["/explain", "/prefix"])
def test_an_empty_page_can_be_tried(client: TestClient, path: str) -> None:
    """Its example is answered."""
    (link,) = re.findall(r'href="([?][^"]+)">Try an example', client.get(path).text)
    page = client.get(path + html.unescape(link))

    assert 200 == page.status_code
    assert "How is this computed?" in page.text


def test_what_the_server_gives_up_is_a_page() -> None:
    """Where a worker ends or fails, a page says so and not a line of JSON."""

    class Busy(Here):
        async def do(self, job: Job) -> Reply:
            return refusal(job.verb, BadQuestion("The server is busy.", "Ask again."), 429)

    with TestClient(create_app(workers=Busy(), offline=True)) as client:
        pages = [client.get(path) for path in ("/", "/size", "/compare", "/api")]
        api = client.get("/api/size?model=gpt2")
        part = client.get("/size?model=gpt2&part=answer").text

    assert 'role="alert"' in part
    assert "<html" not in part
    assert {429} == {page.status_code for page in pages}
    assert all("The server is busy. Ask again." in text(page.text) for page in pages)
    assert "The server is busy." == api.json()["error"]["message"]
