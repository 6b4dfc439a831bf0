#!/usr/bin/env python3
"""check_words.sh refuses the words that it lists, in added lines alone, and repeated names of types."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

BAD = [
    ("a.cpp", "// It fails, for it is cut.", "for: because"),
    ("a.cpp", "// The rows are skipped, for the last tensor has none.", "for: because"),
    ("a.cpp", "// Up to so many\n// bytes are read.", "so many"),
    ("a.cpp", "// Keeps so\n// much of it.", "so many"),
    ("a.cpp", 'const char* k = "verify tells it";', "tell"),
    ("a.py", "# They are told.", "tell"),
    ("a.py", '"""One line.\n\nThe name is no identifier.\n"""', "is no"),
    ("a.py", 'raise ValueError(f"{name} is one that is none")', "is none"),
    ("a.hpp", "// The shape. Nothing if it is unknown.", "nothing: no value"),
    ("a.hpp", "// What is computed is a sum.", "What: subject"),
    ("a.md", "The order of the rows of the parts of a tensor.", "of of of"),
    ("a.md", "It lies beside the file.", "beside"),
    ("a.md", "It is made anew.", "anew"),
    ("a.sh", "# The rows, the last of which is cut.", "of which"),
    ("tests/commands/a.txt", "  error: the header says 4", "says"),
]
GOOD = [
    (
        "a.cpp",
        "// Room for the rows that it has; a buffer, for a tensor that is not dense; asks, for each row, its size.",
    ),
    (
        "a.cpp",
        "int told = tell(beside); /* There is no end: cannot tell the format, and tells one type apart from others. */",
    ),
    ("a.cpp", "const char c = '\"'; int anew = 1'000; // 'so' 'many'"),
    ("a.py", 'f"{told} and {tell(1)}"'),
    ("a.py", 'told = "besides"  # nothing happens; 3 is no longer enough'),
    ("a.py", "# What if it fails? Nothing is written. The sum of the rows of a tensor."),
    ("a.md", "`tell` is a name.\n\n    so many\n\n```\nanew\n```\n"),
    ("tests/commands/a.txt", "$ echo so many"),
]


def run(root, *arguments):
    return subprocess.run([root / "scripts/check_words.sh", *arguments], capture_output=True, text=True)


def git(root, *arguments):
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", root, *identity, *arguments], check=True, capture_output=True)


def write(root, name, text):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def main():
    script = pathlib.Path(sys.argv[1]).resolve()
    if not shutil.which("git"):
        print("git is missing")
        return 77
    with tempfile.TemporaryDirectory() as where:
        root = pathlib.Path(where)
        (root / "scripts").mkdir()
        shutil.copy(script, root / "scripts/check_words.sh")
        git(root, "init", "-q")
        write(root, "old.md", "It is made anew.\n")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "Begin")
        write(root, "old.md", "It is made anew.\n\nAnother line.\n")
        git(root, "commit", "-q", "-a", "-m", "Continue")
        assert run(root).returncode == 0, "an older line counts"

        for name, text, habit in BAD:
            write(root, name, text + "\n")
            for step in ("untracked", "staged"):
                result = run(root)
                assert result.returncode == 1 and f": {habit}: " in result.stderr, (step, text, result)
                assert result.stderr.count("\n") == 1 and result.stderr.startswith(f"{name}:"), (text, result.stderr)
                git(root, "add", "-A")
            git(root, "rm", "-q", "-f", name)
        for name, text in GOOD:
            write(root, name, text + "\n")
            result = run(root)
            assert result.returncode == 0 and not result.stderr, (text, result)
            (root / name).unlink()

        # The last commit counts by default, all since a revision where one is named, all lines with --all.
        write(root, "a.md", "\nIt is so much.\n")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "Add")
        assert "a.md:2: so many" in run(root).stderr
        write(root, "b.md", "Fine.\n")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", "Add more")
        assert run(root).returncode == 0
        assert "a.md:2: so many" in run(root, "HEAD~2").stderr
        assert run(root, "absent").returncode == 1
        every = run(root, "--all")
        assert every.returncode == 0 and "old.md:1: anew" in every.stdout and "a.md:2: so many" in every.stdout
        assert any(line.split() == ["anew", "1"] for line in every.stdout.splitlines()), every.stdout

        # One name for two types.
        write(root, "src/a.hpp", "namespace a {\nstruct Kept {\n};\nclass Other;\nenum class Way { up };\n}\n")
        write(
            root,
            "src/b.hpp",
            "template <class T>\nclass Kept final : public T {\n};\nclass Other {\n  enum class Way { up };\n};\n",
        )
        result = run(root)
        assert result.returncode == 1, result
        assert (
            result.stderr == "src/a.hpp, src/b.hpp: each defines a type Kept (give one another name)\n"
        ), result.stderr
    return 0


if __name__ == "__main__":
    sys.exit(main())
