"""The questions that the page and the API answer: a row a verb."""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """A verb: what its page is called and asks, its main fields, and the keys that documents fill.

    ``main`` are the keys that its form shows at once, the others stand behind "More". ``pasted``
    are keys whose values are documents themselves (a log, requests), never the name of one.
    """

    name: str
    title: str
    lead: str
    main: tuple[str, ...]
    example: dict[str, str]
    pasted: tuple[str, ...] = ()


VERBS = {
    verb.name: verb
    for verb in (
        Verb(
            "fit",
            "Plan",
            "Does it fit, for how many, how fast, at what cost?",
            ("model", "gpu", "gpus", "engine", "context", "concurrency"),
            {"model": "meta-llama/Llama-3.1-8B", "gpu": "h100-sxm-80gb", "context": "32k"},
        ),
        Verb(
            "size",
            "Size",
            "What one token and one conversation of a model keep.",
            ("model", "context", "sequences", "kv_dtype"),
            {"model": "Qwen/Qwen3-32B", "context": "4k,32k,128k"},
        ),
        Verb(
            "explain",
            "Read a log",
            "What an engine printed when it started: every GiB, what went wrong, what would fit.",
            ("model", "gpu"),
            {},
            pasted=("log", "second"),
        ),
    )
}
