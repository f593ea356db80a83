"""How a server is spoken to: its path, what may be asked beside OpenAI's own keys, reuse off.

    vLLM        ignore_eos, continuous_usage_stats (vllm/entrypoints/openai/protocol.py, 0.6 on);
                cache_salt (0.9 on): a salt of its own keeps a request's blocks apart
    SGLang      ignore_eos, continuous_usage_stats (sglang/srt/entrypoints/openai/protocol.py)
    llama.cpp   ignore_eos, timings_per_token, cache_prompt (tools/server/README.md, b10519)

Another server is asked with OpenAI's keys alone; one that refuses a key is asked without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

COMPLETIONS: Final = "/v1/completions"
CHAT: Final = "/v1/chat/completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """What is put into the body of a request.

    ``reuse_off`` are keys that switch prefix reuse off for one request: a value of None stands for
    a text that no other request has.
    """

    path: str
    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    stream_options: Mapping[str, Any] = field(default_factory=lambda: {"include_usage": True})
    reuse_off: Mapping[str, Any] | None = None

    @property
    def is_chat(self) -> bool:
        """Whether prompts are messages."""
        return self.path == CHAT

    def body(self, text: str, output_tokens: int, *, reuse: bool, salt: str = "") -> dict[str, Any]:
        """A request for ``output_tokens`` after a prompt."""
        prompt: dict[str, Any] = {"prompt": text}
        if self.is_chat:
            prompt = {"messages": [{"role": "user", "content": text}]}
        streaming = {"stream_options": dict(self.stream_options)} if self.stream_options else {}
        off = {} if reuse else {key: salt if value is None else value
                                for key, value in (self.reuse_off or {}).items()}  # fmt: skip
        common = {
            "model": self.model,
            "max_tokens": output_tokens,
            "temperature": 0,
            "stream": True,
        }
        return prompt | common | streaming | dict(self.options) | off

    def simpler(self) -> Dialect | None:
        """The same with fewer keys; None where there is nothing left to leave out."""
        if self.options or set(self.stream_options) - {"include_usage"}:
            return replace(self, options={}, stream_options={"include_usage": True}, reuse_off=None)
        if self.stream_options:
            return replace(self, stream_options={})
        return None


def dialect_of(engine: str | None, model: str, *, chat: bool) -> Dialect:
    """How an engine is spoken to."""
    path = CHAT if chat else COMPLETIONS
    running = {"include_usage": True, "continuous_usage_stats": True}
    if engine == "vllm":
        return Dialect(
            path=path, model=model, options={"ignore_eos": True}, stream_options=running,
            reuse_off={"cache_salt": None},
        )  # fmt: skip
    if engine == "sglang":
        return Dialect(path=path, model=model, options={"ignore_eos": True}, stream_options=running)
    if engine == "llama.cpp":
        return Dialect(
            path=path,
            model=model,
            options={"ignore_eos": True, "timings_per_token": True, "cache_prompt": True},
            reuse_off={"cache_prompt": False},
        )
    return Dialect(path=path, model=model)
