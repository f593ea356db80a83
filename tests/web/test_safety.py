"""What a stranger may not do: read a file, reach an address, run a script, stop the server."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from kvplan.core.errors import BadValue
from kvplan.readers.reach import names_alone
from kvplan.simulation.prefix.reading import read_prompts
from kvplan.simulation.prompts.encoder import encoder_of
from kvplan.simulation.traces import read_traffic
from kvplan.web.app import create_app
from kvplan.web.limits import MAX_API_BODY, MAX_BODY, Guard
from kvplan.web.serve import is_loopback
from tests.readers.gguf_bytes import header
from tests.web.conftest import Here
from tests.web.test_pages import CONFIG, HEADER, LOG

SECRET = "77777"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the server runs, with files that are nobody's business."""
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": int(SECRET)}))
    (tmp_path / "start.log").write_text(f"GPU KV cache size: {SECRET} tokens\n")
    (tmp_path / "run.sh").write_text(f"vllm serve gpt2 --max-model-len {SECRET}\n")
    (tmp_path / "compose.yaml").write_text(f"services: {{a: {{command: --x {SECRET}}}}}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


PATHS = ["{}/config.json", "config.json", "./config.json", "{}", ".", "-", "file://{}/config.json"]
PATHS += ["{}/start.log", "start.log", "{}/run.sh", "run.sh", "compose.yaml", "http://127.0.0.1:9"]
KEYS = [
    ("/api/fit", "model"), ("/api/fit", "from"), ("/api/size", "model"), ("/api/explain", "log"),
    ("/api/explain", "second"), ("/api/explain", "model"), ("/api/fit", "config"), ("/", "config"),
    ("/", "model"), ("/", "from"), ("/compare", "model"), ("/picture/fit/card", "model"),
]  # fmt: skip


@pytest.mark.parametrize(("path", "key"), KEYS)
def test_no_file_of_the_server_is_read(
    client: TestClient, folder: Path, path: str, key: str
) -> None:
    """No key of any page or verb takes the name of a file."""
    for name in PATHS:
        given = {"gpu": "h100", key: name.format(folder)}
        if path == "/api/explain" and key != "log":
            given["log"] = LOG
        answer = client.get(path, params=given)
        assert SECRET not in answer.text, name
        assert answer.status_code < 500, name


SOURCES = [
    read_traffic,
    read_prompts,
    encoder_of,
]


@pytest.mark.parametrize("name", ["{}/config.json", "{}", "-", "/etc/hostname", "gpt2"])
@pytest.mark.parametrize("read", SOURCES, ids=["trace", "requests", "tokenizer"])
def test_no_trace_and_no_tokenizer_is_opened(
    folder: Path, read: Callable[[str], object], name: str
) -> None:
    """The sentence is the same for what exists and for what does not."""
    with names_alone(), pytest.raises(BadValue, match="is not opened here"):
        read(name.format(folder))


def sent_slowly(pauses_s: list[float]) -> int:
    """The status of a request whose body comes in pieces with pauses."""
    said: list[Message] = []
    pieces = iter(pauses_s)

    async def receive() -> Message:
        pause = next(pieces, None)
        await asyncio.sleep(pause or 0)
        return {"type": "http.request", "body": b"{", "more_body": pause is not None}

    async def send(message: Message) -> None:
        said.append(message)

    async def read(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["more_body"]:
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})

    scope = {"type": "http", "path": "/api/size", "headers": []}
    asyncio.run(Guard(read, sending_s=0.2)(scope, receive, send))
    return int(said[0]["status"])


@pytest.mark.parametrize(
    ("pauses_s", "status"), [([0.01], 200), ([0.01] * 3, 200), ([9.0], 408), ([0.05] * 9, 408)]
)
def test_what_comes_slowly(pauses_s: list[float], status: int) -> None:
    """A request has a time to come in, however many pieces it has."""
    assert status == sent_slowly(pauses_s)


def test_pages_carry_their_policy(client: TestClient) -> None:
    """No script but the server's own files, no evaluation, no frame, no other host."""
    policy = client.get("/").headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_another_name_is_refused(client: TestClient) -> None:
    """A site that makes its name mean this machine gets nothing."""
    answer = client.get("/api/size?model=gpt2", headers={"host": "evil.example"})

    assert 421 == answer.status_code


def test_a_server_for_others_answers_to_any_name() -> None:
    """What was started for a network is reached by the names that it has there."""
    with TestClient(create_app(workers=Here(), offline=True, hosts=None)) as client:
        answer = client.get("/api/size?model=gpt2", headers={"host": "planner.example"})

    assert 200 == answer.status_code


