"""Runs the command, and reads the numbers of models, for the tests that compare budgets with NumPy. Takes POISE from the
first argument of the program. Exits with 77, which skips a test, without NumPy."""

import subprocess
import sys

try:
    import numpy as np
except ImportError:
    sys.exit(77)


def run(*words: str) -> bytes:
    done = subprocess.run([sys.argv[1], *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def read_numbers(path: str) -> dict:
    """Returns the arrays of a model, as float64."""
    run("convert", path, "-o", "numbers.npz", "--dtype", "f32", "--force")
    with np.load("numbers.npz") as arrays:
        return {name: arrays[name].astype(np.float64) for name in arrays}
