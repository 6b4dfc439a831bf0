#!/usr/bin/env python3
"""Compares adapters that Poise writes as GGUF files: llama.cpp v0.5.0 and Poise compute with them, one architecture
after the other, on small random models.

    compare_llama_lora.py POISE LLAMA_CPP GENERATE [ARCHITECTURE...]

Arguments and architectures are those of compare_llama_cpp.py. Needs NumPy.

For each architecture, writes a Hugging Face directory and a tuned one, in which each matrix of numbers has a random
change of rank 3. Then it compares logits of the token after a text, as the largest difference divided by the largest
logit, and the tokens of 24 greedy steps:
  base     both programs compute with the base alone: llama.cpp with an adapter whose scale is 0
  tuned    Poise computes with the tuned directory, and llama.cpp with the base and the adapter of `extract`; only if
           extract leaves out no matrix
  extract  `poise lora extract` writes an adapter of rank 3 as a GGUF file; both programs compute with it
  convert  extract writes a PEFT directory, and `poise lora convert` a GGUF file from that; llama.cpp computes with the
           file and half of the scale, Poise with the directory
MXFP4 is left out, as Poise and llama.cpp round activations differently for it. Prints a table; exits with 1 if a logit
differs by more than 0.002, or a token. (ggml looks GELU up in a table of float16 numbers: 0.0006 for gemma and gpt2.)
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

import compare_llama_cpp as models

RANK, MOST = 3, 2e-3


def add_changes(tensors, random):
    """Returns copies of the tensors, with a change of rank RANK added to each matrix of numbers."""
    changed = {}
    for name, values in tensors.items():
        changed[name] = values
        if name.startswith(("vision_tower.", "multi_modal_projector.")):  # not in llama.cpp's files
            continue
        if values.ndim == 2 and values.dtype == np.float32 and min(values.shape) >= RANK:
            left, right = (
                random.standard_normal(shape) for shape in ((values.shape[0], RANK), (RANK, values.shape[1]))
            )
            product = left @ right
            changed[name] = (values + 0.4 * values.std() / product.std() * product).astype(np.float32)
    return changed


class Comparison:
    def __init__(self, poise, generate, folder):
        self.poise, self.generate, self.folder = poise, generate, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *arguments):
        done = subprocess.run([self.poise, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def write_directory(self, name, config, tensors):
        path = self.path(name)
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        json.dump(config, open(os.path.join(path, "config.json"), "w"))
        models.write_safetensors(os.path.join(path, "model.safetensors"), tensors)
        shutil.copy(models.TOKENIZER, path)
        return path

    def compute_theirs(self, base, adapter, scale):
        done = subprocess.run(
            [self.generate, base, models.TEXT, str(models.TOKENS), adapter, str(scale)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if "|" not in done.stdout:
            raise RuntimeError(f"llama.cpp: {(done.stdout + done.stderr).strip()}")
        tokens, logits = done.stdout.split("\n")[:2]
        before, after = tokens.split("|")
        return before.split(), after.split(), np.array(logits.split(), dtype=np.float64)

    def compute_ours(self, tokens, model, *options):
        options = ["--tokens", ",".join(tokens), "--cache", "f32", "--exact", *options]
        logits = json.loads(self.run("run", model, *options, "--logits"))
        words = self.run("run", model, *options, "-n", str(models.TOKENS), "--json", *models.GREEDY)
        return [str(token) for token in json.loads(words)["tokens"]], np.array(logits["logits"])

    def find_difference(self, theirs, ours):
        """Returns the difference of logits, or a text if the tokens differ."""
        if ours[0][: len(theirs[1])] != theirs[1][: len(ours[0])]:
            return f"{ours[0]}, llama.cpp: {theirs[1]}"
        return np.abs(theirs[2] - ours[1]).max() / np.abs(theirs[2]).max()

    def compare(self, model):
        random = np.random.default_rng(2)
        base = self.write_directory("base", model.config, model.tensors)
        tuned = self.write_directory("tuned", model.config, add_changes(model.tensors, random))
        gguf, peft = self.path("base.gguf"), self.path("peft/")
        extracted, converted = self.path("extracted.gguf"), self.path("converted.gguf")
        force = ("--force", "--quiet")
        self.run("convert", base, "-o", gguf, *force)
        report = self.run("lora", "extract", base, tuned, "-o", extracted, "--rank", str(RANK), "--json", "--force")
        self.run("lora", "extract", base, tuned, "-o", peft, "--rank", str(RANK), *force)
        self.run("lora", "convert", peft, "-o", converted, "--base", base, *force)
        left_out = [text for text in json.loads(report)["warnings"] if "left out" in text]
        theirs = self.compute_theirs(gguf, extracted, 1)
        row = {
            "base": self.find_difference(self.compute_theirs(gguf, extracted, 0), self.compute_ours(theirs[0], gguf))
        }
        if not left_out:
            row["tuned"] = self.find_difference(theirs, self.compute_ours(theirs[0], tuned))
        row["extract"] = self.find_difference(theirs, self.compute_ours(theirs[0], gguf, "--lora", extracted))
        theirs = self.compute_theirs(gguf, converted, 0.5)
        row["convert"] = self.find_difference(theirs, self.compute_ours(theirs[0], base, "--lora", f"{peft}:0.5"))
        return row, left_out


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.path.insert(0, os.path.join(sys.argv[2], "gguf-py"))
    import gguf

    models.gguf = gguf
    failed = False
    columns = ("base", "tuned", "extract", "convert")
    print("| model | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(sys.argv[1], sys.argv[3], folder)
        for name, make in models.MODELS.items():
            if len(sys.argv) > 4 and name not in sys.argv[4:]:
                continue
            models.RANDOM = np.random.default_rng(1)
            if "MXFP4" in name:
                continue
            model = make()
            try:
                row, notes = comparison.compare(model)
            except RuntimeError as error:
                row, notes, failed = {}, [str(error)], True
            for column in columns:
                if isinstance(row.get(column), str):
                    notes.append(f"{column}: {row[column]}")
                    row[column] = "differs"
                    failed = True
                elif row.get(column, 0.0) > MOST:
                    failed = True
            cells = [
                value if isinstance(value, str) else f"{value:.1e}" for value in (row.get(one, "") for one in columns)
            ]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
            for note in notes:
                print("    " + note, file=sys.stderr)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
