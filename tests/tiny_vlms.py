"""Folders with models of a few thousand random weights: the real classes and processors, in the published layout."""

from __future__ import annotations

import json
from pathlib import Path

# What the published chat templates do with system prompts, texts and images, without tools and videos.
_CHATML = (
    "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'image' %}IMAGE{% elif part.type == 'text' %}{{ part.text }}{% endif %}"
    "{% endfor %}{% endif %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
_QWEN = _CHATML.replace("IMAGE", "<|vision_start|><|image_pad|><|vision_end|>")
_INTERNVL = _CHATML.replace("IMAGE", "{{ '<IMG_CONTEXT>\n' }}")
_MOLMO2 = (
    "{% set images = namespace(n=0) %}{% for message in messages %}{% for part in message.content %}"
    "{% if part.type == 'image' %}{% set images.n = images.n + 1 %}{% endif %}{% endfor %}{% endfor %}"
    "{% if images.n == 1 %}<|image|>{% else %}{% for i in range(images.n) %}{{ 'Image ' ~ (i + 1) ~ '<|image|>' }}"
    "{% endfor %}{% endif %}{% for message in messages %}{% if (loop.index % 2 == 1) != (message.role == 'user') %}"
    "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
    "{{ '<|im_start|>' + message.role + '\n' }}{% for part in message.content %}{% if part.type == 'text' %}"
    "{{ '' if loop.first else ' ' }}{{ part.text }}{% endif %}{% endfor %}{{ '<|im_end|>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

_HALVES = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
_QWEN_TOKENS = ["<|im_start|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
_TEXT = {
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "initializer_range": 0.5,
}


def make_qwen3_vl(folder: Path, dtype: str = "float32") -> Path:
    patches = {"patch_size": 16, "temporal_patch_size": 2, "merge_size": 2, "processor_class": "Qwen3VLProcessor"}
    tokens = _save_tokenizer(folder, _QWEN_TOKENS, _QWEN)
    _save_json(
        folder / "preprocessor_config.json",
        {"size": {"longest_edge": 16_777_216, "shortest_edge": 65_536}, "image_processor_type": "Qwen2VLImageProcessor"}
        | patches
        | _HALVES,
    )
    _save_json(
        folder / "video_preprocessor_config.json",
        {"size": {"longest_edge": 25_165_824, "shortest_edge": 4096}, "video_processor_type": "Qwen3VLVideoProcessor"}
        | patches
        | _HALVES,
    )
    import transformers

    turns = {"rope_type": "default", "mrope_section": [4, 2, 2], "mrope_interleaved": True}
    seen = {"depth": 2, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32}
    config = transformers.Qwen3VLConfig(
        text_config={"vocab_size": len(tokens), "head_dim": 16, "rope_scaling": turns, "rope_theta": 5e6, **_TEXT},
        vision_config={"deepstack_visual_indexes": [0], "num_position_embeddings": 64, **seen},
        **_qwen_ids(tokens),
    )
    return _save_weights(folder, transformers.Qwen3VLForConditionalGeneration, config, tokens, dtype)


def make_qwen2_5_vl(folder: Path, dtype: str = "float32", max_pixels: int = 12_845_056) -> Path:
    tokens = _save_tokenizer(folder, _QWEN_TOKENS, _QWEN)
    _save_json(
        folder / "preprocessor_config.json",
        {"min_pixels": 3136, "max_pixels": max_pixels, "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2}
        | {"image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2_5_VLProcessor"}
        | _HALVES,
    )
    import transformers

    turns = {"rope_type": "default", "mrope_section": [4, 2, 2]}
    seen = {"depth": 2, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32}
    config = transformers.Qwen2_5_VLConfig(
        text_config={"vocab_size": len(tokens), "rope_scaling": turns, "rope_theta": 1e6, **_TEXT},
        vision_config={"fullatt_block_indexes": [1], **seen},
        **_qwen_ids(tokens),
    )
    return _save_weights(folder, transformers.Qwen2_5_VLForConditionalGeneration, config, tokens, dtype)


def make_internvl(folder: Path, dtype: str = "float32") -> Path:
    named = {
        "start_image_token": "<img>",
        "end_image_token": "</img>",
        "context_image_token": "<IMG_CONTEXT>",
        "video_token": "<video>",
    }
    tokens = _save_tokenizer(folder, ["<|im_start|>"], _INTERNVL, extra_special_tokens=named)
    tile = {"size": {"height": 448, "width": 448}, "processor_class": "InternVLProcessor", **_HALVES}
    tiles = {"crop_to_patches": False, "min_patches": 1, "max_patches": 12}
    _save_json(
        folder / "preprocessor_config.json", tile | tiles | {"image_processor_type": "GotOcr2ImageProcessorFast"}
    )
    _save_json(folder / "video_preprocessor_config.json", tile | {"video_processor_type": "InternVLVideoProcessor"})
    _save_json(folder / "processor_config.json", {"image_seq_length": 256, "processor_class": "InternVLProcessor"})
    import transformers

    seen = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.InternVLConfig(
        text_config={"model_type": "qwen2", "vocab_size": len(tokens), **_TEXT},
        vision_config={"model_type": "internvl_vision", **seen},
        image_token_id=tokens.convert_tokens_to_ids("<IMG_CONTEXT>"),
    )
    return _save_weights(folder, transformers.InternVLForConditionalGeneration, config, tokens, dtype)


def make_molmo2(folder: Path, dtype: str = "float32") -> Path:
    marks = ["<im_start>", "<im_end>", "<im_patch>", "<im_col>", "<low_res_im_start>", "<|image|>", "<im_low>"]
    marks += ["<frame_start>", "<frame_end>", "<|video|>", "<|im_start|>"]
    tokens = _save_tokenizer(folder, marks, _MOLMO2)
    _save_json(
        folder / "preprocessor_config.json",
        {"size": {"height": 378, "width": 378}, "max_crops": 8, "overlap_margins": [4, 4], "patch_size": 14}
        | {"pooling_size": [2, 2], "resample": 2, "do_convert_rgb": True}
        | {"image_processor_type": "Molmo2ImageProcessor", "processor_class": "Molmo2Processor"}
        | _HALVES,
    )
    _save_json(
        folder / "video_preprocessor_config.json",
        {"size": {"height": 378, "width": 378}, "patch_size": 14, "pooling_size": [3, 3], "max_fps": 2}
        | {"video_processor_type": "Molmo2VideoProcessor", "processor_class": "Molmo2Processor"}
        | _HALVES,
    )
    _save_json(folder / "processor_config.json", {"image_use_col_tokens": True, "processor_class": "Molmo2Processor"})
    import transformers

    seen = {"hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 2}
    seen["head_dim"] = 16
    named = {"image_start": 0, "image_end": 1, "image_patch": 2, "low_res_image_start": 4}
    named |= {"frame_start": 7, "frame_end": 8}
    ids = {
        name + ("_id" if name == "image_patch" else "_token_id"): tokens.convert_tokens_to_ids(marks[mark])
        for name, mark in named.items()
    }
    config = transformers.Molmo2Config(
        text_config={"vocab_size": len(tokens), "additional_vocab_size": 0, "head_dim": 16, **_TEXT},
        vision_config={"num_hidden_layers": 2, **seen},
        adapter_config={"vision_feature_layer": [1, 0], "text_hidden_size": 32, **seen},
        **ids,
    )
    return _save_weights(folder, transformers.Molmo2ForConditionalGeneration, config, tokens, dtype)


def make_llava(folder: Path, dtype: str = "float32") -> Path:
    tokens = _save_tokenizer(folder, ["<|im_start|>", "<image>"], _CHATML.replace("IMAGE", "<image>"))
    import transformers

    images = getattr(transformers, "CLIPImageProcessorPil", None) or transformers.CLIPImageProcessor
    transformers.LlavaProcessor(
        image_processor=images(size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}),
        tokenizer=tokens,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=tokens.chat_template,
    ).save_pretrained(folder)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_attention_heads": 2, "initializer_range": 0.5}
    config = transformers.LlavaConfig(
        vision_config=transformers.CLIPVisionConfig(num_hidden_layers=2, image_size=28, patch_size=14, **sizes),
        text_config=transformers.LlamaConfig(vocab_size=len(tokens), num_hidden_layers=1, **sizes),
        image_token_index=tokens.convert_tokens_to_ids("<image>"),
    )
    return _save_weights(folder, transformers.LlavaForConditionalGeneration, config, tokens, dtype)


def _save_tokenizer(folder, marks, template, **more):
    import tokenizers
    import transformers

    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    plain = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={c: i for i, c in enumerate(letters)}, merges=[]))
    plain.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    plain.decoder = tokenizers.decoders.ByteLevel()
    tokens = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=marks,
        chat_template=template,
        model_input_names=["input_ids", "attention_mask"],
        **more,
    )
    tokens.save_pretrained(folder)
    return tokens


def _qwen_ids(tokens) -> dict[str, int]:
    names = {"vision_start_token_id": 1, "vision_end_token_id": 2, "image_token_id": 3, "video_token_id": 4}
    return {name: tokens.convert_tokens_to_ids(_QWEN_TOKENS[mark]) for name, mark in names.items()}


def _save_weights(folder, kind, config, tokens, dtype) -> Path:
    import torch

    torch.manual_seed(0)
    model = kind(config).to(getattr(torch, dtype))
    model.generation_config.eos_token_id = [tokens.eos_token_id, tokens.pad_token_id]
    model.generation_config.pad_token_id = tokens.pad_token_id
    model.save_pretrained(folder)
    return folder


def _save_json(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value))
