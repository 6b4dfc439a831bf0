"""Compares the logits of `poise run` with a forward pass written from the models' definition, in NumPy and float64.

    independent_forward.py POISE TOKENIZER_MODEL

Builds small Llama and Mistral directories with random weights, one for each thing that such models differ in, and runs them as
they are and converted. Exits with 77 (skipped) where NumPy is missing.
"""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

# Of the largest logit; products of several tokens on a matrix unit have fewer bits.
CPU = pathlib.Path("/proc/cpuinfo")
BOUND = 2e-4 if CPU.exists() and "amx_bf16" in CPU.read_text() else 2e-5

BASE = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 96, "intermediate_size": 200,
    "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 6, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
    "vocab_size": 960, "tie_word_embeddings": False, "max_position_embeddings": 512, "bos_token_id": 1, "eos_token_id": 2,
}
MISTRAL = {"architectures": ["MistralForCausalLM"], "model_type": "mistral"}
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
    ("no-window", "BF16", 40, {**MISTRAL, "sliding_window": None}),
    ("window", "BF16", 100, {**MISTRAL, "sliding_window": 16, "num_key_value_heads": 2}),
    ("window-f32", "F32", 90, {**MISTRAL, "sliding_window": 7}),
]


def shapes(config):
    hidden, head = config["hidden_size"], head_size(config)
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        yield prefix + "self_attn.q_proj.weight", (queries, hidden)
        yield prefix + "self_attn.k_proj.weight", (keys, hidden)
        yield prefix + "self_attn.v_proj.weight", (keys, hidden)
        yield prefix + "self_attn.o_proj.weight", (hidden, queries)
        yield prefix + "mlp.gate_proj.weight", (config["intermediate_size"], hidden)
        yield prefix + "mlp.up_proj.weight", (config["intermediate_size"], hidden)
        yield prefix + "mlp.down_proj.weight", (hidden, config["intermediate_size"])
        yield prefix + "input_layernorm.weight", (hidden,)
        yield prefix + "post_attention_layernorm.weight", (hidden,)
    yield "model.norm.weight", (hidden,)
    if not config["tie_word_embeddings"]:
        yield "lm_head.weight", (config["vocab_size"], hidden)


def head_size(config):
    return config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])


def stored(weights, dtype):
    """The weights as they lie in the file, and the numbers that they stand for."""
    if dtype == "BF16":
        bits = weights.astype(np.float32).view(np.uint32)
        bits = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16  # to nearest, ties to even
        return bits.astype(np.uint16), (bits << 16).astype(np.uint32).view(np.float32).astype(np.float64)
    array = weights.astype({"F32": np.float32, "F16": np.float16}[dtype])
    return array, array.astype(np.float64)


def write_directory(directory, config, tokenizer, dtype, random):
    header, body, numbers = {}, b"", {}
    for name, shape in shapes(config):
        if len(shape) == 1:
            weights = random.normal(1, 0.2, shape)
        else:
            weights = random.normal(0, 1 if "embed" in name else 1.5 / np.sqrt(shape[1]), shape)
        array, numbers[name] = stored(weights, dtype)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(body), len(body) + array.nbytes]}
        body += array.tobytes()
    text = json.dumps(header).encode()
    (directory / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + body)
    (directory / "config.json").write_text(json.dumps(config))
    shutil.copy(tokenizer, directory / "tokenizer.model")
    return numbers


def normalized(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def attention(queries, keys, values, window):
    """One head; every array is [tokens, head_size]."""
    position = np.arange(len(queries))
    distance = position[:, None] - position[None, :]
    visible = distance >= 0 if not window else (distance >= 0) & (distance < window)
    scores = np.where(visible, queries @ keys.T / np.sqrt(queries.shape[1]), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ values


def logits(config, weights, tokens):
    heads, groups, head = config["num_attention_heads"], config["num_key_value_heads"], head_size(config)
    epsilon, window = config["rms_norm_eps"], config.get("sliding_window")
    angle = np.arange(len(tokens))[:, None] * config["rope_theta"] ** (-np.arange(0, head, 2) / head)
    cosine, sine = np.cos(angle)[:, None, :], np.sin(angle)[:, None, :]

    def rotated(x):
        x = x.reshape(len(tokens), -1, head)
        first, second = x[..., :head // 2], x[..., head // 2:]
        return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)

    x = weights["model.embed_tokens.weight"][tokens]
    for layer in range(config["num_hidden_layers"]):
        def weight(name):
            return weights[f"model.layers.{layer}.{name}.weight"]
        h = normalized(x, weight("input_layernorm"), epsilon)
        queries, keys = rotated(h @ weight("self_attn.q_proj").T), rotated(h @ weight("self_attn.k_proj").T)
        values = (h @ weight("self_attn.v_proj").T).reshape(len(tokens), groups, head)
        shared = [i * groups // heads for i in range(heads)]
        seen = np.concatenate([attention(queries[:, i], keys[:, g], values[:, g], window) for i, g in enumerate(shared)], -1)
        x = x + seen @ weight("self_attn.o_proj").T
        h = normalized(x, weight("post_attention_layernorm"), epsilon)
        gate = h @ weight("mlp.gate_proj").T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ weight("mlp.up_proj").T)) @ weight("mlp.down_proj").T
    head_weight = weights.get("lm_head.weight", weights["model.embed_tokens.weight"])
    return normalized(x[-1], weights["model.norm.weight"], epsilon) @ head_weight.T


def main():
    poise, tokenizer = sys.argv[1:]
    random = np.random.default_rng(1)
    failures = 0
    for name, dtype, count, changes in CASES:
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            config = {**BASE, **changes}
            weights = write_directory(directory, config, tokenizer, dtype, random)
            tokens = [1] + random.integers(3, config["vocab_size"], count - 1).tolist()
            expected = logits(config, weights, np.array(tokens))
            for target in (None, "model.zt") if dtype == "BF16" else (None, "model.zt", "model.alt"):
                if target:
                    subprocess.run([poise, "convert", directory, "-o", directory / target], check=True, capture_output=True)
                ran = subprocess.run([poise, "run", directory / target if target else directory, "--tokens", ",".join(map(str, tokens)), "--logits"],
                                     check=True, capture_output=True)
                error = np.abs(np.array(json.loads(ran.stdout)["logits"]) - expected).max() / np.abs(expected).max()
                failures += not error < BOUND
                print(f"{name:14} {target or 'directory':10} {error:.1e}{'' if error < BOUND else '  TOO LARGE'}")
    sys.exit(failures > 0)


main()
