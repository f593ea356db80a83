"""The API's answers are the command's, by address and by body, refusals too."""

from __future__ import annotations

import contextlib
import io
import json
from importlib.resources import files
from typing import Any

import pytest
from fastapi.testclient import TestClient
from jsonschema import Draft202012Validator

from kvplan.cli import run
from kvplan.web.api import description, example
from kvplan.web.verbs import VERBS
from tests.web.questions import questions, words

STATUS = {"unknown_name": 404, "source_unreachable": 424}
ASKED = list(questions(200))
GROUPS = [ASKED[start : start + 20] for start in range(0, len(ASKED), 20)]


def command(verb: str, keys: dict[str, Any]) -> dict[str, Any]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        run(words(verb, keys))
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_the_commands_answer(client: TestClient, group: int) -> None:
    """Each key and figure of 200 random questions, and each sentence that refuses one."""
    for verb, keys in GROUPS[group]:
        expected = command(verb, keys)
        status = STATUS.get(expected["error"]["code"], 400) if "error" in expected else 200
        by_body = client.post(f"/api/{verb}", json=keys)
        by_address = client.get(f"/api/{verb}", params=keys)

        assert (status, expected) == (by_body.status_code, by_body.json()), (verb, keys)
        assert (status, expected) == (by_address.status_code, by_address.json()), (verb, keys)


def test_the_questions_are_of_all_kinds() -> None:
    """Most are answered; some are refused, which is answered the same too."""
    verbs = [verb for verb, _ in ASKED]

    assert 100 < verbs.count("fit") < 160
    assert 200 == len(ASKED)


@pytest.mark.parametrize("verb", VERBS)
def test_examples(client: TestClient, verb: str) -> None:
    """The example of the description is a body as described, and is answered, by its schema."""
    post = description()["paths"][f"/api/{verb}"]["post"]
    body = post["requestBody"]["content"]["application/json"]["schema"]
    answer = client.post(f"/api/{verb}", json=example(VERBS[verb]))
    text = files("kvplan").joinpath(f"data/schemas/{verb}.json").read_text("utf-8")

    assert 200 == answer.status_code
    assert Draft202012Validator(body).is_valid(example(VERBS[verb]))
    assert Draft202012Validator(json.loads(text)).is_valid(answer.json())


def test_the_description_names_every_key() -> None:
    """What OpenAPI says is the verbs' own keys, each with a sentence."""
    paths = description()["paths"]
    untold = [
        (path, one["name"])
        for path, methods in paths.items()
        for one in methods["get"]["parameters"]
        if not one["description"]
    ]

    assert {f"/api/{verb}" for verb in VERBS} == set(paths)
    assert [] == untold


REFUSED = [
    ("fit", {"model": "gpt2"}, "No card is named."),
    ("fit", {"model": "gpt2", "gpu": "h100", "tensor_paralel_size": 2}, "--tensor-paralel-size"),
    ("fit", {"model": "gpt2", "gpu": "h100", "gpus": "two"}, "gpus 'two' is not a whole number."),
    ("fit", {"model": "gpt2", "gpu": "h100", "price": "NaN"}, "price 'NaN' is not a number."),
    ("fit", {"model": "gpt2", "gpu": "h100", "price": True}, "price 'True' is not a number."),
    ("fit", {"model": "gpt2", "gpu": {"a": 1}}, "gpu takes a text or a number."),
    ("fit", {"model": ["gpt2", "gpt2"], "gpu": "h100"}, "model takes one value"),
    ("fit", {"model": "gpt2", "gpu": "h100", "max_num_seqs": [1]}, "takes a text"),
    ("fit", {"model": "gpt2", "gpu": "x" * 70000}, "longer than 65,536 characters"),
    ("size", {}, "size needs model."),
    ("size", {"model": "gpt2", "nonsense": 1}, "size has no key 'nonsense'."),
    ("size", {"model": "{not json"}, "is not JSON"),
    ("size", {"model": "gpt2", "set": "nonsense"}, "key=value"),
    ("size", {"model": "gpt2", "set": 7}, "set takes key=value"),
    ("size", {"model": "gpt2", "sequences": "9" * 30}, "larger than any number"),
    ("size", {"model": "gpt2", "offline": "perhaps"}, "neither true nor false"),
    ("fit", {"model": "gpt2", "gpu": "l4", "calibration": "/tmp"}, "no key 'calibration'"),
    ("simulate", {"model": "gpt2", "gpu": "l4", "progress": "x"}, "no key 'progress'"),
    ("simulate", {"model": "gpt2", "gpu": "l4", "tokenizer": "x"}, "no key 'tokenizer'"),
    ("simulate", {"model": "gpt2", "gpu": "l4", "trace": "/etc/passwd"}, "of the trace is known"),
    ("explain", {"log": "hello\n"}, "nothing that an engine prints"),
]


@pytest.mark.parametrize(("verb", "keys", "said"), REFUSED)
def test_refused(client: TestClient, verb: str, keys: dict[str, Any], said: str) -> None:
    """A wrong question is answered with a sentence, as the contract's error."""
    answer = client.post(f"/api/{verb}", json=keys)
    error = answer.json()["error"]

    assert 400 == answer.status_code
    assert said in error["message"], error


BODIES = [
    (b"", "application/json", "is not JSON"),
    (b"[]", "application/json", "holds a list"),
    (b'{"model": NaN}', "application/json", "NaN"),
    (b"\xff\xfe", "application/json", "UTF-8"),
    (b"[" * 100000, "application/json", "nested too deeply"),
    (b"model=gpt2", "application/x-www-form-urlencoded", "is not read"),
]


@pytest.mark.parametrize(("body", "kind", "said"), BODIES)
def test_bodies(client: TestClient, body: bytes, kind: str, said: str) -> None:
    """A body that is no question is refused in a sentence."""
    answer = client.post("/api/size", content=body, headers={"content-type": kind})

    assert 400 == answer.status_code
    assert said in answer.json()["error"]["message"]


def test_offline_is_a_key(client: TestClient) -> None:
    """The hub is not asked where the question says so, as with the command's flag."""
    answer = client.get("/api/size", params={"model": "gpt2", "offline": "true"})

    assert (200, 36864) == (answer.status_code, answer.json()["bytes_per_token"])


TRACE = "arrival,prompt,output\n0,100,20\n1,300,20\n2,100,10\n"


def test_a_trace_is_sent(client: TestClient) -> None:
    """Its own text, in place of drawn requests."""
    keys = {"model": "gpt2", "gpu": "h100-sxm-80gb", "trace": TRACE}
    answer = client.post("/api/simulate", json=keys).json()

    assert (3, 500) == (answer["requests"], answer["prefix"]["queried_tokens"])


def test_a_config_is_a_model(client: TestClient) -> None:
    """As an object of a body, and as the text of an address."""
    config = {
        "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 100,
        "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 128,
    }  # fmt: skip
    by_body = client.post("/api/size", json={"model": config}).json()
    by_address = client.get("/api/size", params={"model": json.dumps(config)}).json()

    assert 2 * 2 * 2 * 16 * 2 == by_body["bytes_per_token"] == by_address["bytes_per_token"]
