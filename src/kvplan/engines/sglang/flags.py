"""The flags of SGLang that decide about memory, in its own spelling."""

from __future__ import annotations

from kvplan.core.errors import BadValue
from kvplan.engines.experts import EPLB
from kvplan.engines.flags import Flag, FlagTable, fraction, size, whole, word
from kvplan.engines.sglang.elements import CACHE_TYPES

COUNT = whole(1)
PARALLEL = whole(1, 4096)


def ratio(text: str) -> float:
    """Reads a positive ratio, which may pass 1."""
    value = float(text)
    if not 0 < value < 1e6:
        raise BadValue(f"{text[:40]} is not a ratio above 0.")
    return value


def gigabytes(text: str) -> float:
    """Reads a number of GB; 0 is none."""
    value = float(text)
    if not 0 <= value < 1e6:
        raise BadValue(f"{text[:40]} is not a number of GB.")
    return value


FLAGS = FlagTable(
    "sglang",
    (
        Flag(("--tp-size", "--tp", "--tensor-parallel-size"), PARALLEL, "Tensor parallel ranks."),
        Flag(("--dp-size", "--dp", "--data-parallel-size"), PARALLEL, "Data parallel ranks."),
        Flag(("--pp-size", "--pp", "--pipeline-parallel-size"), PARALLEL, "Pipeline stages."),
        Flag(("--ep-size", "--ep", "--expert-parallel-size"), PARALLEL, "Expert parallel ranks."),
        Flag((EPLB,), None, "Experts moved until all ranks have as much."),
        Flag(("--enable-dp-attention",), None, "Attention data parallel inside the TP ranks."),
        Flag(("--mem-fraction-static",), fraction, "Weights and pools, of what was free."),
        Flag(("--kv-cache-dtype",), word(*CACHE_TYPES), "The cache's format, as fp8_e4m3."),
        Flag(("--page-size",), whole(1, 1 << 20), "Tokens of a page."),
        Flag(("--context-length",), COUNT, "The longest request."),
        Flag(("--max-total-tokens",), COUNT, "A cap on the tokens of the pool."),
        Flag(("--max-running-requests",), COUNT, "A cap on the requests that run at once."),
        Flag(("--chunked-prefill-size",), whole(-1), "Tokens of a prefill chunk; -1 is off."),
        Flag(("--max-prefill-tokens",), COUNT, "Tokens of a prefill batch."),
        Flag(("--enable-mixed-chunk",), None, "Prompts and decodes in one step."),
        Flag(("--scheduler-recv-interval",), COUNT, "Decode steps between looks at the inbox."),
        Flag(("--schedule-conservativeness",), ratio, "Of what admission sets aside."),
        Flag(
            ("--cuda-graph-max-bs", "--cuda-graph-max-bs-decode"),
            COUNT,
            "The largest batch that is captured.",
        ),
        Flag(("--disable-cuda-graph",), None, "Capture no graphs."),
        Flag(("--disable-piecewise-cuda-graph",), None, "Capture no graphs of prefill."),
        Flag(("--disable-radix-cache",), None, "Keep no finished requests."),
        Flag(("--disable-overlap-schedule",), None, "One batch at a time."),
        Flag(("--disable-hybrid-swa-memory",), None, "Windows at full length, in one pool."),
        Flag(("--swa-full-tokens-ratio",), fraction, "Window tokens over full tokens."),
        Flag(("--mamba-ssm-dtype",), word("float32", "bfloat16", "float16"), "A state's type."),
        Flag(("--max-mamba-cache-size",), COUNT, "Slots of recurrent states."),
        Flag(("--mamba-full-memory-ratio",), ratio, "State bytes over cache bytes."),
        Flag(
            ("--mamba-scheduler-strategy", "--mamba-radix-cache-strategy"),
            word("auto", "no_buffer", "extra_buffer", "extra_buffer_lazy"),
            "How states of shared prefixes are kept.",
        ),
        Flag(("--attention-backend",), word(), "The kernels; some fix the page size."),
        Flag(("--speculative-algorithm",), word(), "EAGLE, EAGLE3, NEXTN, STANDALONE, DFLASH, …"),
        Flag(("--speculative-draft-model-path", "--speculative-draft-model"), word(), "The draft."),
        Flag(("--speculative-num-steps",), COUNT, "Draft steps."),
        Flag(("--speculative-eagle-topk",), COUNT, "Branches of a draft step."),
        Flag(("--speculative-num-draft-tokens",), COUNT, "Draft tokens that are verified."),
        Flag(("--moe-a2a-backend",), word(), "deepep keeps buffers of its own."),
        Flag(("--quantization",), word(), "The weights' scheme; known from the checkpoint."),
        Flag(("--dtype",), word(), "The weights' type; known from the checkpoint."),
        Flag(("--device",), word("cuda", "npu", "rocm", "xpu", "hpu", "cpu"), "cuda or npu."),
        Flag(("--enable-hierarchical-cache",), None, "Prefixes in host memory (HiCache)."),
        Flag(("--hicache-ratio",), ratio, "Host tokens over the card's."),
        Flag(("--hicache-size",), gigabytes, "GB of host memory of each rank."),
        Flag(("--hicache-mem-layout",), word(), "The order of a host pool's bytes."),
        Flag(("--draft-layers",), whole(0, 4096), "Layers of the draft (its config says)."),
        Flag(
            ("--draft-kv-heads",), whole(1, 4096), "KV heads of the draft; the target's if absent."
        ),
        Flag(("--draft-head-dim",), whole(1, 1 << 16), "Width of the draft's heads."),
        Flag(("--free-before-load",), size, "avail mem of the log's 'Load weight begin' line."),
        Flag(("--free-after-load",), size, "avail mem of the log's 'Load weight end' line."),
    ),
)
