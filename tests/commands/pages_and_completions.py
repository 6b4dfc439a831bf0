#!/usr/bin/env python3
"""Checks the manual pages and the completions: pages_and_completions.py POISE SOURCE."""

import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile

poise, source = sys.argv[1], pathlib.Path(sys.argv[2])
faults = []


def run(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def expect(found, expected, where):
    if found != expected:
        faults.append(f"{where}: expected {expected!r}, found {found!r}")


def list_commands():
    lines = run(poise, "--help").split("\nCommands:\n")[1].split("\n\n")[0].splitlines()
    return [line.split()[0] for line in lines if re.match(r"  \S", line)]


def check_pages(directory):
    run(source / "scripts/make_man_pages.py", poise, directory, env={**os.environ, "SOURCE_DATE_EPOCH": "86400"})
    commands = [command for command in list_commands() if command != "help"]
    expect(
        sorted(page.name for page in directory.iterdir()),
        sorted(["poise.1", *(f"poise-{command}.1" for command in commands)]),
        "pages",
    )
    for command in commands:
        page = directory / f"poise-{command}.1"
        text = page.read_text()
        if "1970-01-02" not in text:
            faults.append(f"{page.name}: SOURCE_DATE_EPOCH is not its date")
        plain = text.replace("\\-", "-").replace("\\&", "")
        for option in re.findall(r"^  (?:-\w, )?(--[a-z0-9-]+)", run(poise, command, "--help"), re.M):
            if f"\\fB{option}" not in plain:
                faults.append(f"{page.name}: lacks {option}")
        if shutil.which("groff"):
            done = subprocess.run(["groff", "-man", "-ww", "-z", page], capture_output=True, text=True)
            expect(done.returncode, 0, page.name)
            expect(done.stderr, "", page.name)


def complete_in_bash(*words, cwd=None):
    """Returns bash's candidates for the last of these words."""
    script = """
source <("$POISE" completion bash)
poise() { "$POISE" "$@"; }
compopt() { :; }
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_poise
printf '%s\\n' "${COMPREPLY[@]}"
"""
    environment = {**os.environ, "POISE": poise}
    return [line for line in run("bash", "-c", script, "-", *words, env=environment, cwd=cwd).splitlines() if line]


def check_hostile_names(directory):
    """Names from files are text: the shell neither runs nor divides them."""
    names = ["w$(touch${IFS}RAN)", "w`touch RAN`", "w$HOME", "w space", "w'quote", 'w"quote', "w\\back", "w;touch RAN"]
    header = json.dumps({name: {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]} for name in names}).encode()
    (directory / "my model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header)
    for typed, unsafe in (("w", ""), ("'w", "'"), ('"w', '"$`\\')):
        found = complete_in_bash("poise", "show", "'my model.safetensors'", typed, cwd=directory)
        if typed == "w":  # what a user would enter: bash reads it as one word
            found = [run("bash", "-c", f"printf %s {name}", cwd=directory) for name in found]
        safe = [name for name in names if not set(name) & set(unsafe)]  # in quotes, others would end the quotes
        expect(sorted(found), sorted(safe), f"bash: hostile names after {typed}")
    if (directory / "RAN").exists():
        faults.append("bash: a tensor's name was run")


def check_bash(directory):
    example = str(source / "examples/nano-mistral")
    expect(complete_in_bash("poise", "ver"), ["verify"], "bash: a command")
    expect(complete_in_bash("poise", "convert", "--max-s"), ["--max-shard-size"], "bash: an option")
    expect(complete_in_bash("poise", "convert", "a", "--dtype", ""), ["f32", "f16", "bf16"], "bash: choices")
    expect(complete_in_bash("poise", "convert", "a", "--quantize", "q4_k_"), ["q4_k_s", "q4_k_m"], "bash: types")
    ranges = complete_in_bash("poise", "convert", "a", "--quantize", "qint8", ":", "r")
    expect(ranges, ["range"], "bash: what follows a colon")
    expect(complete_in_bash("poise", "convert", "a", "--quantize", "qint8", ":"), ["range", "mse"], "bash: a colon")
    if "onnx" in complete_in_bash("poise", "convert", "a", "--to", ""):
        faults.append("bash: --to offers a format that is not written")
    expect(complete_in_bash("poise", "help", "tok"), ["tokenize"], "bash: help")
    expect(complete_in_bash("poise", "stats", "a", "--sort", "ou"), ["outliers"], "bash: columns")
    names = complete_in_bash("poise", "show", example, "model.n")
    expect(names, ["model.norm.weight"], "bash: a tensor")
    expect(complete_in_bash("poise", "show", "nowhere", "model.n"), [], "bash: no model")
    expect(complete_in_bash("poise", "stats", "--json", example[:-4]), [], "bash: files are the shell's own")
    expect(complete_in_bash("poise", "convert", "--strict", "--dr"), ["--dry-run", "--drop-rows"], "bash: after a flag")
    check_hostile_names(directory)
    for command in list_commands():
        offered = set(complete_in_bash("poise", command, "-"))
        listed = set(re.findall(r"^  (?:(-\w), )?(--[a-z0-9-]+)", run(poise, command, "--help"), re.M))
        lacking = {name for pair in listed for name in pair if name} - offered
        expect(lacking, set(), f"bash: {command}")


def check_other_shells(directory):
    for shell, check in (("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])):
        script = directory / f"script.{shell}"
        script.write_text(run(poise, "completion", shell))
        flag = {"zsh": "'*--json[Print everything as JSON]'", "fish": " -l json -d"}[shell]
        if flag not in script.read_text():
            faults.append(f"{shell}: {flag} takes a value")
        for command in list_commands():
            if command not in script.read_text():
                faults.append(f"{shell}: lacks {command}")
        if shutil.which(shell):
            done = subprocess.run([*check, script], capture_output=True, text=True)
            expect((done.returncode, done.stderr), (0, ""), shell)
        else:
            print(f"skipped: {shell} is not installed")


def read_on_terminal(*command, **variables):
    """Returns the output of a command whose standard output and error are terminals."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", **variables}
    done = subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    text = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            break
        if not piece:
            break
        text += piece
    done.wait()
    return text.decode()


def check_colors():
    command = (poise, "verify", "nowhere.zt")
    if "\x1b[1;31mpoise:\x1b[0m" not in read_on_terminal(*command):
        faults.append("colours: a message on a terminal has none")
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        if "\x1b" in read_on_terminal(*command, **variables):
            faults.append(f"colours: {variables} is ignored")
    if "\x1b[1mOptions:\x1b[0m" not in read_on_terminal(poise, "hash", "--help"):
        faults.append("colours: help on a terminal has none")
    if "\x1b" in run(poise, "--help") + subprocess.run(command, capture_output=True, text=True).stderr:
        faults.append("colours: a pipe has some")


with tempfile.TemporaryDirectory() as scratch:
    check_pages(pathlib.Path(scratch) / "man")
    check_bash(pathlib.Path(scratch))
    check_other_shells(pathlib.Path(scratch))
check_colors()
sys.exit("\n".join(faults) if faults else 0)
