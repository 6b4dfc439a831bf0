"""The wheel, and what an installed package needs."""

import ast
import importlib.util
import inspect
import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

import poise
from poise import _poise

SOURCE = pathlib.Path(os.environ["POISE_SOURCE"])
USE = """import poise, sys
assert poise.__file__.startswith(sys.argv[1]), poise.__file__
print(poise.__version__, len(poise.open(sys.argv[2])))
"""


def use(directory, examples):
    """Imports the package from a directory, without the build and the sources."""
    environment = {**os.environ, "PYTHONPATH": str(directory)}
    done = subprocess.run(
        [sys.executable, "-c", USE, directory, examples / "nano-mistral"],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"{poise.__version__} 39\n"


def pip(*arguments):
    pytest.importorskip("pip")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-cache-dir", *arguments],
        cwd=SOURCE,
        check=True,
    )


def test_pip_installs_the_source(examples, tmp_path):
    pip(".", "--no-build-isolation", "--target", tmp_path / "installed")
    use(tmp_path / "installed", examples)


def test_pip_installs_the_wheel(examples, tmp_path):
    subprocess.run([sys.executable, SOURCE / "python/build_backend.py", tmp_path], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        assert opened.testzip() is None
    extensions = [name for name in names if name.endswith(".so")]
    assert len(extensions) == 1 and {"poise/__init__.py", "poise/py.typed", "poise/_poise.pyi"} < set(names)
    pip(wheel, "--target", tmp_path / "installed")
    use(tmp_path / "installed", examples)


def test_the_extension_shows_its_entry_alone():
    shown = subprocess.run(
        ["nm", "-D", "--defined-only", _poise.__file__], check=True, capture_output=True, text=True
    ).stdout.split()
    assert [name for name in shown if name.startswith(("PyInit", "_Z", "poise"))] == ["PyInit__poise"]
    needed = subprocess.run(["readelf", "-d", _poise.__file__], check=True, capture_output=True, text=True).stdout
    assert "libpoise" not in needed and "libpython" not in needed and "RUNPATH" not in needed


def test_the_version_is_the_projects():
    assert f"project(poise VERSION {poise.__version__} " in (SOURCE / "CMakeLists.txt").read_text()


def members(node):
    return {item.name for item in node.body if isinstance(item, (ast.FunctionDef, ast.ClassDef))} | {
        item.target.id for item in node.body if isinstance(item, ast.AnnAssign)
    }


def test_stubs_name_what_the_extension_has():
    tree = ast.parse((pathlib.Path(poise.__file__).parent / "_poise.pyi").read_text())
    real = {name for name in dir(_poise) if not name.startswith("__")}
    assert members(tree) == real
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            own = {
                name
                for name in vars(getattr(_poise, node.name))
                if not name.startswith("_pybind") and name not in ("__module__", "__doc__")
            }
            assert members(node) - {"__init__"} == own - {"__new__", "__init__"}, node.name


def test_everything_public_has_a_docstring_and_types():
    for name in poise.__all__:
        made = getattr(poise, name)
        if not callable(made):
            continue
        assert inspect.getdoc(made), name
        if inspect.isclass(made) and made.__module__.startswith("poise.") and not issubclass(made, Exception):
            for method, function in vars(made).items():
                if not method.startswith("_") and inspect.isfunction(function) and function.__doc__ is None:
                    assert name in ("safe_open",), f"{name}.{method}"


@pytest.mark.parametrize("script", sorted((SOURCE / "examples/python").glob("*.py")), ids=lambda path: path.name)
def test_examples_run(script, examples, tmp_path):
    done = subprocess.run([sys.executable, script, examples], cwd=tmp_path, capture_output=True, text=True)
    if "No module named 'torch'" in done.stderr:
        pytest.skip("torch is not installed")
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_a_build_that_exists_is_used(tmp_path, monkeypatch):
    monkeypatch.delenv("POISE_BUILD", raising=False)
    spec = importlib.util.spec_from_file_location("build_backend", SOURCE / "python/build_backend.py")
    backend = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(backend)
    monkeypatch.setattr(backend, "ROOT", tmp_path)
    new = (tmp_path / "build/wheel", True)
    assert backend.choose_build_directory() == new
    release = tmp_path / "build/release"
    (release / "python").mkdir(parents=True)
    usual = {
        "CMAKE_BUILD_TYPE:STRING": "Release",
        "CMAKE_HOME_DIRECTORY:INTERNAL": tmp_path,
        "POISE_PYTHON_PACKAGE:STRING": "AUTO",
        "Python3_EXECUTABLE:FILEPATH": sys.executable,
    }

    def cached(**changes):
        lines = [f"{key}={changes.get(key.partition(':')[0], value)}" for key, value in usual.items()]
        (release / "CMakeCache.txt").write_text("# This is the CMakeCache file.\n" + "\n".join(lines) + "\n")
        return backend.choose_build_directory()

    assert cached() == (release, False)
    for other in (
        {"CMAKE_BUILD_TYPE": "Debug"},
        {"CMAKE_HOME_DIRECTORY": "/elsewhere"},
        {"POISE_PYTHON_PACKAGE": "OFF"},
        {"Python3_EXECUTABLE": "/opt/python"},
    ):
        assert cached(**other) == new
    monkeypatch.setenv("POISE_BUILD", "/mine")
    assert backend.choose_build_directory() == (pathlib.Path("/mine"), False)


def test_the_first_example_of_the_documentation(examples, tmp_path):
    """The first example of docs/python.md runs unchanged, and does not make a model larger."""
    (code,) = re.findall(
        r"```python\n(import poise\n\nmodel = .*?)```", (SOURCE / "docs/python.md").read_text(), re.DOTALL
    )
    (tmp_path / "examples").symlink_to(examples)
    code += "\nassert report.bytes_out < report.bytes_in, report\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") >= 2
