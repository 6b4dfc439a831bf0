#!/usr/bin/env python3
"""Runs the commands of the first console transcript of a page, and compares their output.

    run_page.py PAGE [all]

Lines that begin with $ are commands; the others are their standard output and error together. "..." at the end of a
line stands for any text, and a line of "..." for any lines. Times and rates are not compared. Commands run in the
current directory. With `all`: runs all transcripts, and the blocks in Python between them, which must succeed; without
NumPy or the package poise, the blocks are only compiled.
"""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

LIMIT = float(os.environ.get("COMMAND_TIMEOUT", "300"))  # of one command, in seconds


def pattern(lines):
    text = ""
    for line in lines:
        if line == "...":
            text += r"(?:.*\n)*?"
            continue
        line, rest = (line[:-3], ".*") if line.endswith("...") else (line, "")
        line = re.sub(r"\d+\\\.\d+\\ s,", r"\\S+ s,", re.escape(line))
        line = re.sub(r"\d+\\\.\d+\\ (ms|tokens/s)", r"\\S+ \1", line)
        line = re.sub(r"\d+\\\.\d+\\ [kMG]?B/s", r"\\S+ [kMG]?B/s", line)
        text += line + rest + "\n"
    return text


def run_transcript(transcript):
    """Runs a transcript, and returns the number of its commands."""
    steps = re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]
    for step in steps:
        command, *lines = step.rstrip("\n").split("\n")
        done = run(["bash", "-c", command])
        if done.returncode != 0 or not re.fullmatch(pattern(lines), done.stdout):
            sys.exit(
                f"$ {command}\nexpected\n" + "\n".join(lines) + f"\nfound (exit code {done.returncode})\n{done.stdout}"
            )
    return len(steps)


def run_program(program):
    compile(program, "a block in Python", "exec")
    if all(importlib.util.find_spec(name) for name in ("numpy", "poise")):
        done = run([sys.executable, "-c", program])
        if done.returncode != 0:
            sys.exit(f"{program}\nfound (exit code {done.returncode})\n{done.stdout}")
    return 1


def run(command):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)


RUN = {"console": run_transcript, "python": run_program}
path, *rest = sys.argv[1:]
blocks = re.findall(r"^```(\w+)\n(.*?)^```$", pathlib.Path(path).read_text(), flags=re.MULTILINE | re.DOTALL)
blocks = [block for block in blocks if block[0] in RUN]
if rest != ["all"]:
    blocks = [block for block in blocks if block[0] == "console"][:1]
counts = {"console": 0, "python": 0}
for language, text in blocks:
    counts[language] += RUN[language](text)
programs = f" and {counts['python']} programs" if counts["python"] else ""
print(f"{counts['console']} commands{programs} as in {pathlib.Path(path).name}")
