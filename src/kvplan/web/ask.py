"""The answer to a question that came over the network: the package's own, with nothing opened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import kvplan
from kvplan.cli.defaults import completed
from kvplan.engines.flags import switch
from kvplan.planning.answer import Answer
from kvplan.web.fields import keywords
from kvplan.web.verbs import VERBS


def ask(verb: str, given: Mapping[str, Any], *, offline: bool = False) -> Answer:
    """The answer of a verb to texts or plain values by their keys; what they lack is of the
    settings in use.

    To be called and rendered within ``names_alone``: parts of an answer are worked out when asked
    for.

    Raises:
        BadQuestion: what the verb raises, or a key that it does not have.
        SourceUnreachable: the hub does not answer.
    """
    given = completed(verb, given)
    offline = bool(switch(given.pop("offline", False), "offline")) or offline
    for name in VERBS[verb].pasted:
        if isinstance(given.get(name), str):
            given[name] = given[name].encode("utf-8", "replace")
    answer: Answer = getattr(kvplan, verb)(**keywords(verb, given), offline=offline)
    return answer
