#!/usr/bin/env python3
"""Measures Poise and the physical limit of the machine, in alternation, and prints one table of ratios of medians.

    bench/bench.py --poise build/release/poise --limits build/release/bench/poise_limits --data DIR
    bench/bench.py ... --model DIR --rounds 2 --jobs convert,run        another model, some of the jobs

The model is a Mistral of about 1.1 B random parameters, made once in --data (10 GB with the files made from it).
A job's ratio is the median time of the limit divided by the median time of Poise: 1.00 is as fast as the limit.
"""
import argparse
import json
import os
import pathlib
import platform
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent


class AnonymousMemory(threading.Thread):
    """Follows a process's anonymous memory (RssAnon): what it holds beyond mapped pages of files."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak = pid, 0

    def run(self):
        try:
            while True:
                with open(f"/proc/{self.pid}/status") as status:
                    for line in status:
                        if line.startswith("RssAnon:"):
                            self.peak = max(self.peak, int(line.split()[1]) * 1024)
                time.sleep(0.005)
        except (OSError, ValueError):
            pass


def run(command, stdout=subprocess.DEVNULL):
    """Runs a command, which must succeed. Returns its seconds, peak anonymous bytes and output."""
    started = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], stdout=stdout, stderr=subprocess.PIPE)
    memory = AnonymousMemory(process.pid)
    memory.start()
    out, err = process.communicate()
    seconds = time.perf_counter() - started
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {process.returncode}\n{err.decode(errors='replace')}")
    return seconds, memory.peak, out


def warm(*paths):
    """Reads files into the page cache."""
    for path in paths:
        for file in sorted(path.iterdir()) if path.is_dir() else [path]:
            with open(file, "rb", buffering=0) as stream:
                buffer = bytearray(1 << 22)
                while stream.readinto(buffer):
                    pass


def measure_size(path):
    return sum(f.stat().st_size for f in path.iterdir()) if path.is_dir() else path.stat().st_size


def format_number(count, unit="B"):
    for prefix in ["", "k", "M", "G", "T"]:
        if count < 999.5:
            return f"{count:.3g} {prefix}{unit}"
        count /= 1000
    return f"{count:.3g} P{unit}"


class Bench:
    def __init__(self, args):
        self.poise, self.limits, self.rounds = args.poise, args.limits, args.rounds
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="bench-", dir=args.data))
        self.rows = []

    def add_row(self, job, ours, limit_name, limit, ratio, reach, note=""):
        self.rows.append((job, ours, limit_name, limit, ratio, reach, note))
        print(f"{job:42} {ours:>14}   {limit_name:24} {limit:>12}   {ratio:>6}   {reach:>7}   {note}", flush=True)

    def alternate(self, limit, job, warm_up):
        """Returns the medians of `limit` and `job`, which are called in turn. The first round of each is dropped."""
        limits, jobs = [], []
        for _ in range(self.rounds + 1):
            warm(*warm_up)
            limits.append(limit())
            warm(*warm_up)
            jobs.append(job())
        return statistics.median(limits[1:] or limits), statistics.median(jobs[1:] or jobs)

    def measure_limit(self, job, path, threads):
        return json.loads(run([self.limits, job, path, threads], subprocess.PIPE)[2])["first"]

    def make_fresh_path(self, name):
        path = self.scratch / name
        if path.exists():
            path.unlink()
        return path

    def measure_copy(self, source):
        """Returns the seconds that cp takes to copy `source` to a new file."""
        target = self.make_fresh_path("copy")
        seconds = run(["cp", "--reflink=never", source, target])[0]
        target.unlink()
        return seconds

    def bench_write(self, model, output, options, limit_name, limit, reach, job=None):
        """Measures converting `model` to `output`, and `limit(output)` on the written file."""
        target = self.make_fresh_path(output)
        peaks = []

        def convert():
            self.make_fresh_path(output)
            seconds, peak, _ = run([self.poise, "convert", model, "-o", target, *options])
            peaks.append(peak)
            return seconds

        convert()
        limit_seconds, seconds = self.alternate(lambda: limit(target), convert, [model])
        self.add_row(
            job or f"convert to {' '.join([target.suffix, *options])}",
            f"{format_number(measure_size(target) / seconds)}/s",
            limit_name,
            f"{format_number(measure_size(target) / limit_seconds)}/s",
            f"{limit_seconds / seconds:.2f}",
            reach,
            f"peak {format_number(max(peaks))}",
        )
        return target

    def bench_read(self, job, command, limit_name, limit, path, reach):
        peaks = []

        def read():
            seconds, peak, _ = run([self.poise, *command])
            peaks.append(peak)
            return seconds

        limit_seconds, seconds = self.alternate(limit, read, [path])
        self.add_row(
            job,
            f"{format_number(measure_size(path) / seconds)}/s",
            limit_name,
            f"{format_number(measure_size(path) / limit_seconds)}/s",
            f"{limit_seconds / seconds:.2f}",
            reach,
            f"peak {format_number(max(peaks))}",
        )


def write_many_tensors(path, count=100_000):
    """Writes a safetensors file of `count` matrices of 4 x 4 random numbers."""
    size = 64
    header = {
        f"model.layers.{i // 10}.mlp.experts.{i % 10}.gate_proj.weight": {
            "dtype": "F32",
            "shape": [4, 4],
            "data_offsets": [i * size, (i + 1) * size],
        }
        for i in range(count)
    }
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + os.urandom(count * size))


def bench_open(bench, files):
    many = bench.make_fresh_path("many.safetensors")
    write_many_tensors(many)
    jobs = [(path, "1 ms", "") for path in files]
    for name, options in (("many.zt", ["--align", "4096"]), ("many1.zt", ["--to", "zt1"])):
        run([bench.poise, "convert", many, "-o", bench.make_fresh_path(name), *options])
        jobs.append((bench.scratch / name, "40 ms", "100,000 tensors, "))
    for path, reach, what in jobs:
        warm(path)
        command = [bench.poise, "inspect", path]
        nothing = [bench.poise, "--version"]
        run(command)
        start = statistics.median(run(nothing)[0] for _ in range(11))
        seconds = statistics.median(run(command)[0] for _ in range(11))
        bench.add_row(
            f"open + list {what}{path.suffix} ({format_number(measure_size(path))})",
            f"{(seconds - start) * 1000:.2f} ms",
            "poise --version",
            f"{start * 1000:.2f} ms",
            "-",
            reach,
            "beyond starting the command",
        )


def bench_reading(bench, path):
    for threads in (1, 2):
        pairs = bench.alternate(
            lambda: bench.measure_limit("sum", path, threads),
            lambda: bench.measure_limit("model-sum", path, threads),
            [path],
        )
        bench.add_row(
            f"read through map(), {threads} thread(s)",
            f"{format_number(measure_size(path) / pairs[1])}/s",
            "mapped read-sum",
            f"{format_number(measure_size(path) / pairs[0])}/s",
            f"{pairs[0] / pairs[1]:.2f}",
            "0.95",
        )
    pairs = bench.alternate(
        lambda: bench.measure_limit("memcpy", path, 2), lambda: bench.measure_limit("model-copy", path, 2), [path]
    )
    bench.add_row(
        "read by copy, 2 threads",
        f"{format_number(measure_size(path) / pairs[1])}/s",
        "memcpy",
        f"{format_number(measure_size(path) / pairs[0])}/s",
        f"{pairs[0] / pairs[1]:.2f}",
        "0.80",
    )


def bench_convert(bench, model):
    files = {}
    files["safetensors"] = bench.bench_write(model, "m.safetensors", [], "cp", bench.measure_copy, "0.90")
    single = files["safetensors"]
    files["alt"] = bench.bench_write(single, "bf16.alt", ["--dtype", "bf16"], "cp", bench.measure_copy, "0.90")
    files["zt"] = bench.bench_write(single, "m.zt", [], "cp", bench.measure_copy, "0.90")

    def measure_hashing(path):
        return max(bench.measure_copy(path), run(["openssl", "dgst", "-sha256", path])[0] / 2)

    bench.bench_write(
        single, "sha.zt", ["--digest", "sha256"], "slower of cp, openssl/2", measure_hashing, "0.80"
    ).unlink()
    files["f16"] = bench.bench_write(single, "f16.alt", ["--dtype", "f16"], "cp", bench.measure_copy, "0.85")
    bench.bench_write(single, "f32.alt", ["--dtype", "f32"], "cp", bench.measure_copy, "0.85").unlink()
    return files


def bench_quantize(bench, single):
    files = {}
    for scheme, suffix in (("qint8", "alt"), ("qint4", "alt"), ("group8", "zt"), ("group4", "zt")):
        target = bench.make_fresh_path(f"{scheme}.{suffix}")
        peaks = []

        def convert():
            bench.make_fresh_path(target.name)
            seconds, peak, _ = run([bench.poise, "convert", single, "-o", target, "--quantize", scheme])
            peaks.append(peak)
            return seconds

        convert()
        limit, seconds = bench.alternate(lambda: bench.measure_limit("sum", single, 1), convert, [single])
        bytes_in = measure_size(single)
        bench.add_row(
            f"quantize {scheme}",
            f"{format_number(bytes_in / seconds)}/s",
            "mapped read-sum, 1 thread",
            f"{format_number(bytes_in / limit)}/s",
            f"{limit / seconds:.2f}",
            "0.25",
            f"peak {format_number(max(peaks))}",
        )
        copy = statistics.median(bench.measure_copy(single) for _ in range(bench.rounds))
        bench.add_row(
            f"quantize {scheme}",
            f"{format_number(bytes_in / seconds)}/s",
            "cp of the input",
            f"{format_number(bytes_in / copy)}/s",
            f"{copy / seconds:.2f}",
            "1.00",
        )
        files[scheme] = target
    return files


def bench_zstd(bench, single):
    def compress(_):
        target = bench.make_fresh_path("limit.zst")
        seconds = run(["zstd", "-q", "-T2", "-3", single, "-o", target])[0]
        return seconds

    written = bench.bench_write(single, "zstd.zt", ["--compress", "zstd:3"], "zstd -T2 -3", compress, "0.95")
    packed = bench.scratch / "limit.zst"
    bench.bench_read(
        "read zt with zstd 3 (verify)",
        ["verify", written],
        "2 x zstd -d",
        lambda: run(["zstd", "-q", "-d", "-f", packed, "-o", "/dev/null"])[0] / 2,
        written,
        "0.95",
    )
    packed.unlink()
    written.unlink()


def bench_checked(bench, digest, path):
    """Measures a conversion with and without a check of the input's digests."""

    def convert(*options):
        return run([bench.poise, "convert", path, "-o", bench.make_fresh_path("checked.safetensors"), *options])[0]

    trusted, seconds = bench.alternate(lambda: convert("--no-verify"), convert, [path])
    bench.add_row(
        f"convert from {digest}, checked",
        f"{format_number(measure_size(path) / seconds)}/s",
        "--no-verify",
        f"{format_number(measure_size(path) / trusted)}/s",
        f"{trusted / seconds:.2f}",
        "0.90",
    )
    bench.make_fresh_path("checked.safetensors")


