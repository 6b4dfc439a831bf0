#!/usr/bin/env python3
"""Measures what each element type costs examples/nano-mistral, and writes the table into docs/quantization.md.

    scripts/quantization_table.py build/release/poise

Perplexity is over examples/training/heldout.txt; logit errors are against the f32 file, over the prompts of reference.json.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "examples" / "nano-mistral"
PAGE = ROOT / "docs" / "quantization.md"
BEGIN, END = "<!-- made by scripts/quantization_table.py -->", "<!-- end -->"

TYPES = [
    ("f32", ["--dtype", "f32"]), ("f16", ["--dtype", "f16"]), ("bf16", ["--dtype", "bf16"]),
    ("group8", ["--quantize", "group8"]), ("qint8", ["--quantize", "qint8"]), ("qint8:mse", ["--quantize", "qint8:mse"]),
    ("qint8:range", ["--quantize", "qint8:range"]), ("group4", ["--quantize", "group4"]),
    ("group4, groups of 32", ["--quantize", "group4", "--group-size", "32"]), ("qint4", ["--quantize", "qint4"]),
    ("qint4:mse", ["--quantize", "qint4:mse"]), ("qint4:range", ["--quantize", "qint4:range"]),
    *((name, ["--quantize", name]) for name in ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "mxfp4")),
]


def poise(*arguments):
    return subprocess.run([sys.argv[1], *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def logits(path, prompts):
    return [x for tokens in prompts for x in json.loads(poise("run", path, "--tokens", ",".join(map(str, tokens)), "--logits"))["logits"]]


def rows(directory):
    prompts = [prompt["tokens"] for prompt in json.loads((MODEL / "reference.json").read_text())["prompts"]]
    exact = None
    for name, options in TYPES:
        path = directory / "model.zt"
        poise("convert", MODEL, "-o", path, "--force", "--align", 4096, *options)
        inside = json.loads(poise("inspect", path, "--json"))
        matrices = [tensor for tensor in inside["tensors"] if len(tensor["shape"]) == 2]
        bits = 8 * sum(part["length"] for tensor in matrices for part in tensor["parts"]) / sum(math.prod(tensor["shape"]) for tensor in matrices)
        perplexity = json.loads(poise("run", path, "--perplexity", ROOT / "examples" / "training" / "heldout.txt"))["perplexity"]
        found = logits(path, prompts)
        exact = exact or found
        errors = [abs(a - b) for a, b in zip(found, exact)]
        rms = math.sqrt(sum(error * error for error in errors) / len(errors))
        yield f"| {name} | {bits:.2f} | {perplexity:.4f} | {max(errors):.4f} | {rms:.4f} |"


def main():
    with tempfile.TemporaryDirectory() as directory:
        table = ["| type | bits a weight | perplexity | largest logit error | rms logit error |", "|---|---|---|---|---|", *rows(pathlib.Path(directory))]
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    PAGE.write_text(head + BEGIN + "\n" + "\n".join(table) + "\n" + END + rest.split(END)[1])
    print("\n".join(table))


main()
