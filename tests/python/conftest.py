"""Fixtures of the Python package's tests. POISE_EXAMPLES: the folder examples/; POISE_COMMAND: the command
poise."""

import os
import pathlib

import pytest

numpy = pytest.importorskip("numpy")

import poise  # noqa: E402


@pytest.fixture
def examples():
    return pathlib.Path(os.environ["POISE_EXAMPLES"])


@pytest.fixture
def command():
    return os.environ["POISE_COMMAND"]


@pytest.fixture
def nano(examples):
    """Opens a trained Mistral of 39 tensors in bf16, with a vocabulary."""
    return poise.open(examples / "nano-mistral")


@pytest.fixture
def arrays():
    """Returns an array of each type that both numpy and files have."""
    random = numpy.random.default_rng(20)
    result = {
        "f": random.normal(size=(7, 5)),
        "empty": numpy.zeros((0, 3), numpy.float32),
        "scalar": numpy.array(2.5, numpy.float32),
    }
    for kind in "float32 float16 int64 int32 int16 int8 uint64 uint32 uint16 uint8".split():
        result[kind] = random.integers(0, 100, size=(4, 3, 2)).astype(kind)
    result["bool"] = random.integers(0, 2, size=9).astype(bool)
    return result


@pytest.fixture
def saved(arrays, tmp_path):
    """Writes a file with these arrays."""
    path = tmp_path / "arrays.safetensors"
    poise.save(arrays, path)
    return path
