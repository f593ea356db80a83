"""The engine as it is asked: flags, ranks, versions, the verdict, what it prints, the levers."""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import BadValue
from kvplan.core.units import GIB
from kvplan.engines.base import Asked, Node
from kvplan.engines.registry import engine_of
from kvplan.engines.vllm.flags import FLAGS
from kvplan.engines.vllm.plan import VllmPlan
from kvplan.readers.devices import find_device
from tests.engines.vllm.report_rows import model_of

QWEN, GEMMA, V4 = "Qwen/Qwen3-32B", "google/gemma-3-27b-it", "deepseek-ai/DeepSeek-V4-Flash"


def planned(
    name: str, pool: int = 20 * GIB, *, version: str | None = None, gpus: int = 1, **flags: Any
) -> VllmPlan:
    """A plan with a stated pool on H100s."""
    device, _ = find_device("h100-sxm-80gb")
    engine = engine_of("vllm")
    named = {f"--{key.replace('_', '-')}": value for key, value in flags.items()}
    asked = Asked(
        context=8192, version=version, flags=engine.flags.parse(named), pool_bytes=pool,
        weights_bytes=GIB,
    )  # fmt: skip
    node = Node(device=device, gpus=gpus, memory_bytes=device.memory_bytes or 0)
    plan = engine.plan(model_of(name), node, asked)
    assert isinstance(plan, VllmPlan)
    return plan


@pytest.mark.parametrize(
    ("flag", "text", "value"),
    [
        ("-tp", "4", 4),
        ("--tensor_parallel_size", "4", 4),
        ("--max-model-len", "32k", 32000),
        ("--max-model-len", "32K", 32768),
        ("--max-model-len", "25.6k", 25600),
        ("--max-model-len", "auto", -1),
        ("--max-model-len", "-1", -1),
        ("--kv-cache-memory-bytes", "39GiB", 39 * GIB),
        ("--kv-cache-dtype", "bf16", "bfloat16"),
        ("--speculative-config", '{"method": "mtp"}', {"method": "mtp"}),
        ("--speculative-config", "{'method': 'mtp'}", {"method": "mtp"}),
    ],
)
def test_flags_are_read_as_vllm_reads_them(flag: str, text: str, value: object) -> None:
    """Short names, underscores, decimal and binary thousands, JSON."""
    assert list(FLAGS.parse({flag: text}).values()) == [value]


@pytest.mark.parametrize(
    ("flag", "text"),
    [("--max-model-len", "1.5K"), ("--kv-cache-dtype", "q8_0"), ("--speculative-config", "[1]"),
     ("--gpu-memory-utilization", "92"), ("--no-such-flag", "1")],
)  # fmt: skip
def test_what_vllm_would_refuse_is_refused(flag: str, text: str) -> None:
    """A part of a binary unit, another engine's type, no object, a percentage, no flag."""
    with pytest.raises(BadValue):
        FLAGS.parse({flag: text})


def test_a_version_before_the_range_is_an_error() -> None:
    """The message names the range."""
    with pytest.raises(BadValue, match=r"the oldest is 0\.6"):
        planned(QWEN, version="0.5.4")


def test_a_newer_version_is_planned_by_the_newest_rules() -> None:
    """And says so."""
    plan = planned(QWEN, version="0.40.0")

    assert plan.pool.kv_tokens == planned(QWEN).pool.kv_tokens
    assert "newer than the newest" in plan.warnings[0]


def test_heads_that_do_not_divide_name_the_nearest() -> None:
    """64 query heads on 3 ranks."""
    with pytest.raises(BadValue, match="64 query heads") as error:
        planned(QWEN, tensor_parallel_size=3)

    assert "2 or 4" in str(error.value)


def test_cards_alone_are_tensor_parallel_where_that_divides() -> None:
    """12 cards: 4 ranks of 3 copies, since 64 heads do not divide by 12 or 6."""
    plan = planned(QWEN, gpus=12)

    assert (plan.settings.layout.tp, plan.replicas) == (4, 3)
    assert "tensor parallel 4 × 3 copies" in plan.warnings[0]


