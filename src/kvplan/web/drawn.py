"""Charts for the page: Altair's definitions as they are, drawn in the browser or as a picture."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from kvplan.charts import chart_of, parts_of
from kvplan.charts.bars import ledger_bars
from kvplan.core.errors import BadValue, KvplanError
from kvplan.readers.hub_cache import folder_of
from kvplan.web.ask import ask
from kvplan.web.compare import asked
from kvplan.web.forms import question_of


def specification(
    verb: str, given: Mapping[str, Any], part: str, *, offline: bool = False
) -> dict[str, Any]:
    """A chart as Vega-Lite.

    Raises:
        KvplanError: as the verb, or there is nothing to plot.
    """
    return _drawn(_answered(verb, given, offline), part)


def specifications(
    verb: str, given: Mapping[str, Any], *, offline: bool = False
) -> dict[str, dict[str, Any]]:
    """Every chart of an answer by its name; without those that have nothing to plot.

    Raises:
        KvplanError: as the verb.
    """
    answer, found = _answered(verb, given, offline), {}
    for part in ["cards"] if verb == "compare" else parts_of(verb):
        with suppress(KvplanError):
            found[part] = _drawn(answer, part)
    return found


def _answered(verb: str, given: Mapping[str, Any], offline: bool) -> Any:
    if verb == "compare":
        return [one for one in asked(given, offline) if one.answer is not None]
    return ask(verb, question_of(verb, given), offline=offline)


def _drawn(answer: Any, part: str) -> dict[str, Any]:
    if isinstance(answer, list):
        if not answer:
            raise BadValue("No deployment is answered, so that there is nothing to plot.")
        ledgers = {f"{one.name} {one.title}": one.answer.plan.ledger for one in answer}
        found: dict[str, Any] = ledger_bars(ledgers, "Side by side").to_dict()
    else:
        found = chart_of(answer, part).to_dict()
    return found


def picture(verb: str, given: Mapping[str, Any], part: str, *, offline: bool = False) -> str:
    """A chart as SVG, for a browser without script."""
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(specification(verb, given, part, offline=offline))
    return drawn


def script() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, from the wheel that draws pictures; bundled
    once for each of its releases and kept beside what was downloaded.
    """
    from importlib.metadata import version

    import vl_convert

    kept = folder_of("page") / f"vega-{version('vl-convert-python')}.js"
    try:
        return kept.read_text(encoding="utf-8")
    except (OSError, ValueError):
        pass
    found: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        fresh = kept.with_suffix(f".{os.getpid()}")
        fresh.write_text(found, encoding="utf-8")
        fresh.replace(kept)
    except OSError:
        pass
    return found
