"""Why vLLM does not start, in its own words where it has some: arithmetic, nearest value, lever."""

from __future__ import annotations

from kvplan.core.units import GIB, format_bytes, format_gib
from kvplan.engines.vllm.memory import Claim
from kvplan.engines.vllm.rules import Rules


def no_memory(pool: int, requested_by: str) -> str:
    """Nothing is left for blocks."""
    return (
        f"No available memory for the cache blocks: {format_gib(pool)} are left of what "
        f"{requested_by} requests once weights, activations and the rest are paid for. Raise "
        "--gpu-memory-utilization, lower --max-num-batched-tokens or --max-num-seqs, or use more "
        "cards."
    )


def too_long(max_len: int, needed: int, available: int, estimate: int, rules: Rules) -> str:
    """One request of the longest length does not fit."""
    said = (
        f"To serve at least one request with the {rules.models_possessive} max seq len "
        f"({max_len}), {format_gib(needed)} KV cache is needed, which is larger than the available "
        f"KV cache memory ({format_gib(available)})."
    )
    if estimate > 0:
        said += (
            f" The estimated maximum model length is {estimate}: pass --max-model-len {estimate}"
        )
        return said + " (or auto), raise --gpu-memory-utilization, or use more cards."
    return said + " Not even one token fits: raise --gpu-memory-utilization, or use more cards."


def batch_below_length(batch: int, max_len: int) -> str:
    """SchedulerConfig._verify_args: a prompt that is not cut has to be a step."""
    return (
        f"max_num_batched_tokens ({batch}) is smaller than max_model_len ({max_len}), and prompts "
        f"are not cut into parts: pass --enable-chunked-prefill, or --max-num-batched-tokens "
        f"{max_len}."
    )


def batch_below_sequences(batch: int, sequences: int) -> str:
    """Each decodes a token in a step (0.32.0, config/scheduler.py, verify_max_model_len)."""
    return (
        f"max_num_batched_tokens ({batch}) must be greater than or equal to max_num_seqs "
        f"({sequences}): pass --max-num-seqs {batch}, or --max-num-batched-tokens {sequences}."
    )


def too_long_v0(max_len: int, tokens: int) -> str:
    """V0's check: the longest length in the tokens of all blocks."""
    return (
        f"The model's max seq len ({max_len}) is larger than the maximum number of tokens that can "
        f"be stored in KV cache ({tokens}): pass --max-model-len {tokens}, raise "
        "--gpu-memory-utilization, or use more cards."
    )


def cannot_group(why: str, rules: Rules) -> str:
    """The version refuses the mix of layers."""
    return f"vLLM {rules.name} does not start with this model: {why}"


def too_few_states(sequences: int, blocks: int) -> str:
    """Each sequence that decodes needs a block for its state, and graphs are made for all."""
    return (
        f"max_num_seqs ({sequences}) exceeds available Mamba cache blocks ({blocks}). Each decode "
        "sequence requires one Mamba cache block, so CUDA graph capture cannot proceed. Please "
        f"lower max_num_seqs to at most {blocks} or increase gpu_memory_utilization."
    )


def not_free(claim: Claim, utilization: float, weights: int, rules: Rules) -> str:
    """Other processes hold what the fraction asks for; the engine says it since 0.9."""
    free, total = claim.free / GIB, claim.total / GIB
    said = (
        f"Free memory on device ({free:.2f}/{total:.2f} GiB) on startup is less than desired GPU "
        f"memory utilization ({utilization:g}, {claim.requested / GIB:.2f} GiB)."
    )
    if not rules.checks_free:
        said = (
            f"{utilization:g} of {total:.2f} GiB are {claim.requested / GIB:.2f} GiB, and "
            f"{free:.2f} GiB are free: vLLM {rules.name} does not check it and runs out of memory."
        )
    if weights > claim.free:
        return f"{said} The weights alone take {weights / GIB:.2f} GiB: end the other processes."
    return (
        f"{said} Pass --gpu-memory-utilization {claim.utilization:g} at most, or end the other "
        "processes."
    )


def weights_alone(weights: int, memory: int) -> str:
    """The weights are larger than the card."""
    return (
        f"The weights take {format_bytes(weights)} of each card, which has {format_bytes(memory)}: "
        "loading ends in an out-of-memory error. Use more cards or a smaller quantisation."
    )
