#!/usr/bin/env python3
"""Compares the importance matrices of `poise imatrix` with the sums that llama.cpp v0.5.0 collects as llama-imatrix.

    compare_llama_imatrix.py POISE LLAMA_CPP IMATRIX FILE.gguf TEXT_FILE [CHUNK_SIZE]

POISE is the command; LLAMA_CPP the source of llama.cpp v0.5.0, whose gguf-py reads GGUF here; IMATRIX the program of
scripts/imatrix_llama_cpp.cpp. CHUNK_SIZE is 512 by default. Needs NumPy.

Names and counts have to be equal. With --process-output, Poise also measures an output matrix that is the embedding,
which llama-imatrix leaves out; it is not compared. Prints the largest relative difference of a sum, and that of a matrix: the norm of the
differences divided by the norm of llama.cpp's sums. Exits with 1 if names or counts differ, or a matrix by 0.001.
"""
import os
import subprocess
import sys
import tempfile

import numpy as np


def read_theirs(program, model, text, size):
    lines = subprocess.run([program, model, text, size], check=True, capture_output=True, text=True).stdout
    result = {}
    for line in lines.splitlines():
        name, matrices, *numbers = line.split()
        numbers = np.array([float(number) for number in numbers])
        counts, sums = numbers[: int(matrices)], numbers[int(matrices) :]
        result[name] = counts, sums.reshape(int(matrices), -1)
    return result


def read_ours(path, gguf):
    tensors = {tensor.name: np.array(tensor.data) for tensor in gguf.GGUFReader(path).tensors}
    return {
        name.removesuffix(".in_sum2"): (tensors[name.replace(".in_sum2", ".counts")].reshape(-1), values)
        for name, values in tensors.items()
        if name.endswith(".in_sum2")
    }


def main():
    if len(sys.argv) not in (6, 7):
        sys.exit(__doc__)
    poise, llama, program, model, text, *rest = sys.argv[1:]
    size = rest[0] if rest else "512"
    sys.path.insert(0, os.path.join(llama, "gguf-py"))
    import gguf

    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "imatrix.gguf")
        options = ["--chunk-size", size, "--process-output", "--exact", "--quiet"]
        subprocess.run([poise, "imatrix", model, text, "-o", path, *options], check=True)
        ours = read_ours(path, gguf)
    theirs = read_theirs(program, model, text, size)
    if "output.weight" not in theirs:
        ours.pop("token_embd.weight", None)
    failed = ours.keys() != theirs.keys()
    for name in sorted(ours.keys() ^ theirs.keys()):
        print(f"{name}: only in {'Poise' if name in ours else 'llama.cpp'}")
    largest = of_matrix = 0.0
    for name in sorted(ours.keys() & theirs.keys()):
        (counts, sums), (their_counts, their_sums) = ours[name], theirs[name]
        if not np.array_equal(counts, their_counts) or sums.shape != their_sums.shape:
            print(f"{name}: counts {counts} and {their_counts}, shapes {sums.shape} and {their_sums.shape}")
            failed = True
            continue
        differences = np.abs(sums - their_sums)
        largest = max(largest, (differences / np.maximum(their_sums, 1e-30)).max())
        of_matrix = max(of_matrix, np.linalg.norm(differences) / np.linalg.norm(their_sums))
    total = max(counts.max() for counts, _ in theirs.values()) / int(size)
    print(f"{len(theirs)} matrices, {total:.0f} chunks: a sum differs by {largest:.1e}, a matrix by {of_matrix:.1e}")
    sys.exit(1 if failed or of_matrix > 1e-3 else 0)


main()
