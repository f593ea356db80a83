"""The form's keys in a verb's words, levers as addresses, and the command that asks the same."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

import kvplan
from kvplan.core.errors import BadValue
from kvplan.engines.names import ENGINES
from kvplan.web.fields import keywords
from kvplan.web.forms import command_of, question_of, with_change

FORMS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model": "gpt2", "gpu": ""}, {"model": "gpt2"}),
    ({"model": "gpt2", "config": '{"a": 1}'}, {"model": '{"a": 1}'}),
    ({"kv": "fp8"}, {"kv_cache_dtype": "fp8"}),
    (
        {"kv": "q8_0", "engine": "llama.cpp"},
        {"engine": "llama.cpp", "cache_type_k": "q8_0", "cache_type_v": "q8_0"},
    ),
    ({"kv": "fp8", "engine": "none"}, {"engine": "none", "kv_dtype": "fp8"}),
    (
        {"flags": "-tp 2 --enforce-eager --max-model-len=8k"},
        {"tp": "2", "enforce_eager": "true", "max_model_len": "8k"},
    ),
    (
        {"flags": "OLLAMA_NUM_PARALLEL=4", "engine": "ollama"},
        {"engine": "ollama", "OLLAMA_NUM_PARALLEL": "4"},
    ),
]


@pytest.mark.parametrize(("form", "question"), FORMS)
def test_a_form_in_the_verbs_words(form: dict[str, Any], question: dict[str, Any]) -> None:
    """Each of the page's keys becomes the engine's own flag or the verb's key."""
    assert question == question_of("fit", form)


REFUSED = [
    ({"kv": "fp8", "engine": "transformers"}, "no single flag"),
    ({"flags": "--max-model-len"}, "needs a value"),
    ({"flags": "--max-modl-len 8k"}, "no flag"),
    ({"flags": "'unclosed"}, "cannot be read"),
    ({"flags": "word"}, "is no flag"),
    ({"flags": "-- x"}, "is no flag"),
]


@pytest.mark.parametrize(("form", "said"), REFUSED)
def test_what_cannot_be_read(form: dict[str, Any], said: str) -> None:
    """A line of flags that is none is a sentence."""
    with pytest.raises(BadValue, match=said):
        question_of("fit", form)


CHANGES: list[tuple[dict[str, Any], str, dict[str, Any] | None]] = [
    ({}, "--kv-cache-dtype fp8", {"kv": "fp8"}),
    ({"context": "32k"}, "--context 16384", {"context": "16384"}),
    ({}, "--enforce-eager", {"flags": "--enforce-eager"}),
    (
        {"flags": "--max-num-seqs 64"},
        "--tensor-parallel-size 4",
        {"flags": "--max-num-seqs 64 --tensor-parallel-size 4", "gpus": "2"},
    ),
    (
        {"flags": "--tensor-parallel-size 2"},
        "--tensor-parallel-size 4",
        {"flags": "--tensor-parallel-size 4", "gpus": ""},
    ),
    (
        {"engine": "llama.cpp"},
        "--cache-type-k q8_0 --cache-type-v q8_0",
        {"engine": "llama.cpp", "kv": "q8_0"},
    ),
    ({"engine": "llama.cpp"}, "a Q4_K_M file", {"engine": "llama.cpp", "quantization": "Q4_K_M"}),
    ({}, "--set num_key_value_heads", None),
]


@pytest.mark.parametrize(("form", "change", "after"), CHANGES)
def test_a_lever_as_a_form(form: dict[str, Any], change: str, after: dict[str, Any] | None) -> None:
    """The key that a lever's flag is changes, and nothing else."""
    assert after == with_change(form, change)


@pytest.mark.parametrize("gpus", ["", "2"])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_lever_leads_to_what_it_says(engine: str, gpus: str) -> None:
    """Asking with a lever's change gives the conversations that the lever promises."""
    form = {"model": "llama-3.1-8b", "gpu": "h100-sxm-80gb", "engine": engine, "gpus": gpus}
    for lever in kvplan.fit(**keywords("fit", question_of("fit", form))).levers:
        changed = with_change(form, lever.change)
        if changed is not None:
            after = kvplan.fit(**keywords("fit", question_of("fit", changed)))
            assert lever.sequences == after.sequences, lever


def test_the_command_asks_the_same() -> None:
    """A form's command, run, has the form's answer."""
    form = {"model": "gpt2", "gpu": "h100-sxm-80gb", "kv": "fp8", "flags": "--enforce-eager"}
    words = shlex.split(command_of("fit", form))

    assert ["kvplan", "fit", "gpt2", "--gpu", "h100-sxm-80gb"] == words[:5]
    assert {"--enforce-eager", "--kv-cache-dtype", "fp8"} == set(words[5:])


def test_what_was_pasted_is_a_file_of_the_command() -> None:
    """A log or requests are named, and not repeated."""
    assert "kvplan explain start.log --gpu l4" == command_of("explain", {"log": "…", "gpu": "l4"})
    assert "kvplan prefix requests.jsonl" == command_of("prefix", {"requests": "…"})
