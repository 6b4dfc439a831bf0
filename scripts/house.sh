#!/bin/sh
# Prints numbers about the source tree, one per line: the sizes of its files, and how they include each other.
set -eu
cd "$(dirname "$0")/.."
exec python3 - <<'PYTHON'
import collections, pathlib, re

ROOTS = ["src", "include", "python"]
files = [p for root in ROOTS for p in pathlib.Path(root).rglob("*") if p.suffix in (".cpp", ".hpp", ".h", ".def", ".py")]
text = {p: p.read_text() for p in files}
code = [p for p in files if p.parts[0] != "python"]
headers = [p for p in code if p.suffix == ".hpp" and p.parts[0] == "src"]


def lines(paths):
    return sum(text[p].count("\n") for p in paths)


def count(folder):
    return sum(1 for p in code if p.is_relative_to(folder))


includers = collections.defaultdict(set)
for p in code:
    for name in re.findall(r'^#include "([^"]+)"', text[p], re.M):
        includers[pathlib.Path("src") / name].add(p)
single = [h for h in headers if len(includers[h] - {h.with_suffix(".cpp")}) <= 1]

containers = re.findall(r"^class (Name|SmallVector|Boxed|HeldBlob|HeldDigest)\b", "\n".join(text[p] for p in code), re.M)
casts = sum(len(re.findall(r"dynamic_(?:pointer_)?cast<", text[p])) for p in code)
alone = re.search(r"file\(GLOB POISE_ALONE_SOURCES(.*?)\)", pathlib.Path("CMakeLists.txt").read_text(), re.S)
patterns = [] if alone is None else [w for w in alone.group(1).split() if "/" in w]

figures = [
    ("files in src and include", len(code)),
    ("mean lines per file", round(lines(code) / len(code))),
    ("headers", len(headers)),
    ("headers with at most one includer besides their own .cpp", len(single)),
    ("files in formats/alt", count("src/formats/alt")),
    ("files in formats/ztensor", count("src/formats/ztensor")),
    ("files in formats/gguf", count("src/formats/gguf")),
    ("files in views", count("src/views")),
    ("lines in src, include and python", lines(files)),
    ("home-made containers in public headers", len(containers)),
    ("dynamic casts", casts),
    ("files of more than 500 lines", sum(text[p].count("\n") > 500 for p in code)),
    ("entries of files that are compiled alone because names collide", len(patterns)),
]
width = max(len(name) for name, _ in figures)
for name, value in figures:
    print(f"{name:<{width}}  {value:>7,}")
PYTHON
