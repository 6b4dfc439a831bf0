#!/usr/bin/env python3
"""Writes a Hugging Face directory with the exact shapes of Mistral-7B-v0.1 and seeded random weights, at any scale.

    scripts/make_synthetic_mistral.py OUT --tokenizer tokenizer.model             the full model: 14.5 GB, two shards
    scripts/make_synthetic_mistral.py OUT --tokenizer tokenizer.model --layers 2  a slice of it
    scripts/make_synthetic_mistral.py OUT --layers 22 --hidden 2048 --intermediate 5632 --kv-heads 4   about 1.1 B
    parameters

Weights are normal with the standard deviation 0.02 (norms: 1), in bfloat16. The same arguments give the same bytes.
Needs numpy only.
"""
import argparse
import json
import pathlib
import shutil
import struct

import numpy as np

POOL = 1 << 24  # random numbers that are drawn once and repeated from a random start: 7 billion would take minutes


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--tokenizer", type=pathlib.Path, help="SentencePiece model to copy")
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=4096)
    parser.add_argument("--intermediate", type=int, default=14336)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--kv-heads", type=int, default=8)
    parser.add_argument("--vocab", type=int, default=32000)
    parser.add_argument("--window", type=int, default=4096)
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def make_config(args):
    return {
        "architectures": ["MistralForCausalLM"],
        "bos_token_id": 1,
        "eos_token_id": 2,
        "hidden_act": "silu",
        "hidden_size": args.hidden,
        "initializer_range": 0.02,
        "intermediate_size": args.intermediate,
        "max_position_embeddings": 32768,
        "model_type": "mistral",
        "num_attention_heads": args.heads,
        "num_hidden_layers": args.layers,
        "num_key_value_heads": args.kv_heads,
        "rms_norm_eps": 1e-05,
        "rope_theta": 10000.0,
        "sliding_window": args.window,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "vocab_size": args.vocab,
    }


def list_tensors(args):
    """Yields (name, shape) in the order of a Hugging Face checkpoint."""
    head = args.hidden // args.heads
    keys = args.kv_heads * head
    yield "model.embed_tokens.weight", (args.vocab, args.hidden)
    for layer in range(args.layers):
        prefix = f"model.layers.{layer}."
        yield prefix + "input_layernorm.weight", (args.hidden,)
        yield prefix + "mlp.down_proj.weight", (args.hidden, args.intermediate)
        yield prefix + "mlp.gate_proj.weight", (args.intermediate, args.hidden)
        yield prefix + "mlp.up_proj.weight", (args.intermediate, args.hidden)
        yield prefix + "post_attention_layernorm.weight", (args.hidden,)
        yield prefix + "self_attn.k_proj.weight", (keys, args.hidden)
        yield prefix + "self_attn.o_proj.weight", (args.hidden, args.hidden)
        yield prefix + "self_attn.q_proj.weight", (args.hidden, args.hidden)
        yield prefix + "self_attn.v_proj.weight", (keys, args.hidden)
    yield "model.norm.weight", (args.hidden,)
    yield "lm_head.weight", (args.vocab, args.hidden)


def to_bfloat16(values):
    """Rounds float32 to the nearest bfloat16, ties to even, as uint16 codes."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


class Weights:
    """Writes random bfloat16 numbers, one tensor after the other."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.pool = to_bfloat16(self.random.normal(0, 0.02, POOL))

    def write(self, file, shape):
        count = int(np.prod(shape))
        if len(shape) == 1:
            file.write(to_bfloat16(np.ones(count)).tobytes())
            return
        start = int(self.random.integers(POOL))
        while count > 0:
            piece = self.pool[start : start + count]
            file.write(piece.data)
            count -= len(piece)
            start = 0


def split_entries(entries, shards):
    """Cuts the list of tensors into runs of about equal bytes."""
    total = sum(int(np.prod(shape)) for _, shape in entries)
    runs, size = [[] for _ in range(shards)], 0
    for name, shape in entries:
        runs[min(size * shards // total, shards - 1)].append((name, shape))
        size += int(np.prod(shape))
    return [run for run in runs if run]


def write_safetensors(path, entries, weights):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in entries:
        end = offset + 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, shape in entries:
            weights.write(file, shape)
    return offset


def main():
    args = parse_arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "config.json").write_text(json.dumps(make_config(args), indent=2) + "\n")
    if args.tokenizer:
        shutil.copyfile(args.tokenizer, args.out / "tokenizer.model")
    weights = Weights(args.seed)
    runs = split_entries(list(list_tensors(args)), args.shards)
    weight_map, total = {}, 0
    for number, run in enumerate(runs, 1):
        single = len(runs) == 1
        name = "model.safetensors" if single else f"model-{number:05}-of-{len(runs):05}.safetensors"
        total += write_safetensors(args.out / name, run, weights)
        weight_map.update({tensor: name for tensor, _ in run})
    if len(runs) > 1:
        index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
        (args.out / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    print(f"{args.out}: {len(weight_map)} tensors, {total / 1e9:.2f} GB in {len(runs)} file(s)")


if __name__ == "__main__":
    main()
