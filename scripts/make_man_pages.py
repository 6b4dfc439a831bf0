#!/usr/bin/env python3
"""Makes the manual pages poise.1, poise-convert.1, ... from the command's help: make_man_pages.py POISE DIRECTORY.

SOURCE_DATE_EPOCH, if set, is the date on the pages, so that two builds make the same bytes."""

import datetime
import os
import pathlib
import re
import subprocess
import sys

SECTION = re.compile(r"^([A-Z][^:]*):$")
ENTRY = re.compile(r"^  (\S.*?)(?:  +(\S.*))?$")
TABLE_SECTIONS = ("Formats", "Types for", "Examples")


def escape(text):
    """Escapes a text for roff: a backslash, a minus, and a dot or quote in front."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def split_sections(text):
    """Returns the sections of a help text as (title, lines); the first one has no title."""
    sections = [("", [])]
    for line in text.splitlines():
        title = SECTION.match(line)
        if title:
            sections.append((title[1], []))
        else:
            sections[-1][1].append(line)
    return [(title, "\n".join(lines).strip("\n").split("\n")) for title, lines in sections]


def join_entries(lines):
    """Returns (name, description) of lines in two columns; a description may continue in the next lines."""
    entries = []
    for line in lines:
        if line.startswith("   "):
            entries[-1][1].append(line.strip())
            continue
        found = ENTRY.match(line)
        if found:
            entries.append((found[1], [found[2]] if found[2] else []))
    return [(name, " ".join(words)) for name, words in entries]


def format_name(name):
    """Formats "-o, --output OUT": options in bold, values in italics."""
    words = [
        f"\\fB{escape(word)}\\fR" if word.startswith("-") else f"\\fI{escape(word)}\\fR" for word in name.split(" ")
    ]
    return " ".join(words)


def make_page(name, text, commands, date, version):
    (_, head), *sections = split_sections(text)
    usage = next(line for line in head if line.startswith("Usage: "))
    description = " ".join(line for line in head if line and line != usage)
    first = re.split(r"[;:]", description.rstrip("."))[0]
    lines = [
        f'.TH "{name.upper()}" 1 "{date}" "{version}" "Poise"',
        ".SH NAME",
        f"{escape(name)} \\- {escape(first[:1].lower() + first[1:])}",
        ".SH SYNOPSIS",
        f"\\fB{escape(name.replace('-', ' ', 1))}\\fR {escape(usage.split(' ', 2 + name.count('-'))[-1])}",
        ".SH DESCRIPTION",
        escape(description.rstrip(".") + "."),
    ]
    for title, body in sections:
        lines.append(f'.SH "{title.upper()}"')
        if title.startswith(TABLE_SECTIONS):
            lines += [".nf", *map(escape, body), ".fi"]
            continue
        for entry, words in join_entries(body):
            bold = f"\\fB{escape(entry)}\\fR" if title == "Commands" else format_name(entry)
            lines += [".TP", bold, escape(words)]
    lines += [
        ".SH EXIT STATUS",
        "0: done. 1: the answer is negative, or a file is missing or damaged. 2: wrong usage.",
        ".SH SEE ALSO",
        ", ".join(f"\\fB{escape(other)}\\fR(1)" for other in commands if other != name),
    ]
    return "\n".join(lines) + "\n"


def main(poise, directory):
    def run(*arguments):
        environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
        return subprocess.run([poise, *arguments], check=True, capture_output=True, text=True, env=environment).stdout

    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    when = datetime.datetime.fromtimestamp(int(epoch), datetime.timezone.utc) if epoch else datetime.datetime.now()
    version = run("--version").strip()
    overview = run("--help")
    commands = [name for name, _ in join_entries(dict(split_sections(overview))["Commands"])]
    names = ["poise", *(f"poise-{command}" for command in commands if command != "help")]
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        text = overview if name == "poise" else run(name.removeprefix("poise-"), "--help")
        page = make_page(name, text, names, when.strftime("%Y-%m-%d"), version)
        (directory / f"{name}.1").write_text(page)


if __name__ == "__main__":
    main(sys.argv[1], pathlib.Path(sys.argv[2]))
