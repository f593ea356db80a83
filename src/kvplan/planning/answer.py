"""What every answer has: its verb, the version, warnings, and a dictionary that is the contract."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from kvplan._version import __version__


class Answer:
    """An answer to a question; ``to_dict`` is the JSON of the contract."""

    verb: ClassVar[str]
    warnings: tuple[str, ...]

    __slots__ = ()

    # How a notebook shows it. Tables and plots stand above this package: the root, which knows
    # them all, says here who draws.
    shown_by: ClassVar[Callable[[Answer], str] | None] = None

    def _repr_html_(self) -> str | None:
        show = type(self).shown_by
        return None if show is None else show(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """For a notebook: its page, and where that cannot be shown the names of its figures."""
        shown = self._repr_html_()
        plain = f"kvplan {self.verb}: {', '.join(self.body())} (to_dict() has them)"
        return {"text/plain": plain} | ({} if shown is None else {"text/html": shown})

    def body(self) -> dict[str, Any]:
        """The verb's own keys."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The whole answer as plain values."""
        head = {"kvplan": __version__, "verb": self.verb, "warnings": list(self.warnings)}
        return head | self.body()
