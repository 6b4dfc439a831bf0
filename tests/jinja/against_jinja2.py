#!/usr/bin/env python3
"""Templates rendered by Poise and by Python's jinja2: the texts have to be the same bytes, the errors at the same
places.

usage: against_jinja2.py RENDER_LINES [TEMPLATE.jinja ...]
Generated expressions and statements, and the templates that are named with conversations of many shapes. 77: there is
no jinja2.
"""

import gc
import json
import os
import subprocess
import sys

try:
    import jinja2  # noqa: F401
except ImportError:
    print("there is no python3-jinja2")
    sys.exit(77)

import characters
import conversations
import environment
import expressions
import formats
import scopes


def rendered(program, cases):
    lines = "".join(json.dumps({"template": template, "variables": variables}) + "\n" for template, variables in cases)
    done = subprocess.run([program], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.decode().split("\n")[:-1]]


def compare(program, cases):
    """Returns how many of the cases differ; prints the first."""
    python = environment.make_environment()
    wrong = 0
    raised = 0
    for (template, variables), ours in zip(cases, rendered(program, cases), strict=True):
        theirs = environment.render(python, template, variables)
        raised += theirs is None
        if theirs is not None and " at 0x" in theirs.lower():
            continue  # an address in Python's memory
        if theirs is not None and "does not fit 64 bits" in ours.get("error", ""):
            continue  # Python's integers have no limit
        if theirs == ours.get("text"):
            continue
        wrong += 1
        if wrong <= 20:
            shown = template if len(template) < 300 else template[:100] + "..."
            print(
                f"differs: {shown!r}\n  with {json.dumps(variables)[:300]}\n  jinja2: {theirs!r}\n"
                f"  Poise:  {ours.get('text', ours)!r}"
            )
    print(f"{len(cases)} cases, jinja2 refuses {raised}, {wrong} differ")
    return wrong


def main():
    program, *paths = sys.argv[1:]
    os.environ["TZ"] = "UTC"
    gc.disable()  # the templates stay, and looking through them takes a sixth of the time
    cases = list(expressions.cases(12000))
    cases += scopes.cases(1500)
    cases += formats.cases(8000)
    cases += characters.cases()
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            source = file.read()
        cases += [(source, variables) for variables in conversations.variables()]
    sys.exit(1 if compare(program, cases) else 0)


if __name__ == "__main__":
    main()
