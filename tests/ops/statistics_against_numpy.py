#!/usr/bin/env python3
"""Compares `poise stats` with NumPy, on tensors of every type, with outliers, zeros and numbers that are not finite.

    statistics_against_numpy.py POISE
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    sys.exit(77)

RANDOM = np.random.default_rng(20261128)
NAMES = {"float64": "F64", "float32": "F32", "float16": "F16", "bool": "BOOL"}
SMALLEST_NORMAL = {"F64": 2.0**-1022, "F32": 2.0**-126, "BF16": 2.0**-126, "F16": 2.0**-14}


def name_of(dtype):
    return NAMES.get(dtype.name) or dtype.name.replace("uint", "U").replace("int", "I")


def make_tensors():
    """name: (type, stored array, numbers as float64 or integers)."""
    tensors = {}

    def add(name, array):
        tensors[name] = (name_of(array.dtype), array, array)

    def add_bf16(name, array):
        stored = (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        tensors[name] = ("BF16", stored, (stored.astype(np.uint32) << 16).view(np.float32))

    def gauss(*shape, deviation=0.02, mean=0.0):
        return RANDOM.normal(mean, deviation, shape)

    add("weights.f32", gauss(700, 513).astype(np.float32))
    add("weights.f16", gauss(1200, 768).astype(np.float16))
    add_bf16("weights.bf16", gauss(640, 1024))
    add_bf16("heavy_tail", RANDOM.standard_t(2, (900, 700)) * 0.01)  # too many far numbers to collect
    add("laplace", RANDOM.laplace(0, 0.01, (512, 900)).astype(np.float32))
    add("long_rows", gauss(3, 600_001).astype(np.float32))
    rising = gauss(400, 3000) * np.linspace(0.1, 3, 400)[:, None]  # the guess of the last pieces is too large
    add("rising", rising.astype(np.float32))
    add("offset", gauss(300, 300, deviation=1e-3, mean=1000).astype(np.float32))
    add("norm", gauss(4096, deviation=0.1, mean=1).astype(np.float16))
    add("kernel", gauss(64, 3, 5, 5).astype(np.float32))  # short rows
    add("two_columns", gauss(70_001, 2).astype(np.float64))
    large = np.where(np.arange(90_000) % 2, np.float32(1e38), np.float32(-1e38))  # 4 deviations exceed float32
    large[::97] = np.inf
    add("large", large)
    special = gauss(100, 1000).astype(np.float32)
    special.ravel()[::97] = np.nan
    special.ravel()[5::1013] = np.inf
    special.ravel()[7::1013] = -np.inf
    special.ravel()[11::5] = 0
    special.ravel()[12::50] = 1e-40
    add("special", special)
    half = special.astype(np.float16)
    half.ravel()[1::7] = np.float16(3e-6)
    add("special.f16", half)
    add("special.f64", np.where(special == np.float32(1e-40), 1e-310, special.astype(np.float64)))
    add("doubles", gauss(100, 5000).astype(np.float64))
    add("constant", np.full((300, 400), 0.1, np.float32))
    add("zeros", np.zeros((30, 40), np.float16))
    add("first_zeros", np.concatenate([np.zeros(5000), gauss(400_000)]).astype(np.float32))
    add("all_nan", np.full((3, 4), np.nan, np.float32))
    add("nan_and_zeros", np.array([[np.nan, np.nan], [0, np.nan], [0, 0]], np.float32))
    add("scalar", np.array(-2.5, np.float32))
    add("empty", np.zeros((0, 5), np.float32))
    add("bool", RANDOM.random((50, 60)) < 0.01)
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        limits = np.iinfo(dtype)
        bits = min(limits.bits, 53)
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if limits.min < 0 else (0, 2**bits - 1)
        add(np.dtype(dtype).name, RANDOM.integers(low, high, (40, 333), dtype, endpoint=True))
    return tensors


def write(path, tensors):
    header, blobs, at = {}, [], 0
    for name, (dtype, stored, _) in tensors.items():
        data = stored.tobytes()
        header[name] = {"dtype": dtype, "shape": list(stored.shape), "data_offsets": [at, at + len(data)]}
        blobs.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def expect(dtype, numbers):
    wide = numbers.astype(np.longdouble)
    finite = wide[np.isfinite(wide)]
    expected = {
        "elements": wide.size,
        "zeros": int((wide == 0).sum()),
        "subnormals": int(((wide != 0) & (np.abs(wide) < SMALLEST_NORMAL.get(dtype, 0))).sum()),
        "nan": int(np.isnan(wide).sum()),
        "inf": int(np.isinf(wide).sum()),
        "min": None,
        "max": None,
        "mean": None,
        "std": None,
        "rms": None,
        "outliers": 0,
    }
    if finite.size > 0:
        mean, std = finite.mean(), finite.std()
        expected.update(min=finite.min(), max=finite.max(), mean=mean, std=std, rms=np.sqrt((finite**2).mean()))
        expected["outliers"] = int((np.abs(finite - mean) > 6 * std).sum()) if finite.min() != finite.max() else 0
    return expected


def expect_channel(numbers):
    if numbers.ndim == 0 or not np.isfinite(numbers).any():
        return None
    rows = numbers.astype(np.longdouble).reshape(numbers.shape[0], -1)
    finite = np.isfinite(rows)
    counts = finite.sum(axis=1)
    squares = np.where(finite, rows, 0) ** 2
    rms = np.where(counts > 0, np.sqrt(squares.sum(axis=1) / np.maximum(counts, 1)), -1)
    return int(rms.argmax()), rms.max()


def is_near(found, expected, scale):
    if found is None or expected is None:
        return found is None and expected is None
    return abs(found - float(expected)) <= 1e-13 * max(abs(float(expected)), scale)


def check(poise, path, tensors, options=()):
    found = json.loads(
        subprocess.run([poise, "stats", path, "--json", *options], check=True, capture_output=True).stdout
    )
    assert found["totals"] == {"tensors": len(tensors), "elements": sum(t[1].size for t in tensors.values())}
    faults = []
    for entry in found["tensors"]:
        dtype, _, numbers = tensors[entry["name"]]
        expected = expect(dtype, numbers)
        scale = float(expected["rms"] or 0)
        for key, value in expected.items():
            exact = key not in ("mean", "std", "rms")
            if not (
                entry[key] == (None if value is None else float(value)) if exact else is_near(entry[key], value, scale)
            ):
                faults.append(f"{entry['name']}: {key} is {entry[key]!r}, NumPy has {value!r}")
        channel = expect_channel(numbers)
        shown = entry["largest_channel"]
        if (shown is None) != (channel is None) or (
            shown and (shown["index"] != channel[0] or not is_near(shown["rms"], channel[1], 0))
        ):
            faults.append(f"{entry['name']}: largest_channel is {shown}, NumPy has {channel}")
        histogram = entry["histogram"]
        if histogram and numbers.size < 2 * 2**14:  # all numbers are in the sample
            finite = numbers[np.isfinite(numbers)].astype(np.float64)
            low = max(finite.min(), entry["mean"] - 4 * entry["std"])
            high = min(finite.max(), entry["mean"] + 4 * entry["std"])
            counts = [finite.size] + [0] * 7
            if low != high:
                places = np.clip(np.floor((finite - low) / (high - low) * 8), 0, 7).astype(int)
                counts = np.bincount(places, minlength=8).tolist()
            # A number at the edge of two parts may be in either.
            if sum(histogram["counts"]) != finite.size or np.abs(np.subtract(histogram["counts"], counts)).max() > 2:
                faults.append(f"{entry['name']}: counts are {histogram['counts']}, NumPy has {counts}")
    return faults


def main():
    poise = pathlib.Path(sys.argv[1]).resolve()
    tensors = make_tensors()
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "m.safetensors"
        write(path, tensors)
        faults = check(poise, path, tensors)
        # The same from a compressed file, whose parts are read as streams, and as sparse tensors.
        packed = pathlib.Path(directory) / "m.zt1"
        subprocess.run(
            [poise, "convert", path, "-o", packed, "--to", "zt1", "--compress", "zstd:1"],
            check=True,
            capture_output=True,
        )
        faults += check(poise, packed, tensors)
        floats = {name: t for name, t in tensors.items() if t[1].ndim == 2 and t[0] in ("F32", "F16", "BF16", "F64")}
        write(path, {name: floats[name] for name in floats if floats[name][1].size > 0})
        for form in ("csr", "coo"):
            sparse = pathlib.Path(directory) / f"{form}.zt"
            subprocess.run(
                [poise, "convert", path, "-o", sparse, "--sparse", form, "--min-sparsity", "0"],
                check=True,
                capture_output=True,
            )
            faults += check(poise, sparse, {name: t for name, t in floats.items() if t[1].size > 0})
        threads = [
            subprocess.run(["taskset", "-c", cpus, poise, "stats", packed, "--json"], capture_output=True).stdout
            for cpus in ("0", "0-1")
        ]
        if threads[0] != threads[1]:
            faults.append("one processor and two give different answers")
    for fault in faults:
        print(fault)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
