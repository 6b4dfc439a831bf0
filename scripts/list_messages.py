#!/usr/bin/env python3
"""Prints the errors, warnings, notes and help texts of Poise, one per line with its place, for review.

    scripts/list_messages.py [WORD]...      prints only those that contain one of the words

A message is a string literal of at least three words in src/ or python/ (adjacent literals are one), except chat
templates and docstrings. `{}` stands for text that fmt or Python inserts.
"""
import ast
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIPPED = {"src/chat/built_in_templates.cpp"}
LITERAL = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)\""
    r"|\"(?P<text>(?:\\.|[^\"\\\n])*)\"|'(?:\\.|[^'\\\n])+'"
    r"|(?<=\w)'(?=\w)|\#include[^\n]*",
    re.S,
)


def list_c_literals(text):
    """Yields (line, literal); adjacent literals are joined."""
    parts, begin, last = [], 0, 0
    for found in LITERAL.finditer(text):
        literal = found.group("text") if found.group("text") is not None else found.group("raw")
        if literal is None:
            continue
        if parts and text[last : found.start()].strip() == "":
            parts.append(literal)
        else:
            if parts:
                yield text.count("\n", 0, begin) + 1, "".join(parts)
            parts, begin = [literal], found.start()
        last = found.end()
    if parts:
        yield text.count("\n", 0, begin) + 1, "".join(parts)


def list_python_literals(text):
    tree = ast.parse(text)
    docstrings, inside = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            docstrings.add(node.value)
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield node.lineno, "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in docstrings | inside:
            yield node.lineno, node.value


def main():
    words = [word.lower() for word in sys.argv[1:]]
    for root in ("src", "python"):
        for path in sorted((ROOT / root).rglob("*")):
            name = str(path.relative_to(ROOT))
            if name in SKIPPED or path.suffix not in (".cpp", ".hpp", ".py"):
                continue
            read = list_python_literals if path.suffix == ".py" else list_c_literals
            for line, text in sorted(read(path.read_text())):
                plain = re.sub(r'\\"', '"', text).replace("\\n", "\n")
                if len(plain.split()) < 3 or not re.search(r"[A-Za-z]{2}.* .*[A-Za-z]{2}", plain, re.S):
                    continue
                if name.startswith("python/src") and (len(plain) > 300 or "\n" in plain or plain[0].isupper()):
                    continue  # a docstring
                if words and not any(word in plain.lower() for word in words):
                    continue
                print(f"{name}:{line}: " + plain.strip("\n").replace("\n", "\n    "))


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        pass
