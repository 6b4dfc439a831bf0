#!/bin/sh
# check_words.sh [REVISION]   refuses words that CONTRIBUTING.md rules out in lines added since REVISION
# check_words.sh --all        prints how often each occurs in the whole tree, and where
#
# It reads comments, string literals and documents; names in code do not count. Compared with REVISION are the work tree
# and the commits since the merge base: by default the last commit and what is not committed yet, which suits a commit
# hook as well as a job for one commit. A job for several passes the revision before them.
# Both modes refuse a type name that two headers define at namespace scope: a reader could not know which is meant.
# To quote a word, add the file and the words around it to ALLOWED below.
set -eu
cd "$(dirname "$0")/.."
exec python3 - "$@" <<'PYTHON'
import collections, fnmatch, io, pathlib, re, subprocess, sys, tokenize

VERB = r"(?:is|are|was|were|has|have|had|can|cannot|may|must|does|do|did|would|will|could|should|needs?|holds?|takes?)\b"
BETWEEN = r"(?:(?!that\b|which\b|whose\b|who\b|where\b|when\b|if\b|and\b|or\b|with\b|of\b)[\w.'-]+\s+)"
FILE = r"(?:files?|headers?|director(?:y|ies)|index|archives?|config|config\.json|tokenizer\.json|vocabular(?:y|ies)|metadata)"
# Name, pattern, what to write instead. Patterns match across line ends: white space in the text is one space.
HABITS = [
    ("for: because", rf"[,:;] for (?:it|they|he|there|this|that|these|those|we|you|what) (?!matter)(?:{VERB}|\w+s\b|not\b|mean\b)"
        rf"|[,:;] for (?:the|an?|its|their|no|every|each|all|both|one|only|some|most|neither|none|nothing) {BETWEEN}{{1,4}}{VERB}",
        "because"),
    ("so many", r"\bso (?:many|much|few)\b", "this many, a number, or a limit"),
    ("tell", r"(?<!cannot )(?<!can )(?<!could )(?<!to )\b(?:tell|tells|telling)\b(?! (?:a|\w+ly) (?:\w+ )?stor| me\b|(?: \w+){1,5} apart\b)|\btold\b",
        "report, print, warn or show"),
    ("is no", r"(?<![Tt]here )(?<!that there )\b(?:is|are|was|were) no\b(?! (?:longer|more|less|fewer|better|worse|larger|smaller|faster)\b)",
        "is not a"),
    ("is none", r"\b(?:that|which|it|this) (?:is|are|was) none\b", "is not one"),
    ("nothing: no value", r"(?:^|[.;:] )Nothing(?:,| if| when| unless| for| where| without)\b"
        r"|\bor nothing\b(?! (?:is|at all))|\b[Rr]eturns? nothing\b", "std::nullopt, null, empty, or no value"),
    ("What: subject", r"(?:^|(?<!e\.g)(?<!i\.e)[.!] )What (?!if\b)[^.?!]*(?:[.!](?: |$)|$)", "a subject and a verb"),
    ("of of of", r"\bof (?:(?!and\b|or\b|to\b|in\b|is\b|are\b)[\w'-]+ ){1,3}of (?:(?!and\b|or\b|to\b|in\b|is\b|are\b)[\w'-]+ ){1,3}of\b",
        "a shorter sentence"),
    ("beside", r"\b[Bb]eside\b", "next to, or besides"),
    ("anew", r"\b[Aa]new\b", "again"),
    ("of which", r"\bof which\b", "a second sentence"),
    ("says", rf"\b{FILE} (?:says?|said|knows?)\b", "has, states, contains or lists"),
]
HABITS = [(name, re.compile(pattern), instead) for name, pattern, instead in HABITS]

# File pattern, and a text that may contain such words.
ALLOWED = [
    ("scripts/check_words.sh", ""),
    ("tests/scripts/check_words_test.py", ""),
    ("CONTRIBUTING.md", "check-words"),
]
# Names that several headers still give to types of different modules. Rename one and take it out of this list; add none.
REPEATED = """
""".split()
# What others wrote, and what models write.
FOREIGN = ["LICENSE", "docs/notices.md", "examples/training/*.txt", "examples/training/story_parts.py", "*/golden*"]
C_LIKE = {".cpp", ".hpp", ".h", ".c", ".def"}
HASH_COMMENTS = {".sh", ".cmake", ".toml", ".yml"}


def git(*arguments):
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True).stdout


def c_prose(text):
    """[(line, comment or string literal)]. A comment that begins a line joins those of the lines before it."""
    prose = []
    pattern = re.compile(
        r"//[^\n]*|/\*.*?\*/|R\"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|(?<=\w)'(?=\w)"
        r"|\#include[^\n]*", re.S)
    for found in pattern.finditer(text):
        token, line = found.group(), text.count("\n", 0, found.start()) + 1
        if token[0] in "'#":
            continue
        for number, part in enumerate(token.split("\n")):
            prose.append((line + number, "c" if token[0] == "/" else "s", re.sub(r'^\s*(///?<?|/?\*+/?)|"', " ", part)))
    return prose


def python_prose(text):
    prose = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.COMMENT, tokenize.STRING):
                for number, part in enumerate(token.string.split("\n")):
                    kind = "c" if token.type == tokenize.COMMENT else "s"
                    if kind == "s":
                        part = re.sub(r"\{[^{}\s]*\}", "{}", part)  # names in f-strings
                    prose.append((token.start[0] + number, kind, re.sub(r'^#|^[rbfuRBFU]*("""|"|\')|"""$|"$', " ", part)))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass  # another check reports a file that is not Python
    return prose


