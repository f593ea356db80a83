"""The page's own keys beside a verb's: what they mean in the verb's words, and how an address is
written.

    config    a pasted config.json, in place of a model's name
    kv        the cache's format, whatever the engine calls its flag
    flags     more flags of the engine, in its own spelling, as one line
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from kvplan.cli.defaults import completed
from kvplan.core.errors import BadValue
from kvplan.engines.names import DEFAULT_ENGINE
from kvplan.web.fields import fields_of, takes_engine_flags
from kvplan.web.verbs import VERBS

PAGE_KEYS = ("config", "kv", "flags")
# What an engine calls the format of its cache, and the formats that its page offers.
CACHE_FLAGS: Mapping[str, tuple[str, ...]] = {
    "none": ("--kv-dtype",),
    "vllm": ("--kv-cache-dtype",),
    "sglang": ("--kv-cache-dtype",),
    "tensorrt-llm": ("--kv-cache-dtype",),
    "llama.cpp": ("--cache-type-k", "--cache-type-v"),
    "ik_llama.cpp": ("--cache-type-k", "--cache-type-v"),
    "ollama": ("--OLLAMA_KV_CACHE_TYPE",),
}
# The flags of layouts whose levers take twice the cards.
TWICE = {"tensor_parallel_size", "data_parallel_size"}
# What the command is given in place of what was pasted.
FILES = {
    "log": "start.log", "second": "later.log", "requests": "requests.jsonl",
    "trace": "--trace trace.jsonl",
}  # fmt: skip
CACHE_FORMATS = ("auto", "fp8", "fp8_e4m3", "int8", "nvfp4", "q8_0", "q4_0", "int4")


def question_of(verb: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The verb's keys of what a form holds.

    Raises:
        BadValue: a line of flags that cannot be read, or an engine without a format to choose.
    """
    given = completed(verb, given)
    found = {key: value for key, value in given.items() if key not in PAGE_KEYS and value != ""}
    config = given.get("config")
    if config and verb != "explain":
        found["model"] = config
    if not takes_engine_flags(verb):
        return found
    engine = str(found.get("engine") or DEFAULT_ENGINE).lower()
    line = str(given.get("flags") or "")
    if line.strip():
        found |= engine_flags(line, engine)
    kv = given.get("kv")
    if kv:
        for flag in cache_flags(engine):
            found[flag.lstrip("-").replace("-", "_")] = kv
    return found


def cache_flags(engine: str) -> tuple[str, ...]:
    """What an engine calls its cache's format.

    Raises:
        BadValue: it has no flag for it.
    """
    if engine not in CACHE_FLAGS:
        raise BadValue(
            f"{engine} has no single flag for the cache's format.",
            "Leave the cache's format away, and give the engine's own flags.",
        )
    return CACHE_FLAGS[engine]


def engine_flags(line: str, engine: str) -> dict[str, str]:
    """The flags of a line by their keys.

    Raises:
        BadValue: quotes that do not close, or a flag that the engine does not have.
    """
    from kvplan.cli.engine_flags import CARRIER, carry

    if len(line) > 8192:
        raise BadValue("The line of flags is longer than 8,192 characters.")
    try:
        words = [_dashed(word) for word in shlex.split(line)]
    except ValueError as error:
        raise BadValue(f"The engine's flags cannot be read: {error}.") from None
    found = {}
    for word in carry(["fit", f"--engine={engine}", *words], ("--engine",), engine)[1:]:
        if word.startswith("--engine="):
            continue
        if not word.startswith(f"{CARRIER}="):
            raise BadValue(f"{word[:60]!r} is no flag.", "Write them like --max-num-seqs 64.")
        name, _, value = word.removeprefix(f"{CARRIER}=").partition("=")
        found[name.lstrip("-").replace("-", "_")] = value
    return found


def _dashed(word: str) -> str:
    """A variable of the environment as the flag that it is here: ``OLLAMA_NUM_PARALLEL=2``."""
    return f"--{word}" if re.match(r"[A-Z][A-Z0-9_]*=", word) else word


def with_change(given: Mapping[str, Any], change: str) -> dict[str, Any] | None:
    """The form with a lever's flags changed; None where the lever needs a value of one's own."""
    file = re.fullmatch(r"a (\S+) file", change)
    if file:
        return {**given, "quantization": file[1]}
    name, _, value = change.partition(" ")
    key = name.lstrip("-").replace("-", "_")
    if key in fields_of("fit"):
        return {**given, key: value} if key != "set" else None
    engine = str(given.get("engine") or DEFAULT_ENGINE).lower()
    try:
        flags = engine_flags(str(given.get("flags") or ""), engine)
        changed = engine_flags(change, engine)
    except BadValue:
        return None
    found = dict(given)
    cache = {flag.lstrip("-").replace("-", "_") for flag in CACHE_FLAGS.get(engine, ())}
    formats = set(map(changed.get, cache))
    if cache and cache <= set(changed) and len(formats) == 1:
        found["kv"] = formats.pop()
        changed = {key: value for key, value in changed.items() if key not in cache}
    if TWICE & set(changed):
        found["gpus"] = _twice(given, flags)
    if changed:
        found["flags"] = line_of(flags | changed)
    return found


def _twice(given: Mapping[str, Any], flags: Mapping[str, str]) -> str:
    """Twice the cards of a form; nothing where its flags alone say how many."""
    cards = str(given.get("gpus") or ("" if TWICE & set(flags) else "1"))
    return str(2 * int(cards)) if cards.isdecimal() else cards


def line_of(flags: Mapping[str, str]) -> str:
    """Flags as one line, as ``engine_flags`` reads it."""
    words = []
    for key, value in flags.items():
        name = f"--{key}" if key.isupper() else f"--{key.replace('_', '-')}"
        words += [name] if value == "true" else [name, shlex.quote(value)]
    return " ".join(words)


def query(given: Mapping[str, Any], **changed: Any) -> str:
    """The address's query of a form, without what is empty."""
    pairs = {**given, **changed}
    return urlencode({k: v for k, v in pairs.items() if v not in ("", None, [])}, doseq=True)


def command_of(verb: str, given: Mapping[str, Any]) -> str:
    """The command line that asks the same."""
    words = ["kvplan", verb]
    asked = question_of(verb, given)
    model = asked.pop("model", None)
    for one in model if isinstance(model, list) else [model] if model else []:
        text = str(one)
        words.append("config.json" if text.lstrip().startswith("{") else shlex.quote(text))
    words += [FILES[key] for key in VERBS[verb].pasted if asked.pop(key, None)]
    for key, value in asked.items():
        name = f"--{key}" if key.isupper() else f"--{key.replace('_', '-')}"
        if value in ("true", True):
            words.append(name)
        elif not isinstance(value, bytes):
            words += [name, shlex.quote(str(value))]
    return " ".join(words)
