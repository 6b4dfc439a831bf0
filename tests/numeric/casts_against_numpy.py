"""Compares `poise convert --dtype` with NumPy, bit by bit.

    casts_against_numpy.py POISE

float16 is NumPy's own. NumPy has no bfloat16 and no float of 8 or 4 bits: these are worked out here in integers and
float64. Files go in and out as safetensors, written and read by this script. Exits with 77 (skipped) where NumPy is
missing.
"""
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

WIDTH = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "F4": 0.5}
failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what)


def write(path, dtype, data):
    count = int(len(data) / WIDTH[dtype])
    header = json.dumps({"w": {"dtype": dtype, "shape": [count], "data_offsets": [0, len(data)]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)


def read(path):
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    entry = json.loads(data[8 : 8 + size])["w"]
    return entry["dtype"], data[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]]


def run(poise, directory, dtype, data, to):
    source, target = directory / "in.safetensors", directory / "out.safetensors"
    target.unlink(missing_ok=True)
    write(source, dtype, data)
    done = subprocess.run([poise, "convert", source, "-o", target, "--dtype", to], capture_output=True, text=True)
    return done, read(target) if done.returncode == 0 else None


def counters(text, count):
    """Returns the counts in a message: values, worst error, became zero, became subnormal."""
    line = next((line for line in text.splitlines() if "->" in line and "values" in line), "")
    found = re.search(
        r"([\d,]+) values, worst absolute error ([\d.e+-]+), ([\d,]+) fell to zero, ([\d,]+) to subnormal", line
    )
    if not found:
        return count, 0.0, 0, 0
    plain = [part.replace(",", "") for part in found.groups()]
    return int(plain[0]), float(plain[1]), int(plain[2]), int(plain[3])


def bf16_of(values):
    """float32 to bfloat16: the upper half, rounded to nearest even; a NaN stays one."""
    bits = values.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(values), (bits >> 16 | 0x40).astype(np.uint16), rounded)


def small_floats(exponent_bits, mantissa_bits, bias, infinities, codes):
    """Every code of a format of up to 8 bits, as IEEE 754 composes numbers."""
    sign = np.where(codes >> (exponent_bits + mantissa_bits) & 1, -1.0, 1.0)
    exponent = (codes >> mantissa_bits & (2**exponent_bits - 1)).astype(np.int64)
    mantissa = (codes & (2**mantissa_bits - 1)).astype(np.float64) / 2**mantissa_bits
    value = sign * np.where(exponent == 0, mantissa * 2.0 ** (1 - bias), (1 + mantissa) * 2.0 ** (exponent - bias))
    top = exponent == 2**exponent_bits - 1
    if infinities == "ieee":
        value = np.where(top, np.where(mantissa == 0, sign * np.inf, np.nan), value)
    elif infinities == "nan":
        value = np.where(top & (codes & (2**mantissa_bits - 1) == 2**mantissa_bits - 1), np.nan, value)
    return value.astype(np.float32)


def same_floats(a, b):
    """Compares bits, but accepts any NaN for a NaN."""
    return np.array_equal(a.view(f"u{a.itemsize}")[~np.isnan(b)], b.view(f"u{b.itemsize}")[~np.isnan(b)]) and bool(
        np.isnan(a[np.isnan(b)]).all()
    )


def widening(poise, directory):
    all16 = np.arange(65536, dtype=np.uint16)
    all8 = np.arange(256, dtype=np.uint8)
    powers = np.where(all8 == 255, np.nan, 2.0 ** (all8.astype(np.float64) - 127)).astype(np.float32)
    nibbles = small_floats(2, 1, 1, "none", np.arange(16, dtype=np.uint8))
    cases = {
        "F16": (all16.tobytes(), all16.view(np.float16).astype(np.float32)),
        "BF16": (all16.tobytes(), (all16.astype(np.uint32) << 16).view(np.float32)),
        "F8_E4M3": (all8.tobytes(), small_floats(4, 3, 7, "nan", all8)),
        "F8_E5M2": (all8.tobytes(), small_floats(5, 2, 15, "ieee", all8)),
        "F8_E8M0": (all8.tobytes(), powers),
        "F4": (all8.tobytes(), np.stack([nibbles[all8 & 15], nibbles[all8 >> 4]], axis=1).reshape(-1)),
    }
    for dtype, (data, expected) in cases.items():
        done, made = run(poise, directory, dtype, data, "f32")
        expect(done.returncode == 0, f"{dtype} -> f32: {done.stderr}")
        if made:
            expect(
                made[0] == "F32" and same_floats(np.frombuffer(made[1], np.float32), expected),
                f"{dtype} -> f32: all codes",
            )


