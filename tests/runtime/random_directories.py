"""Small Hugging Face directories of every family with random weights: what their tensors are called, and a case for
each thing that they differ in."""
import json
import shutil
import struct

import numpy as np

from forward_pass import get, head_size, text_config

BASE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 96,
    "intermediate_size": 200,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 6,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "vocab_size": 960,
    "tie_word_embeddings": False,
    "max_position_embeddings": 512,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def family(model_type, **changes):
    return {"architectures": [model_type], "model_type": model_type, **changes}


MISTRAL = family("mistral")
QWEN2 = family("qwen2", num_key_value_heads=2, use_sliding_window=False, sliding_window=16, max_window_layers=2)
QWEN3 = family("qwen3", num_key_value_heads=2, head_dim=24, sliding_window=None)
MOE = family(
    "qwen3_moe",
    num_key_value_heads=2,
    head_dim=24,
    num_experts=6,
    num_experts_per_tok=2,
    moe_intermediate_size=64,
    norm_topk_prob=True,
    decoder_sparse_step=1,
    mlp_only_layers=[],
)
MIXTRAL = family("mixtral", num_key_value_heads=2, num_local_experts=5, num_experts_per_tok=2)
OLMO2 = family("olmo2", num_key_value_heads=3)
SMOLLM3 = family("smollm3", num_key_value_heads=2, tie_word_embeddings=True, num_hidden_layers=5)
PHI3 = family("phi3", num_key_value_heads=2, original_max_position_embeddings=512)
GEMMA = family("gemma", num_key_value_heads=1, head_dim=32, hidden_act="gelu", tie_word_embeddings=True)
GEMMA2 = family(
    "gemma2",
    num_key_value_heads=3,
    head_dim=32,
    hidden_act="gelu_pytorch_tanh",
    hidden_activation="gelu_pytorch_tanh",
    tie_word_embeddings=True,
    query_pre_attn_scalar=24,
    sliding_window=16,
    attn_logit_softcapping=5.0,
    final_logit_softcapping=3.0,
    num_hidden_layers=4,
)
GEMMA3 = family(
    "gemma3_text",
    num_key_value_heads=3,
    head_dim=32,
    hidden_activation="gelu_pytorch_tanh",
    tie_word_embeddings=True,
    query_pre_attn_scalar=24,
    sliding_window=16,
    rope_theta=1000000.0,
    rope_local_base_freq=10000.0,
    num_hidden_layers=7,
)
GEMMA3_ROPE = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1000000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 5000.0},
}
GPT_OSS = family(
    "gpt_oss",
    num_key_value_heads=2,
    head_dim=16,
    intermediate_size=64,
    num_local_experts=6,
    num_experts_per_tok=3,
    sliding_window=16,
    rope_theta=150000.0,
    attention_bias=True,
    rope_scaling={
        "rope_type": "yarn",
        "factor": 32.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "truncate": False,
        "original_max_position_embeddings": 128,
    },
)
GPT_OSS_MXFP4 = {**GPT_OSS, "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}}
GPT2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "n_embd": 96,
    "n_head": 6,
    "n_layer": 3,
    "n_positions": 128,
    "n_ctx": 128,
    "layer_norm_epsilon": 1e-5,
    "vocab_size": 960,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
LONGROPE = {
    "type": "longrope",
    "short_factor": [1 + i / 16 for i in range(8)],
    "long_factor": [2 + i for i in range(8)],
}
LONG_PHI3 = {**PHI3, "rope_scaling": {**LONGROPE, "type": "su"}, "original_max_position_embeddings": 64}

CASES = [  # name, dtype, tokens, changes to the configuration
    ("multi-head", "BF16", 40, {}),
    ("grouped-query", "BF16", 40, {"num_key_value_heads": 2, "rope_theta": 500000.0}),
    ("multi-query", "BF16", 40, {"num_key_value_heads": 1}),
    ("tied", "BF16", 40, {"tie_word_embeddings": True}),
    ("head_dim", "BF16", 40, {"head_dim": 32, "num_key_value_heads": 3}),
    ("f32", "F32", 40, {}),
    ("f16", "F16", 40, {}),
    ("long", "BF16", 300, {"num_key_value_heads": 2}),
    ("one-token", "BF16", 1, {}),
    ("epsilon", "BF16", 40, {"rms_norm_eps": 1e-3}),
    ("biases", "BF16", 40, {"attention_bias": True, "mlp_bias": True}),
    ("rope-linear", "BF16", 100, {"rope_scaling": {"type": "linear", "factor": 2.5}}),
    ("rope-dynamic", "BF16", 100, {"rope_scaling": {"type": "dynamic", "factor": 4.0}}),
    ("rope-llama3", "BF16", 200, {"rope_scaling": LLAMA3}),
    (
        "rope-yarn",
        "BF16",
        200,
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128}},
    ),
    (
        "rope-yarn-beta",
        "BF16",
        100,
        {"rope_scaling": {"type": "yarn", "factor": 8.0, "beta_fast": 16, "beta_slow": 2, "attention_factor": 0.9}},
    ),
    ("rope-longrope", "BF16", 70, {"rope_scaling": LONGROPE, "original_max_position_embeddings": 64}),
    ("rope-shortrope", "BF16", 60, {"rope_scaling": LONGROPE, "original_max_position_embeddings": 64}),
    (
        "rope-longrope-factor",
        "BF16",
        70,
        {
            "rope_scaling": {**LONGROPE, "factor": 8.0, "original_max_position_embeddings": 16},
            "original_max_position_embeddings": 64,
        },
    ),
    ("no-window", "BF16", 40, {**MISTRAL, "sliding_window": None}),
    ("window", "BF16", 100, {**MISTRAL, "sliding_window": 16, "num_key_value_heads": 2}),
    ("window-f32", "F32", 90, {**MISTRAL, "sliding_window": 7}),
    (
        "nemo",
        "BF16",
        40,
        {**MISTRAL, "sliding_window": None, "head_dim": 24, "rope_theta": 1000000.0, "num_key_value_heads": 2},
    ),
    (
        "mistral3",
        "BF16",
        40,
        {
            "model_type": "mistral3",
            "text_config": {**BASE, **MISTRAL, "sliding_window": None},
            "vision_config": {"hidden_size": 8},
        },
    ),
    ("qwen2", "BF16", 60, QWEN2),
    ("qwen2-tied", "F16", 60, {**QWEN2, "tie_word_embeddings": True}),
    ("qwen2-window", "BF16", 60, {**QWEN2, "use_sliding_window": True}),
    (
        "qwen2-types",
        "BF16",
        60,
        {
            **QWEN2,
            "use_sliding_window": True,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        },
    ),
    ("qwen3", "BF16", 60, QWEN3),
    ("qwen3-bare", "BF16", 60, {**QWEN3, "tie_word_embeddings": True, "bare": True}),
    ("qwen3-tied", "BF16", 60, {**QWEN3, "tie_word_embeddings": True, "num_key_value_heads": 6}),
    (
        "qwen3-yarn",
        "BF16",
        60,
        {
            **QWEN3,
            "attention_bias": True,
            "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32},
        },
    ),
    ("olmo2", "BF16", 60, OLMO2),
    ("olmo2-heads", "F32", 60, {**OLMO2, "num_key_value_heads": 6}),
    ("smollm3", "BF16", 60, SMOLLM3),
    (
        "smollm3-layers",
        "BF16",
        60,
        {**SMOLLM3, "no_rope_layers": [1, 0, 1, 1, 0], "use_sliding_window": True, "sliding_window": 16},
    ),
    ("phi3", "BF16", 60, PHI3),
    ("phi3-window", "BF16", 60, {**PHI3, "sliding_window": 16}),
    ("phi4-partial", "BF16", 60, {**PHI3, "partial_rotary_factor": 0.75, "tie_word_embeddings": True}),
    ("phi3-short", "BF16", 60, LONG_PHI3),
    ("phi3-long", "BF16", 400, LONG_PHI3),
    ("gemma", "BF16", 60, GEMMA),
    ("gemma-f16", "F16", 60, {**GEMMA, "num_key_value_heads": 6}),
    ("gemma2", "BF16", 60, GEMMA2),
    ("gemma2-no-caps", "F32", 60, {**GEMMA2, "attn_logit_softcapping": None, "final_logit_softcapping": None}),
    ("gemma3-text", "BF16", 60, GEMMA3),
    (
        "gemma3-linear",
        "BF16",
        60,
        {**GEMMA3, "rope_scaling": {"rope_type": "linear", "factor": 8.0}, "sliding_window_pattern": 2},
    ),
    (
        "gemma3-newer",
        "BF16",
        60,
        {
            **GEMMA3,
            "rope_parameters": GEMMA3_ROPE,
            "num_hidden_layers": 2,
            "layer_types": ["full_attention", "sliding_attention"],
        },
    ),
    (
        "gemma3",
        "BF16",
        60,
        {"model_type": "gemma3", "text_config": {**BASE, **GEMMA3}, "vision_config": {"hidden_size": 8}},
    ),
    ("mixtral", "BF16", 60, MIXTRAL),
    ("mixtral-one", "BF16", 1, {**MIXTRAL, "num_experts_per_tok": 1}),
    ("qwen3-moe", "BF16", 60, MOE),
    ("qwen3-moe-mlp", "F32", 60, {**MOE, "norm_topk_prob": False, "mlp_only_layers": [2], "num_experts_per_tok": 6}),
    ("gpt2", "BF16", 60, GPT2),
    ("gpt2-f32", "F32", 60, {**GPT2, "n_inner": 128, "tie_word_embeddings": False, "unprefixed": True}),
    ("gpt_oss", "BF16", 60, GPT_OSS),
    ("gpt_oss-mxfp4", "BF16", 60, GPT_OSS_MXFP4),
    ("gpt_oss-types", "F32", 60, {**GPT_OSS, "layer_types": ["full_attention", "sliding_attention", "full_attention"]}),
]


