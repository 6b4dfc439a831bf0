#!/usr/bin/env python3
"""Runs what the first console transcript of a page shows, and compares what is printed.

    readme_console.py PAGE

Lines that begin with $ are commands, the others what they print on standard output and error together. "..." at the end
of a line stands for any text, a line of it for any lines. Seconds and rates are those of a machine. Commands run where
this does.
"""
import pathlib
import re
import subprocess
import sys


def pattern(lines):
    text = ""
    for line in lines:
        if line == "...":
            text += r"(?:.*\n)*?"
            continue
        line, rest = (line[:-3], ".*") if line.endswith("...") else (line, "")
        line = re.sub(r"\d+\\\.\d+\\ s,", r"\\S+ s,", re.escape(line))
        text += re.sub(r"\d+\\\.\d+\\ [kMG]B/s", r"\\S+ [kMG]B/s", line) + rest + "\n"
    return text


page = pathlib.Path(sys.argv[1]).read_text()
transcript = page.split("```console\n", 1)[1].split("```", 1)[0]
steps = re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]
for step in steps:
    command, *lines = step.rstrip("\n").split("\n")
    done = subprocess.run(
        ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300
    )
    if done.returncode != 0 or not re.fullmatch(pattern(lines), done.stdout):
        sys.exit(
            f"$ {command}\nexpected\n" + "\n".join(lines) + f"\nfound (exit code {done.returncode})\n{done.stdout}"
        )
print(f"{len(steps)} commands as in {pathlib.Path(sys.argv[1]).name}")
