"""Prompts of an exact number of tokens, on any server and without its tokenizer.

A prompt is words that are one token each with the space before them: so many words, so many tokens,
and what a template or a beginning-of-text adds is found by asking. Where the server has /tokenize
the words are checked there; that the count is right is seen in each answer's own usage.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kvplan.core.errors import BadQuestion
from kvplan.measuring.client import Client
from kvplan.measuring.dialect import Dialect
from kvplan.measuring.failures import Failed
from kvplan.measuring.reply import Reply

# Common enough to be one token of every vocabulary of 30,000 and more.
_LIST = """
the of and to in is was for that with on as at by from are this be an have not were which or had
his her one all been has two also more who when can other some its most first after they new but
no time up only may such out into over then years there about many would these our could work than
between during before state where under school later being part city through people world made
well same number however three while known used including second year because early against both
each home long life day high right last place small great house public company family water group
since name left major
"""
WORDS: Final = tuple(_LIST.split())
PROBES: Final = (24, 72)
REFUSALS: Final = ("http_400", "http_422", "error_event")


class Part(NamedTuple):
    """``tokens`` words drawn by ``seed``: the same seed begins the same."""

    seed: str
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompts:
    """How prompts are made for a server; ``overhead`` is what it adds to each.

    ``verified`` says that its usage showed the exact count.
    """

    words: tuple[str, ...]
    overhead: int
    verified: bool

    def text(self, parts: Sequence[Part]) -> str:
        """The words of the parts, one after the other."""
        return " ".join(
            word
            for seed, tokens in parts
            for word in random.Random(seed).choices(self.words, k=tokens)
        )

    def parts(
        self, tokens: int, *, unique: str, shared: str = "", prefix: int = 0
    ) -> tuple[Part, ...]:
        """A prompt of ``tokens`` in all, the first ``prefix`` of them as another's of ``shared``.

        Raises:
            BadQuestion: it is shorter than what the server adds.
        """
        words = tokens - self.overhead
        if words < 1:
            raise BadQuestion(
                f"A prompt of {tokens:,} tokens is less than the {self.overhead:,} that the "
                "server's template adds.", "Give a longer --prompt, or leave --chat out.",
            )  # fmt: skip
        before = max(0, min(prefix - self.overhead, words - 1))
        parts = (Part(shared, before), Part(unique, words - before))
        return parts[1:] if not before else parts


async def prepare(client: Client, dialect: Dialect, salt: str) -> tuple[Prompts, Dialect, Reply]:
    """How this server's prompts are made, the dialect that it takes, and its last answer.

    Raises:
        BadQuestion: it answers no request.
    """
    words = await _checked(client, dialect, WORDS)
    while True:
        replies = [
            await _probe(client, dialect, words, f"{salt}-{count}", count) for count in PROBES
        ]
        failed = next((reply for reply in replies if reply.failure is not None), None)
        if failed is None:
            break
        simpler = dialect.simpler() if failed.failure in REFUSALS else None
        if simpler is None:
            raise BadQuestion(
                f"{client.address}{dialect.path} answers {failed.failure} "
                f"{failed.detail[:160]}".strip()
                + ".",
                "Does the server have this endpoint and this model (--chat, --model)?",
            )
        dialect = simpler
    first, second = (reply.prompt_tokens for reply in replies)
    overhead = first - PROBES[0] if first is not None else 0
    exact = second is not None and second - overhead == PROBES[1] and overhead >= 0
    return Prompts(words=words, overhead=max(0, overhead), verified=exact), dialect, replies[-1]


async def _probe(
    client: Client, dialect: Dialect, words: Sequence[str], seed: str, count: int
) -> Reply:
    text = " ".join(random.Random(seed).choices(words, k=count))
    return await client.stream(dialect.path, dialect.body(text, 4, reuse=True))


async def _checked(client: Client, dialect: Dialect, words: tuple[str, ...]) -> tuple[str, ...]:
    """Those that are one token each, where the server tokenizes."""
    alone = await _count(client, dialect, "the")
    if alone is None:
        return words
    whole = await _count(client, dialect, "the " + " ".join(words))
    if whole == alone + len(words):
        return words
    kept = [word for word in words if await _count(client, dialect, f"the {word}") == alone + 1]
    return tuple(kept) if len(kept) >= 8 else words


async def _count(client: Client, dialect: Dialect, text: str) -> int | None:
    """Tokens of a text by /tokenize: vLLM's and SGLang's ``prompt``, llama.cpp's ``content``."""
    try:
        said = await client.ask(
            "/tokenize", {"model": dialect.model, "prompt": text, "content": text}
        )
    except Failed:
        return None
    tokens = said.get("tokens") if isinstance(said, dict) else None
    return len(tokens) if isinstance(tokens, list) else None
