"""What can be changed about a start of SGLang, each a question to ask again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kvplan.engines.base import Asked, Change
from kvplan.engines.sglang.elements import FP8
from kvplan.engines.sglang.plan import SGLangPlan

SMALL_WINDOW_RATIO = 0.1


def changes(plan: SGLangPlan) -> Iterator[Change]:
    """Fraction, format, window ratio, state type, longest request, cards."""
    settings, cells, asked = plan.settings, plan.cells, plan.asked

    if asked.pool_bytes is None and settings.fraction < 0.95:
        share = min(0.95, round(settings.fraction + 0.03, 3))
        note = "leaves less for activations and graphs, which are not measured"
        yield plan.with_flag("larger fraction", "--mem-fraction-static", share, note)
    if settings.elements.bits > 8:
        yield plan.with_flag("fp8 KV", "--kv-cache-dtype", FP8.name)
    if cells.window_layers and cells.full_layers and settings.window_ratio > SMALL_WINDOW_RATIO:
        note = "bytes of the window pool go to the layers of full length"
        flag = "--swa-full-tokens-ratio"
        yield plan.with_flag("smaller window pool", flag, SMALL_WINDOW_RATIO, note)
    if cells.state_bytes and settings.state_dtype == "float32":
        yield plan.with_flag("16-bit states", "--mamba-ssm-dtype", "bfloat16")
    if plan.running.by == "pool" and settings.context // 2 >= asked.context:
        note = "does not enlarge the pool; raises the estimate of running requests"
        yield plan.with_flag("shorter limit", "--context-length", settings.context // 2, note)
    twice = replace(plan.node, gpus=2 * plan.node.gpus)
    yield Change("twice the cards", f"--gpus {twice.gpus}", plan.model, twice, _any_layout(asked))


def _any_layout(asked: Asked) -> Asked:
    flags = {flag: value for flag, value in asked.flags.items() if flag != "--tp-size"}
    return replace(asked, flags=flags)
