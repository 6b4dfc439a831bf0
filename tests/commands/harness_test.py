#!/usr/bin/env python3
"""Checks that run_commands.py tests the given program, for each spelling of its path, and no other `poise` on PATH."""
import os
import pathlib
import subprocess
import sys
import tempfile


def program(folder, text):
    folder.mkdir()
    path = folder / "poise"
    path.write_text(f"#!/bin/sh\necho {text}\n")
    path.chmod(0o755)


def main():
    runner = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as where:
        root = pathlib.Path(where)
        program(root / "given", "given")
        program(root / "other", "other")
        (root / "test.txt").write_text("$ poise\n  given\n")
        environment = dict(os.environ, PATH=f"{root / 'other'}:{os.environ['PATH']}")

        def code(poise):
            return subprocess.run(
                [sys.executable, runner, "test.txt", poise, "."], cwd=root, env=environment, capture_output=True
            ).returncode

        assert code("given/poise") == 0
        assert code(str(root / "given" / "poise")) == 0
        assert code("other/poise") == 1
        assert code("absent/poise") == 1


if __name__ == "__main__":
    main()
