"""Numbers have the same spelling after Python has set the locale of the process."""

import os
import subprocess
import sys

import pytest

CONVERT = """
import locale, sys
import poise
if sys.argv[1]:
    locale.setlocale(locale.LC_ALL, sys.argv[1])
    assert locale.localeconv()["decimal_point"] == ","
poise.convert(sys.argv[2], sys.argv[3] + ".gguf")
poise.save(poise.open(sys.argv[3] + ".gguf"), sys.argv[3] + ".zt", config={"rope_theta": 10000.5})
assert poise.open(sys.argv[3] + ".zt").config["rope_theta"] == 10000.5
assert poise.open(sys.argv[3] + ".gguf").config["rms_norm_eps"] == 1e-05
changes = {"llama.rope.freq_base": "10000.25", "llama.attention.layer_norm_rms_epsilon": 1e-05}
poise.edit(sys.argv[3] + ".gguf", set=changes)
"""


def test_a_decimal_comma_changes_no_file(examples, tmp_path):
    made = subprocess.run(
        ["localedef", "-i", "de_DE", "-f", "UTF-8", tmp_path / "de_DE.UTF-8"], capture_output=True, text=True
    )
    if made.returncode != 0:
        pytest.skip(f"localedef does not make de_DE.UTF-8: {made.stderr.strip()}")
    for name, locale in (("german", "de_DE.UTF-8"), ("usual", "")):
        subprocess.run(
            [sys.executable, "-c", CONVERT, locale, examples / "nano-mistral", tmp_path / name],
            env={**os.environ, "LOCPATH": str(tmp_path)},
            check=True,
        )
    for extension in (".gguf", ".zt"):
        assert (tmp_path / f"german{extension}").read_bytes() == (tmp_path / f"usual{extension}").read_bytes()
