"""The engines by name; one is imported when it is asked."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from kvplan.core.errors import UnknownName
from kvplan.engines.base import Engine
from kvplan.engines.names import ENGINES


@cache
def engine_of(name: str) -> Engine:
    """The engine of a name.

    Raises:
        UnknownName: no such engine; the message lists those there are.
    """
    entry = ENGINES.get(name.lower())
    if entry is None:
        raise UnknownName("engine", name[:60], hint=f"Known: {', '.join(ENGINES)}.")
    module, cls = entry.split(":")
    found: Engine = getattr(import_module(f"kvplan.engines.{module}"), cls)()
    return found
