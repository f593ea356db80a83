"""llama.cpp and Ollama over several cards: one card's ledger, and the cards that the machine has.

Lines of ik_llama.cpp's discussion 398 (two T4) and of an Ollama server with two RTX 4090.
"""

from __future__ import annotations

import kvplan
from kvplan.core.units import MIB

TWO = """\
  Device 0: Tesla T4, compute capability 7.5, VMM: yes
  Device 1: Tesla T4, compute capability 7.5, VMM: yes
llm_load_tensors:        CPU buffer size =   166.92 MiB
llm_load_tensors:      CUDA0 buffer size =  8509.23 MiB
llm_load_tensors:      CUDA1 buffer size =  8213.14 MiB
llama_kv_cache_init:      CUDA0 KV buffer size =  1600.00 MiB
llama_kv_cache_init:      CUDA1 KV buffer size =  1472.00 MiB
llama_new_context_with_model: KV self size  = 3072.00 MiB, K (f16): 1536.00 MiB, V (f16): 1536.00 MiB
llama_new_context_with_model:      CUDA0 compute buffer size =   368.01 MiB
llama_new_context_with_model:      CUDA1 compute buffer size =   444.77 MiB
"""
INVENTORY = (
    'time=2024-09-11T01:16:09.799Z level=INFO source=types.go:107 msg="inference compute" id=GPU-{0} '
    'library=cuda variant=v12 compute=8.9 driver=12.5 name="NVIDIA GeForce RTX 4090" '
    'total="23.6 GiB" available="23.2 GiB"\n'
)
LOADED = "llm_load_print_meta: model size       = 37.22 GiB (4.53 BPW)\n"


def test_the_ledger_is_of_the_fullest_card() -> None:
    """Never the sum of what no single card has."""
    found = {term.name: term for term in kvplan.explain(TWO.encode()).ledger}

    assert 8509.23 * MIB // 1 == found["weights"].num_bytes
    assert (1600 * MIB, "line 6, CUDA0 of 2 cards") == (
        found["kv_pool"].num_bytes,
        found["kv_pool"].source,
    )
    assert "CUDA0" in found["compute_buffer"].source


def test_a_buffer_of_inputs_is_none_of_the_weights() -> None:
    """Builds of early 2024 name it so."""
    text = TWO + "llama_new_context_with_model:  CUDA_Host input buffer size   =    11.02 MiB\n"
    start = kvplan.explain(text.encode()).start

    assert ["CPU", "CUDA0", "CUDA1"] == [*start.by_rank("model_buffer_bytes")]
    assert ["CUDA_Host"] == [*start.by_rank("input_buffer_bytes")]


def test_rows_over_all_cards_are_no_card() -> None:
    """``--split-mode row`` has a buffer of its own beside the first card's."""
    text = TWO.replace("CUDA1 buffer", "CUDA_Split buffer")
    (weights,) = (term for term in kvplan.explain(text.encode()).ledger if term.name == "weights")

    assert "cards" not in weights.source


def test_ollama_s_inventory_names_the_cards() -> None:
    """It is told once when the server starts, before anything is loaded."""
    text = INVENTORY.format(1) + INVENTORY.format(2) + LOADED
    start = kvplan.explain(text.encode()).start

    assert "NVIDIA GeForce RTX 4090" == start.last("gpu").value
    assert ["CUDA0", "CUDA1"] == [*start.by_rank("gpu")]