def linear(name, outputs, inputs, bias=False):
    yield name + ".weight", (outputs, inputs)
    if bias:
        yield name + ".bias", (outputs,)


def gpt2_shapes(config):
    hidden, inner = config["n_embd"], get(config, "n_inner", 4 * config["n_embd"])
    start = "" if config.get("unprefixed") else "transformer."
    yield start + "wte.weight", (config["vocab_size"], hidden)
    yield start + "wpe.weight", (config["n_positions"], hidden)
    for layer in range(config["n_layer"]):
        for name, shape in (
            ("attn.c_attn", (hidden, 3 * hidden)),
            ("attn.c_proj", (hidden, hidden)),
            ("mlp.c_fc", (hidden, inner)),
            ("mlp.c_proj", (inner, hidden)),
        ):
            yield f"{start}h.{layer}.{name}.weight", shape
            yield f"{start}h.{layer}.{name}.bias", shape[1:]
        for norm in ("ln_1", "ln_2"):
            yield f"{start}h.{layer}.{norm}.weight", (hidden,)
            yield f"{start}h.{layer}.{norm}.bias", (hidden,)
    yield start + "ln_f.weight", (hidden,)
    yield start + "ln_f.bias", (hidden,)
    if not config.get("tie_word_embeddings", True):
        yield "lm_head.weight", (config["vocab_size"], hidden)


