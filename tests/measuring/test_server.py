"""Who answers, by what each engine tells of itself."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from kvplan.core.errors import BadQuestion, KvplanError, SourceUnreachable
from kvplan.measuring.client import Address, Client
from kvplan.measuring.connection import Limits
from kvplan.measuring.failures import Failed
from kvplan.measuring.server import Server, identify, unlisted
from tests.measuring.faulty_server import Answering, faulty

Pages = dict[str, Any]

# What each answers, cut to what is read; llama.cpp's as b11549 printed them.
SERVERS: dict[str, tuple[Pages, dict[str, Any]]] = {
    "vllm": (
        {
            "/v1/models": {"data": [{"id": "a", "owned_by": "vllm", "root": "/models/a",
                                     "max_model_len": 4096}]},
            "/version": {"version": "0.19.0"},
            "/metrics": 'vllm:num_requests_running 0\nvllm:cache_config_info{block_size="16",'
                        'num_gpu_blocks="100",gpu_memory_utilization="0.9"} 1\n',
        },
        {"engine": "vllm", "version": "0.19.0", "source": "/models/a", "max_model_len": 4096,
         "pool_tokens": 1600, "block_size": 16},
    ),
    "sglang": (
        {
            "/v1/models": {"data": [{"id": "a", "owned_by": "sglang", "max_model_len": 8192}]},
            "/get_server_info": {"version": "0.5.9", "max_total_num_tokens": 50000,
                                 "page_size": 1, "model_path": "org/a", "tp_size": 2,
                                 "mem_fraction_static": 0.85, "api_key": "secret"},
        },
        {"engine": "sglang", "version": "0.5.9", "source": "org/a", "pool_tokens": 50000,
         "block_size": 1,
         "flags": {"tp_size": 2, "mem_fraction_static": 0.85, "page_size": 1}},
    ),
    "llama.cpp": (
        {
            "/v1/models": {"data": [{"id": "a.gguf", "owned_by": "llamacpp"}]},
            "/props": {"default_generation_settings": {"n_ctx": 1024}, "total_slots": 2,
                       "model_path": "/models/a.gguf", "build_info": "b11549-abc"},
        },
        {"engine": "llama.cpp", "version": "b11549-abc", "source": "/models/a.gguf",
         "max_model_len": 1024, "slots": 2, "pool_tokens": 2048,
         "flags": {"parallel": 2, "ctx_size": 2048}},
    ),
    "tgi": (
        {
            "/v1/models": {"data": [{"id": "org/a"}]},
            "/info": {"model_id": "org/a", "version": "3.3.0"},
        },
        {"engine": "tgi", "version": "3.3.0", "source": "org/a"},
    ),
    "ollama": (
        {
            "/v1/models": {"data": [{"id": "a:1b", "owned_by": "library"}]},
            "/api/version": {"version": "0.12.0"},
        },
        {"engine": "ollama", "version": "0.12.0", "model": "a:1b"},
    ),
    "nobody that is known": (
        {"/v1/models": {"data": [{"id": "a"}]}},
        {"engine": None, "version": None, "pool_tokens": None},
    ),
    "a stranger's types": (
        {
            "/v1/models": {"data": [7, {"id": 3}, {"id": "a", "max_model_len": "many"}]},
            "/props": {"total_slots": True, "default_generation_settings": [1]},
            "/get_server_info": [], "/info": "x", "/metrics": "\x00\x01",
        },
        {"engine": "llama.cpp", "slots": None, "pool_tokens": None, "max_model_len": None},
    ),
}  # fmt: skip


async def no_completions(one: Answering) -> None:
    await one.whole("404 Not Found", b"{}")


def ask(pages: Pages, model: str | None = None) -> Server:
    def page(found: Any) -> Callable[[dict[str, Any]], bytes]:
        text = found if isinstance(found, str) else json.dumps(found)
        return lambda _: text.encode()

    async def asking(address: str) -> Server:
        client = Client(Address(address), Limits())
        try:
            return await identify(client, model)
        finally:
            await client.close()

    with faulty(no_completions, {path: page(found) for path, found in pages.items()}) as made:
        return asyncio.run(asking(made.address))


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_is_known(name: str) -> None:
    """Engine, version, model, pool and flags as the server tells them; no secret among them."""
    pages, expected = SERVERS[name]
    found = ask(pages).to_dict()

    assert expected == {key: found[key] for key in expected}
    assert "secret" not in json.dumps(found)


def test_one_of_several_models_is_chosen() -> None:
    """By its name; another name says what is served."""
    pages = {"/v1/models": {"data": [{"id": "a"}, {"id": "b"}]}}

    assert ("a", "b") == (ask(pages).model, ask(pages, "b").model)
    with pytest.raises(BadQuestion, match="It serves a, b"):
        ask(pages, "c")


@pytest.mark.parametrize("models", [{}, {"data": []}, {"data": 7}, [], "no", {"data": [{}]}])
def test_a_server_without_models(models: Any) -> None:
    """What serves nothing cannot be measured."""
    with pytest.raises(BadQuestion, match=r"serves no model|lists no models"):
        ask({"/v1/models": models})


@pytest.mark.parametrize(
    ("failed", "kind", "said"),
    [
        (Failed("refused", "nobody"), SourceUnreachable, "x does not answer (nobody). Is the"),
        (
            Failed("refused", "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate"),
            SourceUnreachable,
            "SSL_CERT_FILE",
        ),
        (Failed("http_404", "{}"), BadQuestion, "x/v1/models answers with HTTP status 404: {}."),
        (Failed("http_401"), BadQuestion, "HTTP status 401. A key is taken from KVPLAN_API_KEY"),
        (
            Failed("malformed", "/v1/models answers no JSON"),
            BadQuestion,
            "lists no models (/v1/mod",
        ),
        (Failed("stalled"), BadQuestion, "x lists no models (stalled)."),
    ],
)
def test_why_there_are_no_models(failed: Failed, kind: type[KvplanError], said: str) -> None:
    """A sentence of what was seen, with what may help in that case."""
    error = unlisted("x", failed)

    assert kind is type(error)
    assert said in str(error)
