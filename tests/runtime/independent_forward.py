"""Compares the logits of `poise run` with a forward pass written from the models' definition, in NumPy and float64.

    independent_forward.py POISE TOKENIZER_MODEL [NAME...]

Builds small directories of every family with random weights, one for each thing that such models differ in (random_directories.py), and
runs them as they are and converted. Exits with 77 (skipped) where NumPy is missing.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

from forward_pass import logits
from random_directories import BASE, CASES, write_directory

# Of the largest logit; products of several tokens on a matrix unit have fewer bits.
CPU = pathlib.Path("/proc/cpuinfo")
BOUND = 2e-4 if CPU.exists() and "amx_bf16" in CPU.read_text() else 2e-5
HELD_BY_ALT = ("llama", "mistral")


def targets(config, dtype):
    """What to convert to; without configurations that ALT cannot hold."""
    alt = dtype != "BF16" and config["model_type"] in HELD_BY_ALT
    several = config["model_type"] == "gpt_oss"  # forms of experts: those of GGUF, what a directory makes of these, and numbers
    return [None, "model.zt"] + ["model.alt"] * alt + ["model.gguf", "again/", "numbers/"] * several


def main():
    poise, tokenizer, *chosen = sys.argv[1:]
    failures = 0
    for number, (name, dtype, count, changes) in enumerate(CASES):
        if chosen and name not in chosen:
            continue
        random = np.random.default_rng(number + 1)
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            config = dict(changes) if "text_config" in changes or changes.get("model_type") == "gpt2" else {**BASE, **changes}
            weights = write_directory(directory, config, tokenizer, dtype, random)
            tokens = [1] + random.integers(3, 960, count - 1).tolist()
            expected = logits(config, weights, np.array(tokens))
            for target in targets(config, dtype):
                ran = run(poise, directory, target, tokens)
                error = np.abs(np.array(ran) - expected).max() / np.abs(expected).max() if ran else np.inf
                failures += not error < BOUND
                print(f"{name:14} {target or 'directory':10} {error:.1e}{'' if error < BOUND else '  TOO LARGE'}")
    sys.exit(failures > 0)


def run(poise, directory, target, tokens):
    try:
        if target:
            source = directory / "model.gguf" if target == "again/" else directory
            numbers = ["--dtype", "f32"] if target == "numbers/" else []
            subprocess.run([poise, "convert", source, "-o", f"{directory}/{target}", *numbers], check=True, capture_output=True)
        ran = subprocess.run([poise, "run", directory / target if target else directory, "--tokens", ",".join(map(str, tokens)), "--logits"], check=True,
                             capture_output=True)
        return json.loads(ran.stdout)["logits"]
    except subprocess.CalledProcessError as error:
        print(error.stderr.decode())
        return None


main()
