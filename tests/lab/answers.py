"""An answer of the lab as a run would give it, made of plain values."""

from __future__ import annotations

from typing import Any

from kvplan.lab.answer import LabAnswer
from kvplan.lab.figures import Compiled, Found, Lost, Perplexity, Row, Shared, Side

FULL = Perplexity(losses=(3.0, 3.2))
NEEDLES = (
    Found(length=192, depth=0.1, whole=True, share=1.0),
    Found(length=192, depth=0.9, whole=False, share=0.5),
)


def row(cache: str, num_bytes: int, **changed: Any) -> Row:
    return Row(
        **{
            "cache": cache,
            "note": "a note",
            "prompt_tokens": 512,
            "output_tokens": 24,
            "positions_processed": 535,
            "predicted_bytes": num_bytes,
            "device_bytes": num_bytes,
            "host_bytes": 0,
            "disk_bytes": 0,
            "prefill_bytes": num_bytes,
            "peak_bytes": 1 << 30,
            "ttft_s": 2.0,
            "itl_s": 0.05,
            "same_tokens": 24,
            "exact": True,
            "perplexity": FULL,
            "full_perplexity": FULL,
            "found": NEEDLES,
        }
        | changed
    )


def side(reuse: bool) -> Side:
    return Side(
        reuse=reuse,
        computed_tokens=258,
        reused_tokens=384,
        peak_blocks=18,
        peak_bytes=18 << 20,
        first_tokens_s=1.5,
        simulated_computed_tokens=258,
        simulated_reused_tokens=384,
        simulated_peak_blocks=18,
        equal_steps=True,
        identical_output=True,
    )


def answer(*rows: Row) -> LabAnswer:
    worse = Perplexity(losses=(3.1, 3.4))
    return LabAnswer(
        model="smollm2-135m",
        architecture="LlamaForCausalLM",
        dtype="f32",
        device="cpu",
        threads=1,
        budget=128,
        passages=2,
        passage_tokens=512,
        rows=rows
        or (
            row("full", 24_652_800),
            row("none", 0, positions_processed=12_564, itl_s=None, peak_bytes=None),
            row("int2", 3_000_000, perplexity=worse, same_tokens=3, predicted_bytes=2_999_999),
        ),
        batch=Shared(
            requests=4,
            shared_tokens=256,
            prompt_tokens=1094,
            output_tokens=16,
            block_size=16,
            sides=(side(False), side(True)),
        ),
        lost=(Lost(way="sliding", kept_tokens=128, agreement=0.84, perplexity=3.8),),
        compiled=(Compiled(cache="static", compiled=True, itl_s=None, compile_s=None, note="no."),),
        notes=("fp8 was left out. A model with windows.",),
    )
