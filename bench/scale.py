#!/usr/bin/env python3
"""Measures what ranks cost on this machine, and predicts what more machines bring (docs/scale.md).

    bench/scale.py --poise build/release/poise --poise-mpi build/release/poise-mpi [--data build/bench] [--rounds 5]
    bench/scale.py --predict [--memory-rate 80]

The first form makes a random model of 1.1 billion parameters, stores it as q8_0, and generates with 1, 2 and 4 ranks,
while POISE_EXCHANGE_DELAY slows each exchange by 0, 20, 100 and 1000 microseconds. It prints the time for a token, and
for each number of ranks the line through its times: time = base + exchanges * delay. The second form prints the tables
of predictions.
"""
import argparse
import json
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RANKS = (1, 2, 4)
DELAYS = (0, 20, 100, 1000)  # microseconds
LAYERS, HIDDEN = 22, 2048
# Parameters, layers, hidden size and vocabulary of Llama 3.1.
MODELS = {
    "8B": (8.03e9, 32, 4096, 128_256),
    "70B": (70.6e9, 80, 8192, 128_256),
    "405B": (405.9e9, 126, 16_384, 128_256),
}
BITS = {"q4_0": 4.5, "q8_0": 8.5}  # for a weight
# Bytes a second, and the seconds that a message takes at least: TCP, fast TCP, and RDMA.
NETWORKS = {"10 Gbit/s": (1.25e9, 50e-6), "25 Gbit/s": (3.1e9, 20e-6), "100 Gbit/s": (12.5e9, 5e-6)}
MACHINES = (1, 2, 4, 8, 16, 32, 64)


def run(command, **options):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, **options).stdout


def count_exchanges(layers):
    """Two sums a layer, and the scores."""
    return 2 * layers + 1


def make_model(poise, data):
    data.mkdir(parents=True, exist_ok=True)
    source, model = data / "mistral-1.1b", data / "scale-q8_0.gguf"
    if not (source / "config.json").exists():
        run([sys.executable, ROOT / "scripts" / "make_synthetic_mistral.py", source]
            + ["--layers", LAYERS, "--hidden", HIDDEN, "--intermediate", 5632]
            + ["--heads", 32, "--kv-heads", 4, "--shards", 1])  # fmt: skip
    if not model.exists():
        run([poise, "convert", source, "-o", model, "--quantize", "q8_0"])
    return model


def measure_token(options, model, ranks, delay):
    """Returns the seconds for a token: the median of rounds."""
    shell = [] if shutil.which("ssh") else ["--mca", "plm_rsh_agent", "true"]
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--quiet", "--bind-to", "none", *shell]
    threads = max(1, (os.cpu_count() or 1) // ranks)
    bench = ["bench", model, "-p", 0, "-n", 16, "-r", options.rounds, "--json", "--threads", threads]
    environment = {**os.environ, "POISE_EXCHANGE_DELAY": str(delay)}
    # With more ranks than processors, a rank that waits must not keep a processor busy.
    report = json.loads(
        run([*mpirun, "--mca", "mpi_yield_when_idle", 1, "-n", ranks, options.poise_mpi, *bench], env=environment)
    )
    return 1 / report["rows"][0]["tokens_per_second"], report


def fit_line(xs, ys):
    """Returns the base and the slope of the line with the least squares of errors."""
    slope = statistics.covariance(xs, ys) / statistics.variance(xs)
    return statistics.mean(ys) - slope * statistics.mean(xs), slope


def measure(options):
    model = make_model(options.poise, options.data)
    print("| ranks | " + " | ".join(f"{delay} us" for delay in DELAYS) + " | base | exchanges |")
    print("|---" * (len(DELAYS) + 3) + "|")
    for ranks in RANKS:
        times = []
        for delay in DELAYS:
            seconds, report = measure_token(options, model, ranks, delay)
            times.append(seconds)
            if ranks == 1:
                rate, size = report["memory_bytes_per_second"], report["bytes_per_token"]  # all processors read
        base, slope = fit_line([delay * 1e-6 for delay in DELAYS], times)
        cells = [f"{seconds * 1e3:.1f}" for seconds in times] + [f"{base * 1e3:.1f}", f"{slope:.0f}"]
        print(f"| {ranks} | " + " | ".join(cells) + " |", flush=True)
    print(f"\nTimes in milliseconds for a token. Expected exchanges: {count_exchanges(LAYERS)}.")
    print(f"{size / 1e9:.2f} GB for a token; memory is read at {rate / 1e9:.1f} GB/s.")


def predict_token(model, bits, network, machines, memory_rate):
    """Returns the seconds for a token of a short text: reading a share of the weights, and the exchanges."""
    parameters, layers, hidden, vocabulary = MODELS[model]
    rate, latency = NETWORKS[network]
    read = parameters * BITS[bits] / 8 / machines / memory_rate
    if machines == 1:
        return read
    # MPI gathers small messages in log2(machines) steps; a machine receives what all others send.
    steps = math.ceil(math.log2(machines))
    sums = 2 * layers * (steps * latency + (machines - 1) * 4 * hidden / rate)
    scores = steps * latency + 4 * vocabulary * (machines - 1) / machines / rate
    return read + sums + scores


def predict(options):
    for network in NETWORKS:
        print(f"\n{network}, {options.memory_rate:g} GB/s of memory in each machine: tokens/s\n")
        print("| | " + " | ".join(f"{machines}" for machines in MACHINES) + " |")
        print("|---" * (len(MACHINES) + 1) + "|")
        for model in MODELS:
            for bits in BITS:
                rates = [1 / predict_token(model, bits, network, n, options.memory_rate * 1e9) for n in MACHINES]
                best = max(rates)
                cells = [f"**{rate:.1f}**" if rate == best else f"{rate:.1f}" for rate in rates]
                print(f"| {model} {bits} | " + " | ".join(cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--poise", type=pathlib.Path)
    parser.add_argument("--poise-mpi", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path("build/bench"))
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds, after one to warm up")
    parser.add_argument("--predict", action="store_true", help="print the predictions alone")
    parser.add_argument("--memory-rate", type=float, default=80, help="GB/s that one machine of the predictions reads")
    options = parser.parse_args()
    if options.predict:
        return predict(options)
    if options.poise is None or options.poise_mpi is None:
        parser.error("--poise and --poise-mpi are needed to measure")
    measure(options)


if __name__ == "__main__":
    main()
