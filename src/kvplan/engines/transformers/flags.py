"""Arguments of ``generate`` and of its cache configuration, as flags."""

from __future__ import annotations

from kvplan.engines.flags import Flag, FlagTable, whole, word

COUNT = whole(1)

FLAGS = FlagTable(
    "transformers",
    (
        Flag(
            ("--cache-implementation",),
            word("dynamic", "static", "offloaded", "offloaded_static", "quantized"),
            "dynamic (the default), static, quantized, offloaded or offloaded_static.",
        ),
        Flag(
            ("--cache-backend", "--backend"),
            word("quanto", "hqq", "fp8"),
            "The quantised cache's backend: quanto (the default), hqq or fp8.",
        ),
        Flag(("--nbits",), whole(1, 8), "Bits of the quantised cache: 4."),
        Flag(("--q-group-size",), whole(1, 1 << 20), "Elements that share a scale: 64."),
        Flag(("--residual-length",), whole(1, 1 << 20), "Recent tokens kept whole: up to 128."),
        Flag(("--max-new-tokens",), COUNT, "Of the context, tokens that are generated."),
        Flag(("--max-cache-len",), COUNT, "The length that a static cache reserves at least."),
        Flag(("--dtype",), word("bfloat16", "float16", "float32", "auto"), "Of weights and cache."),
        Flag(("--tp-size",), whole(1, 4096), 'Ranks of tp_plan="auto".'),
        Flag(("--quantization",), word(), "The weights' scheme, as bitsandbytes."),
    ),
)
