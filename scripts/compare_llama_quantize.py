#!/usr/bin/env python3
"""Compares files that Poise and llama-quantize quantize from the same model, tensor by tensor: types and bytes.

    compare_llama_quantize.py POISE LLAMA_CPP QUANTIZE [MODEL [TYPE...]]

POISE is the command; LLAMA_CPP the source of llama.cpp v0.5.0, whose gguf-py reads and writes GGUF here; QUANTIZE the
program of scripts/quantize_llama_cpp.cpp. MODEL is examples/nano-mistral-wide by default. Needs NumPy.

Compares every type and recipe, and general.file_type of recipes: without an importance matrix, with one in the older
format, and with the same one in GGUF. The weights of the matrix are random, some are 0. Types that need a matrix have
to be refused by both programs without one. llama-quantize has no nvfp4, which compare_ggml.py compares. Prints a table
with the numbers of equal tensors; exits with 1 if one differs. TYPE... are the rows to compare; all without one.
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
    "iq2_xxs": 19,
    "iq2_xs": 20,
    "iq3_xxs": 23,
    "iq1_s": 24,
    "iq4_nl": 25,
    "iq3_s": 26,
    "iq2_s": 29,  # IQ2_M: the types of IQ2_S are iq2_xs
    "iq4_xs": 30,
    "iq1_m": 31,
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


NEED_IMATRIX = {"iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs"}


def run(*command):
    subprocess.run([str(word) for word in command], check=True, capture_output=True)


def is_refused(*command):
    return subprocess.run([str(word) for word in command], capture_output=True).returncode != 0


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
            if len(rest) > 1 and name not in rest[1:]:
                continue
            cells = []
            for ours, theirs in (
                ([], []),
                (["--imatrix", make_path("older.dat")], [make_path("older.dat")]),
                (["--imatrix", make_path("imatrix.gguf")], [make_path("older.dat")]),
            ):
                source, result = make_path("f32.gguf"), make_path("ours.gguf")
                their_command = (quantize, source, make_path("theirs.gguf"), number, int(name in PURE), *theirs)
                our_command = (poise, "convert", source, "-o", result, "--force", "--quantize", name, *ours)
                if name in NEED_IMATRIX and not ours:
                    both = is_refused(*their_command) and is_refused(*our_command)
                    failed |= not both
                    cells.append("refused" if both else "refused by one program")
                    continue
                run(*their_command)
                run(*our_command)
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
