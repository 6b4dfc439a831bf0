"""Python's msgpack writes as flax.serialization does, Poise reads: every type, nested dicts, chunks, scalars.

    against_msgpack.py PATH/TO/poise

Exit code 77: msgpack or numpy is not installed.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import msgpack
    import numpy as np
except ImportError:
    print("skipped: python3-msgpack and python3-numpy are not both installed")
    sys.exit(77)

POISE = sys.argv[1]
TYPES = [
    "float64",
    "float32",
    "float16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint64",
    "uint32",
    "uint16",
    "uint8",
    "bool",
    "complex64",
    "complex128",
]
CHUNK_BYTES = 1000  # Flax takes 2**30


def poise(*arguments):
    done = subprocess.run([POISE, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def packed(array, name=None):
    return msgpack.packb((array.shape, name or array.dtype.name, array.tobytes()), use_bin_type=True)


class Named:
    """Elements of a type that NumPy does not have."""

    def __init__(self, bits, name):
        self.bits, self.name = bits, name


def extension(value):
    if isinstance(value, Named):
        return msgpack.ExtType(1, packed(value.bits, value.name))
    if isinstance(value, np.ndarray):
        return msgpack.ExtType(1, packed(value))
    if isinstance(value, np.generic):
        return msgpack.ExtType(3, packed(np.asarray(value)))
    if isinstance(value, complex):
        return msgpack.ExtType(2, msgpack.packb((value.real, value.imag)))
    return value


def numbered(items):
    return {str(i): item for i, item in enumerate(items)}


def in_chunks(tree):
    if isinstance(tree, dict):
        return {key: in_chunks(value) for key, value in tree.items()}
    if not isinstance(tree, np.ndarray) or tree.nbytes <= CHUNK_BYTES:
        return tree
    flat, step = tree.reshape(-1), max(1, CHUNK_BYTES // tree.itemsize)
    return {
        "__msgpack_chunked_array__": True,
        "shape": numbered(tree.shape),
        "chunks": numbered([flat[i : i + step] for i in range(0, flat.size, step)]),
    }


def write(path, tree):
    path.write_bytes(msgpack.packb(tree, default=extension, strict_types=True))


def flattened(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flattened(value, prefix + key + ".")
        elif isinstance(value, np.ndarray):
            yield prefix + key, value


def expect_same(path, expected):
    report = json.loads(poise("verify", "--json", path))
    assert report["ok"] and not report["files"][0]["findings"], report
    poise("convert", "--quiet", path, "-o", path.with_suffix(".npz"), "--force")
    there = np.load(path.with_suffix(".npz"))
    assert sorted(there.files) == sorted(expected), (there.files, list(expected))
    for name, array in expected.items():
        assert there[name].dtype == array.dtype and there[name].shape == array.shape, name
        assert there[name].tobytes() == array.tobytes(), name


with tempfile.TemporaryDirectory() as directory:
    path = pathlib.Path(directory)
    random = np.random.default_rng(7)
    layers = {
        str(i): {"kernel": random.standard_normal((3, 4, 5)).astype("f4"), "bias": random.standard_normal(5)}
        for i in range(12)
    }
    tree = {
        "types": {name: (random.standard_normal((3, 4)) * 100).astype(name) for name in TYPES},
        "encoder": {"layer": layers, "scalar": np.array(1.5, "f4"), "empty": np.zeros((0, 3), "f4")},
        "large": random.standard_normal((300, 70)).astype("f4"),
        "é" * 40: np.arange(70000, dtype="i4"),
    }
    expected = dict(flattened(tree))
    write(path / "whole.msgpack", tree)
    expect_same(path / "whole.msgpack", expected)
    write(path / "chunks.msgpack", in_chunks(tree))
    expect_same(path / "chunks.msgpack", expected)
    # The file of a training state: arrays in several dicts, and plain values.
    state = {
        "step": np.int64(7),
        "params": tree["encoder"],
        "opt_state": {"0": {"count": np.array(7, "i4")}, "1": {}},
        "rate": np.float32(0.5),
        "phase": 1.5 + 2j,
        "name": "run",
        "key": b"\1\2",
        "big": 2**63,
        "small": -5,
    }
    write(path / "state.msgpack", state)
    expect_same(path / "state.msgpack", dict(flattened(state)))
    told = json.loads(poise("inspect", "--json", path / "state.msgpack"))["attributes"]
    assert told == {
        "step": 7,
        "opt_state.1": {},
        "rate": 0.5,
        "phase": [1.5, 2],
        "name": "run",
        "key": "0102",
        "big": 2**63,
        "small": -5,
    }, told
    # Parameters alone; bfloat16 is the upper half of float32.
    halves = np.array([0x3F80, 0xC000, 0x7F7F], "u2")
    write(path / "half.msgpack", {"params": {"w": Named(halves, "bfloat16")}})
    poise("convert", "--quiet", "--dtype", "f32", path / "half.msgpack", "-o", path / "half.npz")
    assert np.array_equal(np.load(path / "half.npz")["w"], (halves.astype("u4") << 16).view("f4"))
    write(path / "float8.msgpack", {"w": Named(np.array([0x38, 0x40], "u1"), "float8_e4m3fn")})
    poise("convert", "--quiet", "--dtype", "f32", path / "float8.msgpack", "-o", path / "float8.npz")
    assert np.array_equal(np.load(path / "float8.npz")["w"], np.array([1, 2], "f4"))
    # Types that Poise does not have are left out, with a warning.
    write(path / "other.msgpack", {"w": np.ones(3, "f4"), "v": Named(np.ones(3, "i1"), "int4")})
    report = json.loads(poise("verify", "--json", path / "other.msgpack"))["files"][0]["findings"]
    assert [finding["message"] for finding in report] == ["v is left out: its element type int4 is not known"], report
    # Known by its content, and read without a mapping.
    (path / "whole.msgpack").rename(path / "download")
    assert json.loads(poise("inspect", "--json", path / "download"))["format"] == "flax"
    poise("convert", "--quiet", "--io", "read", path / "download", "-o", path / "read.npz")
    assert (path / "read.npz").read_bytes() == (path / "whole.npz").read_bytes()