@pytest.mark.parametrize(("tp", "block"), [(1, 65536 * 64), (8, 8192 * 64), (16, 8192 * 64)])
def test_fewer_heads_than_ranks_are_replicated(tp: int, block: int) -> None:
    """8 KV heads on 16 ranks: each keeps one."""
    assert planned(QWEN, tensor_parallel_size=tp).pool.bytes_per_block == block


def test_the_largest_stage_decides() -> None:
    """64 layers on 3 stages are 21, 22 and 21."""
    assert planned(QWEN, pipeline_parallel_size=3).pool.bytes_per_block == 22 * 65536


def test_stages_hold_their_part_of_every_group() -> None:
    """62 layers of Gemma 3 on 2 stages: 10 full ones are 5 and 5."""
    assert planned(GEMMA, pipeline_parallel_size=2).pool.bytes_per_block == 5 * 131072


def test_context_parallel_ranks_share_the_tokens() -> None:
    """Two ranks of four: twice the tokens of the same blocks."""
    one = planned(QWEN, tensor_parallel_size=16)
    two = planned(QWEN, tensor_parallel_size=16, decode_context_parallel_size=2)

    assert two.pool.kv_tokens == 2 * (one.pool.kv_tokens or 0)


@pytest.mark.parametrize(
    ("version", "block"), [("0.22.1", 1051776), ("0.25.1", 1039680), ("0.28.0", 1002240),
                           ("0.32.0", 1002240)],
)  # fmt: skip
def test_deepseek_v4_is_packed_by_version(version: str, block: int) -> None:
    """21 layers of C4 rows and index keys, 20 of C128 rows, 44 windows with an MTP module."""
    draft = {"method": "mtp", "num_speculative_tokens": 1}

    plan = planned(V4, 20_000_000_000, version=version, speculative_config=draft)

    assert plan.pool.bytes_per_block == block


def test_deepseek_v4_blocks_are_those_of_a_log() -> None:
    """20 GB with 4,096 tokens in flight: 19,955 blocks, 2,714 a request, 1,927,444 tokens."""
    draft = {"method": "mtp", "num_speculative_tokens": 1}

    plan = planned(
        V4, 20_000_000_000, version="0.28.0", speculative_config=draft, max_model_len=262144,
        max_num_batched_tokens=2048,
    )  # fmt: skip

    assert plan.pool.num_blocks == 19955
    assert sum(group.blocks_per_sequence for group in plan.pool.groups) == 2714
    assert plan.pool.kv_tokens == 1927444


def test_prints_follow_the_version() -> None:
    """One line since 0.28, two before, V0's blocks before that."""
    length = {"max_model_len": 32768}
    size = "GPU KV cache size: 81,920 tokens"
    concurrency = "Maximum concurrency for 32,768 tokens per request: 2.50x"

    assert planned(QWEN, **length).prints == (
        "Available KV cache memory: 20.0 GiB",
        f"{size}, {concurrency}",
    )
    assert planned(QWEN, version="0.19.1", **length).prints[1:] == (size, concurrency)
    assert planned(QWEN, version="0.6.6", **length).prints == (
        "# GPU blocks: 5120, # CPU blocks: 1024",
        "Maximum concurrency for 32768 tokens per request: 2.50x",
    )


def test_a_length_that_does_not_fit_is_refused_with_one_that_does() -> None:
    """40,960 tokens need 10 GiB; the null block is left out, so 8 GiB hold 32,752."""
    plan = planned(QWEN, 8 * GIB)

    assert not plan.starts
    assert "10.00 GiB KV cache is needed" in (plan.reason or "")
    assert "maximum model length is 32752" in (plan.reason or "")


@pytest.mark.parametrize(
    ("version", "flags", "starts"),
    [
        ("0.6.6", {}, False),
        ("0.6.6", {"enable_chunked_prefill": True}, True),
        ("0.6.6", {"max_model_len": 32769}, True),  # cut unasked beyond 32,768 tokens
        ("0.6.6", {"max_model_len": 32768}, False),
        ("0.6.6", {"max_model_len": 2048}, True),
        ("0.19.1", {}, True),
        ("0.19.1", {"no_enable_chunked_prefill": True}, False),
    ],
)
def test_a_batch_below_the_length(version: str, flags: dict[str, Any], starts: bool) -> None:
    """A prompt that is not cut has to fit into a step, or the engine does not start."""
    length = {"max_model_len": 29000, "max_num_batched_tokens": 2048}
    plan = planned(QWEN, version=version, **(length | flags))

    assert starts == plan.starts
    assert starts or "max_num_batched_tokens (2048) is smaller" in (plan.reason or "")