def mlp_shapes(config, layer, name):
    kind, hidden, inner = config["model_type"], config["hidden_size"], config["intermediate_size"]
    if kind == "mixtral":
        yield from linear(name + "block_sparse_moe.gate", config["num_local_experts"], hidden)
        for expert in range(config["num_local_experts"]):
            for which, shape in (("w1", (inner, hidden)), ("w2", (hidden, inner)), ("w3", (inner, hidden))):
                yield from linear(f"{name}block_sparse_moe.experts.{expert}.{which}", *shape)
    elif kind == "gpt_oss":
        count = config["num_local_experts"]
        yield from linear(name + "mlp.router", count, hidden, True)
        yield name + "mlp.experts.gate_up_proj", (count, hidden, 2 * inner)
        yield name + "mlp.experts.gate_up_proj_bias", (count, 2 * inner)
        yield name + "mlp.experts.down_proj", (count, inner, hidden)
        yield name + "mlp.experts.down_proj_bias", (count, hidden)
    elif kind == "phi3":
        yield from linear(name + "mlp.gate_up_proj", 2 * inner, hidden)
        yield from linear(name + "mlp.down_proj", hidden, inner)
    else:
        places = [("mlp.", inner)]
        if kind == "qwen3_moe" and layer not in config["mlp_only_layers"]:
            yield from linear(name + "mlp.gate", config["num_experts"], hidden)
            places = [
                (f"mlp.experts.{expert}.", config["moe_intermediate_size"]) for expert in range(config["num_experts"])
            ]
        for place, width in places:
            for which, outputs, inputs in (("gate", width, hidden), ("up", width, hidden), ("down", hidden, width)):
                yield from linear(f"{name}{place}{which}_proj", outputs, inputs, config.get("mlp_bias"))


NORMS = {"olmo2": ["post_attention_layernorm", "post_feedforward_layernorm"]}
for gemma in ("gemma2", "gemma3_text", "gemma3"):
    NORMS[gemma] = [
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ]


