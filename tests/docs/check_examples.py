#!/usr/bin/env python3
"""Checks each code example of the pages: check_examples.py SOURCE CC CXX

Fenced blocks in C and C++ are compiled, as programs or as parts of one. Those in Python are compiled; sh and yaml are
parsed. A page with transcripts (console) must be run by a test in tests/commands. Other tests run the programs of
c-api.md, cpp-api.md, python.md, cookbook.md and README.md: tests/consumer/run.sh, tests/python, tests/commands.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

source, c_compiler, cpp_compiler = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
COMMAND_TESTS = "\n".join(path.read_text() for path in sorted((source / "tests/commands").glob("*.txt")))
# Parts of programs in C use these names without declaring them.
C_DECLARATIONS = """
#include <poise.h>
#include <stdio.h>
#include <string.h>
extern poise_model* model;
extern poise_writer* writer;
extern float numbers[6];
extern const char* const prompts[];
extern size_t prompt_count;
"""


def find_blocks(page):
    return re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def make_c_program(code):
    if "int main(" in code:
        return code
    functions, statements = "", code
    found = re.match(r"(static .*?^}\n)(.*)$", code, flags=re.MULTILINE | re.DOTALL)
    if found:
        functions, statements = found.groups()
    error = "" if "poise_error error" in statements else "  poise_error error;\n"
    return f"{C_DECLARATIONS}\n{functions}\nvoid part(void);\nvoid part(void) {{\n{error}{statements}}}\n"


def make_cpp_program(code):
    if "int main(" in code:
        return code
    includes = re.findall(r"^#include.*\n", code, flags=re.MULTILINE)
    return "".join(includes) + "int main() {\n" + re.sub(r"^#include.*\n", "", code, flags=re.MULTILINE) + "}\n"


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout if done.returncode else ""


def find_fault(page, language, code, directory):
    """Returns the fault of a block, or an empty text."""
    if language in ("c", "cpp"):
        program = directory / f"example.{language}"
        program.write_text(make_c_program(code) if language == "c" else make_cpp_program(code))
        compiler = [c_compiler, "-std=c99"] if language == "c" else [cpp_compiler, "-std=c++20"]
        return run(*compiler, "-Wall", "-Werror", "-Wno-unused", "-fsyntax-only", f"-I{source}/include", program)
    if language == "python":
        try:
            compile(code, page.name, "exec")
        except SyntaxError as error:
            return str(error)
        return ""
    if language == "sh":
        script = directory / "example.sh"
        script.write_text(code)
        return run("sh", "-n", script)
    if language == "console":
        every = " all" if sum(kind == "console" for kind, _ in find_blocks(page)) > 1 else ""
        wanted = f"run_page.py $ROOT/{page.relative_to(source)}{every}"
        return "" if wanted in COMMAND_TESTS else f"no test in tests/commands has {wanted}"
    if language == "yaml":
        return "" if page.name in COMMAND_TESTS else "no test in tests/commands reads this page"
    return f"a block in {language}, which this test does not check"


def main():
    pages = [source / "README.md", source / "SECURITY.md", *sorted((source / "docs").rglob("*.md"))]
    faults, count = [], 0
    with tempfile.TemporaryDirectory() as directory:
        for page in pages:
            for number, (language, code) in enumerate(find_blocks(page), 1):
                count += 1
                fault = find_fault(page, language, code, pathlib.Path(directory))
                if fault:
                    faults.append(f"{page.relative_to(source)}: block {number} ({language}): {fault}")
    print("\n".join(faults) or f"{count} examples are right")
    return 1 if faults or count < 40 else 0


sys.exit(main())
