"""Who answers: engine, version, model, its pool and its flags, as the server itself tells them.

    /v1/models                every OpenAI-compatible server: the model, often who owns it
    /version                  vLLM, TensorRT-LLM
    /props, /slots            llama.cpp
    /get_server_info          SGLang
    /info                     TGI
    /api/version              Ollama
    /metrics                  the pool of vLLM and SGLang

All of it is a stranger's text: what is not of the expected type is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kvplan.core.errors import BadQuestion, KvplanError, SourceUnreachable
from kvplan.logs.metrics.reading import Reading, read_metrics
from kvplan.measuring.client import Client
from kvplan.measuring.failures import CONNECT_TIMEOUT, REFUSED, Failed

OWNERS: Final = {
    "vllm": "vllm", "sglang": "sglang", "llamacpp": "llama.cpp", "tensorrt_llm": "tensorrt-llm",
    "library": "ollama",
}  # fmt: skip
# SGLang's server arguments that are flags of the same name and that decide about its pool.
SGLANG_FLAGS: Final = (
    "tp_size", "mem_fraction_static", "context_length", "kv_cache_dtype", "page_size",
    "max_running_requests", "chunked_prefill_size", "max_total_tokens",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A server that answers.

    ``source`` is where its model is from (a path or a hub name) where it says so; ``pool_tokens``
    what its cache holds, ``slots`` the sequences that llama.cpp holds at most.
    """

    engine: str | None
    version: str | None
    model: str
    source: str | None = None
    max_model_len: int | None = None
    pool_tokens: int | None = None
    block_size: int | None = None
    slots: int | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    metrics: Reading | None = None

    @property
    def title(self) -> str:
        """Its model and what serves it, in a line."""
        who = " ".join(filter(None, (self.engine, self.version)))
        return f"{self.model} on {who or 'a server'}"

    def to_dict(self) -> dict[str, Any]:
        """The contract's ``server`` object."""
        return {
            "engine": self.engine,
            "version": self.version,
            "model": self.model,
            "source": self.source,
            "max_model_len": self.max_model_len,
            "pool_tokens": self.pool_tokens,
            "block_size": self.block_size,
            "slots": self.slots,
            "flags": dict(self.flags),
        }


async def identify(client: Client, model: str | None) -> Server:
    """Who answers at the client's address; ``model`` chooses one of several.

    Raises:
        SourceUnreachable: nobody answers.
        BadQuestion: what answers serves no model, or not that one.
    """
    listed = await _models(client, model)
    name = str(listed.get("id"))[:400]
    reading = await scrape(client)
    engine = OWNERS.get(str(listed.get("owned_by"))) or (
        reading.exporter.engine if reading else None
    )
    found: dict[str, Any] = {
        "source": _text(listed.get("root")),
        "max_model_len": _whole(listed.get("max_model_len")),
    }
    if engine in (None, "llama.cpp"):
        props = await _object(client, "/props")
        if props.get("total_slots"):
            engine = "llama.cpp"
            found |= _llamacpp(props, listed)
    if engine in (None, "sglang"):
        info = await _object(client, "/get_server_info")
        if "max_total_num_tokens" in info or "mem_fraction_static" in info:
            engine = "sglang"
            found |= _sglang(info)
    if engine is None and (info := await _object(client, "/info")).get("model_id"):
        engine = "tgi"
        found |= {"version": _text(info.get("version")), "source": _text(info.get("model_id"))}
    if engine in (None, "ollama") and (ollama := await _object(client, "/api/version")):
        engine = "ollama"
        found |= {"version": _text(ollama.get("version"))}
    if engine in ("vllm", "tensorrt-llm"):
        said = await _object(client, "/version")
        found |= {"version": _text(said.get("version"))}
    return Server(
        engine=engine,
        version=found.pop("version", None),
        model=name,
        metrics=reading,
        **_pool(reading) | {key: value for key, value in found.items() if value is not None},
    )


async def scrape(client: Client) -> Reading | None:
    """The server's metrics; None where it exports none that are known."""
    try:
        data = await client.text("/metrics")
    except Failed:
        return None
    return read_metrics(data.decode("utf-8", "replace").splitlines())


