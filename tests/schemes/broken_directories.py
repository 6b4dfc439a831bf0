"""Breaks small directories of every quantization scheme and an adapter: flipped bits, cut files, wrong settings.

    broken_directories.py POISE [ONE_IN]

The command must end by itself, with an error that names something or with a result. It must be able to
verify every file that it converts, and verify reports a finding for every directory that it does not run. With ONE_IN,
tries every ONE_IN-th of the cases, for slow builds.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import auto_round_directories
import mx_directories
import packed_directories
import quantized_directories
import torchao_directories
from lora_merges import DOWN, Q, adapter, pair, thin
from quantized_directories import FILES, HIDDEN, INNER, MATRICES, OTHERS, Failure, np, require, rng
from torchao_directories import TorchaoTester

CASES = {
    **quantized_directories.CASES,
    **mx_directories.CASES,
    **auto_round_directories.CASES,
    **packed_directories.CASES,
    **torchao_directories.CASES,
}
SCHEMES = (
    "gptq3-gptq",
    "gptq4-order",
    "gptq-dynamic",
    "gptq4-gptq-sym0",
    "gptq3-ragged-order",
    "ct-float-blocks",
    "ct-int8-blocks-ragged",
    "awq",
    "fp8-blocks",
    "fp8-modelopt",
    "fp8-fnuz",
    "ct-int4-zeros",
    "ct-int4-zeros-f16",
    "ct-int5-dense-zeros",
    "ct-int4-ragged-zeros",
    "ct-int4-order",
    "ct-int4-unset",
    "ct-int8",
    "ct-nvfp4",
    "modelopt-nvfp4",
    "nf4-nested",
    "bitsandbytes8",
    "hqq3",
    "hqq4",
    "mlx4",
    "ct-mxfp4",
    "mlx-nvfp4",
    "auto-awq",
    "auto-fp8-rows",
    "bitnet",
    "quark-int4",
    "quark-mxfp4",
    "torchao-intx4",
    "torchao-float8-rows",
    "torchao-int4",
)
WRONG = (None, -1, 0, 3, 2**31, 2**63, 0.5, "x", "", [], [0], {}, True)


class Breaker:
    def __init__(self, program, directory, one_in):
        self.program, self.directory, self.one_in = program, directory, one_in
        self.cases, self.runs, self.refused, self.reported = 0, 0, 0, 0

    def run(self, what, *arguments):
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, timeout=60)
        self.runs += 1
        self.refused += done.returncode == 1
        errors = done.stderr.decode(errors="replace")
        require(done.returncode in (0, 1), f"{what}: exit {done.returncode}\n{errors}")
        require("internal" not in errors, f"{what}: {errors}")
        require(done.returncode == 0 or len(errors.strip()) > 20, f"{what}: no message")
        return done.returncode

    def read_output(self, what, *arguments):
        """Returns the exit code, and both outputs as text."""
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, timeout=60)
        self.runs += 1
        require(done.returncode in (0, 1), f"{what}: exit {done.returncode}")
        return done.returncode, (done.stdout + done.stderr).decode(errors="replace")

    def check_run(self, what, directory):
        code, refusal = self.read_output(what, "run", directory, "--tokens", "1", "-n", "1")
        # verify does not find numbers that overflow only while they are computed.
        if code == 0 or "the score of token" in refusal or "not finite, or overflow" in refusal:
            return
        code, report = self.read_output(what, "verify", directory)
        reports = [line for line in report.splitlines() if "warning: " in line and "has no vocabulary" not in line]
        require(code == 1 or reports, f"{what}: run refuses it: {refusal}but verify does not: {report}")
        self.reported += 1

    def check(self, what, *source):
        self.cases += 1
        if self.cases % self.one_in != 0:
            return
        if len(source) == 1:
            self.check_run(what, *source)
        target = self.directory / "out.zt"
        if self.run(what, "convert", *source, "-o", target, "--force", "--quiet") == 0:
            require(self.run(what, "verify", target) == 0, f"{what}: what was converted is not sound")

    def flip_and_cut(self, what, file, *source):
        sound = file.read_bytes()
        header = 8 + int.from_bytes(sound[:8], "little")
        places = [*rng.integers(8, header, 14), *rng.integers(header, len(sound), 4), *rng.integers(0, 8, 1)]
        for place in map(int, places):
            bit = int(rng.integers(0, 8))
            broken = bytearray(sound)
            broken[place] ^= 1 << bit
            file.write_bytes(broken)
            self.check(f"{what}: bit {bit} of byte {place}", *source)
        for length in (0, 7, header // 2, header, *map(int, rng.integers(header, len(sound), 2)), len(sound) - 1):
            file.write_bytes(sound[:length])
            self.check(f"{what}: {length} of {len(sound)} bytes", *source)
        file.write_bytes(sound)

    def change_settings(self, what, file, key, *source):
        """Replaces every value of the object, also inner ones, by each wrong value in turn."""
        sound = json.loads(file.read_text())

        def places(value, path=()):
            if path:
                yield path
            for name, inner in value.items() if isinstance(value, dict) else ():
                yield from places(inner, (*path, name))

        for i, path in enumerate(places(sound[key] if key else sound, (key,) if key else ())):
            for wrong in WRONG[i % 3 :: 3]:
                broken = json.loads(json.dumps(sound))
                inner = broken
                for name in path[:-1]:
                    inner = inner[name]
                inner[path[-1]] = wrong
                file.write_text(json.dumps(broken))
                self.check(f"{what}: {'.'.join(path)} = {wrong!r}", *source)
        file.write_text(json.dumps(sound))


def run(program, directory, one_in):
    tester, breaker = TorchaoTester(program, directory), Breaker(program, directory, one_in)
    base = {name: rng.normal(0, 0.5, shape).astype(np.float16) for name, shape in OTHERS.items()}
    for name in SCHEMES:
        (quantization, parts_of), _, _ = CASES[name]
        parts = dict(base)
        for matrix, shape in MATRICES.items():
            parts.update({matrix + ending: array for ending, array in parts_of(matrix, shape)[0].items()})
        path = tester.make(name, quantization, parts)
        breaker.flip_and_cut(name, path / "model.safetensors", path)
        key = "quantization_config" if "quant_method" in quantization else "quantization"
        breaker.change_settings(name, path / "config.json", key, path)
    for name, (file, content, _) in FILES.items():
        parts = tester.stored(CASES[name][0][1])[0]
        path = tester.make(name + "-file", None, parts)
        (path / file).write_text(json.dumps(content))
        breaker.change_settings(f"{name}: {file}", path / file, "", path)
    dense = {
        **base,
        **{name + ".weight": rng.normal(0, 0.3, shape).astype(np.float16) for name, shape in MATRICES.items()},
    }
    path = tester.make("dense", None, dense)
    place = adapter(
        directory / "adapter",
        {**thin(Q, pair(HIDDEN, HIDDEN)), **thin(DOWN, pair(HIDDEN, INNER))},
        rank_pattern={"q_proj": 4},
        alpha_pattern={"q.*": 3},
        use_rslora=False,
        fan_in_fan_out=False,
    )
    breaker.flip_and_cut("adapter", place / "adapter_model.safetensors", path, "--lora", place)
    breaker.change_settings("adapter", place / "adapter_config.json", "", path, "--lora", place)
    require(breaker.refused > breaker.runs // 10, f"{breaker.refused} of {breaker.runs} runs refused something")
    require(breaker.reported > breaker.cases // one_in // 10, f"verify reported {breaker.reported} refusals")
    print(f"{breaker.runs} runs, {breaker.refused} refusals, {breaker.reported} that verify reported")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        try:
            run(sys.argv[1], Path(made), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
        except Failure as failure:
            sys.exit(str(failure))
