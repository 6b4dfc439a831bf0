"""Compares `poise imatrix` with sums over the inputs of a forward pass written in NumPy and float64.

    imatrix_against_numpy.py POISE TOKENIZER_MODEL

Small directories with random weights: dense, one matrix for q, k and v, [in, out], experts apart and stacked. Exits
with 77 (skipped) where NumPy is missing.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

from forward_pass import FAMILIES
from random_directories import BASE, CASES, write_directory

CHUNK, CHUNKS = 32, 3
BOUND = 1e-5  # of the largest sum of a matrix
NAMES = {  # llama.cpp's names of the modules of a layer
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "mlp.router": "ffn_gate_inp",
    "block_sparse_moe.gate": "ffn_gate_inp",
}
EXPERTS = {
    "gate_proj": ["gate"],
    "up_proj": ["up"],
    "down_proj": ["down"],
    "w1": ["gate"],
    "w3": ["up"],
    "w2": ["down"],
    "gate_up_proj": ["gate", "up"],
}


class Sums:
    """Sums of squares and counts, by llama.cpp's names."""

    def __init__(self, experts):
        self.experts, self.squares, self.counts = experts, {}, {}

    def add(self, name, expert, count, x):
        x = np.atleast_2d(x)
        squares = self.squares.setdefault(name, np.zeros((count, x.shape[1])))
        squares[expert] += (x * x).sum(0)
        self.counts.setdefault(name, np.zeros(count))[expert] += len(x)

    def see(self, module, x):
        layer, rest = re.fullmatch(r"(?:\w+\.)*?(?:layers|h)\.(\d+)\.(.+)", module).groups()
        stacked = re.fullmatch(r".*\.experts\.(\d+)\.(\w+)", rest)
        if not stacked:
            return self.add(f"blk.{layer}.{NAMES[rest]}.weight", 0, 1, x)
        for which in EXPERTS[stacked[2]]:
            self.add(f"blk.{layer}.ffn_{which}_exps.weight", int(stacked[1]), self.experts, x)


class Seen:
    """The matrix of an expert in a stack, whose products are seen."""

    __array_ufunc__ = None

    def __init__(self, matrix, see):
        self.matrix, self.see = matrix, see

    def __rmatmul__(self, x):
        self.see(x)
        return x @ self.matrix


class Stack:
    def __init__(self, matrices, name, sums):
        self.matrices, self.name, self.sums = matrices, name, sums

    def __getitem__(self, expert):
        name = f"{self.name.rpartition('.')[0]}.{expert}.{self.name.rpartition('.')[2]}"
        return Seen(self.matrices[expert], lambda x: self.sums.see(name, x))


def compute_sums(config, weights, chunks):
    experts = config.get("num_local_experts", config.get("num_experts", 1))
    sums = Sums(experts)

    class Observed(FAMILIES[config["model_type"]]):
        def linear(self, x, name):
            sums.see(name, x)
            return super().linear(x, name)

        def weight(self, name):
            found = super().weight(name)
            return Stack(found, name, sums) if re.search(r"\.experts\.\w+_proj$", name) else found

    model = Observed(config, weights)
    for chunk in chunks:
        model.hidden_states(chunk)
    return sums


def read(poise, path, directory):
    subprocess.run([poise, "convert", path, "-o", directory / "i.npz", "--quiet", "--force"], check=True)
    with np.load(directory / "i.npz") as arrays:
        return {name: arrays[name].astype(float) for name in arrays}


def compare(name, found, sums):
    wrong = []
    names = {f"{entry}.{part}" for entry in sums.counts for part in ("in_sum2", "counts")}
    if names != set(found):
        wrong.append(f"other tensors: {sorted(names ^ set(found))[:4]}")
    worst = 0
    for entry in sums.counts:
        if f"{entry}.counts" not in found or f"{entry}.in_sum2" not in found:
            continue
        if found[f"{entry}.counts"].ravel().tolist() != sums.counts[entry].tolist():
            wrong.append(f"{entry}: counts {found[f'{entry}.counts'].ravel()} for {sums.counts[entry]}")
        error = np.abs(found[f"{entry}.in_sum2"] - sums.squares[entry]).max() / sums.squares[entry].max()
        worst = max(worst, error)
    if not worst < BOUND:
        wrong.append("TOO LARGE")
    print(f"{name:14} {len(sums.counts):3} entries {worst:.1e} {'; '.join(wrong)}")
    return len(wrong)


def main():
    poise, tokenizer = sys.argv[1:]
    failures = 0
    chosen = ("f32", "phi3", "gpt2-f32", "mixtral", "qwen3-moe-mlp", "gpt_oss", "gpt_oss-types")
    words = "one fox ran over all hills while small birds sang and old trees grew near rivers of cold water".split()
    for number, (name, dtype, _, changes) in enumerate(CASES):
        if name not in chosen:
            continue
        random = np.random.default_rng(number + 1)
        with tempfile.TemporaryDirectory() as directory:
            directory = pathlib.Path(directory)
            config = dict(changes) if changes.get("model_type") == "gpt2" else {**BASE, **changes}
            weights = write_directory(directory, config, tokenizer, "F32" if dtype == "BF16" else dtype, random)
            text = " ".join(random.choice(words) for _ in range(200))
            (directory / "text.txt").write_text(text + "\n")
            ids = json.loads(subprocess.check_output([poise, "tokenize", directory, text, "--json"]))["ids"]
            chunks = [np.array([1] + ids[i * CHUNK + 1 : (i + 1) * CHUNK]) for i in range(CHUNKS)]
            if ids[0] != 1:
                chunks = [np.array(ids[i * CHUNK : (i + 1) * CHUNK]) for i in range(CHUNKS)]
            command = [poise, "imatrix", directory, directory / "text.txt", "--chunk-size", str(CHUNK), "--quiet"]
            command += ["--chunks", str(CHUNKS), "--exact", "-o"]
            subprocess.run([*command, directory / "i.gguf"], check=True)
            failures += compare(
                name, read(poise, directory / "i.gguf", directory), compute_sums(config, weights, chunks)
            )
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
