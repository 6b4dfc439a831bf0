#!/usr/bin/env python3
"""Runs one command test: a text file of commands and what they must print.

    run_commands.py TEST.txt POISE ROOT

    # A comment.
    $ poise inspect missing.alt         a shell command; all of a file's commands share one new, empty directory
      text                              an expected line of standard output (two spaces before it)
    2> text                             an expected line of standard error
    exit 1                              the expected exit code; without it, 0

In expected lines {*} stands for any text within the line, and a line {...} for any number of lines. Output that is not
expected fails the test. $EXAMPLES and $SHARED name the folders; tests that need $SHARED say so in a line `needs shared`
and are skipped (exit code 77) where it is absent. COMMAND_TIMEOUT in the environment: the limit of one command in
seconds, by default 300.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77


class Step:
    """Holds a command with its expected output and exit code."""

    def __init__(self, command, line):
        self.command, self.line = command, line
        self.stdout, self.stderr, self.code = [], [], 0


def parse(path):
    steps, needs_shared = [], False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("$ "):
            steps.append(Step(line[2:], number))
        elif line.startswith("  "):
            steps[-1].stdout.append(line[2:])
        elif line.startswith("2> "):
            steps[-1].stderr.append(line[3:])
        elif line.startswith("exit "):
            steps[-1].code = int(line[5:])
        elif line == "needs shared":
            needs_shared = True
        elif line and not line.startswith("#"):
            sys.exit(f"{path}:{number}: cannot read this line: {line}")
    return steps, needs_shared


def pattern(lines):
    """Returns a regular expression for the whole output."""
    text = ""
    for line in lines:
        text += r"(?:.*\n)*?" if line == "{...}" else ".*".join(map(re.escape, line.split("{*}"))) + "\n"
    return text


def complete(text):
    return text if not text or text.endswith("\n") else text + "\n"


def check(step, where, environment):
    done = subprocess.run(
        ["bash", "-c", step.command],
        cwd=where,
        env=environment,
        stdin=subprocess.DEVNULL,  # poise run reads what is piped into it
        capture_output=True,
        timeout=float(os.environ.get("COMMAND_TIMEOUT", "300")),
    )
    outputs = [("standard output", step.stdout, done.stdout), ("standard error", step.stderr, done.stderr)]
    faults = []
    for name, expected, found in outputs:
        text = complete(found.decode("utf-8", "replace"))
        if not re.fullmatch(pattern(expected), text):
            faults.append(f"{name}: expected\n{chr(10).join(expected)}\nfound\n{text}")
    if done.returncode != step.code:
        faults.append(
            f"exit code: expected {step.code}, found {done.returncode}; standard error:\n"
            f"{done.stderr.decode('utf-8', 'replace')}"
        )
    return faults


def main():
    # commands run in another directory
    path, poise, root = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
    if not os.access(poise, os.X_OK):
        sys.exit(f"{poise}: no such program")
    steps, needs_shared = parse(path)
    shared = root.parent / "shared"
    if needs_shared and not shared.is_dir():
        print(f"skipped: {shared} is not there")
        return SKIPPED
    environment = dict(
        os.environ,
        PATH=f"{poise.parent}:{os.environ['PATH']}",
        EXAMPLES=str(root / "examples"),
        SHARED=str(shared),
        ROOT=str(root),
        LC_ALL="C.UTF-8",
        SOURCE_DATE_EPOCH="1720137600",
    )
    with tempfile.TemporaryDirectory() as where:
        environment["XDG_STATE_HOME"] = f"{where}/.state"  # the history of poise chat
        for step in steps:
            faults = check(step, where, environment)
            if faults:
                print(f"{path}:{step.line}: $ {step.command}")
                print("\n".join(faults))
                return 1
    print(f"{path.name}: {len(steps)} commands as expected")
    return 0 if steps else 1


if __name__ == "__main__":
    sys.exit(main())