def bench_checks(bench, single, files):
    sha = bench.make_fresh_path("check.zt")
    run([bench.poise, "convert", single, "-o", sha, "--digest", "sha256"])

    def make_openssl_limit(path):
        return lambda: run(["openssl", "dgst", "-sha256", path])[0] / 2

    bench.bench_read("verify sha256", ["verify", sha], "2 x openssl", make_openssl_limit(sha), sha, "0.95")
    bench_checked(bench, "sha256", sha)
    crc = bench.make_fresh_path("check.zt1")
    run([bench.poise, "convert", single, "-o", crc, "--to", "zt1", "--digest", "crc32c"])
    bench_checked(bench, "crc32c", crc)
    bench_checked(bench, "xxh3", files["zt"])
    crc.unlink()
    sha.unlink()
    bench.bench_read(
        "verify xxh3",
        ["verify", files["zt"]],
        "mapped read-sum, 2 threads",
        lambda: bench.measure_limit("sum", files["zt"], 2),
        files["zt"],
        "0.80",
    )
    bench.bench_read(
        "hash", ["hash", files["alt"]], "2 x openssl", make_openssl_limit(files["alt"]), files["alt"], "0.80"
    )
    for name in ("safetensors", "f16"):
        bench.bench_read(
            f"stats of {'bf16' if name == 'safetensors' else name}",
            ["stats", files[name]],
            "mapped read-sum, 2 threads",
            lambda: bench.measure_limit("sum", files[name], 2),
            files[name],
            "0.50",
        )
    bench.bench_read(
        "diff (equal)",
        ["diff", files["zt"], single],
        "mapped read-sum, 2 threads",
        lambda: bench.measure_limit("sum", files["zt"], 2) + bench.measure_limit("sum", single, 2),
        files["zt"],
        "0.80",
    )


