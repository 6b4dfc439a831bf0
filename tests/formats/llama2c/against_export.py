"""The example model in the three versions of llama2.c's files, written here as its export.py does: Poise computes the
same logits.

    against_export.py PATH/TO/poise PATH/TO/examples

Exit code 77: NumPy is not installed.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    sys.exit(77)

POISE = sys.argv[1]
NANO = pathlib.Path(sys.argv[2]) / "nano-mistral"
TOKENS = "1,300,7,45,260,19"
GROUP = 16


def run(*arguments):
    return json.loads(subprocess.run([POISE, *map(str, arguments)], check=True, capture_output=True, text=True).stdout)


def weights():
    """Of a safetensors file, bf16 widened by hand."""
    file = (NANO / "model.safetensors").read_bytes()
    length = struct.unpack("<Q", file[:8])[0]
    header = json.loads(file[8 : 8 + length])
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        assert entry["dtype"] == "BF16", entry
        arrays[name] = (np.frombuffer(file[begin:end], "<u2").astype("<u4") << 16).view("<f4").reshape(entry["shape"])
    return arrays


def meta_rows(matrix, head_dim):
    """The rows of each head as Meta's models have them: the two halves of Hugging Face's, one of each in turn."""
    rows, columns = matrix.shape
    return matrix.reshape(rows // head_dim, 2, head_dim // 2, columns).transpose(0, 2, 1, 3).reshape(rows, columns)


def quantized(matrix):
    """export.py's quantize_q80."""
    groups = matrix.reshape(-1, GROUP)
    scale = np.abs(groups).max(axis=1) / np.float32(127)
    codes = np.round(groups / scale[:, None]).astype(np.int8)
    return codes.tobytes() + scale.astype("<f4").tobytes(), (codes * scale[:, None]).reshape(matrix.shape)


def export(config, arrays, version):
    """The file, and the weights that it holds."""
    layers = range(config["num_hidden_layers"])
    head_dim = config["hidden_size"] // config["num_attention_heads"]
    shared = config.get("tie_word_embeddings", False)
    sizes = [
        config[key]
        for key in (
            "hidden_size",
            "intermediate_size",
            "num_hidden_layers",
            "num_attention_heads",
            "num_key_value_heads",
            "vocab_size",
            "max_position_embeddings",
        )
    ]
    held = dict(arrays)

    def plain(name):
        return arrays[name].astype("<f4").tobytes()

    def matrix(name):
        array = arrays[name]
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            array = meta_rows(array, head_dim)
        if version < 2:
            return array.astype("<f4").tobytes()
        data, values = quantized(array)
        if name.endswith(("q_proj.weight", "k_proj.weight")):
            values = values.reshape(-1, head_dim // 2, 2, values.shape[1]).transpose(0, 2, 1, 3).reshape(values.shape)
        held[name] = values
        return data

    def of_layers(rest, write):
        return b"".join(write(f"model.layers.{layer}.{rest}") for layer in layers)

    attention_norm, mlp_norm = of_layers("input_layernorm.weight", plain), of_layers(
        "post_attention_layernorm.weight", plain
    )
    embedding, norm = matrix("model.embed_tokens.weight"), plain("model.norm.weight")
    q, k, v, o = (of_layers(f"self_attn.{name}_proj.weight", matrix) for name in "qkvo")
    gate, down, up = (of_layers(f"mlp.{name}_proj.weight", matrix) for name in ("gate", "down", "up"))
    output = b"" if shared else matrix("lm_head.weight")
    if version == 0:
        sizes[5] = sizes[5] if shared else -sizes[5]
        rotary = np.zeros((sizes[6], head_dim // 2), "<f4").tobytes()
        return (
            struct.pack("<7i", *sizes)
            + embedding
            + attention_norm
            + q
            + k
            + v
            + o
            + mlp_norm
            + gate
            + down
            + up
            + norm
            + rotary
            + rotary
            + output,
            held,
        )
    header = (
        b"24ka" + struct.pack("<i7iB", version, *sizes, shared) + (struct.pack("<i", GROUP) if version == 2 else b"")
    )
    return (
        header.ljust(256, b"\0")
        + attention_norm
        + mlp_norm
        + norm
        + embedding
        + q
        + k
        + v
        + o
        + gate
        + down
        + up
        + output,
        held,
    )


def as_safetensors(arrays):
    header, data = {}, b""
    for name, array in arrays.items():
        header[name] = {
            "dtype": "F32",
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + array.size * 4],
        }
        data += array.astype("<f4").tobytes()
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


with tempfile.TemporaryDirectory() as directory:
    path = pathlib.Path(directory)
    config = json.loads((NANO / "config.json").read_text())
    config["model_type"] = "llama"
    config.pop("sliding_window", None)
    config["rope_theta"], config["rms_norm_eps"] = 10000.0, 1e-5
    arrays = weights()
    texts = (
        ["<unk>", "\n<s>\n", "\n</s>\n"]
        + [f"<0x{byte:02X}>" for byte in range(256)]
        + [" ", "a", "b", " a", "ab", " ab"]
    )
    texts += [f"token{i}" for i in range(config["vocab_size"] - len(texts))]
    (path / "tokenizer.bin").write_bytes(
        struct.pack("<i", 12)
        + b"".join(struct.pack("<fi", -i, len(text)) + text.encode() for i, text in enumerate(texts))
    )
    for version in (0, 1, 2):
        file, held = export(config, arrays, version)
        (path / "model.bin").write_bytes(file)
        directory = path / f"hf{version}"
        directory.mkdir()
        (directory / "config.json").write_text(json.dumps(config))
        (directory / "model.safetensors").write_bytes(as_safetensors(held))
        expected = run("run", directory, "--tokens", TOKENS, "--logits")["logits"]
        found = run("run", path / "model.bin", "--tokens", TOKENS, "--logits")["logits"]
        worst = max(abs(a - b) for a, b in zip(expected, found, strict=True))
        assert worst < (1e-4 if version < 2 else 2e-2), (version, worst)
        assert run("verify", "--json", path / "model.bin")["ok"]
        assert run("inspect", "--json", path / "model.bin")["vocabulary"]["size"] == config["vocab_size"]
        assert run("tokenize", path / "model.bin", "--json", "ab")["ids"] == [1, texts.index(" ab")]
        # The values are those that were written.
        subprocess.run(
            [POISE, "convert", "--quiet", path / "model.bin", "-o", path / "out.npz", "--dtype", "f32", "--force"],
            check=True,
        )
        there = np.load(path / "out.npz")
        for name, array in held.items():
            assert np.abs(there[name] - array).max() < 1e-6, (version, name)
