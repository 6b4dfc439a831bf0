#!/usr/bin/env python3
"""Prints the text that Doxygen reads in place of a file (its INPUT_FILTER): filter_docs.py FILE.

Headers: plain comments become Doxygen's, since Poise's headers have no others. Pages: headings get the anchors that
other sites give them, with the page's name, since Doxygen's anchors are global; links lead to these anchors, and links
to files that are not part of the HTML become text.
"""

import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGES = {ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md")}
LINK = re.compile(r"\[([^\]\[]*(?:\[[^\]]*\][^\]\[]*)*)\]\(([^)\s]+)\)")
COMMENT = re.compile(r"^(\s*)//(?!/)(.*)$")
TRAILING = re.compile(r"^(.*[;,{}\w)\]])  // (.*)$")


def is_page(path):
    return path in PAGES or path.suffix == ".md" and ROOT / "docs" in path.parents


def make_slug(heading):
    """Makes the anchor of a heading: lower case, hyphens for spaces, and neither marks nor quotes."""
    text = re.sub(r"[`*]", "", LINK.sub(r"\1", heading)).lower()
    return re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")


def name_anchor(path, slug):
    return f"{path.relative_to(ROOT).with_suffix('')}-{slug}".replace("/", "-").replace(".", "-")


def convert_links(line, path):
    def convert(found):
        text, target = found.groups()
        if re.match(r"[a-z]+:", target):
            return found[0]
        file, _, slug = target.partition("#")
        page = pathlib.Path(os.path.normpath(path.parent / file)) if file else path
        if not is_page(page):
            return text
        return f"[{text}](#{name_anchor(page, slug)})" if slug else f"[{text}]({file})"

    return LINK.sub(convert, line)


def convert_span(found):
    """Converts code within a line. In spans of one backtick, an apostrophe ends the span for Doxygen. It finds no
    end after a backslash or a backtick, nor after an odd number of quotes."""
    text = found[2]
    if not re.search(r"\\$|`", text) and text.count('"') % 2 == 0:
        return f"``{text}``"
    return f"<code>{escape(text.strip()).replace(chr(34), '&quot;')}</code>"


def convert_prose(text, path):
    text = re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", convert_span, text, flags=re.DOTALL)
    return convert_links(text, path)


def filter_page(path):
    prose, fenced, seen = [], False, set()
    for line in [*path.read_text().splitlines(), ""]:
        heading = re.match(r"(#{1,4}) (.*)$", line)
        is_fence = line.startswith("```")
        if not (is_fence or fenced or heading or line.startswith("    ")):
            prose.append(line)
            continue
        yield convert_prose("\n".join(prose), path)  # a link may go on in the next line
        prose = []
        if is_fence:
            fenced = not fenced
            # Doxygen highlights the languages that it knows, and would show the name of any other as a line.
            line = re.sub(r"^```(console|sh)$", "```", line)
        elif heading and not fenced:
            anchor = name_anchor(path, make_slug(heading[2]))
            line = f"{heading[1]} {LINK.sub(chr(92) + '1', heading[2])}"
            if anchor not in seen and len(heading[1]) > 1:
                line += f" {{#{anchor}}}"
            seen.add(anchor)
        yield line
    yield convert_prose("\n".join(prose), path)


def escape(text):
    """Escapes text that Doxygen would take for commands, tags, links or entities."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if index % 2 else re.sub(r"([\\@<>#&])", r"\\\1", part) for index, part in enumerate(parts))


def filter_header(path):
    lines = path.read_text().splitlines()
    yield f"/// \\file {path.relative_to(ROOT / 'include')}"
    previous, was_code = "", False
    for line in lines:
        comment = COMMENT.match(line)
        if not comment:
            trailing = TRAILING.match(line)
            yield f"{trailing[1]}  ///< {escape(trailing[2])}" if trailing else line
            previous, was_code = "code", False
            continue
        text = re.sub(r"^ +(\d+\. )", r" \1", comment[2])  # items of a list, in one column
        # An example is indented and follows an empty line of the comment.
        was_code = text.startswith("   ") and (was_code or not previous.strip())
        yield f"{comment[1]}///" + (f"    {text}" if was_code else escape(text))
        previous = text


if __name__ == "__main__":
    source = pathlib.Path(sys.argv[1]).resolve()
    print("\n".join(filter_page(source) if source.suffix == ".md" else filter_header(source)))
