#!/usr/bin/env python3
"""Compares Poise's block codecs with ggml's: they must give equal numbers for random blocks, and equal blocks for
random numbers. Measures the speed of both, with one thread.

    compare_ggml.py DIRECTORY POISE_BLOCKS [MATRIX.npy]

DIRECTORY has libggml-base.so: npm pack @node-llama-cpp/linux-x64@3.22.1, in bins/linux-x64 (llama.cpp v0.5.0).
POISE_BLOCKS is the program of bench/blocks.cpp (cmake -DPOISE_BENCH=ON). Rows to encode are random, or those of a
float32 matrix whose rows are multiples of 256. Prints a table; exits with 1 if something differs.
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

TYPES = {
    2: "q4_0",
    3: "q4_1",
    6: "q5_0",
    7: "q5_1",
    8: "q8_0",
    10: "q2_K",
    11: "q3_K",
    12: "q4_K",
    13: "q5_K",
    14: "q6_K",
    15: "q8_K",
    16: "iq2_xxs",
    17: "iq2_xs",
    18: "iq3_xxs",
    19: "iq1_s",
    20: "iq4_nl",
    21: "iq3_s",
    22: "iq2_s",
    23: "iq4_xs",
    29: "iq1_m",
    34: "tq1_0",
    35: "tq2_0",
    39: "mxfp4",
    40: "nvfp4",
    41: "q1_0",
    42: "q2_0",
}
WRITTEN = {2, 3, 6, 7, 8, *range(10, 15), *range(16, 24), 29, 34, 35, 39, 40}
NEED_IMPORTANCE = {16, 17, 19}  # ggml ends the program without one
BYTES = 1 << 18  # bytes of blocks to decode, which fit the processor's cache


def measure_fastest(work, rounds):
    best = 1e9
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def get_address(array):
    return array.ctypes.data_as(ctypes.c_void_p)


class Comparison:
    def __init__(self, directory, program, folder):
        self.ggml = ctypes.CDLL(os.path.join(directory, "libggml-base.so"))
        self.ggml.ggml_type_size.restype = ctypes.c_size_t
        self.ggml.ggml_blck_size.restype = ctypes.c_int64
        self.ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
        self.program = program
        self.files = [os.path.join(folder, name) for name in ("in", "out", "importance")]

    def run_poise(self, command, type_name, data, result, length=None, importance=None):
        data.tofile(self.files[0])
        arguments = [self.program, command, type_name.lower()] + ([str(length)] if length else []) + self.files[:2]
        if importance is not None:
            importance.tofile(self.files[2])
            arguments.append(self.files[2])
        seconds = float(subprocess.run(arguments, check=True, stdout=subprocess.PIPE).stdout)
        return np.fromfile(self.files[1], result), seconds

    def decode(self, number):
        size, elements = self.ggml.ggml_type_size(number), self.ggml.ggml_blck_size(number)
        count = BYTES // size
        blocks = np.random.default_rng(number).integers(0, 256, count * size, np.uint8)
        theirs = np.empty(count * elements, np.float32)
        function = getattr(self.ggml, "dequantize_row_" + TYPES[number])
        slow = measure_fastest(
            lambda: function(get_address(blocks), get_address(theirs), ctypes.c_int64(theirs.size)), 5
        )
        ours, fast = self.run_poise("decode", TYPES[number], blocks, np.float32)
        same = np.array_equal(np.isnan(ours), np.isnan(theirs)) and np.array_equal(
            np.nan_to_num(ours).view("u4"), np.nan_to_num(theirs).view("u4")
        )
        return same, theirs.nbytes / fast, theirs.nbytes / slow

    def encode(self, number, rows, importance):
        size, elements = self.ggml.ggml_type_size(number), self.ggml.ggml_blck_size(number)
        theirs = np.zeros(rows.size // elements * size, np.uint8)
        weights = get_address(importance) if importance is not None else None
        work = [
            ctypes.c_int(number),
            get_address(rows),
            get_address(theirs),
            ctypes.c_int64(0),
            ctypes.c_int64(len(rows)),
            ctypes.c_int64(rows.shape[1]),
            weights,
        ]
        slow = measure_fastest(lambda: self.ggml.ggml_quantize_chunk(*work), 2)
        ours, fast = self.run_poise("encode", TYPES[number], rows, np.uint8, rows.shape[1], importance)
        return np.array_equal(ours, theirs), rows.size / fast, rows.size / slow


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    random = np.random.default_rng(1)
    rows = (
        np.load(sys.argv[3])
        if len(sys.argv) > 3
        else random.standard_normal((64, 2048)) * 0.02 * np.exp(random.standard_normal((64, 1)))
    )
    rows = np.ascontiguousarray(rows, np.float32)
    importance = np.exp(random.standard_normal(rows.shape[1])).astype(np.float32)
    equal = True
    print("| type | decoded | GB/s, of ggml | encoded | million/s, of ggml | by importance | million/s, of ggml |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(sys.argv[1], sys.argv[2], folder)
        for number, name in TYPES.items():
            same, fast, slow = comparison.decode(number)
            cells = ["equal" if same else "DIFFERS", "%.1f, %.1f" % (fast / 1e9, slow / 1e9)]
            equal &= same
            for weights in (None, importance) if number in WRITTEN else ():
                if weights is None and number in NEED_IMPORTANCE:
                    cells += ["", ""]
                    continue
                same, fast, slow = comparison.encode(number, rows, weights)
                cells += ["equal" if same else "DIFFERS", "%.0f, %.1f" % (fast / 1e6, slow / 1e6)]
                equal &= same
            print("| `%s` | %s |" % (name.lower(), " | ".join(cells + [""] * (6 - len(cells)))), flush=True)
    sys.exit(0 if equal else 1)


if __name__ == "__main__":
    main()
