"""Checks the divergences in the report of `poise convert --quantize auto --text`.

The report predicts a divergence for each name and type of matrices. This program computes the same one by another way:
it stores one matrix at a time in a type, by --keep, measures the file by `poise run --perplexity --against`, and divides
by the matrix's relative squared error, by NumPy.

    divergence_against_numpy.py POISE EXAMPLES
"""

import json
import os
import re
import sys
import tempfile

from budget_runs import read_numbers, run
import numpy as np

EXAMPLES = os.path.abspath(sys.argv[2])
MODEL = f"{EXAMPLES}/nano-mistral-wide"
PROBED = 0.02  # the error of the type in which a matrix is measured is next to this (docs/quantize-to-a-size.md)
TOLERANCE = 0.01  # on a matrix unit, scores depend a little on the tokens that are computed together; elsewhere 1e-4
TYPES = ("q2_k", "q3_k", "iq3_s", "iq4_xs", "q4_k", "q5_k", "q6_k", "q8_0")


def compute_errors(numbers: dict) -> dict:
    """Returns {type: {name: the relative squared error}}."""
    errors: dict = {}
    for type_ in TYPES:
        run("convert", MODEL, "-o", "typed.gguf", "--quantize", type_, "--force")
        decoded = read_numbers("typed.gguf")
        errors[type_] = {
            name: np.sum((x - decoded[name]) ** 2) / np.sum(x**2) for name, x in numbers.items() if x.ndim == 2
        }
    return errors


def measure_divergence(name: str, type_: str) -> float:
    run("convert", MODEL, "-o", "one.gguf", "--keep", f"{name}={type_}", "--force")
    result = json.loads(run("run", "one.gguf", "--perplexity", "text.txt", "--against", "same.gguf", "--json"))
    return result["kl_mean"]


with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    with open(f"{EXAMPLES}/training/heldout.txt") as file:
        text = file.read()[:1500]
    with open("text.txt", "w") as file:
        file.write(text)
    run("convert", MODEL, "-o", "same.gguf")
    report = json.loads(
        run("convert", MODEL, "-o", "out.gguf", "--quantize", "auto", "--bpw", "4.5", "--text", "text.txt", "--json")
    )
    budget = report["budget"]
    numbers = read_numbers(MODEL)
    errors = compute_errors(numbers)
    chosen = {tensor["name"]: tensor["type"] for tensor in json.loads(run("inspect", "out.gguf", "--json"))["tensors"]}
    predicted: dict = {}
    for name in errors["q4_k"]:
        probed = min(TYPES, key=lambda type_: abs(np.log(errors[type_][name] / PROBED)))
        weight = measure_divergence(name, probed) / errors[probed][name]
        key = re.sub(r"\.\d+(?=\.|$)", ".*", name), chosen[name]
        predicted[key] = predicted.get(key, 0) + weight * errors[chosen[name]][name]
    assert len(predicted) == len(budget["types"])
    for row in budget["types"]:
        expected = predicted[row["name"], row["type"]]
        assert abs(row["error"] - expected) <= TOLERANCE * expected, (row, expected)
    (point,) = [point for point in budget["curve"] if point["chosen"]]
    assert abs(point["error"] - sum(predicted.values())) <= TOLERANCE * point["error"]
