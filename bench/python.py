#!/usr/bin/env python3
"""Compares the Python package with numpy and the command: python.py BUILD [--size MB] [--rounds N].

Prints medians of rounds in alternation. BUILD: CMake's build directory with poise and the package. Needs numpy, and
twice --size of disk for a file of 300 tensors.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--size", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def make_file(path, size, np, poise, tensors=300):
    """Writes a file of `size` MB with f32 tensors of equal size."""
    rows = size * 1_000_000 // (4 * 1000 * tensors)
    one = np.random.default_rng(1).normal(size=(rows, 1000)).astype(np.float32)
    poise.numpy.save_file({f"layers.{i}.weight": one for i in range(tensors)}, path)


def measure_seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def measure_medians(rounds, **works):
    """Returns the median seconds of each work. Each runs once a round, so that other programs disturb all of them."""
    times = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            times[name].append(measure_seconds(work))
    return {name: statistics.median(all_of_it) for name, all_of_it in times.items()}


def bench_opening(path, poise, rounds):
    def open_each():
        model = poise.open(path)
        return [model[name].numpy() for name in model]

    found = measure_medians(5 * rounds, bulk=lambda: poise.numpy.load_file(path), each=open_each)
    tensors = len(poise.open(path))
    allowed = 2e-3 + 2e-6 * tensors
    for name, took in found.items():
        print(f"open and map {tensors} tensors, {name}: {1e3 * took:.2f} ms (allowed {1e3 * allowed:.2f})")


def bench_summing(path, np, poise, rounds):
    offsets = [(part.offset, part.stored_bytes) for tensor in poise.open(path).tensors for part in tensor.parts]

    def sum_by_poise():
        return sum(float(array.sum()) for array in poise.numpy.load_file(path).values())

    def sum_by_numpy():
        whole = np.memmap(path, np.uint8, "r")
        return sum(float(whole[offset : offset + size].view(np.float32).sum()) for offset, size in offsets)

    assert sum_by_poise() == sum_by_numpy()
    found = measure_medians(rounds, poise=sum_by_poise, numpy=sum_by_numpy)
    print(
        f"load_file and sum: {found['poise']:.3f} s; numpy on its own mapping: {found['numpy']:.3f} s; "
        f"ratio {found['numpy'] / found['poise']:.2f}"
    )


def bench_saving(path, target, poise, command, rounds):
    model = poise.open(path)
    arrays = poise.numpy.load_file(path)
    found = measure_medians(
        rounds,
        python=lambda: poise.save(model, target, overwrite=True),
        arrays=lambda: poise.numpy.save_file(arrays, target),
        command=lambda: subprocess.run(
            [command, "convert", path, "-o", target, "--force"], check=True, stdout=subprocess.DEVNULL
        ),
    )
    size = path.stat().st_size
    print("save: " + ", ".join(f"{name} {took:.2f} s ({size / took / 1e9:.2f} GB/s)" for name, took in found.items()))


def bench_generating(model_path, poise, command, rounds, tokens=400):
    prompt = "Once upon a time"
    session = poise.Session(model_path)
    stop = session.vocabulary_size - 1
    rates = {"python": [], "command": []}
    for _ in range(rounds):
        session.reset()
        count, start = 0, 0.0
        for token in session.generate_tokens(prompt, max_tokens=tokens, stop_id=stop):
            start = start or time.perf_counter()  # after the first token, so that the prompt does not count
            count += 1
        rates["python"].append((count - 1) / (time.perf_counter() - start))
        run = [command, "run", model_path, "-p", prompt, "-n", str(tokens), "--stop-id", str(stop), "--json"]
        rates["command"].append(
            json.loads(subprocess.run(run, check=True, capture_output=True).stdout)["decode_tokens_per_second"]
        )
    found = {name: statistics.median(rate) for name, rate in rates.items()}
    print(
        f"generate: {found['python']:.0f} tokens/s; the command: {found['command']:.0f}; "
        f"ratio {found['python'] / found['command']:.3f}"
    )


def main():
    arguments = parse_arguments()
    sys.path.insert(0, str(arguments.build / "python"))
    import numpy as np
    import poise
    import poise.numpy

    command = arguments.build / "poise"
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as directory:
        path = pathlib.Path(directory) / "model.safetensors"
        make_file(path, arguments.size, np, poise)
        bench_opening(path, poise, arguments.rounds)
        bench_summing(path, np, poise, arguments.rounds)
        bench_saving(path, pathlib.Path(directory) / "copy.safetensors", poise, command, max(arguments.rounds // 2, 1))
    bench_generating(ROOT / "examples/nano-mistral", poise, command, arguments.rounds)


if __name__ == "__main__":
    main()
