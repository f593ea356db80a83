"""Plans that the tests of speed ask about."""

from __future__ import annotations

from functools import cache
from typing import Any

from kvplan.engines.base import EnginePlan
from kvplan.planning.question import ask
from kvplan.planning.speed.bound import Work, work_of


def plan(
    model: str, gpu: str = "h100", gpus: int = 1, engine: str = "vllm", **asked: Any
) -> EnginePlan:
    """An engine's plan; what is no value of a question is a flag."""
    return _plan(model, gpu, gpus, engine, tuple(sorted(asked.items())))


def work(asked: EnginePlan) -> Work:
    """What a plan has to do, where its card and its weights are known."""
    found = work_of(asked)
    assert found is not None
    return found


@cache
def _plan(
    model: str, gpu: str, gpus: int, engine: str, asked: tuple[tuple[str, Any], ...]
) -> EnginePlan:
    named = {key: value for key, value in asked if not key.startswith("--")}
    flags = {key: value for key, value in asked if key.startswith("--")}
    question = ask(model, gpu=gpu, gpus=gpus, engine=engine, offline=True, flags=flags, **named)
    return question.engine.plan(question.model, question.node, question.asked)
