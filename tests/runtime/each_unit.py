"""Runs the tests of what computes once for each unit that this machine has or can pretend to be (support/units.hpp).

    each_unit.py POISE_TESTS

Tests that choose each unit themselves, as those of kernels and codecs do, are left out. So is the matrix unit: the unit
tests are run on it, where there is one.
"""
import os
import re
import subprocess
import sys

SUITES = (
    "Session",
    "*NanoMistral",
    "NanoTinyLlama",
    "Decoder",
    "Matri*",
    "Weights",
    "*KvCache*",
    "Attention",
    "Sampler",
    "QuantizedLogits",
    "Cast",
    "TinyLlama*",
)
CHOOSE_UNITS = "*OnAMatrixUnit"
# The other tests compute all that these slow tests compute.
SLOW = "*Perplexity*:*ATextGoesOn*:*TheDocumentsExample:*EveryBitFlip*:*Truncated*:*.Feeding*"


def main():
    program = sys.argv[1]
    listed = subprocess.run(
        [program, "--gtest_list_tests", "--gtest_filter=Targets/Kernels.SoftmaxIsAccurate/*"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    units = re.findall(r"SoftmaxIsAccurate/(\w+)", listed)
    if not any(unit.endswith("_plain_tiles") for unit in units):
        sys.exit(f"no unit with tiles among {units}")
    failed = []
    for unit in (unit for unit in units if not unit.endswith("_amx")):
        ran = subprocess.run(
            [
                program,
                "--gtest_brief=1",
                "--gtest_filter=" + ":".join(f"{suite}.*" for suite in SUITES) + "-" + CHOOSE_UNITS + ":" + SLOW,
            ],
            env={**os.environ, "POISE_TEST_UNIT": unit},
            capture_output=True,
            text=True,
        )
        passed = re.search(r"\[  PASSED  \] (\d+) tests", ran.stdout)
        print(f"{unit}: {passed[1] if passed else 'no'} tests passed")
        if ran.returncode != 0 or not passed or int(passed[1]) < 40:
            print(ran.stdout, ran.stderr)
            failed.append(unit)
    sys.exit(f"failed: {' '.join(failed)}" if failed else 0)


main()
