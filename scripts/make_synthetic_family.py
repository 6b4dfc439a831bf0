#!/usr/bin/env python3
"""Writes a Hugging Face directory of any family that Poise runs, with random weights and the given sizes, to measure
decoding.

    scripts/make_synthetic_family.py OUT model_type=mixtral hidden_size=1024 num_local_experts=8 ...

Other keys have the values in USUAL, or the family's defaults. Prints the number of parameters that a token uses: all
except the embedding, and of the experts those that a token chooses. Weights are normally distributed, in float16, and
small enough for finite results. Needs NumPy.
"""
import json
import pathlib
import struct
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "runtime"))
from random_directories import shapes  # noqa: E402

USUAL = {
    "hidden_act": "silu",
    "hidden_size": 1024,
    "intermediate_size": 3584,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "vocab_size": 8000,
    "tie_word_embeddings": False,
    "max_position_embeddings": 4096,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
POOL = 1 << 22  # random numbers that are drawn once and repeated


def parse_value(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def main():
    out = pathlib.Path(sys.argv[1])
    config = {
        **USUAL,
        **{key: parse_value(text) for key, text in (argument.split("=", 1) for argument in sys.argv[2:])},
    }
    out.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    pool = (random.standard_normal(POOL) * 0.02).astype(np.float16)
    listed, header, offset = list(shapes(config)), {}, 0
    for name, shape in listed:
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 64)
    used = config.get("num_experts_per_tok", 1) / config.get("num_experts", config.get("num_local_experts", 1))
    parameters = 0
    with open(out / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in listed:
            count = int(np.prod(shape))
            begin = int(random.integers(POOL))
            file.write(np.resize(np.roll(pool, -begin), count).tobytes())
            if "embed" not in name or config["tie_word_embeddings"]:
                parameters += count * (used if ".experts." in name else 1)
    (out / "config.json").write_text(json.dumps(config))
    print(f"{int(parameters)} parameters of a token")


main()