def shapes(config):
    """The tensors of the text model."""
    if config["model_type"] == "gpt2":
        yield from gpt2_shapes(config)
        return
    config = text_config(config)
    kind, hidden, head = config["model_type"], config["hidden_size"], head_size(config)
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    bias = config.get("attention_bias")
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}."
        if kind == "phi3":
            yield from linear(name + "self_attn.qkv_proj", queries + 2 * keys, hidden)
        else:
            for which, width in (("q", queries), ("k", keys), ("v", keys)):
                yield from linear(f"{name}self_attn.{which}_proj", width, hidden, bias or kind == "qwen2")
        yield from linear(name + "self_attn.o_proj", hidden, queries, bias)
        if kind in ("qwen3", "qwen3_moe", "gemma3_text", "gemma3", "olmo2"):
            yield name + "self_attn.q_norm.weight", (queries if kind == "olmo2" else head,)
            yield name + "self_attn.k_norm.weight", (keys if kind == "olmo2" else head,)
        if kind == "gpt_oss":
            yield name + "self_attn.sinks", (config["num_attention_heads"],)
        yield from mlp_shapes(config, layer, name)
        for norm in NORMS.get(kind, ["input_layernorm", "post_attention_layernorm"]):
            yield f"{name}{norm}.weight", (hidden,)
    yield "model.norm.weight", (hidden,)
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], hidden)


def stored(weights, dtype):
    """Returns the weights as the file stores them, and their numbers."""
    if dtype == "BF16":
        bits = weights.astype(np.float32).view(np.uint32)
        bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # to nearest, ties to even
        return bits.astype(np.uint16), (bits << 16).astype(np.uint32).view(np.float32).astype(np.float64)
    array = weights.astype({"F32": np.float32, "F16": np.float16}[dtype])
    return array, array.astype(np.float64)


def random_weights(name, shape, config, random):
    if len(shape) == 1 and name.endswith(".weight"):
        return random.normal(0 if config["model_type"].startswith("gemma") else 1, 0.2, shape)
    if "bias" in name or "sinks" in name:
        return random.normal(0, 0.5, shape)
    if "embed" in name or "wte" in name or "wpe" in name:
        return random.normal(0, 0.1 if "gemma" in config["model_type"] else 1, shape)  # a Gemma makes them longer
    transposed = len(shape) == 3 or config["model_type"] == "gpt2" and "lm_head" not in name
    return random.normal(0, 1.5 / np.sqrt(shape[-2 if transposed else -1]), shape)


def file_name(name, config):
    """The name of a text model's tensor in a multimodal directory."""
    if config.get("bare"):  # a decoder that was saved without its output
        return name.removeprefix("model.")
    return "language_model." + name if "text_config" in config else name


# The numbers of E2M1's codes.
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def packed(shape, random):
    """MXFP4 as gpt-oss has it: experts' matrices [experts, in, out] as codes [experts, out, in / 32, 16] of two
    neighbours a byte, the first in the low half, and the exponents of their scales; and the numbers that they stand
    for."""
    experts, columns, rows = shape
    blocks = random.integers(0, 256, (experts, rows, columns // 32, 16), dtype=np.uint8)
    scales = random.integers(121, 125, (experts, rows, columns // 32), dtype=np.uint8)
    codes = np.stack([blocks & 15, blocks >> 4], -1).reshape(experts, rows, columns // 32, 32)
    values = E2M1[codes] * 2.0 ** (scales.astype(np.float64)[..., None] - 127)
    return blocks, scales, values.reshape(experts, rows, columns).swapaxes(1, 2)


def write_directory(directory, config, tokenizer, dtype, random):
    header, body, numbers = {}, b"", {}
    for name, shape in shapes(config):
        if len(shape) == 3 and "quantization_config" in config:
            blocks, scales, numbers[name] = packed(shape, random)
            for ending, array in (("_blocks", blocks), ("_scales", scales)):
                header[name + ending] = {
                    "dtype": "U8",
                    "shape": array.shape,
                    "data_offsets": [len(body), len(body) + array.nbytes],
                }
                body += array.tobytes()
            continue
        array, numbers[name] = stored(random_weights(name, shape, config, random), dtype)
        header[file_name(name, config)] = {
            "dtype": dtype,
            "shape": shape,
            "data_offsets": [len(body), len(body) + array.nbytes],
        }
        body += array.tobytes()
    if "vision_config" in config:
        header["vision_tower.weight"] = {
            "dtype": dtype,
            "shape": [1],
            "data_offsets": [len(body), len(body) + array.itemsize],
        }
        body += bytes(array.itemsize)
    text = json.dumps(header).encode()
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    (directory / "config.json").write_text(
        json.dumps({key: value for key, value in config.items() if key not in ("unprefixed", "bare")})
    )
    shutil.copy(tokenizer, directory / "tokenizer.model")
    return numbers
