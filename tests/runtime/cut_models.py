"""Compares the logits of models that `poise convert` has cut with a NumPy forward pass of the whole models' weights.

    cut_models.py POISE TOKENIZER_MODEL [NAME...]

Builds small directories of every family with random weights (random_directories.py), keeps some layers (--layers) and
some tokens (--vocab-size), and runs the result in several formats. The expected logits are those of the independent
forward pass (forward_pass.py), which skips the same layers of the whole model: a layer computes what its place in the
whole model made it compute. Exits with 77 (skipped) where NumPy is missing.
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

from forward_pass import FAMILIES
from random_directories import BASE, CASES, write_directory

BOUND = 2e-5  # of the largest logit
LAYERS = 6
CUTS = (("1:3,4:", [1, 2, 4, 5]), ("0:2,5", [0, 1, 5]))
TOKENS = 700
# One or more of each family, and each way in which layers of one model differ.
NAMES = (
    "grouped-query",
    "window",
    "qwen2",
    "qwen2-window",
    "qwen3",
    "olmo2",
    "smollm3",
    "phi3",
    "gemma",
    "gemma2",
    "gemma3-text",
    "gemma3-linear",
    "gemma3-newer",
    "gemma3",
    "mistral3",
    "mixtral",
    "qwen3-moe",
    "qwen3-moe-mlp",
    "gpt2",
    "gpt2-f32",
    "gpt_oss",
    "gpt_oss-types",
)


def with_layers(config):
    """The configuration with more layers; its lists of layers follow."""
    config = dict(config)
    if "text_config" in config:
        return {**config, "text_config": with_layers(config["text_config"])}
    key = "n_layer" if "n_layer" in config else "num_hidden_layers"
    before, config[key] = config[key], LAYERS
    if "layer_types" in config:
        config["layer_types"] = [config["layer_types"][layer % before] for layer in range(LAYERS)]
    return config


def expected_logits(config, weights, kept, tokens):
    model = FAMILIES[config["model_type"]](config, weights)
    x = model.embedded(np.array(tokens))
    for layer in kept:
        x = model.layer(x, layer, f"model.layers.{layer}.")
    return model.output(model.final_norm(x)[-1])[:TOKENS]


def run(poise, model, tokens):
    ran = subprocess.run(
        [poise, "run", model, "--tokens", ",".join(map(str, tokens)), "--logits", "--exact", "--cache", "f32"],
        check=True,
        capture_output=True,
    )
    return json.loads(ran.stdout)["logits"]


def main():
    poise, tokenizer, *chosen = sys.argv[1:]
    failures = 0
    cases = {name: (dtype, changes) for name, dtype, _, changes in CASES}
    for number, name in enumerate(chosen or NAMES):
        dtype, changes = cases[name]
        is_whole = "text_config" in changes or changes.get("model_type") == "gpt2"
        config = with_layers(dict(changes) if is_whole else {**BASE, **changes})
        random = np.random.default_rng(number + 1)
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            whole = directory / "whole"
            whole.mkdir()
            weights = write_directory(whole, config, tokenizer, dtype, random)
            tokens = [1] + random.integers(3, TOKENS, 39).tolist()
            for cut, (ranges, kept) in enumerate(CUTS):
                expected = expected_logits(config, weights, kept, tokens)
                # The second cut is made of a GGUF file.
                source = whole
                targets = [f"{cut}/", f"{cut}.zt"]
                in_gguf = not config.get("mlp_only_layers")  # llama.cpp has no place for dense layers
                if in_gguf:
                    targets.append(f"{cut}.gguf")
                if cut == 1 and in_gguf:
                    source = directory / "whole.gguf"
                    subprocess.run([poise, "convert", whole, "-o", source], check=True, capture_output=True)
                for target in targets:
                    subprocess.run(
                        [
                            *[poise, "convert", source, "-o", f"{directory}/{target}"],
                            *["--layers", ranges, "--vocab-size", str(TOKENS)],
                        ],
                        check=True,
                        capture_output=True,
                    )
                    ran = np.array(run(poise, directory / target, tokens))
                    is_right = len(ran) == TOKENS
                    error = np.abs(ran - expected).max() / np.abs(expected).max() if is_right else np.inf
                    failures += not error < BOUND
                    print(f"{name:14} {ranges:7} {target:7} {error:.1e}{'' if error < BOUND else '  TOO LARGE'}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
