#!/usr/bin/env python3
"""Runs one file of pytest with the package of a build directory: run_tests.py BUILD SOURCE TEST.py. Exits with 77, and
prints the reason, if it cannot run."""

import importlib.util
import os
import pathlib
import sys

build, source, test = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
package = build / "python"
if not list(package.glob("poise/_poise*.so")):
    print("skipped: the Python package is not built; scripts/install_dependencies.sh python installs what it needs")
    sys.exit(77)
missing = [name for name in ("pytest", "numpy") if importlib.util.find_spec(name) is None]
if missing:
    print(f"skipped: {', '.join(missing)} are not installed; scripts/install_dependencies.sh test does that")
    sys.exit(77)
os.environ.update(
    PYTHONPATH=str(package),
    POISE_EXAMPLES=str(source / "examples"),
    POISE_COMMAND=str(build / "poise"),
    POISE_BUILD=str(build),
    POISE_SOURCE=str(source),
    PYTHONDONTWRITEBYTECODE="1",
)
os.execv(
    sys.executable,
    [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "--rootdir", str(source), str(test)],
)
