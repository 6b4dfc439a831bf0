#!/usr/bin/env python3
"""Compares files that Poise and llama-quantize quantize from the same model, tensor by tensor: types and bytes.

    compare_llama_quantize.py POISE LLAMA_CPP QUANTIZE [MODEL]

POISE is the command; LLAMA_CPP the source of llama.cpp v0.5.0, whose gguf-py reads and writes GGUF here; QUANTIZE the
program of scripts/quantize_llama_cpp.cpp. MODEL is examples/nano-mistral-wide by default. Needs NumPy.

Compares every type and recipe, and general.file_type of recipes: without an importance matrix, with one in the older
format, and with the same one in GGUF. The weights of the matrix are random, some are 0. Prints a table with the numbers
of equal tensors; exits with 1 if one differs.
"""
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
PURE = {
    "q4_0": 2,
    "q4_1": 3,
    "q8_0": 7,
    "q5_0": 8,
    "q5_1": 9,
    "q2_k": 10,
    "q3_k": 11,
    "q4_k": 14,
    "q5_k": 16,
    "q6_k": 18,
    "iq4_nl": 25,
    "iq4_xs": 30,
    "tq1_0": 36,
    "tq2_0": 37,
    "mxfp4": 38,
}
RECIPES = {
    "q4_0:mix": 2,
    "q8_0:mix": 7,
    "q2_k:mix": 10,
    "q3_k_s": 11,
    "q3_k_m": 12,
    "q3_k_l": 13,
    "q4_k_s": 14,
    "q4_k_m": 15,
    "q5_k_s": 16,
    "q5_k_m": 17,
    "q6_k:mix": 18,
}


def run(*command):
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def write_older(path, weights):
    with open(path, "wb") as file:
        file.write(struct.pack("<i", len(weights)))
        for name, values in weights.items():
            file.write(
                struct.pack("<i", len(name)) + name.encode() + struct.pack("<ii", 1, len(values)) + values.tobytes()
            )


def write_gguf(path, weights, gguf):
    writer = gguf.GGUFWriter(path, arch="")
    writer.add_type("imatrix")
    writer.add_array("imatrix.datasets", ["random"])
    writer.add_uint32("imatrix.chunk_count", 1)
    writer.add_uint32("imatrix.chunk_size", 1)
    for name, values in weights.items():
        writer.add_tensor(name + ".in_sum2", values.reshape(1, -1))
        writer.add_tensor(name + ".counts", np.ones((1, 1), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_tensors(path, gguf):
    return {tensor.name: (tensor.tensor_type.name, bytes(tensor.data)) for tensor in gguf.GGUFReader(path).tensors}


def read_file_type(path, gguf):
    return int(gguf.GGUFReader(path).fields["general.file_type"].contents())


def main():
    poise, llama, quantize, *rest = sys.argv[1:]
    model = rest[0] if rest else os.path.join(HERE, "..", "examples", "nano-mistral-wide")
    sys.path.insert(0, os.path.join(llama, "gguf-py"))
    import gguf

    random, failed = np.random.default_rng(1), False
    with tempfile.TemporaryDirectory() as folder:

        def make_path(name):
            return os.path.join(folder, name)

        run(poise, "convert", model, "-o", make_path("f32.gguf"), "--dtype", "f32")
        weights = {}
        for tensor in gguf.GGUFReader(make_path("f32.gguf")).tensors:
            if len(tensor.shape) == 2:
                columns = int(tensor.shape[0])
                weights[tensor.name] = (
                    random.standard_normal(columns) ** 2 * np.exp(random.standard_normal(columns))
                ).astype("<f4")
                if "attn_k" in tensor.name:
                    weights[tensor.name][::7] = 0
        write_older(make_path("older.dat"), weights)
        write_gguf(make_path("imatrix.gguf"), weights, gguf)
        print("| type | equal tensors | with an imatrix | the same in GGUF |\n|---|---|---|---|")
        for name, number in {**PURE, **RECIPES}.items():
            cells = []
            for ours, theirs in (
                ([], []),
                (["--imatrix", make_path("older.dat")], [make_path("older.dat")]),
                (["--imatrix", make_path("imatrix.gguf")], [make_path("older.dat")]),
            ):
                run(quantize, make_path("f32.gguf"), make_path("theirs.gguf"), number, int(name in PURE), *theirs)
                run(
                    poise,
                    "convert",
                    make_path("f32.gguf"),
                    "-o",
                    make_path("ours.gguf"),
                    "--force",
                    "--quantize",
                    name,
                    *ours,
                )
                expected, found = read_tensors(make_path("theirs.gguf"), gguf), read_tensors(
                    make_path("ours.gguf"), gguf
                )
                equal = sum(found.get(tensor) == value for tensor, value in expected.items())
                failed |= equal != len(expected) or found.keys() != expected.keys()
                if name in RECIPES and read_file_type(make_path("ours.gguf"), gguf) != number:
                    print(
                        f"{name}: general.file_type is {read_file_type(make_path('ours.gguf'), gguf)}, expected {number}"
                    )
                    failed = True
                cells.append(f"{equal} of {len(expected)}")
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    raise SystemExit(failed)


main()
