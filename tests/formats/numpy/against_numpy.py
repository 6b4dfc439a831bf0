"""NumPy writes, Poise reads; Poise writes, NumPy reads.

    against_numpy.py PATH/TO/poise

Exit code 77: NumPy is not installed.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    sys.exit(77)

POISE = sys.argv[1]
TYPES = ["f2", "f4", "f8", "c8", "c16", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"]


def poise(*arguments):
    return subprocess.run([POISE, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def arrays():
    random = np.random.default_rng(7)
    for order in "<>":
        for name in TYPES:
            numbers = (random.standard_normal((3, 4, 5)) * 100).astype(order + name)
            yield f"c_{ord(order)}_{name}", numbers
            yield f"f_{ord(order)}_{name}", np.asfortranarray(numbers)
    yield "scalar", np.float32(1.5)
    yield "empty", np.zeros((0, 3), "f4")
    yield "vector", np.arange(100, dtype="i8")
    yield "large", random.standard_normal((300, 1000)).astype("f4")
    yield "large_f", np.asfortranarray(random.standard_normal((300, 1000)).astype("f8"))


def expect_same(there, expected):
    assert set(there.files) == set(expected), (there.files, list(expected))
    for name, array in expected.items():
        found = there[name]
        assert found.shape == np.shape(array) and found.dtype == np.asarray(array).dtype.newbyteorder("<"), name
        assert np.array_equal(found, array, equal_nan=True), name


class Pipe:
    """NumPy cannot go back in it: sizes and checksums follow the bytes."""

    def __init__(self, file):
        self.file = file

    def write(self, some):
        return self.file.write(some)

    def flush(self):
        self.file.flush()

    def read(self):  # a sign for NumPy that this is a file
        raise OSError


with tempfile.TemporaryDirectory() as directory:
    path = pathlib.Path(directory)
    expected = dict(arrays())
    for save in (np.savez, np.savez_compressed):
        with open(path / "pipe.npz", "wb") as file:
            save(Pipe(file), **expected)
        assert json.loads(poise("verify", "--json", path / "pipe.npz"))["ok"]
    for save in (np.savez, np.savez_compressed):
        save(path / "in.npz", **expected)
        report = json.loads(poise("verify", "--json", path / "in.npz"))
        assert report["ok"] and report["files"][0]["digests"], report
        poise("convert", "--quiet", path / "in.npz", "-o", path / "out.npz", "--force")
        expect_same(np.load(path / "out.npz"), expected)
        poise("convert", "--quiet", path / "in.npz", "-o", path / "middle.zt", "--force")
        poise("convert", "--quiet", path / "middle.zt", "-o", path / "out.npz", "--force")
        expect_same(np.load(path / "out.npz"), expected)
        # A header of version 1 has up to 64 KiB.
        save(path / "long.npz", **expected, record=np.zeros(3, [(f"field_{i:03}", "f4") for i in range(1500)]))
        assert json.loads(poise("verify", "--json", path / "long.npz"))["ok"]
        poise("convert", "--quiet", path / "long.npz", "-o", path / "out.npz", "--force")
        expect_same(np.load(path / "out.npz"), expected)
        assert poise("hash", path / "in.npz").split()[-2:-1] == poise("hash", path / "in.npz").split()[-2:-1]
    for version in ((1, 0), (2, 0), (3, 0)):
        for name in ("f_62_c16", "c_60_b1", "scalar", "empty"):
            with open(path / "in.npy", "wb") as file:
                np.lib.format.write_array(file, np.asarray(expected[name]), version)
            poise("convert", "--quiet", path / "in.npy", "-o", path / "out.npy", "--force")
            assert np.array_equal(np.load(path / "out.npy"), expected[name])
