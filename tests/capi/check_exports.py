#!/usr/bin/env python3
"""Checks what a shared library exports: exactly the C functions of exports.txt, every C++ function that the headers
declare for users, and no C++ symbols but Poise's interface. Arguments: the library, exports.txt, the headers."""

import collections
import pathlib
import re
import subprocess
import sys

# A pattern of poise.map that matches too much exports a private class, or a function that no public header declares.
INTERNAL = re.compile(r"::(State|Tables|Parts)::|poise::(capi|cli|alt|ztensor)::")
INTERFACE = re.compile(r"(typeinfo (name )?for |vtable for |VTT for )?poise::")
OF_CLASS = re.compile(r"(?:typeinfo|vtable) for (poise::[\w:]+)$")


def run(*command, given=None):
    return subprocess.run(command, input=given, stdout=subprocess.PIPE, text=True, check=True).stdout


def find_name(text):
    """Returns the name of the function in a declaration or a demangled symbol; None if there is no function."""
    text = text.replace("[abi:cxx11]", "")
    while (shorter := re.sub(r"(?<!operator)<[^<>]*>", "", text)) != text:
        text = shorter
    found = re.match(r"[^=(]*?([\w:]*(?:operator ?(?:\(\)|[^\s(]+)|~?\b\w+)) ?\(", text)
    return found[1].replace("operator ", "operator") if found else None


def read_header(text, functions, classes):
    """Adds the names of the public classes, and of the functions without a body that users may call: a name for each
    declaration. Knows as much C++ as the headers have."""
    text = re.sub(r"//[^\n]*|^#[^\n]*", "", text, flags=re.M)
    text = re.sub(r'"(?:\\.|[^"\\])*"|' + r"'(?:\\.|[^'\\])'", '""', text)
    scopes = []  # the name, and whether its members are public
    head = ""  # of the declaration that has begun
    skipped = 0  # open braces of a body or an initializer
    for character in re.sub(r"\s+", " ", text):
        if skipped:
            skipped += (character == "{") - (character == "}")
            if skipped == 0 and "(" in head and head.count("(") == head.count(")"):  # a function with a body
                functions.subtract([f"poise::{find_name(head)}"])  # declared in a class without it
                head = ""
        elif character == "{":
            scope = re.fullmatch(r"(namespace|class|struct) ([\w:]+)(?: final)?(?: :[^()]*)?", head.strip())
            if scope is None:
                skipped = 1
                continue
            scopes.append((scope[2], scope[1] != "class" and all(public for _, public in scopes)))
            if scope[1] != "namespace":
                classes.add("::".join(name for name, _ in scopes))
            head = ""
        elif character == "}":
            scopes.pop()
            head = ""
        elif character == ";":
            name = find_name(head)
            left_out = re.match(r" *(friend|using|template|static_assert)\b|.*= (0|default|delete)$", head.strip())
            if name and not left_out and all(public for _, public in scopes):
                functions["::".join([scope for scope, _ in scopes] + [name])] += 1
            head = ""
        elif character == ":" and head.strip() in ("public", "private", "protected"):
            scopes[-1] = (scopes[-1][0], head.strip() == "public")
            head = ""
        else:
            head += character


def main():
    library, listed, *headers = sys.argv[1:]
    symbols = run("nm", "--defined-only", library).splitlines()
    exported = run("nm", "--dynamic", "--defined-only", "--extern-only", library).splitlines()
    names = sorted({line.split()[2].split("@")[0] for line in exported})
    faults = []

    c_names = [name for name in names if not name.startswith("_Z")]
    expected = pathlib.Path(listed).read_text().split()
    faults += [f"{name}: exported, but not in {listed}" for name in c_names if name not in expected]
    faults += [f"{name}: not exported" for name in expected if name not in c_names]

    cpp_names = set(run("c++filt", given="\n".join(n for n in names if n.startswith("_Z"))).splitlines())
    faults += [
        f"{name}: exported, but not part of the interface"
        for name in sorted(cpp_names)
        if not INTERFACE.match(name) or INTERNAL.search(name)
    ]

    functions, classes = collections.Counter(), set()
    for header in headers:
        read_header(pathlib.Path(header).read_text(), functions, classes)
    found = collections.Counter(find_name(name) for name in cpp_names)
    for name, count in sorted(functions.items()):
        if found[name] < count:
            faults.append(f"{name}: exports {found[name]} of {count} functions; cmake/poise.map lacks a row")
    # Programs that catch or derive from a class need its type.
    for symbol in sorted(set(run("c++filt", given="\n".join(line.split()[-1] for line in symbols)).splitlines())):
        of_class = OF_CLASS.match(symbol)
        if of_class and of_class[1] in classes and symbol not in cpp_names:
            faults.append(f"{symbol}: not exported; cmake/poise.map lacks a row")
    if not functions or not cpp_names:
        faults.append("no functions found")
    sys.exit("\n".join(faults) or None)


main()