def measure_model(bench, path, *options):
    """Runs `poise bench`. Returns its report, and its rows by the kind of test: "pp" (prompt) and "tg" (generate)."""
    report = json.loads(run([bench.poise, "bench", path, "-r", bench.rounds, "--json", *options], subprocess.PIPE)[2])
    return report, {row["test"][:2]: row for row in report["rows"]}


def bench_run(bench, files):
    for name in ("f16", "bf16", "qint8", "qint4", "group8", "group4"):
        path = files.get("alt" if name == "bf16" else name)
        if path is None:
            continue
        report, rows = measure_model(bench, path, "-p", 512, "-n", 24)
        roof = report["memory_bytes_per_second"] / report["bytes_per_token"]
        decode, prompt = rows["tg"]["tokens_per_second"], rows["pp"]
        bench.add_row(
            f"decode {name}",
            f"{decode:.1f} tokens/s",
            "weights / read rate",
            f"{roof:.1f}/s",
            f"{decode / roof:.2f}",
            "0.90",
        )
        flops = format_number(prompt["flops_per_second"], "FLOP")
        rate = f"{prompt['tokens_per_second']:.0f} tokens/s"
        bench.add_row(f"prompt of 512, {name}", rate, "", "", "-", "", f"{flops}/s")


def make_without_window(model, directory):
    """Makes a copy of the model (links to its files) without a sliding window, so that tokens see all earlier ones."""
    directory.mkdir(exist_ok=True)
    for file in model.iterdir():
        link = directory / file.name
        if file.name != "config.json" and not link.exists():
            link.symlink_to(file.resolve())
    config = {**json.loads((model / "config.json").read_text()), "sliding_window": None}
    (directory / "config.json").write_text(json.dumps(config))
    return directory


