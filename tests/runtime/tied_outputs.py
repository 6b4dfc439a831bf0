"""Models whose embedding is the output matrix, too, in all the ways in which files store the two, and adapters of one
of them. Logits of `poise run` next to those of the forward pass in NumPy.

    tied_outputs.py POISE TOKENIZER_MODEL

  copies     transformers 5 ties the two unless the file has both with different numbers (PreTrainedModel.tie_weights)
  aliases    safetensors.torch.save_model() stores tensors that share memory once, under the first of their names in
             alphabetical order, and adds {OTHER NAME: THAT NAME} to __metadata__
  adapters   PEFT adds to the side whose module it adapts: weight + alpha / r * (B A), of an embedding transposed
"""
import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no NumPy")
    sys.exit(77)

from forward_pass import logits
from random_directories import BASE, random_weights, shapes

BOUND = 2e-5  # of the largest logit
TOKENS = [1, 17, 300, 5, 959, 44]
EMBEDDING, OUTPUT = "model.embed_tokens.weight", "lm_head.weight"
LLAMA = {**BASE, "tie_word_embeddings": True, "num_hidden_layers": 2}
GPT2 = {"model_type": "gpt2", "n_embd": 96, "n_head": 6, "n_layer": 2, "n_positions": 64, "vocab_size": 960}
GPT2.update(layer_norm_epsilon=1e-5, activation_function="gelu_new", n_inner=None)
TEXT = {**LLAMA, "model_type": "gemma3_text", "head_dim": 16, "hidden_activation": "gelu_pytorch_tanh"}
TEXT.update(query_pre_attn_scalar=16, sliding_window=16, rope_local_base_freq=10000.0)
GEMMA3 = {"model_type": "gemma3", "text_config": TEXT, "vision_config": {}}


class Failure(Exception):
    pass


def require(condition, message):
    if not condition:
        raise Failure(message)


