#!/usr/bin/env python3
"""Measures the errors of each type of cache, and writes the table into docs/quantization.md.

    scripts/cache_table.py build/release/poise

Logits are those of examples/nano-mistral after 512 tokens of examples/training/heldout.txt, and those of a random
Mistral with heads of 128 numbers (make_synthetic_mistral.py) after 8,192 random tokens. Errors are differences from
f32, divided by the largest logit. Needs numpy.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "quantization.md"
BEGIN, END = "<!-- cache by scripts/cache_table.py -->", "<!-- end -->"
TYPES = {"f32": 4, "f16": 2, "q8": 1.125}  # bytes a number
NANO = ROOT / "examples" / "nano-mistral"
HELDOUT = ROOT / "examples" / "training" / "heldout.txt"
SHAPE = "--layers 4 --hidden 512 --intermediate 1024 --heads 4 --kv-heads 2 --vocab 960 --window 16384 --shards 1"


def run_poise(*arguments):
    return subprocess.run([sys.argv[1], *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def compute_logits(path, tokens, cache):
    ids = ",".join(map(str, tokens))
    return json.loads(run_poise("run", path, "--tokens", ids, "--logits", "--cache", cache))["logits"]


def find_worst_error(found, exact):
    return max(abs(a - b) for a, b in zip(found, exact)) / max(map(abs, exact))


def main():
    with tempfile.TemporaryDirectory() as directory:
        large = pathlib.Path(directory) / "random"
        script = ROOT / "scripts" / "make_synthetic_mistral.py"
        subprocess.run([sys.executable, script, large, *SHAPE.split()], check=True, capture_output=True)
        tokens = [random.Random(1).randrange(3, 960) for _ in range(8192)]
        text = json.loads(run_poise("tokenize", NANO, HELDOUT.read_text(), "--json"))["ids"][:512]
        exact = compute_logits(NANO, text, "f32"), compute_logits(large, tokens, "f32")
        table = [
            "| type | bytes a number | nano-mistral: perplexity | largest error, 512 tokens "
            "| random model: 8,192 tokens |",
            "|---|---|---|---|---|",
        ]
        for name, size in TYPES.items():
            result = json.loads(run_poise("run", NANO, "--perplexity", HELDOUT, "--json", "--cache", name))
            errors = find_worst_error(compute_logits(NANO, text, name), exact[0]), find_worst_error(
                compute_logits(large, tokens, name), exact[1]
            )
            table.append(f"| {name} | {size} | {result['perplexity']:.5f} | {errors[0]:.1e} | {errors[1]:.1e} |")
    head, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(head + BEGIN + "\n" + "\n".join(table) + "\n" + END + rest.split(END, 1)[1])
    print("\n".join(table))


main()
