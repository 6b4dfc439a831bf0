#!/usr/bin/env python3
"""Measures what each type of cache costs, and writes the table into docs/quantization.md.

    scripts/cache_table.py build/release/poise

Logits are those of examples/nano-mistral after 512 tokens of examples/training/heldout.txt, and those of a random
Mistral with heads of 128 numbers (make_synthetic_mistral.py) after 8,192 random tokens. Errors are against f32, as
parts of the largest logit. Needs numpy.
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


def poise(*arguments):
    return subprocess.run([sys.argv[1], *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def logits(path, tokens, cache):
    ids = ",".join(map(str, tokens))
    return json.loads(poise("run", path, "--tokens", ids, "--logits", "--cache", cache))["logits"]


def worst(found, exact):
    return max(abs(a - b) for a, b in zip(found, exact)) / max(map(abs, exact))


def main():
    with tempfile.TemporaryDirectory() as directory:
        large = pathlib.Path(directory) / "random"
        script = ROOT / "scripts" / "make_synthetic_mistral.py"
        subprocess.run([sys.executable, script, large, *SHAPE.split()], check=True, capture_output=True)
        tokens = [random.Random(1).randrange(3, 960) for _ in range(8192)]
        text = json.loads(poise("tokenize", NANO, HELDOUT.read_text(), "--json"))["ids"][:512]
        exact = logits(NANO, text, "f32"), logits(large, tokens, "f32")
        table = [
            "| type | bytes a number | nano-mistral: perplexity | largest error, 512 tokens "
            "| random model: 8,192 tokens |",
            "|---|---|---|---|---|",
        ]
        for name, size in TYPES.items():
            result = json.loads(poise("run", NANO, "--perplexity", HELDOUT, "--json", "--cache", name))
            errors = worst(logits(NANO, text, name), exact[0]), worst(logits(large, tokens, name), exact[1])
            table.append(f"| {name} | {size} | {result['perplexity']:.5f} | {errors[0]:.1e} | {errors[1]:.1e} |")
    head, rest = PAGE.read_text().split(BEGIN)
    PAGE.write_text(head + BEGIN + "\n" + "\n".join(table) + "\n" + END + rest.split(END, 1)[1])
    print("\n".join(table))


main()
