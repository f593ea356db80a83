"""First minutes with the command: no arguments, help everywhere, completion, errors as text."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest
import typer

from kvplan.cli import app, run

KVPLAN = str(Path(sys.executable).parent / "kvplan")


def commands(command: click.Command, words: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Every verb, groups opened."""
    inner = getattr(command, "commands", {})
    return [words, *(path for name in inner for path in commands(inner[name], (*words, name)))]


ALL = commands(typer.main.get_command(app))


def test_no_arguments_show_the_verbs(capsys: pytest.CaptureFixture[str]) -> None:
    """What there is, in a line each, and no error."""
    status = run([])
    shown = capsys.readouterr().out

    assert 0 == status
    assert [] == [path[0] for path in ALL if len(path) == 1 and f"  {path[0]} " not in shown]


@pytest.mark.parametrize("words", ALL, ids=" ".join)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_everywhere(
    words: tuple[str, ...], flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each verb says what it does, and each of its options something."""
    status = run([*words, flag])
    shown = capsys.readouterr().out

    assert 0 == status
    assert shown.startswith("Usage: ")


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_every_option_has_a_sentence(words: tuple[str, ...]) -> None:
    """An option without help is one that nobody can use."""
    command: click.Command = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]  # type: ignore[attr-defined]
    untold = [
        option.name
        for option in command.params
        if isinstance(option, click.Option) and not option.help and not option.hidden
    ]

    assert [] == untold


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    """The script that a shell asks for is given, and it offers verbs."""
    environment = {**os.environ, "_KVPLAN_COMPLETE": f"complete_{shell}"}
    environment |= {
        "COMP_WORDS": "kvplan ex",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_ARGS": "kvplan ex",
    }
    environment["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    done = subprocess.run(
        [KVPLAN], env=environment, capture_output=True, text=True, check=False, timeout=30
    )

    assert "explain" in done.stdout


SAID = [
    (
        ["fti", "gpt2"],
        "kvplan: No such command 'fti'. Did you mean 'fit'? See kvplan --help.\n",
    ),
    (
        ["fit", "gpt2", "--gpu", "h100", "--contxt", "4k"],
        "kvplan: The engine 'vllm' has no flag '--contxt' that is modelled. Did you mean --context",
    ),
    (["fit", "gpt2"], "kvplan: No card is named. Pass --gpu NAME (see kvplan gpus), or"),
    (["size"], "kvplan: Missing argument 'MODEL...'. See kvplan size --help.\n"),
    (
        ["size", "gpt2", "--context", "32 kilo"],
        "kvplan: '32 kilo' is not a number of tokens. Write 4096, 32k (32768) or 1m.\n",
    ),
    (
        ["size", "gpt2", "-o", "x.pdf"],
        "kvplan: x.pdf ends in nothing that can be written. Known: .json .csv .md .html",
    ),
    (["explain", "absent.log"], "kvplan: absent.log cannot be read: No such file or directory.\n"),
    (
        ["fit", "gpt2", "--gpu", "h100", "--gpu-memory", "80"],
        "kvplan: The size '80' has no unit. Write B, MiB, GiB (2^30), MB or GB (10^9).\n",
    ),
    (["ui", "--port", "0"], "kvplan: --port 0 is none. Give one from 1 to 65535.\n"),
]


@pytest.mark.parametrize(("words", "said"), SAID)
def test_words_of_errors(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What was asked, what was found, what to do: the sentence itself."""
    run(words)

    assert capsys.readouterr().err.startswith(said)


def test_the_page_without_its_extra(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A sentence that says what to install."""
    monkeypatch.setitem(sys.modules, "fastapi", None)
    status = run(["ui"])

    assert 2 == status
    assert (
        "kvplan: The page needs the ui extra, which is not installed. "
        "Install it with: pip install 'kvplan[ui]'\n"
    ) == capsys.readouterr().err