SIZES = [("/api/size", MAX_API_BODY), ("/", MAX_BODY), ("/explain", MAX_BODY)]


@pytest.mark.parametrize(("path", "most"), SIZES)
def test_what_is_too_large(client: TestClient, path: str, most: int) -> None:
    """Refused by what it says of itself, before a byte is read."""
    answer = client.post(path, content=b"x", headers={"content-length": str(most + 1)})

    assert 413 == answer.status_code
    assert "larger than" in answer.json()["error"]["message"]


def test_what_does_not_say_how_large_it_is(client: TestClient) -> None:
    """Counted as it comes."""
    parts = (b"x" * (1 << 20) for _ in range((MAX_API_BODY >> 20) + 2))
    answer = client.post("/api/size", content=parts, headers={"content-type": "application/json"})

    assert 413 == answer.status_code


HOSTS = [
    ("127.0.0.1", True), ("localhost", True), ("::1", True), ("127.0.0.2", True),
    ("0.0.0.0", False), ("::", False), ("192.168.1.4", False), ("kvplan.local", False),
]  # fmt: skip


@pytest.mark.parametrize(("host", "own"), HOSTS)
def test_loopback(host: str, own: bool) -> None:
    """Addresses that only this machine reaches; others are warned of."""
    assert own == is_loopback(host)


def hostile(number: int, seed: int) -> list[tuple[str, str, bytes]]:
    """Configs, headers and logs that someone bent."""
    chance = random.Random(seed)
    seeds = [
        ("config.json", json.dumps(CONFIG).encode()),
        ("model.gguf", header(HEADER)),
        ("start.log", LOG.encode()),
    ]
    return [_bent(chance, *chance.choice(seeds)) for _ in range(number)]


def _bent(chance: random.Random, name: str, data: bytes) -> tuple[str, str, bytes]:
    """One file with bytes changed, cut, doubled, or a value blown up."""
    bent = bytearray(data)
    way = chance.randrange(6)
    for _ in range(chance.randrange(1, 12)):
        place = chance.randrange(len(bent))
        if way in (0, 5):
            bent[place] = chance.randrange(256)
        elif way == 1:
            bent[place : place + chance.randrange(8)] = chance.randbytes(chance.randrange(9))
    if way == 2:
        del bent[chance.randrange(len(bent)) :]
    elif way == 3:
        bent = bytearray(data * chance.randrange(2, 6))
    elif way == 4:
        figures = [b"0", b"-1", b"9" * 40, b"1e999", b"NaN", b'"x"', b"[]", b"null", b"{}"]
        bent = bytearray(
            data.replace(chance.choice([b"64", b"2", b"4", b"128"]), chance.choice(figures))
        )
    path = chance.choice(["/", "/size", "/explain"])
    return path, chance.choice([name, "x", "x.gguf", "x.json"]), bytes(bent)


@pytest.mark.parametrize("seed", range(10))
def test_hostile_uploads(client: TestClient, seed: int) -> None:
    """Each of 1,000 is answered or refused with a sentence, and none is a fault."""
    for path, name, data in hostile(100, seed):
        keys = {"gpu": "l4", "context": "1k"} if path != "/explain" else {"gpu": "l4"}
        answer = client.post(path, data=keys, files={"file": (name, data)})
        assert answer.status_code in (200, 400, 404, 424), (path, name, data, answer.text[:300])
        assert "fault of kvplan" not in answer.text, (path, name, data)
        if answer.status_code != 200:
            assert 'role="alert"' in answer.text or answer.json()["error"]["message"]


FORMS = [
    (b"--x\r\n", "multipart/form-data"),
    (b"--x\r\n", "multipart/form-data; boundary=x"),
    (b"\x00" * 5000, "multipart/form-data; boundary=\xff"),
    (b"a=1&" * 5000, "application/x-www-form-urlencoded"),
    (
        b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n" * 300,
        "multipart/form-data; boundary=x",
    ),
    (b"{}", "application/json"),
    (b"", ""),
]


@pytest.mark.parametrize(("body", "kind"), FORMS)
def test_hostile_forms(client: TestClient, body: bytes, kind: str) -> None:
    """A form that is none is refused or passed over, and never a fault."""
    answer = client.post("/", content=body, headers={b"content-type": kind.encode("latin-1")})

    assert answer.status_code in (200, 400)