@pytest.mark.parametrize(
    ("flags", "starts"),
    [
        ({"max_num_batched_tokens": 10, "max_num_seqs": 100}, False),
        ({"max_num_batched_tokens": 100, "max_num_seqs": 100}, True),
        ({"max_num_batched_tokens": 10}, True),  # the usual number of sequences is no more
    ],
)
def test_a_batch_below_the_sequences(flags: dict[str, Any], starts: bool) -> None:
    """Each that decodes needs a token of a step."""
    plan = planned(QWEN, max_model_len=4096, **flags)

    assert starts == plan.starts
    assert starts or "must be greater than or equal to max_num_seqs (100)" in (plan.reason or "")


def test_auto_takes_the_longest_that_fits() -> None:
    """The same pool with ``--max-model-len auto``."""
    plan = planned(QWEN, 8 * GIB, max_model_len="auto")

    assert plan.starts
    assert plan.pool.max_model_len == 32752
    assert plan.launch["--max-model-len"] == 32752


def test_a_length_beyond_the_model_is_warned_of() -> None:
    """The engine asks for an environment variable then."""
    assert "VLLM_ALLOW_LONG_MAX_MODEL_LEN" in planned(QWEN, max_model_len=131072).warnings[0]


def test_no_memory_for_blocks_is_said() -> None:
    """A pool of nothing."""
    plan = planned(QWEN, 0)

    assert not plan.starts
    assert "No available memory for the cache blocks" in (plan.reason or "")


def test_capacity_counts_windows_as_they_are_held() -> None:
    """Gemma 3: a decoding sequence holds 65 blocks of each window, one that enters 513."""
    plan = planned(GEMMA, max_model_len=8192)

    assert plan.held_blocks(8192) == 512 + 6 * 65
    assert plan.entering_blocks(8192) == 512 + 6 * 513
    usable = 20 * GIB // 1310720 - 1
    assert plan.capacity(8192) == (1 + (usable - 3590) // 902, "pool")


def test_capacity_is_bounded_by_the_scheduler_and_the_length() -> None:
    """``--max-num-seqs`` and ``--max-model-len`` stop more."""
    assert planned(QWEN, max_num_seqs=2).capacity(4096) == (2, "max_num_seqs")
    assert planned(QWEN, max_model_len=4096).capacity(8192) == (0, "max_model_len")


def test_copies_hold_as_much_each() -> None:
    """Two data-parallel replicas."""
    one, two = planned(QWEN), planned(QWEN, data_parallel_size=2)

    assert two.capacity(8192).sequences == 2 * one.capacity(8192).sequences


def test_the_longest_context_fits_and_one_token_more_does_not() -> None:
    """Four sequences in the pool."""
    plan = planned(QWEN)
    longest = plan.longest(4)

    assert plan.capacity(longest).sequences >= 4
    assert plan.capacity(longest + 1).sequences < 4


def test_levers_are_those_that_apply() -> None:
    """No smaller cache where it is small already; a shorter maximum says what it changes."""
    engine = engine_of("vllm")

    bf16 = {change.name: change for change in engine.changes(planned(QWEN))}
    fp8 = {change.name for change in engine.changes(planned(QWEN, kv_cache_dtype="fp8"))}

    assert "fp8 KV" in bf16
    assert "fp8 KV" not in fp8
    assert "does not enlarge the pool" in bf16["shorter maximum"].note


def test_the_command_is_what_was_asked() -> None:
    """Layout and flags in vLLM's spelling; kvplan's own stay out."""
    draft = {"method": "mtp", "num_speculative_tokens": 1}

    plan = planned(QWEN, tp=2, max_model_len=8192, enforce_eager=True, device="cuda",
                   speculative_config=draft)  # fmt: skip

    assert plan.command == (
        "vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2 --max-model-len 8192 --enforce-eager "
        '--speculative-config \'{"method": "mtp", "num_speculative_tokens": 1}\''
    )
