"""The flags of trtllm-serve and the keys of KvCacheConfig that decide about memory."""

from __future__ import annotations

from kvplan.core.errors import BadValue
from kvplan.core.formats import FORMATS, Format
from kvplan.engines.flags import Flag, FlagTable, fraction, size, whole, word

COUNT = whole(1)
PARALLEL = whole(1, 4096)

# V is stored with K's width; nvfp4 has a scale byte each 16 elements.
CACHE_TYPES: dict[str, Format | None] = {
    "auto": None,
    "float16": FORMATS["f16"],
    "fp16": FORMATS["f16"],
    "bfloat16": FORMATS["bf16"],
    "bf16": FORMATS["bf16"],
    "fp8": FORMATS["fp8_e5m2"],
    "int8": FORMATS["fp8_e5m2"],
    "nvfp4": FORMATS["nvfp4"],
}
MAX_WINDOWS = 1024


def windows(text: str) -> tuple[int, ...]:
    """Reads a list of windows, as ``512,32768``; the layers repeat it."""
    found = tuple(whole(1)(part.strip()) for part in text.strip("[()]").split(",")[:MAX_WINDOWS])
    if not found:
        raise BadValue("--max-attention-window needs at least one window.")
    return found


FLAGS = FlagTable(
    "tensorrt-llm",
    (
        Flag(("--tp-size", "--tp", "--tensor-parallel-size"), PARALLEL, "Tensor parallel ranks."),
        Flag(("--pp-size", "--pp", "--pipeline-parallel-size"), PARALLEL, "Pipeline stages."),
        Flag(("--ep-size", "--moe-expert-parallel-size"), PARALLEL, "Expert parallel ranks."),
        Flag(("--enable-attention-dp",), None, "Attention whole on each rank, for its requests."),
        Flag(
            (
                "--free-gpu-memory-fraction",
                "--kv-cache-free-gpu-memory-fraction",
                "--kv-cache-free-gpu-mem-fraction",
            ),
            fraction,
            "Of what is free after loading, for the cache.",
        ),
        Flag(
            ("--max-tokens", "--max-tokens-in-paged-kv-cache"), COUNT, "A cap on the pool's tokens."
        ),
        Flag(("--tokens-per-block",), whole(1, 4096), "Tokens of a block."),
        Flag(
            ("--kv-cache-dtype", "--kv-cache-quant-algo"),
            word(*CACHE_TYPES),
            "The cache's format: fp8, int8, nvfp4 or auto.",
        ),
        Flag(("--max-attention-window",), windows, "Windows that the layers repeat: 512,32768."),
        Flag(("--max-seq-len",), COUNT, "The longest request, prompt and output."),
        Flag(("--max-batch-size",), COUNT, "Requests in a step."),
        Flag(("--max-num-tokens",), COUNT, "Tokens in a step."),
        Flag(("--enable-chunked-prefill",), None, "Prompts in parts."),
        Flag(("--disable-overlap-scheduler",), None, "Each step is decided when the last ended."),
        Flag(("--batch-wait-timeout-iters",), whole(0), "Steps that prompts wait to be more."),
        Flag(("--batch-wait-max-tokens-ratio",), fraction, "Of a step's tokens: enough of them."),
        Flag(("--max-beam-width",), COUNT, "Beams of a request."),
        Flag(("--host-cache-size",), size, "Host memory for blocks that leave the pool."),
        Flag(
            ("--backend",),
            word("pytorch", "tensorrt", "_autodeploy"),
            "pytorch measures a first pass; tensorrt runs a built engine.",
        ),
        Flag(("--quantization", "--quant-algo"), word(), "The weights' scheme, as fp8."),
        Flag(("--dtype",), word(), "The weights' type."),
        Flag(("--free-after-load",), size, "'available' of the log's memory line."),
    ),
)
