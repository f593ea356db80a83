"""``fit``'s values, given or taken from a command line: which of the two holds, and whose model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from kvplan.core.errors import BadValue
from kvplan.engines.base import Engine
from kvplan.engines.names import DEFAULT_ENGINE
from kvplan.engines.registry import engine_of
from kvplan.readers import reach
from kvplan.readers.open_model import ModelSource


class Joined(NamedTuple):
    """``fit``'s own values, with what the command line says where none was given."""

    model: ModelSource
    engine: str
    engine_version: str | None
    gpus: int
    set: Mapping[str, Any] | None
    flags: Mapping[str, Any]
    warnings: tuple[str, ...] = ()


def join(
    text: str | None,
    *,
    model: ModelSource | None,
    engine: str | None,
    engine_version: str | None,
    gpus: int | None,
    set: Mapping[str, Any] | None,
    flags: Mapping[str, Any],
) -> Joined:
    """The values of a question; what is given beside a command line replaces its own.

    Raises:
        BadQuestion: no model, two models, or what ``read_started`` refuses.
    """
    if text is None:
        if model is None:
            raise BadValue("No MODEL is named.", "Give its name, or --from 'vllm serve …'.")
        return Joined(
            model, engine or DEFAULT_ENGINE, engine_version, 1 if gpus is None else gpus, set, flags
        )
    from kvplan.planning.started import read_started

    started = read_started(text, engine)
    named, said = _model(started.model, model)
    spoken = engine_of(started.engine)
    return Joined(
        model=named,
        engine=started.engine,
        engine_version=engine_version or started.version,
        gpus=started.cards if gpus is None else gpus,
        set={**started.overrides, **(set or {})} or None,
        flags={**started.flags, **{_first(spoken, name): flags[name] for name in flags}},
        warnings=(*started.warnings, *said, *_more_cards(started.cards, gpus)),
    )


def _more_cards(line: int, gpus: int | None) -> tuple[str, ...]:
    if gpus is None or gpus <= line:
        return ()
    cards = "1 card" if line == 1 else f"{line:,} cards"
    said = f"The command line takes {cards}, and --gpus says {gpus:,}: the launch shows their use."
    return (said,)


def _first(engine: Engine, name: str) -> str:
    flag = engine.flags.find(name)
    return name if flag is None else flag.names[0]


def _model(line: str | None, given: ModelSource | None) -> tuple[ModelSource, tuple[str, ...]]:
    """The line's model, or the one given; a path that is not here may be said to be a model."""
    if line is None and given is None:
        raise BadValue("The command line names no model.", "Give MODEL beside --from.")
    if line is None or given is None:
        if line is not None and _is_elsewhere(line):
            raise BadValue(
                f"The command line's model {line[:80]} is not on this machine.",
                "Give MODEL beside --from to say which model it is.",
            )
        return given or line or "", ()
    if not isinstance(given, str) or _fold(given) == _fold(line):
        return given, ()
    if _is_elsewhere(line):
        return given, (f"{line[:80]} of the command line is taken to be {given[:80]}.",)
    raise BadValue(
        f"The command line's model is {line[:80]}, and MODEL is {given[:80]}.", "Leave MODEL away."
    )


def _is_elsewhere(line: str) -> bool:
    """Whether it is a path of another machine or of a container."""
    if not line.startswith(("/", "./", "../", "~")):
        return False
    try:
        return not (reach.is_open() and Path(line).expanduser().exists())
    except (OSError, RuntimeError, ValueError):
        return True


def _fold(name: str) -> str:
    """A model's own name, without case and punctuation."""
    last = name.rstrip("/").rsplit("/", 1)[-1].lower()
    return "".join(c for c in last if c.isalnum())