def save(path, tensors, metadata=None):
    header, body = {"__metadata__": {"format": "pt", **(metadata or {})}}, b""
    for name, array in tensors.items():
        array = np.ascontiguousarray(array, np.float32)
        header[name] = {
            "dtype": "F32",
            "shape": array.shape,
            "data_offsets": [len(body), len(body) + array.nbytes],
        }
        body += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def load(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    base = 8 + length
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        require(entry["dtype"] == "F32", f"{name} is {entry['dtype']}")
        arrays[name] = np.frombuffer(data[base + begin : base + end], np.float32).reshape(entry["shape"])
    return arrays, metadata


class Tester:
    def __init__(self, poise, tokenizer, place):
        self.poise, self.tokenizer, self.place, self.number = poise, tokenizer, place, 0

    def command(self, *arguments):
        result = subprocess.run([self.poise, *map(str, arguments)], capture_output=True, text=True)
        require(result.returncode == 0, f"poise {' '.join(map(str, arguments))}: {result.stderr}")
        return result

    def directory(self, config, tensors, metadata=None):
        self.number += 1
        directory = self.place / f"model-{self.number}"
        directory.mkdir()
        save(directory / "model.safetensors", tensors, metadata)
        (directory / "config.json").write_text(json.dumps(config))
        shutil.copy(self.tokenizer, directory / "tokenizer.model")
        return directory

    def adapter(self, tensors, **config):
        self.number += 1
        directory = self.place / f"adapter-{self.number}"
        directory.mkdir()
        save(directory / "adapter_model.safetensors", {f"base_model.model.{n}": t for n, t in tensors.items()})
        text = {"peft_type": "LORA", "r": 4, "lora_alpha": 6, "target_modules": ["embed_tokens"], **config}
        (directory / "adapter_config.json").write_text(json.dumps(text))
        return directory

    def require_logits(self, what, expected, path, *options):
        text = ",".join(map(str, TOKENS))
        ran = json.loads(self.command("run", path, "--tokens", text, "--logits", "--exact", *options).stdout)["logits"]
        error = np.abs(np.array(ran) - expected).max() / np.abs(expected).max()
        print(f"{what:45} {error:.1e}{'' if error < BOUND else '  TOO LARGE'}")
        require(error < BOUND, what)

    def converted(self, source, name, *options):
        self.number += 1
        target = self.place / f"{self.number}-{name}"
        result = self.command("convert", source, "-o", f"{target}/" if name.endswith("/") else target, *options)
        return target, result.stderr

    def warnings(self, path):
        return json.loads(self.command("inspect", path, "--json").stdout)["warnings"]


def numbers(config, random):
    tensors = {}
    for name, shape in shapes(config):
        tensors[name] = random_weights(name, shape, {"model_type": config["model_type"]}, random).astype(np.float32)
    return tensors


def expect(config, tensors):
    return logits(config, {name: array.astype(np.float64) for name, array in tensors.items()}, np.array(TOKENS))


def copies(tester, random):
    for title, config, embedding, prefix in (
        ("llama", LLAMA, EMBEDDING, ""),
        ("gpt2", GPT2, "transformer.wte.weight", ""),
        ("gemma3", GEMMA3, EMBEDDING, "language_model."),
    ):
        tensors = numbers(config, random)
        other = random.normal(0, 0.3, tensors[embedding].shape).astype(np.float32)
        names = lambda arrays: {prefix + name: array for name, array in arrays.items()}
        tied = expect(config, tensors)
        without = {name: array for name, array in tensors.items() if name != embedding}

        plain = tester.directory(config, names(tensors))
        tester.require_logits(f"{title}: the embedding alone", tied, plain)
        alone = tester.directory(config, names({**without, OUTPUT: tensors[embedding]}))
        tester.require_logits(f"{title}: the output matrix alone", tied, alone)
        require(not [text for text in tester.warnings(alone) if "lm_head" in text], "a warning about a whole model")
        difference = json.loads(tester.command("diff", plain, alone, "--json", "--values").stdout)
        require(difference["equal"], f"{title}: {difference['tensors']}")

        twice = tester.directory(config, names({**tensors, OUTPUT: tensors[embedding]}))
        tester.require_logits(f"{title}: twice", tied, twice)
        require(any("lm_head.weight is left out: it equals" in text for text in tester.warnings(twice)), "no warning")

        both = tester.directory(config, names({**tensors, OUTPUT: other}))
        untied = {**config, "tie_word_embeddings": False}
        if "text_config" in config:
            untied["text_config"] = {**config["text_config"], "tie_word_embeddings": False}
        kept = expect(untied, {**tensors, OUTPUT: other})
        require(np.abs(kept - tied).max() > 0.1 * np.abs(tied).max(), "the case shows nothing")
        tester.require_logits(f"{title}: different numbers", kept, both)
        require(any("differs from" in text for text in tester.warnings(both)), f"{tester.warnings(both)}")
        for name in ("m.zt", "m/", "m.gguf", "m.alt") if title == "llama" else ("m.zt", "m/"):
            target, notes = tester.converted(both, name)
            tester.require_logits(f"{title}: different numbers, {name}", kept, target)
            require("differs from" in notes, notes)
            require(
                not any("differs" in text for text in tester.warnings(target)), f"{name} still says that it is tied"
            )


def aliases(tester, random):
    tensors = numbers(LLAMA, random)
    # What save_model() stores of a LlamaForCausalLM: "lm_head.weight" comes first.
    stored = {**{name: array for name, array in tensors.items() if name != EMBEDDING}, OUTPUT: tensors[EMBEDDING]}
    expected = expect(LLAMA, tensors)
    for title, config in (("tied", LLAMA), ("not said to be tied", {**LLAMA, "tie_word_embeddings": False})):
        directory = tester.directory(config, stored, {EMBEDDING: OUTPUT})
        tester.require_logits(f"alias, {title}", expected, directory)
        target, _ = tester.converted(directory, "m/")
        tester.require_logits(f"alias, {title}, converted", expected, target)
        _, metadata = load(target / "model.safetensors")
        require(EMBEDDING not in metadata, "an alias of a tensor that is stored")
    other = tester.directory(LLAMA, tensors, {OUTPUT: EMBEDDING})
    tester.require_logits("alias of the output matrix", expected, other)
    # Two layers that share a matrix.
    shared = dict(tensors)
    one, two = (f"model.layers.{layer}.mlp.up_proj.weight" for layer in (0, 1))
    expected = expect(LLAMA, {**tensors, two: tensors[one]})
    del shared[two]
    tester.require_logits("alias in a layer", expected, tester.directory(LLAMA, shared, {two: one}))


def adapters(tester, random):
    tensors = numbers(LLAMA, random)
    base = tester.directory(LLAMA, tensors)
    hidden, rows = LLAMA["hidden_size"], LLAMA["vocab_size"]
    normal = lambda *shape: random.normal(0, 0.3, shape).astype(np.float32)
    a, b = normal(4, rows), normal(hidden, 4)  # lora_embedding_A and _B
    left, right = normal(rows, 4), normal(4, hidden)
    module = "model.embed_tokens"
    inputs = {f"{module}.lora_embedding_A": a, f"{module}.lora_embedding_B": b}
    outputs = {"lm_head.lora_A.weight": right, "lm_head.lora_B.weight": left}
    changed_input = tensors[EMBEDDING] + 6 / 4 * (b @ a).T
    changed_output = tensors[EMBEDDING] + 6 / 4 * left @ right
    saved = normal(rows, hidden)
    untied = {**LLAMA, "tie_word_embeddings": False}
    own = tensors[EMBEDDING]
    cases = (
        ("of the input", inputs, {}, changed_input, own, "the input embedding alone"),
        ("of the output", outputs, {}, own, changed_output, "the output matrix alone"),
        ("of both", {**inputs, **outputs}, {}, changed_input, changed_output, "by themselves"),
        (
            "of the input, with its saved base",
            {**inputs, f"{module}.base_layer.weight": saved},
            {},
            saved + 6 / 4 * (b @ a).T,
            saved,
            "the input embedding alone",
        ),
        ("a saved embedding", {f"{module}.weight": saved}, {}, saved, own, "the input embedding alone"),
        ("both saved, equal", {f"{module}.weight": saved, "lm_head.weight": saved}, {}, saved, None, "it equals"),
        ("both saved, different", {f"{module}.weight": saved, "lm_head.weight": own}, {}, saved, own, "differs from"),
        ("ensure_weight_tying", inputs, {"ensure_weight_tying": True}, changed_input, None, None),
        ("ensure_weight_tying, of the output", outputs, {"ensure_weight_tying": True}, changed_output, None, None),
    )
    for title, matrices, config, into, out, warning in cases:
        adapter = tester.adapter(matrices, **config)
        wanted = {**tensors, EMBEDDING: into, **({} if out is None else {OUTPUT: out})}
        expected = expect(LLAMA if out is None else untied, wanted)
        tester.require_logits(f"adapter {title}", expected, base, "--lora", adapter)
        for name in ("m.zt", "m/", "m.gguf"):
            target, notes = tester.converted(base, name, "--lora", adapter)
            tester.require_logits(f"adapter {title}, {name}", expected, target)
            require(warning is None or warning in notes, f"{title}: {notes!r}")
            require(warning is not None or "tie" not in notes, f"{title}: {notes!r}")


def main():
    random = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as place:
        tester = Tester(sys.argv[1], sys.argv[2], pathlib.Path(place))
        try:
            for check in (copies, aliases, adapters):
                check(tester, random)
        except Failure as failure:
            sys.exit(str(failure))


if __name__ == "__main__":
    main()
