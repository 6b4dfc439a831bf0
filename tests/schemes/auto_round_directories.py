"""Compares small random directories of AutoRound with NumPy's numbers.

    auto_round_directories.py POISE

AutoRound stores integers as GPTQ and AWQ do, and numbers as compressed-tensors does; packing_format says which. The
codes are packed and decoded here, and checked as quantized_directories.py checks other schemes.
"""
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

import quantized_directories as directories
from mx_directories import ct_mxfp4, ct_mxfp8
from quantized_directories import F8, Tester, Typed, VICTIM, attempt, awq, f8_codes, gptq, np, nvfp4, require, scales_of


def described(packing, case, **keys):
    """Returns the case with AutoRound's description."""
    config = {key: case[0][key] for key in ("bits", "group_size", "sym") if key in case[0]}
    if packing is not None:
        config["packing_format"] = packing
    return {"quant_method": "auto-round", **config, "data_type": "int", "iters": 200, **keys}, case[1]


def fp8(each_row):
    def parts(name, shape):
        codes, scales = f8_codes(shape), scales_of((shape[0],) if each_row else (1,), np.float32)
        stored = {".weight": Typed("F8_E4M3", codes), ".weight_scale": scales, ".input_scale": np.ones(1, np.float32)}
        return stored, F8[codes] * scales.reshape(-1, 1)

    return described("auto_round:fp8_static", ({"bits": 8, "group_size": -1, "sym": True}, parts))


CASES = {  # name: (quantization_config, parts of a matrix), the part that is taken away, exact
    **{f"auto-gptq{bits}": (described("auto_round:auto_gptq", gptq(bits)), ".scales", True) for bits in (2, 3, 4, 8)},
    **{f"auto-v2-{bits}": (described("auto_round", gptq(bits, version="gptq_v2")), ".qzeros", True) for bits in (2, 4)},
    "auto-gptqmodel": (described("auto_round:gptqmodel", gptq(8, version="gptq_v2")), ".qweight", True),
    "auto-sym": (described("auto_round:auto_gptq", gptq(less=1)), ".qzeros", True),
    "auto-default": (described(None, gptq(group=-1)), ".scales", True),
    "auto-older": (
        described(None, gptq(version="gptq_v2"), quant_method="intel/auto-round", backend="auto_round:exllamav2"),
        ".qzeros",
        True,
    ),
    "auto-older-gptq": (described(None, gptq(), backend="auto_round:gptq:exllamav2"), ".qzeros", True),
    "auto-awq": (described("auto_round:auto_awq", awq()), ".qzeros", True),
    "auto-mxfp4": (described("auto_round:llm_compressor", ct_mxfp4(), bits=4), ".weight_scale", True),
    "auto-mxfp8": (described("auto_round:llm_compressor", ct_mxfp8(), bits=8), ".weight", True),
    "auto-nvfp4": (described("auto_round:llm_compressor", nvfp4("compressed"), bits=4), ".weight_scale", True),
    "auto-fp8": (fp8(False), ".weight", True),
    "auto-fp8-rows": (fp8(True), ".weight_scale", True),
}
directories.CUT |= {"auto-gptq4", "auto-awq", "auto-mxfp4", "auto-fp8-rows"}


def check_settings(tester):
    """Checks extra_config, whose keys are names and regular expressions."""
    usual, wide, coarse = gptq(), gptq(8), gptq(4, 64)

    def parts_of(name, shape):
        return (wide if "down" in name else coarse if "q_proj" in name else usual)[1](name, shape)

    tensors, expected = tester.stored(parts_of)
    extra = {
        "model.layers.0.mlp.down_proj": {"bits": 8},
        r".*\.q_proj": {"group_size": 64},
        "lm_head": {"bits": 16, "data_type": "float"},
        r".*embed.*": {"bits": 16},
    }
    config = described("auto_round:auto_gptq", usual)[0]
    tester.compare(tester.converted(tester.make("extra", {**config, "extra_config": extra}, tensors)), expected, True)
    message = tester.poise("inspect", tester.make("extra", config, tensors), fails=True)
    require("matrix model.layers.0.mlp.down_proj: AutoRound: " in message, message)
    extra = {**extra, "model.layers.0.mlp.down_proj": {"bits": 16}}
    message = tester.poise("inspect", tester.make("extra", {**config, "extra_config": extra}, tensors), fails=True)
    require("bits is 16, only 2, 3, 4 and 8 are supported" in message, message)
    message = tester.poise("inspect", tester.make("extra", {**config, "extra_config": [1]}, tensors), fails=True)
    require("extra_config" in message, message)


def check_warnings(tester):
    """Checks zero points that contradict the description."""
    for packing, version, less in (("auto_round:auto_gptq", "gptq", 0), ("auto_round", "gptq_v2", 1)):
        case = gptq(version=version, less=less)
        tensors, expected = tester.stored(case[1])
        path = tester.make("warnings", described(packing, case)[0], tensors)
        tester.compare(tester.converted(path), expected, True)
        texts = tester.warnings_of(path)
        text = f"packing_format is {packing}, so the zero points of matrix"
        zero = f"would be {7 + 2 * (1 - less)}, but sym is true, so they are 8"
        require(len(texts) == 1 and text in texts[0] and zero in texts[0], f"{texts}")
    case = awq()
    tensors, expected = tester.stored(case[1])
    path = tester.make("warnings", described("auto_round:auto_awq", case, sym=True)[0], tensors)
    tester.compare(tester.converted(path), expected, True)
    texts = tester.warnings_of(path)
    require(len(texts) == 1 and "has other zero points than 8" in texts[0], f"{texts}")


def check_refusals(tester):
    """Checks storage that Poise does not know, and parts that contradict packing_format."""

    def refusal(case, change=lambda tensors: None, **keys):
        tensors, _ = tester.stored(case[1])
        change(tensors)
        return tester.poise("inspect", tester.make("refusals", {**case[0], **keys}, tensors), fails=True)

    message = refusal(CASES["auto-gptq4"][0], packing_format="auto_round:ark")
    require("packing_format is auto_round:ark, only storage of gptq, awq" in message, message)
    message = refusal(CASES["auto-gptq4"][0], packing_format="auto_round:llm_compressor")
    require(f"matrix {VICTIM}: AutoRound: it has codes in words, but packing_format" in message, message)
    message = refusal(CASES["auto-gptq4"][0], bits=5)
    require("bits is 5, only 2, 3, 4 and 8 are supported" in message, message)
    message = refusal(CASES["auto-gptq4"][0], packing_format="auto_round:auto_awq")
    require(f"matrix {VICTIM}: AutoRound: " in message, message)
    message = refusal(
        CASES["auto-fp8"][0], lambda tensors: tensors.update({VICTIM + ".weight_zp": np.ones(1, np.float32)})
    )
    require(f"matrix {VICTIM}: AutoRound fp8: floating-point numbers have no zero point" in message, message)
    message = refusal(CASES["auto-gptq4"][0], group_size=0)
    require("group_size is 0, expected -1 or a positive number" in message, message)


def main():
    failed = []
    with tempfile.TemporaryDirectory() as directory:
        tester = Tester(sys.argv[1], Path(directory))
        for name, ((quantization, parts_of), missing, exact) in CASES.items():
            failed += attempt(name, partial(tester.check, name, quantization, parts_of, missing, exact))
        for name, step in (("settings", check_settings), ("warnings", check_warnings), ("refusals", check_refusals)):
            failed += attempt(name, partial(step, tester))
    sys.exit(f"failed: {' '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