async def _models(client: Client, model: str | None) -> Mapping[str, Any]:
    """The row of /v1/models that is measured."""
    where = str(client.address)
    try:
        answer = await client.ask("/v1/models")
    except Failed as failed:
        raise unlisted(where, failed) from None
    data = answer.get("data") if isinstance(answer, dict) else None
    listed = data if isinstance(data, list) else []
    rows = [row for row in listed if isinstance(row, dict) and isinstance(row.get("id"), str)]
    names = [row["id"] for row in rows]
    if not rows:
        raise BadQuestion(f"{where} serves no model.")
    if model is None:
        return rows[0]
    chosen = next((row for row in rows if row["id"] == model), None)
    if chosen is None:
        shown = ", ".join(name[:80] for name in names[:5])
        raise BadQuestion(f"{where} serves no {model!r}.", f"It serves {shown}.")
    return chosen


def unlisted(where: str, failed: Failed) -> KvplanError:
    """Why there is no list of models, and what may help."""
    if failed.kind in (REFUSED, CONNECT_TIMEOUT):
        hint = "Is the server up?"
        if "CERTIFICATE" in failed.detail:
            hint = "The environment's SSL_CERT_FILE may name a certificate to trust."
        return SourceUnreachable(f"{where} does not answer ({failed.detail}).", hint)
    hint = "Pass the address of an OpenAI-compatible server, as http://localhost:8000."
    status = failed.kind.removeprefix("http_")
    if status == failed.kind:
        return BadQuestion(f"{where} lists no models ({failed.detail[:120] or failed.kind}).", hint)
    if status in ("401", "403"):
        hint = "A key is taken from KVPLAN_API_KEY or OPENAI_API_KEY."
    said = f": {failed.detail[:120]}" if failed.detail else ""
    return BadQuestion(f"{where}/v1/models answers with HTTP status {status}{said}.", hint)


def _llamacpp(props: Mapping[str, Any], listed: Mapping[str, Any]) -> dict[str, Any]:
    """Slots share the cells of a unified cache, or have ``n_ctx`` each: /props tells a slot's."""
    settings = props.get("default_generation_settings")
    each = _whole(settings.get("n_ctx")) if isinstance(settings, dict) else None
    slots = _whole(props.get("total_slots"))
    return {
        "version": _text(props.get("build_info")),
        "source": _text(props.get("model_path")),
        "max_model_len": each,
        "slots": slots,
        "pool_tokens": each * slots if each and slots else None,
        "flags": {"parallel": slots, "ctx_size": each * slots} if each and slots else {},
    }


def _sglang(info: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "version": _text(info.get("version")),
        "source": _text(info.get("model_path")),
        "pool_tokens": _whole(info.get("max_total_num_tokens")),
        "block_size": _whole(info.get("page_size")),
        "flags": {
            key: info[key]
            for key in SGLANG_FLAGS
            if isinstance(info.get(key), int | float | str) and not isinstance(info[key], bool)
        },
    }


def _pool(reading: Reading | None) -> dict[str, Any]:
    """What the metrics say of the pool."""
    if reading is None:
        return {}
    blocks, size = reading.pool("num_gpu_blocks"), reading.pool("block_size")
    tokens = reading.pool("kv_tokens") or reading.get("kv_tokens")
    if tokens is None and blocks and size:
        tokens = blocks * size
    known = {
        "gpu_memory_utilization": reading.pool("gpu_memory_utilization"),
        "block_size": size,
    }
    return {
        "pool_tokens": int(tokens) if tokens else None,
        "block_size": int(size) if size else None,
        "flags": {key: value for key, value in known.items() if value is not None},
    }


async def _object(client: Client, path: str) -> Mapping[str, Any]:
    try:
        found = await client.ask(path)
    except Failed:
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    return value[:400] if isinstance(value, str) and value else None


def _whole(value: object) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 < value < 1 << 40 else None  # type: ignore[operator,return-value]
