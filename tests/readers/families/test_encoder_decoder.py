"""What encoder-decoders keep and hold where a config uses a rarer switch.

The figures are those of transformers 5.24.0: bytes of the cache after 64 tokens in bfloat16 (0
where it cannot run such a config), and parameters.
"""

from __future__ import annotations

from typing import Any

import pytest

from kvplan.core.errors import BadFile
from kvplan.core.formats import FORMATS
from kvplan.readers.families.base import Options
from kvplan.readers.hf_config import read_config

SIDES = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 80,
    "vocab_size": 100,
}
T5 = {"d_model": 64, "d_kv": 8, "d_ff": 96, "num_layers": 3, "num_heads": 4, "vocab_size": 100}
BERT = {
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_hidden_layers": 3,
    "intermediate_size": 96,
    "vocab_size": 100,
    "is_decoder": True,
}

# Type, class, keys, the encoder's length, bytes, parameters.
CASES: dict[str, tuple[str, str, dict[str, Any], int | None, int, int]] = {
    "bart_untied": ("bart", "BartForConditionalGeneration", SIDES | {"tie_word_embeddings":
        False}, 96, 122880, 348016),
    "bart_alone": ("bart", "BartForCausalLM", SIDES | {"tie_word_embeddings": False}, None, 49152,
        210736),
    "bigbird_pegasus_alone_is_never_tied": ("bigbird_pegasus", "BigBirdPegasusForCausalLM", SIDES,
        None, 49152, 405680),
    "fsmt_two_vocabularies": ("fsmt", "FSMTForConditionalGeneration", {"d_model": 64,
        "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 96, "decoder_ffn_dim": 80,
        "src_vocab_size": 90, "tgt_vocab_size": 70}, 96, 122880, 336880),
    "marian_two_vocabularies": ("marian", "MarianMTModel", SIDES |
        {"share_encoder_decoder_embeddings": False, "decoder_vocab_size": 70,
        "is_encoder_decoder": True, "pad_token_id": 1}, 96, 122880, 332784),
    "mvp_prompts": ("mvp", "MvpForCausalLM", SIDES | {"use_prompt": True}, None, 49152, 204336),
    "mvp_prompts_of_the_decoder": ("mvp", "MvpForConditionalGeneration", SIDES | {"use_prompt":
        True, "prompt_length": 10}, 96, 122880, 1049264),
    "nllb_moe_sparse_decoder": ("nllb-moe", "NllbMoeForConditionalGeneration", SIDES |
        {"encoder_sparse_step": 0, "decoder_sparse_step": 2, "num_experts": 4, "router_bias":
        True}, 96, 122880, 228900),
    "prophetnet_alone": ("prophetnet", "ProphetNetForCausalLM", {"hidden_size": 64,
        "num_encoder_layers": 2, "num_decoder_layers": 3, "num_encoder_attention_heads": 4,
        "num_decoder_attention_heads": 4, "encoder_ffn_dim": 96, "decoder_ffn_dim": 80,
        "vocab_size": 100, "tie_word_embeddings": False, "add_cross_attention": False}, None,
        49152, 159024),
    "t5_shallow_decoder_is_tied_anyway": ("t5", "T5ForConditionalGeneration", T5 |
        {"num_decoder_layers": 1, "feed_forward_proj": "gated-gelu", "tie_word_embeddings":
        False}, 96, 20480, 122048),
    "umt5_positions_in_each_layer": ("umt5", "UMT5ForConditionalGeneration", T5, 96, 61440,
        192576),
    "longt5_transient_globals": ("longt5", "LongT5ForConditionalGeneration", T5 |
        {"encoder_attention_type": "transient-global"}, 96, 61440, 155520),
    "switch_wants_no_sparse_layer": ("switch_transformers",
        "SwitchTransformersForConditionalGeneration", T5 | {"num_decoder_layers": 3,
        "num_sparse_encoder_layers": 0, "num_sparse_decoder_layers": 3, "num_experts": 4,
        "tie_word_embeddings": False}, 96, 61440, 322880),
    "moonshine_streaming_grouped": ("moonshine_streaming",
        "MoonshineStreamingForConditionalGeneration", {"hidden_size": 64, "num_attention_heads":
        4, "num_key_value_heads": 2, "num_hidden_layers": 2, "intermediate_size": 96,
        "vocab_size": 100, "encoder_config": {"hidden_size": 32, "num_attention_heads": 4,
        "num_key_value_heads": 4, "num_hidden_layers": 2, "intermediate_size": 64, "frame_ms":
        4.0, "sliding_windows": [[16, 4], [16, 4]]}}, None, 0, 272257),
    "cohere_asr_values_below_the_file": ("cohere_asr", "CohereAsrForConditionalGeneration",
        {"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size":
        96, "vocab_size": 100, "encoder_config": {"hidden_size": 64, "num_hidden_layers": 1,
        "intermediate_size": 96, "subsampling_factor": 4}}, 192, 131072, 829988),
    "trocr_computed_positions": ("vision-encoder-decoder", "VisionEncoderDecoderModel",
        {"encoder": {"model_type": "vit", "hidden_size": 32, "num_attention_heads": 4,
        "num_hidden_layers": 2, "intermediate_size": 48, "image_size": 64, "qkv_bias": False},
        "decoder": {"model_type": "trocr", "d_model": 64, "decoder_layers": 3,
        "decoder_attention_heads": 4, "decoder_ffn_dim": 80, "vocab_size": 100,
        "cross_attention_hidden_size": 32, "use_learned_position_embeddings": False,
        "layernorm_embedding": False}}, 17, 62208, 167376),
    "donut": ("vision-encoder-decoder", "VisionEncoderDecoderModel", {"encoder": {"model_type":
        "donut-swin", "embed_dim": 16, "depths": [1, 2], "num_heads": [2, 4], "image_size": [56,
        84], "window_size": 7}, "decoder": SIDES | {"model_type": "mbart"}}, 77, 108288, 239946),
    "vit_gpt2": ("vision-encoder-decoder", "VisionEncoderDecoderModel", {"encoder": {"model_type":
        "deit", "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2,
        "intermediate_size": 48, "image_size": 64}, "decoder": {"model_type": "gpt2", "n_embd":
        64, "n_layer": 3, "n_head": 4, "vocab_size": 100, "is_decoder": True,
        "add_cross_attention": True}}, 18, 62976, 315808),
    "speech_adapter": ("speech-encoder-decoder", "SpeechEncoderDecoderModel", {"encoder":
        {"model_type": "wav2vec2", "hidden_size": 32, "num_attention_heads": 4,
        "num_hidden_layers": 2, "intermediate_size": 48, "conv_dim": [16, 16], "conv_kernel": [10,
        3], "conv_stride": [320, 2], "num_conv_pos_embeddings": 8, "add_adapter": True,
        "output_hidden_size": 64, "mask_time_prob": 0.0}, "decoder": SIDES | {"model_type":
        "mbart"}}, 10, 56832, 297976),
    "two_berts_without_cross_attention": ("encoder-decoder", "EncoderDecoderModel", {"encoder":
        BERT | {"model_type": "bert"}, "decoder": BERT | {"model_type": "roberta"}}, None, 49152,
        263460),
    "t5gemma2_untied": ("t5gemma2", "T5Gemma2ForConditionalGeneration", {"tie_word_embeddings":
        False, "encoder": {"text_config": {"hidden_size": 64, "num_hidden_layers": 3, "head_dim":
        16, "intermediate_size": 96, "vocab_size": 100}, "vision_config": {"hidden_size": 32,
        "num_attention_heads": 4, "intermediate_size": 48, "num_hidden_layers": 1}}, "decoder":
        {"hidden_size": 64, "num_hidden_layers": 7, "head_dim": 16, "intermediate_size": 96,
        "vocab_size": 100, "sliding_window": 20, "attention_bias": True}}, 96, 217600, 502656),
    "t5gemma_unequal_sides": ("t5gemma", "T5GemmaForConditionalGeneration", {"encoder":
        {"hidden_size": 64, "num_hidden_layers": 3, "head_dim": 16, "intermediate_size": 96,
        "vocab_size": 100}, "decoder": {"hidden_size": 32, "num_hidden_layers": 4, "head_dim": 8,
        "num_key_value_heads": 2, "intermediate_size": 48, "vocab_size": 100, "sliding_window":
        20}}, 96, 35200, 203744),
    "udop_two_biases": ("udop", "UdopForConditionalGeneration", {"d_model": 64, "d_kv": 8, "d_ff":
        96, "num_layers": 2, "num_heads": 4, "vocab_size": 100, "relative_attention_num_buckets":
        16, "image_size": [64, 32], "relative_bias_args": [{"type": "1d"}, {"type": "vertical"}]},
        96, 40960, 335360),
    "florence2_untied": ("florence2", "Florence2ForConditionalGeneration", {"tie_word_embeddings":
        False, "text_config": SIDES | {"model_type": "bart"}, "vision_config": {"depths": [1, 2],
        "embed_dim": [16, 32], "num_heads": [2, 4], "num_groups": [2, 4], "patch_size": [7, 3],
        "patch_stride": [4, 2], "patch_padding": [3, 1], "patch_prenorm": [False, True],
        "projection_dim": 64}}, 96, 122880, 406640),
    "musicgen": ("musicgen", "MusicgenForConditionalGeneration", {"text_encoder": T5 |
        {"model_type": "t5"}, "audio_encoder": {"model_type": "encodec", "num_filters": 8,
        "hidden_size": 16, "upsampling_ratios": [4, 2]}, "decoder": {"model_type":
        "musicgen_decoder", "num_hidden_layers": 3, "hidden_size": 32, "num_attention_heads": 4,
        "ffn_dim": 48, "vocab_size": 64}}, None, 0, 174170),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_bytes_and_parameters(case: str) -> None:
    """Both are what transformers has for the same config."""
    model_type, built, keys, source, num_bytes, parameters = CASES[case]
    config = {"model_type": model_type, "architectures": [built]} | keys

    model = read_config(config, options=Options(encoder_tokens=source))

    assert model.weights is not None
    assert parameters == model.weights.parameters
    assert num_bytes in (0, model.curve(FORMATS["bf16"]).bytes(64))


# Type, keys, and the encoder's length where nobody gives one.
LENGTHS: dict[str, tuple[str, dict[str, Any], int | None]] = {
    "whisper_pads_to_half_a_minute": ("whisper", {}, 1500),
    "bart_reads_as_far_as_its_positions": ("bart", {}, 1024),
    "bart_alone_has_no_encoder": ("bart", {"architectures": ["BartForCausalLM"]}, None),
    "bart_says_that_it_has_no_encoder": ("bart", {"is_encoder_decoder": False}, None),
    "led_has_positions_of_its_own_for_the_encoder": ("led", {}, 16384),
    "speech_is_counted_after_the_convolutions": ("speech_to_text", {}, 1500),
    "t5_of_an_older_file": ("t5", {"n_positions": 1024}, 1024),
    "t5_was_trained_on": ("t5", {}, 512),
    "patches_and_a_class_token": (
        "vision-encoder-decoder",
        {"encoder": {"model_type": "vit", "image_size": 64}, "decoder": {"model_type": "trocr"}},
        17,
    ),
    "patches_after_the_last_stage": (
        "vision-encoder-decoder",
        {
            "encoder": {"model_type": "donut-swin", "image_size": [2560, 1920]},
            "decoder": {"model_type": "mbart"},
        },
        4800,
    ),
    "patches_of_a_formula": ("pp_formulanet", {}, 64),
}


@pytest.mark.parametrize("case", LENGTHS)
def test_encoder_length_of_the_config(case: str) -> None:
    """The cross-attention is as long as the encoder's longest output."""
    model_type, keys, source = LENGTHS[case]

    model = read_config({"model_type": model_type} | keys)

    assert source == model.encoder_tokens
    kept = {layer.kind for layer, _ in model.layers()}
    assert (source is not None) == ("cross_attention" in kept)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "heads_that_do_not_divide": (
        {"model_type": "bart", "decoder_attention_heads": 7},
        "decoder_attention_heads is 7",
    ),
    "stages_without_heads": (
        {
            "model_type": "vision-encoder-decoder",
            "encoder": {"model_type": "swin", "num_heads": [3]},
        },
        "num_heads has 1 stages",
    ),
    "convolutions_of_unequal_lists": (
        {"model_type": "speecht5", "conv_dim": [512]},
        "conv_dim and conv_kernel",
    ),
    "an_image_without_sides": (
        {
            "model_type": "vision-encoder-decoder",
            "encoder": {"model_type": "vit", "image_size": []},
        },
        "image_size is an empty list",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_odd_values_are_refused(case: str) -> None:
    """A sentence names the key."""
    config, words = REFUSED[case]

    with pytest.raises(BadFile, match=words):
        read_config(config)


@pytest.mark.parametrize(
    ("model_type", "built", "parameters"),
    [("t5", "T5EncoderModel", 68_416), ("umt5", "UMT5EncoderModel", 87_104)],
)
def test_an_encoder_alone_keeps_nothing(model_type: str, built: str, parameters: int) -> None:
    """The text encoders of image models: no cache, and the parameters of one side."""
    model = read_config({"model_type": model_type, "architectures": [built]} | T5)

    assert model.weights is not None
    assert (0, parameters) == (
        model.curve(FORMATS["bf16"]).bytes(64),
        model.weights.parameters,
    )
    assert f"{built} is an encoder" in model.warnings[0]
