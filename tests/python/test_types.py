"""Type checkers and help() see the types and docstrings of the package."""

import inspect
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import poise
import poise.numpy
from poise import _poise

PACKAGE = pathlib.Path(os.environ["POISE_SOURCE"]) / "python"
# In place of torch's own stubs, which take a minute to read.
TORCH = """
from typing import Any
from . import nn as nn
class dtype: ...
bfloat16: dtype
class Tensor:
    def __iter__(self) -> Any: ...
    def __index__(self) -> int: ...
    def __getattr__(self, name: str) -> Any: ...
def __getattr__(name: str) -> Any: ...
"""
SCRIPT = """
import io
import numpy
import poise
import torch

model = poise.open("a.zt")
reveal_type(model["a"])
reveal_type(list(model.items()))
reveal_type(model["a"].numpy())
reveal_type(model["a"].torch(torch.bfloat16))
reveal_type(model["a"][3:, 0])
reveal_type(poise.convert(b"a.zt", "b.gguf", quantize="Q4_K_M", align="4KiB"))
reveal_type(poise.open("b.gguf").tokenizer.encode(["a", "b"]))
reveal_type(poise.Session(model).logits())
reveal_type(poise.numpy.load_file("a.zt")["a"])
reveal_type(poise.torch.load_file("a.zt")["a"])
poise.save({"a": numpy.zeros(3)}, io.BytesIO(), format="zt", config={"hidden_size": 3}, progress=print)
poise.convert("a.zt", "b.zt", quantise="q4_k")  # error
poise.save(model, "b.zt", shard_size=[3])  # error
poise.plan(model, "b.zt", only=3)  # error
poise.opne("a.zt")  # error
poise.Session(model).feed("text")  # error
"""
REVEALED = [
    "poise._elements.Tensor",
    "builtins.list[Tuple[builtins.str, poise._elements.Tensor]]",
    "numpy.ndarray[Any, numpy.dtype[Any]]",
    "torch.Tensor",
    "poise._elements.Slice",
    "poise._reports.ConvertReport",
    "builtins.list[builtins.list[builtins.int]]",
    "numpy.ndarray[Any, numpy.dtype[numpy.floating[numpy._typing._32Bit]]]",
    "numpy.ndarray[Any, numpy.dtype[Any]]",
    "torch.Tensor",
]


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Returns a folder in which mypy caches NumPy's types, which it takes most of its time to read."""
    if shutil.which("mypy") is None:
        pytest.skip("mypy is not installed; scripts/install_dependencies.sh test does that")
    directory = tmp_path_factory.mktemp("project")
    (directory / "stubs/torch").mkdir(parents=True)
    (directory / "stubs/torch/__init__.pyi").write_text(TORCH)
    (directory / "stubs/torch/nn.pyi").write_text(
        "from typing import Any\nclass Module:\n    def __getattr__(self, name: str) -> Any: ...\n"
    )
    (directory / "mypy.ini").write_text(
        "[mypy]\nenable_incomplete_feature = Unpack\n[mypy-ml_dtypes]\nignore_missing_imports = True\n"
    )
    return directory


def mypy(directory, *arguments):
    environment = {**os.environ, "MYPYPATH": f"{PACKAGE}:{directory / 'stubs'}"}
    run = ["mypy", "--strict", "--config-file", directory / "mypy.ini", "--cache-dir", directory / "cache", *arguments]
    done = subprocess.run(run, cwd=directory, env=environment, capture_output=True, text=True)
    return done.stdout.splitlines() + done.stderr.splitlines()


def test_the_package_and_its_stub_are_sound(project):
    (last,) = mypy(project, "-p", "poise")
    assert last.startswith("Success")


def test_programs_are_checked(project):
    (project / "script.py").write_text(SCRIPT)
    lines = mypy(project, "script.py")
    told = [line.partition('note: Revealed type is "')[2][:-1] for line in lines if "Revealed type" in line]
    assert told == REVEALED
    wrong = {int(line.split(":")[1]) for line in lines if " error: " in line}
    assert wrong == {number for number, line in enumerate(SCRIPT.split("\n"), 1) if line.endswith("# error")}, lines


def test_all_is_what_there_is():
    text = (PACKAGE / "poise/__init__.py").read_text()
    public = {name for name in vars(poise) if not name.startswith("_")} - {"typing", "numpy", "torch"}
    assert set(poise.__all__) == public | {"__version__"} and "__all__ = [\n" in text
    assert poise.__all__ == sorted(poise.__all__)


def keywords(function):
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one for one in parameters if one.kind is one.KEYWORD_ONLY}


def test_the_extension_reads_every_option(nano, tmp_path):
    assert _poise.plan_file(nano.path, tmp_path / "a.zt", {})["tensors"]
    for name in keywords(poise.plan):
        with pytest.raises((TypeError, poise.BadArgumentError)):
            _poise.plan_file(nano.path, tmp_path / "a.zt", {name: object()})


def test_functions_share_their_options():
    convert, save, plan = keywords(poise.convert), keywords(poise.save), keywords(poise.plan)
    assert set(convert) == set(plan) | {"progress"}
    assert set(save) == set(plan) - {"io"} | {"progress", "metadata", "config"}
    for name in set(plan) - {"io"}:
        assert str(save[name]) == str(plan[name]) == str(convert[name])
    for function in (poise.convert, poise.save, poise.plan):
        for name in set(keywords(function)):
            assert re.search(rf"\b{name}\b", function.__doc__), name


def test_save_file_has_the_options_of_save():
    torch = pytest.importorskip("torch")
    assert torch
    import poise.torch

    save = keywords(poise.save)
    for function in (poise.numpy.save_file, poise.torch.save_file, poise.torch.save_model):
        found = keywords(function)
        assert set(found) == set(save) - {"metadata", "config"}
        assert {name for name in found if str(found[name]) != str(save[name])} == {"overwrite"}, function


def test_options_are_not_swallowed(nano, tmp_path):
    for call in (
        lambda **o: poise.convert(nano.path, tmp_path / "a.zt", **o),
        lambda **o: poise.save(nano, tmp_path / "a.zt", **o),
        lambda **o: poise.plan(nano, tmp_path / "a.zt", **o),
        lambda **o: poise.numpy.save_file({}, tmp_path / "a.zt", **o),
    ):
        with pytest.raises(TypeError, match="quantise"):
            call(quantise="q4_k")
    with pytest.raises(TypeError):
        poise.save(nano, tmp_path / "a.zt", io="map")
    with pytest.raises(poise.BadArgumentError, match="io"):
        poise.plan(nano, tmp_path / "a.zt", io="map")
    assert not list(tmp_path.iterdir())


def test_help_shows_the_options():
    done = subprocess.run(
        [sys.executable, "-c", "import poise; help(poise.convert)"], check=True, capture_output=True, text=True
    )
    assert "quantize" in done.stdout.split('"""')[0].split("OPTIONS")[0] and "group_size" in done.stdout
    assert "OPTIONS" not in done.stdout and "PROGRESS" not in done.stdout