def edges(limit):
    """Numbers of float32 around all limits of rounding, without overflow."""
    codes = np.arange(0x7C00, dtype=np.uint16).view(np.float16).astype(np.float32)
    middles = ((codes[:-1].astype(np.float64) + codes[1:]) / 2).astype(np.float32)
    wide = np.concatenate(
        [codes, middles, np.nextafter(middles, np.float32(0)), np.nextafter(middles, np.float32(np.inf))]
    )
    tiny = np.arange(1, 5000, dtype=np.uint32).view(np.float32)
    random = np.random.default_rng(1).integers(0, 2**32, 200_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype=np.float32)
    values = np.concatenate([wide, -wide, tiny, -tiny, random, special])
    return values[~(np.isfinite(values) & (np.abs(values) >= limit))]


def narrowing(poise, directory):
    limits = {"f16": 65520.0, "bf16": float(np.array([0x7F7F8000], np.uint32).view(np.float32)[0])}
    normal = {"f16": 2.0**-14, "bf16": 2.0**-126}
    for to, limit in limits.items():
        values = edges(limit)
        expected = (
            values.astype(np.float16) if to == "f16" else (bf16_of(values).astype(np.uint32) << 16).view(np.float32)
        )
        for dtype, source in (("F32", values), ("F64", values.astype(np.float64))):
            done, made = run(poise, directory, dtype, source.tobytes(), to)
            expect(done.returncode == 0, f"{dtype} -> {to}: {done.stderr}")
            if not made:
                continue
            bits = np.frombuffer(made[1], np.uint16)
            found = bits.view(np.float16) if to == "f16" else (bits.astype(np.uint32) << 16).view(np.float32)
            expect(same_floats(found, expected), f"{dtype} -> {to}: bits")
            finite = np.isfinite(values)
            exact, rounded = values[finite].astype(np.float64), expected[finite].astype(np.float64)
            magnitude = np.abs(rounded)
            count, worst, zeros, subnormal = counters(done.stdout, len(values))
            expect(count == len(values), f"{dtype} -> {to}: {count} values")
            expect(zeros == np.count_nonzero((exact != 0) & (rounded == 0)), f"{dtype} -> {to}: {zeros} fell to zero")
            expect(
                subnormal == np.count_nonzero((magnitude != 0) & (magnitude < normal[to])),
                f"{dtype} -> {to}: {subnormal} to subnormal",
            )
            expect(abs(worst - np.abs(exact - rounded).max()) <= 0.01 * worst, f"{dtype} -> {to}: worst error {worst}")
        beyond = np.full(5000, 1, np.float32)
        beyond[4097] = np.float32(limit)
        done, _ = run(poise, directory, "F32", beyond.tobytes(), to)
        expect(
            done.returncode == 1 and f"tensor w: element 4097 ({beyond[4097]:g}) is too large for {to}" in done.stderr,
            f"F32 -> {to}: overflow: {done.stderr}",
        )
    # float64 is rounded once. If it were rounded to float32 first, the first number would be a middle, and would go to
    # its even neighbour.
    once = np.array([1 + 2.0**-11 + 2.0**-40, 1 + 2.0**-11 - 2.0**-40, 1e-300, -1e-300], np.float64)
    _, made = run(poise, directory, "F64", once.tobytes(), "f16")
    expect(
        np.array_equal(np.frombuffer(made[1], np.uint16), once.astype(np.float16).view(np.uint16)),
        "F64 -> f16: rounded once",
    )
    done, _ = run(poise, directory, "F64", np.array([1, 1e39]).tobytes(), "f32")
    expect(
        done.returncode == 1 and "tensor w: element 1 (1e+39) is too large for f32" in done.stderr,
        f"F64 -> f32: overflow: {done.stderr}",
    )


def main(poise):
    np.seterr(all="ignore")
    with tempfile.TemporaryDirectory() as directory:
        widening(poise, pathlib.Path(directory))
        narrowing(poise, pathlib.Path(directory))
    return 1 if failures else 0


sys.exit(main(sys.argv[1]))
