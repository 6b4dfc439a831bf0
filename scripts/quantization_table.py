#!/usr/bin/env python3
"""Measures the errors of each type with the models in examples/, and writes the tables into docs/quantization.md.

    scripts/quantization_table.py build/release/poise

Perplexity is that of examples/training/heldout.txt; logit errors are differences from the f32 file, over the prompts of
reference.json. nano-mistral has rows of 128 and 320 numbers; rows of nano-mistral-wide are multiples of 256.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "quantization.md"
BEGIN, END = "<!-- {} by scripts/quantization_table.py -->", "<!-- end -->"


def list_quantized(*names):
    return [(name, ["--quantize", name]) for name in names]


MODELS = {
    "nano-mistral": [
        ("f32", ["--dtype", "f32"]),
        ("f16", ["--dtype", "f16"]),
        ("bf16", ["--dtype", "bf16"]),
        *list_quantized("group8", "qint8", "qint8:mse", "qint8:range", "group4"),
        ("group4, groups of 32", ["--quantize", "group4", "--group-size", "32"]),
        *list_quantized("qint4", "qint4:mse", "qint4:range", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "mxfp4"),
    ],
    "nano-mistral-wide": [
        ("f32", ["--dtype", "f32"]),
        *list_quantized(
            "group8",
            "q8_0",
            "q6_k",
            "q5_k_m",
            "q5_k",
            "q5_k_s",
            "q5_0",
            "group4",
            "q4_k_m",
            "q4_k",
            "q4_k_s",
            "q4_0",
            "iq4_nl",
            "iq4_xs",
            "mxfp4",
            "qint4:mse",
            "q3_k_l",
            "q3_k_m",
            "q3_k",
            "q2_k:mix",
            "q2_k",
            "tq2_0",
            "tq1_0",
        ),
    ],
}


def run_poise(*arguments):
    return subprocess.run([sys.argv[1], *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def compute_logits(path, prompts):
    return [
        x
        for tokens in prompts
        for x in json.loads(run_poise("run", path, "--tokens", ",".join(map(str, tokens)), "--logits"))["logits"]
    ]


def make_rows(model, types, directory):
    prompts = [prompt["tokens"] for prompt in json.loads((model / "reference.json").read_text())["prompts"]]
    exact = None
    for name, options in types:
        path = directory / "model.zt"
        run_poise("convert", model, "-o", path, "--force", "--align", 4096, *options)
        inside = json.loads(run_poise("inspect", path, "--json"))
        matrices = [tensor for tensor in inside["tensors"] if len(tensor["shape"]) == 2]
        bits = (
            8
            * sum(part["length"] for tensor in matrices for part in tensor["parts"])
            / sum(math.prod(tensor["shape"]) for tensor in matrices)
        )
        heldout = ROOT / "examples" / "training" / "heldout.txt"
        perplexity = json.loads(run_poise("run", path, "--perplexity", heldout, "--json"))["perplexity"]
        found = compute_logits(path, prompts)
        exact = exact or found
        errors = [abs(a - b) for a, b in zip(found, exact)]
        rms = math.sqrt(sum(error * error for error in errors) / len(errors))
        yield f"| {name} | {bits:.2f} | {perplexity:.4f} | {max(errors):.4f} | {rms:.4f} |"


def main():
    page = PAGE.read_text()
    for model, types in MODELS.items():
        with tempfile.TemporaryDirectory() as directory:
            found = make_rows(ROOT / "examples" / model, types, pathlib.Path(directory))
            table = [
                "| type | bits a weight | perplexity | largest logit error | rms logit error |",
                "|---|---|---|---|---|",
                *found,
            ]
        begin = BEGIN.format(model)
        head, rest = page.split(begin)
        page = head + begin + "\n" + "\n".join(table) + "\n" + END + rest.split(END, 1)[1]
        print("\n".join([model, *table]))
    PAGE.write_text(page)


main()
