"""The questions that the page and the API answer: a row a verb."""

from __future__ import annotations

from typing import NamedTuple


class Verb(NamedTuple):
    """A verb: what its page is called and asks, its main fields, and the keys that documents fill.

    ``main`` are the keys that its form shows at once, the others stand behind "More". ``pasted``
    are keys whose values are documents themselves (a log, requests), never the name of one;
    ``never`` are the function's keywords that name files of the machine, or are of no use here.
    """

    name: str
    title: str
    lead: str
    main: tuple[str, ...]
    example: dict[str, str]
    pasted: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


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
            "advise",
            "Which card?",
            "The cheapest card and layout for a model and its users, and why the others lose.",
            ("model", "users", "context", "ttft", "tpot", "budget", "gpu"),
            {"model": "Qwen/Qwen3-32B", "users": "50", "context": "32k"},
        ),
        Verb(
            "simulate",
            "Simulate",
            "What traffic does to a plan over time, as the engine's own scheduler decides.",
            ("model", "gpu", "gpus", "rate", "prompt", "output", "requests"),
            {
                "model": "meta-llama/Llama-3.1-8B", "gpu": "h100-sxm-80gb", "rate": "4",
                "prompt": "2048", "output": "256", "requests": "300",
            },
            pasted=("trace",),
            never=("tokenizer", "step_by_step"),
        ),
        Verb(
            "prefix",
            "Prefixes",
            "What requests share, what an engine reuses of it, and where they part.",
            ("engine", "block_size", "model", "gpu"),
            {},
            pasted=("requests",),
            never=("tokenizer",),
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
}  # fmt: skip

HANDBOOK = "A handbook of forty pages, of which the beginning is the same for all who ask. " * 4
# What a page that asks for a document is tried with.
TEXTS = {
    "prefix": f'{{"prompt": "{HANDBOOK}What is it?"}}\n{{"prompt": "{HANDBOOK}Who wrote it?"}}\n',
    "explain": (
        "INFO vLLM API server version 0.19.0\n"
        "INFO non-default args: {'model': 'meta-llama/Llama-3.1-8B-Instruct'}\n"
        "INFO Model loading took 14.99 GiB memory and 4.05 seconds\n"
        "INFO Available KV cache memory: 4.89 GiB\n"
        "ERROR ValueError: To serve at least one request with the models's max seq len (131072), "
        "(16.0 GiB KV cache is needed, which is larger than the available KV cache memory "
        "(4.89 GiB). Based on the available memory, the estimated maximum model length is 40048.\n"
    ),
}
