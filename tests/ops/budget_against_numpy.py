"""Compares the outputs of `poise convert --quantize auto` with NumPy: their sizes, and the errors in the report.

    budget_against_numpy.py POISE EXAMPLES
"""

import json
import os
import re
import sys
import tempfile

from budget_runs import read_numbers, run
import numpy as np

EXAMPLES = os.path.abspath(sys.argv[2])


def check_errors(numbers: dict, decoded: dict, budget: dict) -> float:
    """Compares the rows of the report. Returns the error of the model: the mean over the names of matrices, without
    numbers, of their means of |x - decoded|^2 / |x|^2. Matrices of layers count half."""
    types = {tensor["name"]: tensor["type"] for tensor in json.loads(run("inspect", "out.gguf", "--json"))["tensors"]}
    errors: dict = {(row["name"], row["type"]): [] for row in budget["types"]}
    for name, x in numbers.items():
        key = (re.sub(r"\.\d+(?=\.|$)", ".*", name), types[name])
        if key in errors:
            errors[key].append(np.sum((x - decoded[name]) ** 2) / np.sum(x**2))
    for row in budget["types"]:
        found = errors[row["name"], row["type"]]
        assert len(found) == row["matrices"], row
        assert abs(np.mean(found) - row["error"]) <= 1e-5 * row["error"], (row, found)
    names: dict = {}
    for (name, _), found in errors.items():
        names.setdefault(name, []).extend(found)
    weights = [0.5 if "*" in name else 1.0 for name in names]
    return float(np.average([np.mean(found) for found in names.values()], weights=weights))


def check_sizes(model: str, sizes: range) -> None:
    """Each output fits its size, and a larger size never has a larger error."""
    numbers = read_numbers(model)
    before = float("inf")
    for size in sizes:
        options = ["--quantize", "auto", "--size", str(size), "--json", "--force"]
        report = json.loads(run("convert", model, "-o", "out.gguf", *options))
        assert report["bytes_out"] == os.path.getsize("out.gguf") <= size, (size, report["bytes_out"])
        if report["budget"] is None:
            assert report["quantized"] == [] and "fits the budget" in report["changes"][-1], report
            before = 0
            continue
        curve = report["budget"]["curve"]
        (chosen,) = [point for point in curve if point["chosen"]]
        assert chosen["bytes"] == report["bytes_out"], (size, chosen)
        assert curve == sorted(curve, key=lambda point: point["bytes"])
        assert curve == sorted(curve, key=lambda point: -point["error"])
        error = check_errors(numbers, read_numbers("out.gguf"), report["budget"])
        assert abs(error - chosen["error"]) <= 1e-5 * error, (error, chosen)
        assert error <= before, (size, error, before)
        before = error
    assert before == 0


with tempfile.TemporaryDirectory() as directory:
    os.chdir(directory)
    check_sizes(f"{EXAMPLES}/nano-mistral-wide", range(650_000, 3_600_000, 210_001))  # blocks of 256
    check_sizes(f"{EXAMPLES}/nano-mistral", range(620_000, 2_100_000, 210_001))  # blocks of 32