def line_prose(path, text):
    """Documents without their examples; lines of command tests; comments of scripts."""
    prose, fenced = [], False
    for number, line in enumerate(text.split("\n"), 1):
        if path.suffix == ".md":
            if line.lstrip().startswith("```"):
                fenced = not fenced
            if fenced or line.startswith(("    ", "#", "|")) and not line.startswith("|"):
                prose.append((number, "b", ""))
                continue
            prose.append((number, "d", re.sub(r"`[^`]*`", "``", line)))
        elif path.parts[:2] == ("tests", "commands"):
            if line[:1] != "$":
                prose.append((number, "c" if line[:1] == "#" else "s", line.lstrip("# ")))
        else:
            comment = re.search(r"(?:^|\s)#\s(.*)", line)
            prose.append((number, "c", comment.group(1)) if comment else (number, "b", ""))
    return prose


def prose_of(path):
    text = path.read_text(errors="replace")
    if path.suffix in C_LIKE:
        return c_prose(text)
    if path.suffix in (".py", ".pyi"):
        return python_prose(text)
    if path.suffix == ".md" or path.suffix in HASH_COMMENTS or path.name in ("Makefile", "CMakeLists.txt"):
        return line_prose(path, text)
    if path.suffix == ".txt" and path.parts[:2] == ("tests", "commands"):
        return line_prose(path, text)
    return []


def paragraphs(prose):
    """Joins adjacent lines of one kind: [(text, [line of each character])]."""
    paragraph, lines, last = "", [], (0, "")
    for line, kind, part in prose:
        part = " ".join(part.split())
        if not part or kind != last[1] or line > last[0] + 1:
            if paragraph:
                yield paragraph, lines
            paragraph, lines = "", []
        if part:
            piece = (" " if paragraph else "") + part
            paragraph += piece
            lines += [line] * len(piece)
        last = (line, kind)
    if paragraph:
        yield paragraph, lines


def is_allowed(path, text):
    return any(fnmatch.fnmatch(path, pattern) and quoted in text for pattern, quoted in ALLOWED)


def find_habits(path):
    for text, lines in paragraphs(prose_of(path)):
        if is_allowed(str(path), text):
            continue
        for name, pattern, instead in HABITS:
            for found in pattern.finditer(text):
                yield name, instead, set(lines[found.start() : found.end()]), found.group()


def find_types():
    """{type name: headers that define it at namespace scope}"""
    headers = collections.defaultdict(set)
    definition = re.compile(
        r"^(?:template <[^\n]*>\s*)?(?:class|struct|enum class|enum)\s+(?:\[\[\w+\]\]\s+|alignas\([^)]*\)\s+)?(\w+)\b(?!::)[^;{}<>()]*(?:<[^;{}]*>[^;{}]*)?\{",
        re.M)
    for root in ("src", "include"):
        for path in sorted(pathlib.Path(root).rglob("*")):
            if path.suffix in (".hpp", ".h"):
                for found in definition.finditer(path.read_text(errors="replace")):
                    headers[found.group(1)].add(str(path))
    return headers


def added_lines(revision):
    """{path: numbers of the lines that were added since the merge base with the revision}"""
    try:
        base = git("merge-base", revision or "HEAD^", "HEAD").strip()
    except subprocess.CalledProcessError:
        if revision:
            sys.exit(f"check_words: no revision {revision} that shares a commit with HEAD")
        base = "HEAD"  # the first commit of a clone
    changes = git("diff", "--unified=0", "--no-color", "--no-ext-diff", "--src-prefix=a/", "--dst-prefix=b/", base)
    # A line that moves to another place or file is not new.
    removed = {line[1:].strip() for line in changes.split("\n") if line[:1] == "-" and line[:4] != "--- "}
    added, path, number = collections.defaultdict(set), None, 0
    for line in changes.split("\n"):
        if line.startswith("+++ "):
            path = line[6:] if line.startswith("+++ b/") else None
        elif line.startswith("@@"):
            number = int(re.search(r"\+(\d+)", line).group(1))
        elif line[:1] == "+" and path:
            if line[1:].strip() not in removed:
                added[path].add(number)
            number += 1
    for path in git("ls-files", "--others", "--exclude-standard").split("\n"):
        if path:
            added[path].update(range(1, pathlib.Path(path).read_text(errors="replace").count("\n") + 2))
    return added


def main():
    everything = sys.argv[1:2] == ["--all"]
    if len(sys.argv) > 2 or sys.argv[1:2] and sys.argv[1].startswith("-") and not everything:
        sys.exit("usage: check_words.sh [REVISION | --all]")
    if everything:
        added = dict.fromkeys(filter(None, git("ls-files").split("\n")))
    else:
        added = added_lines(sys.argv[1] if sys.argv[1:] else None)
    problems, counts = [], collections.Counter()
    for name in sorted(added):
        path = pathlib.Path(name)
        if not path.is_file() or any(fnmatch.fnmatch(name, pattern) for pattern in FOREIGN):
            continue
        for habit, instead, lines, text in find_habits(path):
            if everything or lines & added[name]:
                counts[habit] += 1
                line = min(lines if everything else lines & added[name])
                problems.append(f'{name}:{line}: {habit}: "{text}" (write {instead})')
    types = find_types()
    for name, headers in sorted(types.items()):
        if len(headers) > 1:
            counts["type names that exist twice"] += 1
            if everything or name not in REPEATED:
                problems.append(f"{', '.join(sorted(headers))}: each defines a type {name} (give one another name)")
    print("\n".join(problems), end="\n" if problems else "", file=sys.stdout if everything else sys.stderr)
    if everything:
        for habit in [habit for habit, _, _ in HABITS] + ["type names that exist twice"]:
            print(f"{habit:<30}{counts[habit]:>6}")
        return 0
    return 1 if problems else 0


sys.exit(main())
PYTHON
