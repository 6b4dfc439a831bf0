#!/usr/bin/env python3
"""Compares the output of `poise show`, its slices, and the arrays that it writes, with NumPy's.

    show_against_numpy.py POISE
"""
import io
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

RANDOM = np.random.default_rng(20261128)
SHAPES = [(), (1,), (3,), (40,), (1001,), (3, 4), (30, 50), (2, 3, 4), (11, 12, 13), (0, 3), (2000, 1), (1, 1, 1, 5)]
SLICES = [
    "",
    "0",
    "-1",
    "::2",
    "::-1",
    "-2:",
    ":0",
    "5:1",
    "1:100",
    "1:-1:3",
    "...,0",
    "..., ::-2",
    "100:",
    "-100:2",
    "0,",
    " 1 : 3 ",
]


def make_arrays():
    for dtype in (np.float16, np.float32, np.float64):
        for shape in SHAPES:
            for scale in (1, 0.02, 1000, 1e-6):
                array = np.asarray(RANDOM.normal(0, scale, shape)).astype(dtype)
                if array.size > 3 and scale == 0.02:
                    array.flat[1], array.flat[2], array.flat[3] = np.nan, -np.inf, 0
                if array.size > 3 and scale == 1000:
                    array.flat[0], array.flat[1] = -0.0, 1
                yield array
            yield np.asarray(np.round(RANDOM.normal(0, 20, shape)) / 8).astype(dtype)
        yield np.array([np.nan, np.inf], dtype)
        for number in (65504, 1187223044096, 123456792, 1e15, 1e16, 1e22, 0.1, 1e-4, 9.9999e-5, 6e-8, 100, -3):
            with np.errstate(over="ignore"):
                yield np.array(number).astype(dtype)
        yield np.zeros(3, dtype)
    yield np.array([1e38, 1], np.float32)
    yield np.array([0.1, 0.2, 0.30000001], np.float32)
    yield np.array([123456789.0], np.float32)
    yield np.array([123.45679, 123456.79], np.float32)  # NumPy divides the extremes as float32
    yield np.array([0.0001, 0.10004], np.float16)
    yield np.array([0.1, 123456792], np.float32)
    yield np.array([99999992, 1e6], np.float32)
    yield np.array([9999999999999998.0])  # more than 9 digits, and zeros after rounding
    yield np.array([5.358464103494997e133, -1])
    yield np.array([9.99999999999e99, np.nan, 1])
    yield np.array([9.99999999999e-100])
    yield np.array([1e-320, 1.0])
    yield np.array([1e200, 1.0])
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64, np.bool_):
        for shape in ((), (5,), (100,), (40, 40)):
            yield np.asarray(RANDOM.integers(0, 2 if dtype == np.bool_ else 100, shape)).astype(dtype)


def main():
    poise, faults, compared = pathlib.Path(sys.argv[1]).resolve(), 0, 0
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "w.npy"
        for number, array in enumerate(make_arrays()):
            np.save(path, array)
            # One array in three is sliced.
            text = SLICES[number // 3 % len(SLICES)] if number % 3 == 0 else ""
            options = ["--slice", text] if text else []
            try:
                part = np.asarray(eval(f"array[{text}]", {"array": array}) if text else array)
            except IndexError:
                part = None
            done = subprocess.run([poise, "show", path, "w", *options], capture_output=True, text=True)
            if part is None:
                is_equal = done.returncode == 2 and done.stdout == ""
            else:
                is_equal = done.stdout.split("\n\n", 1)[-1] == str(part) + "\n" or (
                    part.ndim > 1 and done.stdout.endswith("\n\n" + str(part) + "\n")
                )
                written = subprocess.run([poise, "show", path, "w", *options, "--npy", "-"], capture_output=True).stdout
                found = np.load(io.BytesIO(written))
                is_equal = is_equal and found.dtype == part.dtype and found.shape == part.shape
                is_equal = is_equal and found.tobytes() == part.tobytes()
            compared += 1
            if not is_equal:
                faults += 1
                print(f"{array.dtype} {array.shape} [{text}]: NumPy has\n{part}\nfound\n{done.stdout}{done.stderr}")
    print(f"{compared} arrays, {faults} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