def bench_context(bench, model):
    """Measures decoding with 8,192 positions, where each token reads the weights and the cache once."""
    config = json.loads((model / "config.json").read_text())
    depth, generated = 8160, 32
    numbers = 2 * config["num_hidden_layers"] * config["num_key_value_heads"] * (depth + generated)
    numbers *= config["hidden_size"] // config["num_attention_heads"]
    for name, each in (("f32", 4), ("f16", 2), ("q8", 1.125)):
        report, rows = measure_model(bench, model, "-p", 0, "-n", generated, "-d", depth, "--cache", name)
        roof = report["memory_bytes_per_second"] / (report["bytes_per_token"] + numbers * each)
        decode = rows["tg"]["tokens_per_second"]
        bench.add_row(
            f"decode at 8,192, --cache {name}",
            f"{decode:.1f} tokens/s",
            "weights and cache / read rate",
            f"{roof:.1f}/s",
            f"{decode / roof:.2f}",
            "",
        )


def bench_start(bench):
    nano = bench.make_fresh_path("nano.alt")
    run([bench.poise, "convert", ROOT / "examples" / "nano-mistral", "-o", nano])
    seconds = statistics.median(run([bench.poise, "run", nano, "-p", "Once", "-n", 1])[0] for _ in range(21))
    bench.add_row("start to first token, nano-mistral", f"{seconds * 1000:.1f} ms", "", "", "-", "15 ms")


def describe_machine():
    cpu = next(
        (line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    flags = next((line.split() for line in open("/proc/cpuinfo") if line.startswith("flags")), [])
    units = [
        name
        for name in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8", "sha_ni")
        if name in flags
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{cpu}, {os.cpu_count()} processors ({' '.join(units)}), {format_number(memory)} memory, Linux {platform.release()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--poise", type=pathlib.Path, required=True)
    parser.add_argument("--limits", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("build/bench"))
    parser.add_argument("--model", type=pathlib.Path, help="a Hugging Face directory in place of the random model")
    parser.add_argument("--rounds", type=int, default=3, help="measured rounds, after one to warm up")
    parser.add_argument("--jobs", default="open,read,convert,quantize,zstd,checks,run,context,start")
    args = parser.parse_args()
    args.data.mkdir(parents=True, exist_ok=True)
    model = args.model or args.data / "mistral-1.1b"
    if not (model / "config.json").exists():
        run(
            [
                sys.executable,
                ROOT / "scripts" / "make_synthetic_mistral.py",
                model,
                "--layers",
                22,
                "--hidden",
                2048,
                "--intermediate",
                5632,
                "--heads",
                32,
                "--kv-heads",
                4,
                "--shards",
                1,
            ]
        )
    jobs = set(args.jobs.split(","))
    print(describe_machine())
    print(f"{'job':42} {'Poise':>14}   {'limit':24} {'':>12}   {'ratio':>6}   {'reach':>7}")
    bench = Bench(args)
    try:
        files = bench_convert(bench, model)
        single = files["safetensors"]
        if "quantize" in jobs:
            files.update(bench_quantize(bench, single))
        if "open" in jobs:
            bench_open(bench, [files["alt"], files["zt"], single])
        if "read" in jobs:
            bench_reading(bench, files["alt"])
        if "zstd" in jobs:
            bench_zstd(bench, single)
        if "checks" in jobs:
            bench_checks(bench, single, files)
        if "run" in jobs:
            bench_run(bench, files)
        if "context" in jobs:
            bench_context(bench, make_without_window(model, args.data / "no-window"))
        if "start" in jobs:
            bench_start(bench)
    finally:
        for path in bench.scratch.iterdir():
            path.unlink()
        bench.scratch.rmdir()


if __name__ == "__main__":
    main()
