"""Random LoRA adapters as PEFT writes them, merged by the command, against PEFT's formula in NumPy.

    lora_merges.py POISE
"""
import json
import sys
import tempfile
from pathlib import Path

from quantized_directories import HIDDEN, INNER, MATRICES, OTHERS, TOKENS, Failure, Tester, awq, load, np, require, rng, save

Q, DOWN = "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj"
EMBEDDING = "model.embed_tokens"


def adapter(directory, tensors, **config):
    directory.mkdir(exist_ok=True)
    (directory / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 4, "lora_alpha": 6,
                                                               "target_modules": ["q_proj"], **config}))
    save(directory / "adapter_model.safetensors", {"base_model.model." + name: array for name,
                                                   array in tensors.items()})
    return directory


def pair(out, inside, rank=4):
    return rng.normal(0, 0.1, (out, rank)).astype(np.float32), rng.normal(0, 0.1, (rank, inside)).astype(np.float32)


def thin(module, matrices, name="lora_{}.weight"):
    return {f"{module}.{name.format('B')}": matrices[0], f"{module}.{name.format('A')}": matrices[1]}


class Case:
    def __init__(self, directory, program):
        self.directory, self.tester = directory, Tester(program, directory)
        shapes = {**{name + ".weight": shape for name, shape in MATRICES.items()}, **OTHERS}
        self.base = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
        self.path = self.tester.make("base", None, self.base)

    def merged(self, *adapters, source=None):
        target = self.directory / "merged.safetensors"
        options = [part for one in adapters for part in ("--lora", one)]
        self.tester.poise("convert", source or self.path, "-o", target, "--force", "--quiet", *options,
                          *([] if source is None else ["--dtype", "f32"]))
        return load(target)

    def require(self, found, changes, tolerance=2e-6):
        for name, array in self.base.items():
            want = changes.get(name, array)
            require(found[name].dtype == array.dtype and np.allclose(found[name], want, rtol=0, atol=tolerance),
                    f"{name} is off by {np.abs(found[name] - want).max()}")

    def refused(self, *texts, source=None):
        message = self.tester.poise("convert", source or self.path, "-o", self.directory / "no.safetensors", "--lora",
                                    self.directory / "a", fails=True)
        for text in texts:
            require(text in message, f"no {text!r} in {message}")


def run(case, directory):
    base, place = case.base, directory / "a"
    one, two = pair(HIDDEN, HIDDEN), pair(HIDDEN, INNER)
    tensors = {**thin(Q, one), **thin(DOWN, two)}
    adapter(place, tensors)
    wanted = {Q + ".weight": base[Q + ".weight"] + 6 / 4 * one[0] @ one[1], DOWN + ".weight": base[DOWN + ".weight"]
              + 6 / 4 * two[0] @ two[1]}
    case.require(case.merged(place), wanted)
    case.require(case.merged(place / "adapter_model.safetensors"), wanted)
    half = {name: base[name] + -0.5 * (array - base[name]) for name, array in wanted.items()}
    case.require(case.merged(f"{place}:-0.5"), half)
    both = {name: base[name] + 0.25 * (array - base[name]) for name, array in wanted.items()}
    case.require(case.merged(place, f"{place}:-0.75"), both)

    # every output, and run without one
    for form, name in (("zt", "m.zt"), ("huggingface", "m/")):
        case.tester.poise("convert", case.path, "-o", str(directory / name) + ("/" if name.endswith("/") else ""),
                          "--to", form, "--lora", place, "--force", "--quiet")
    logits = [case.tester.poise("run", *arguments, "--tokens", "1,7,3", "--logits")
              for arguments in ((case.path, "--lora", place), (directory / "m.zt",), (directory / "m",), (case.path,))]
    require(logits[0] == logits[1] == logits[2] != logits[3], "run --lora and run of the merged model differ")

    adapter(place, tensors, use_rslora=True)
    case.require(case.merged(place), {name: base[name] + 2 * (array - base[name]) for name, array in wanted.items()})
    adapter(place, {**thin(Q, pair8 := pair(HIDDEN, HIDDEN, 8)), **thin(DOWN, two)}, rank_pattern={"q_proj": 8},
            alpha_pattern={"layers.0.mlp.down_proj": 2})
    case.require(case.merged(place), {Q + ".weight": base[Q + ".weight"] + 6 / 8 * pair8[0] @ pair8[1],
                                      DOWN + ".weight": base[DOWN + ".weight"] + 2 / 4 * two[0] @ two[1]})
    adapter(place, thin(Q, one, "lora_{}.default.weight"), fan_in_fan_out=True)
    case.require(case.merged(place), {Q + ".weight": base[Q + ".weight"] + 6 / 4 * (one[0] @ one[1]).T})
    rows = pair(HIDDEN, TOKENS)
    head = rng.normal(0, 1, (TOKENS, HIDDEN)).astype(np.float32)
    adapter(place, {**thin(EMBEDDING, rows, "lora_embedding_{}"), "lm_head.weight": head, "model.norm.weight": head[0]})
    case.require(case.merged(place),
                 {EMBEDDING + ".weight": base[EMBEDDING + ".weight"] + 6 / 4 * (rows[0] @ rows[1]).T,
                  "lm_head.weight": head, "model.norm.weight": head[0]})

    # a quantized base, and one of half floats
    quantization, parts_of = awq()
    parts, numbers = parts_of(Q, (HIDDEN, HIDDEN))
    quantized = case.tester.make("quantized", quantization,
                                 {**{name: array for name, array in base.items() if name != Q + ".weight"},
                                  **{Q + end: array for end, array in parts.items()}})
    adapter(place, thin(Q, one))
    case.require(case.merged(place, source=quantized), {Q + ".weight": numbers + 6 / 4 * one[0] @ one[1]})
    halves = case.tester.make("halves", None, {name: array.astype(np.float16) for name, array in base.items()})
    found = json.loads(case.tester.poise("convert", halves, "-o", directory / "h.zt", "--lora", place, "--dry-run",
                                         "--json"))
    require("f16" in json.dumps(found), "a merged matrix keeps its type")

    # what does not fit is told all at once
    adapter(place, {**thin(Q, pair(HIDDEN, HIDDEN, 3)), **thin(DOWN, pair(HIDDEN, HIDDEN)),
                    **thin("model.layers.9.mlp.up_proj", one), "lm_head.weight": head[1:],
                    "other.weight": head, "model.layers.0.mlp.up_proj.lora_B.weight": two[0],
                    "model.layers.0.mlp.up_proj.lora_magnitude_vector": head[0]})
    case.refused(Q, "expected rank 4", DOWN, "B A is [64, 64], the model's matrix is [64, 128]",
                 "model.layers.9.mlp.up_proj: the model has no such matrix", "lm_head.weight", "other.weight",
                 "model.layers.0.mlp.up_proj: lora_A is missing", "lora_magnitude_vector is of a kind")
    adapter(place, tensors, use_dora=True)
    case.refused("use_dora is true")
    adapter(place, tensors, r=0)
    case.refused("r is 0, expected 1 to")
    adapter(place, tensors, rank_pattern={".*q_proj": 8})
    case.refused("the pattern")
    (place / "adapter_config.json").write_text("[1]")
    case.refused("expected an object")
    (place / "adapter_config.json").unlink()
    case.refused("adapter_config.json")


with tempfile.TemporaryDirectory() as made:
    try:
        run(Case(Path(made), sys.argv[1]), Path(made))
    except Failure as failure:
        sys.exit(str(failure))
