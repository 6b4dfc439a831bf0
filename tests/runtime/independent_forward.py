"""Compares the logits of `poise run` with a forward pass written from the models' definition, in NumPy and float64.

    independent_forward.py POISE TOKENIZER_MODEL [NAME...]

Builds small directories of every family with random weights, one for each thing that such models differ in
(random_directories.py), and runs them as they are and converted, and with each type of cache; compares hidden states
of each layer, too. Then quantizes one in many types, and runs it with --exact: the expected logits are those of the
numbers that its codes stand for. Exits with 77 (skipped) where NumPy is missing.
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

from forward_pass import hidden_states, logits
from random_directories import BASE, CASES, write_directory

# Of the largest logit, on any processor. A matrix unit rounds the products of several tokens with weights that are not
# float32, but for --exact.
FLOAT32 = 2e-5
ROUNDED = 2e-4
HELD_BY_ALT = ("llama", "mistral")
QUANTIZED = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "num_hidden_layers": 2,
}
TYPES = (
    "qint8",
    "qint4",
    "group8",
    "group4",
    "q4_0",
    "q4_1",
    "q5_0",
    "q5_1",
    "q8_0",
    "q2_k",
    "q3_k",
    "q4_k",
    "q5_k",
    "q6_k",
    "iq4_nl",
    "iq4_xs",
    "mxfp4",
    "tq1_0",
    "tq2_0",
)
EXACT = 1e-5  # of the largest logit, with --exact and quantized weights
CACHES = {"f16": 3e-3, "q8": 8e-2}  # what keys and values lose when they are stored


def targets(config, dtype):
    """The formats to convert to; not ALT for configurations that it cannot hold."""
    alt = dtype != "BF16" and config["model_type"] in HELD_BY_ALT
    # forms of experts: those of GGUF, what a directory makes of these, and numbers
    several = config["model_type"] == "gpt_oss"
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
            config = (
                dict(changes)
                if "text_config" in changes or changes.get("model_type") == "gpt2"
                else {**BASE, **changes}
            )
            weights = write_directory(directory, config, tokenizer, dtype, random)
            tokens = [1] + random.integers(3, 960, count - 1).tolist()
            expected = logits(config, weights, np.array(tokens))
            for target in targets(config, dtype):
                # x is rounded to 7 bits where weights are codes of few bits.
                exact = "mxfp4" in name or (target is None and dtype != "F32")
                bound = FLOAT32 if exact or dtype == "F32" else ROUNDED
                ran = run(poise, directory, target, tokens, exact, "--cache", "f32")
                error = np.abs(np.array(ran) - expected).max() / np.abs(expected).max() if ran else np.inf
                failures += not error < bound
                print(f"{name:14} {target or 'directory':10} {error:.1e}{'' if error < bound else '  TOO LARGE'}")
            failures += compare_caches(poise, name, config, directory, tokens, expected)
            failures += compare_hidden_states(
                poise, name, directory, tokens, hidden_states(config, weights, np.array(tokens))
            )
    if not chosen:
        failures += compare_quantized(poise, tokenizer)
    sys.exit(failures > 0)


def compare_caches(poise, name, config, directory, tokens, expected):
    """Compares runs with keys and values stored in each type. Returns how many are wrong."""
    failures = 0
    for cache, bound in CACHES.items():
        if "experts" in json.dumps(config):
            bound = 0.5  # a token whose best scores are nearly equal may choose another expert
        ran = run(poise, directory, None, tokens, True, "--cache", cache)
        error = np.abs(np.array(ran) - expected).max() / np.abs(expected).max() if ran else np.inf
        failures += not FLOAT32 < error < bound
        print(f"{name:14} cache {cache:4} {error:.1e}{'' if FLOAT32 < error < bound else '  NOT AS EXPECTED'}")
    return failures


def compare_hidden_states(poise, name, directory, tokens, expected):
    """Compares the last token's states of each layer, and the mean of the last layer. Returns how many are wrong."""
    cases = [(layer, "last", states[-1]) for layer, states in enumerate(expected)]
    failures = 0
    for layer, pooling, wanted in [*cases, (len(expected) - 1, "mean", expected[-1].mean(axis=0))]:
        ran = subprocess.run(
            [
                *[poise, "embed", directory, "--tokens", ",".join(map(str, tokens))],
                *["--layer", str(layer), "--pooling", pooling, "--exact"],
            ],
            check=True,
            capture_output=True,
        )
        error = np.abs(np.array(json.loads(ran.stdout)["embedding"]) - wanted).max() / np.abs(wanted).max()
        failures += not error < FLOAT32
        if not error < FLOAT32:
            print(f"{name:14} layer {layer}, {pooling}  {error:.1e}  TOO LARGE")
    return failures


def compare_quantized(poise, tokenizer):
    """Compares one token alone, where activations may become integers, and several. Returns how many are wrong."""
    failures = 0
    random = np.random.default_rng(0)
    config = {**BASE, **QUANTIZED}
    tokens = random.integers(3, 960, 12).tolist()
    with tempfile.TemporaryDirectory() as directory:
        directory = pathlib.Path(directory)
        write_directory(directory, config, tokenizer, "F32", random)
        for kind in TYPES:
            codes, numbers = directory / f"{kind}.zt", directory / f"{kind}.safetensors"
            subprocess.run(
                [poise, "convert", directory, "-o", codes, "--quantize", kind], check=True, capture_output=True
            )
            subprocess.run([poise, "convert", codes, "-o", numbers, "--dtype", "f32"], check=True, capture_output=True)
            weights = read_numbers(numbers)
            for count in (1, len(tokens)):
                expected = logits(config, weights, np.array(tokens[:count]))
                ran = subprocess.run(
                    [poise, "run", codes, "--tokens", ",".join(map(str, tokens[:count])), "--logits", "--exact"],
                    check=True,
                    capture_output=True,
                )
                error = np.abs(np.array(json.loads(ran.stdout)["logits"]) - expected).max() / np.abs(expected).max()
                failures += not error < EXACT
                print(f"{kind:14} {count:2} tokens  {error:.1e}{'' if error < EXACT else '  TOO LARGE'}")
    return failures


def read_numbers(path):
    """The tensors of a safetensors file of float32."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    return {
        name: np.frombuffer(
            data[8 + size :],
            np.float32,
            (entry["data_offsets"][1] - entry["data_offsets"][0]) // 4,
            entry["data_offsets"][0],
        )
        .reshape(entry["shape"])
        .astype(np.float64)
        for name, entry in header.items()
        if name != "__metadata__"
    }


def run(poise, directory, target, tokens, exact, *options):
    try:
        if target:
            source = directory / "model.gguf" if target == "again/" else directory
            numbers = ["--dtype", "f32"] if target == "numbers/" else []
            subprocess.run(
                [poise, "convert", source, "-o", f"{directory}/{target}", *numbers], check=True, capture_output=True
            )
        ran = subprocess.run(
            [
                poise,
                "run",
                directory / target if target else directory,
                "--tokens",
                ",".join(map(str, tokens)),
                "--logits",
                *["--exact"] * exact,
                *options,
            ],
            check=True,
            capture_output=True,
        )
        return json.loads(ran.stdout)["logits"]
    except subprocess.CalledProcessError as error:
        print(error.stderr.decode())
        return None


main()
