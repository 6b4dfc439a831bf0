"""Merges random LoRA adapters, as PEFT writes them, with the command, and compares with PEFT's formula in NumPy.

    lora_merges.py POISE
"""
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

from quantized_directories import (
    HIDDEN,
    INNER,
    MATRICES,
    OTHERS,
    TOKENS,
    Failure,
    Tester,
    Typed,
    awq,
    load,
    np,
    require,
    rng,
    save,
)

Q, DOWN = "model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj"
EMBEDDING = "model.embed_tokens"


def adapter(directory, tensors, **config):
    directory.mkdir(exist_ok=True)
    (directory / "adapter_config.json").write_text(
        json.dumps({"peft_type": "LORA", "r": 4, "lora_alpha": 6, "target_modules": ["q_proj"], **config})
    )
    save(
        directory / "adapter_model.safetensors", {"base_model.model." + name: array for name, array in tensors.items()}
    )
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
        self.tester.poise(
            "convert",
            source or self.path,
            "-o",
            target,
            "--force",
            "--quiet",
            *options,
            *([] if source is None else ["--dtype", "f32"]),
        )
        return load(target)

    @staticmethod
    def loaded(path):
        return load(path)

    def require(self, found, changes, tolerance=2e-6):
        for name, array in self.base.items():
            want = changes.get(name, array)
            require(
                found[name].dtype == array.dtype and np.allclose(found[name], want, rtol=0, atol=tolerance),
                f"{name} is off by {np.abs(found[name] - want).max()}",
            )

    def refused(self, *texts, source=None, where=None):
        message = self.tester.poise(
            "convert",
            source or self.path,
            "-o",
            self.directory / "no.safetensors",
            "--lora",
            where or self.directory / "a",
            fails=True,
        )
        for text in texts:
            require(text in message, f"no {text!r} in {message}")


def run(case, directory):
    base, place = case.base, directory / "a"
    one, two = pair(HIDDEN, HIDDEN), pair(HIDDEN, INNER)
    tensors = {**thin(Q, one), **thin(DOWN, two)}
    adapter(place, tensors)
    wanted = {
        Q + ".weight": base[Q + ".weight"] + 6 / 4 * one[0] @ one[1],
        DOWN + ".weight": base[DOWN + ".weight"] + 6 / 4 * two[0] @ two[1],
    }
    case.require(case.merged(place), wanted)
    case.require(case.merged(place / "adapter_model.safetensors"), wanted)
    half = {name: base[name] + -0.5 * (array - base[name]) for name, array in wanted.items()}
    case.require(case.merged(f"{place}:-0.5"), half)
    both = {name: base[name] + 0.25 * (array - base[name]) for name, array in wanted.items()}
    case.require(case.merged(place, f"{place}:-0.75"), both)

    # every output format, and run, which needs no output
    for form, name in (("zt", "m.zt"), ("huggingface", "m/")):
        case.tester.poise(
            "convert",
            case.path,
            "-o",
            str(directory / name) + ("/" if name.endswith("/") else ""),
            "--to",
            form,
            "--lora",
            place,
            "--force",
            "--quiet",
        )
    logits = [
        case.tester.poise("run", *arguments, "--tokens", "1,7,3", "--logits")
        for arguments in ((case.path, "--lora", place), (directory / "m.zt",), (directory / "m",), (case.path,))
    ]
    require(logits[0] == logits[1] == logits[2] != logits[3], "run --lora and run of the merged model differ")

    adapter(place, tensors, use_rslora=True)
    case.require(case.merged(place), {name: base[name] + 2 * (array - base[name]) for name, array in wanted.items()})
    adapter(
        place,
        {**thin(Q, pair8 := pair(HIDDEN, HIDDEN, 8)), **thin(DOWN, two)},
        rank_pattern={"q_proj": 8},
        alpha_pattern={"layers.0.mlp.down_proj": 2},
    )
    case.require(
        case.merged(place),
        {
            Q + ".weight": base[Q + ".weight"] + 6 / 8 * pair8[0] @ pair8[1],
            DOWN + ".weight": base[DOWN + ".weight"] + 2 / 4 * two[0] @ two[1],
        },
    )
    adapter(place, thin(Q, one, "lora_{}.default.weight"))
    case.require(case.merged(place), {Q + ".weight": base[Q + ".weight"] + 6 / 4 * one[0] @ one[1]})
    rows = pair(HIDDEN, TOKENS)
    head = rng.normal(0, 1, (TOKENS, HIDDEN)).astype(np.float32)
    adapter(place, {**thin(EMBEDDING, rows, "lora_embedding_{}"), "lm_head.weight": head, "model.norm.weight": head[0]})
    case.require(
        case.merged(place),
        {
            EMBEDDING + ".weight": base[EMBEDDING + ".weight"] + 6 / 4 * (rows[0] @ rows[1]).T,
            "lm_head.weight": head,
            "model.norm.weight": head[0],
        },
    )

    # PEFT saves the embedding and the output matrix that it adapts (get_peft_model_state_dict, save_embedding_layers)
    saved = rng.normal(0, 1, (TOKENS, HIDDEN)).astype(np.float32)
    columns = pair(TOKENS, HIDDEN)
    adapter(
        place,
        {
            **thin(EMBEDDING, rows, "lora_embedding_{}"),
            EMBEDDING + ".base_layer.weight": saved,
            **thin("lm_head", columns),
            "lm_head.base_layer.weight": head,
        },
    )
    case.require(
        case.merged(place),
        {
            EMBEDDING + ".weight": saved + 6 / 4 * (rows[0] @ rows[1]).T,
            "lm_head.weight": head + 6 / 4 * columns[0] @ columns[1],
        },
    )

    # the file of an adapter, in the directory of a model
    adapter(place, thin(Q, one))
    both = case.tester.make("both", None, base)
    for name in ("adapter_config.json", "adapter_model.safetensors"):
        shutil.copy(place / name, both)
    case.require(
        case.merged(both / "adapter_model.safetensors"), {Q + ".weight": base[Q + ".weight"] + 6 / 4 * one[0] @ one[1]}
    )

    # a quantized base, and one of half floats
    quantization, parts_of = awq()
    parts, numbers = parts_of(Q, (HIDDEN, HIDDEN))
    quantized = case.tester.make(
        "quantized",
        quantization,
        {
            **{name: array for name, array in base.items() if name != Q + ".weight"},
            **{Q + end: array for end, array in parts.items()},
        },
    )
    adapter(place, thin(Q, one))
    case.require(case.merged(place, source=quantized), {Q + ".weight": numbers + 6 / 4 * one[0] @ one[1]})
    halves = case.tester.make("halves", None, {name: array.astype(np.float16) for name, array in base.items()})
    found = json.loads(
        case.tester.poise("convert", halves, "-o", directory / "h.zt", "--lora", place, "--dry-run", "--json")
    )
    require("f16" in json.dumps(found), "a merged matrix keeps its type")

    # all misfits are reported at once
    adapter(
        place,
        {
            **thin(Q, pair(HIDDEN, HIDDEN, 3)),
            **thin(DOWN, pair(HIDDEN, HIDDEN)),
            **thin("model.layers.9.mlp.up_proj", one),
            "lm_head.weight": head[1:],
            "other.weight": head,
            "model.layers.0.mlp.up_proj.lora_B.weight": two[0],
            "model.layers.0.mlp.up_proj.lora_magnitude_vector": head[0],
        },
    )
    case.refused(
        Q,
        "expected rank 4",
        DOWN,
        "B A is [64, 64], the model's matrix is [64, 128]",
        "model.layers.9.mlp.up_proj: the model has no such matrix",
        "lm_head.weight",
        "other.weight",
        "model.layers.0.mlp.up_proj: lora_A is missing",
        "lora_magnitude_vector is of a kind",
    )
    adapter(place, tensors, use_dora=True)
    case.refused("use_dora is true")
    adapter(place, tensors, init_lora_weights="pissa_niter_4")
    case.refused("init_lora_weights", "pissa_niter_4")
    adapter(place, tensors, r=0)
    case.refused("r is 0, expected 1 to")
    adapter(place, tensors, rank_pattern={"q_proj(": 8})
    case.refused("rank_pattern", "q_proj(")
    (place / "adapter_config.json").write_text("{}")
    case.refused("r is missing", "lora_alpha is missing")
    (place / "adapter_config.json").write_text("[1]")
    case.refused("expected an object")
    (place / "adapter_config.json").unlink()
    case.refused("adapter_config.json")


def orders(case, directory):
    """Tests fan_in_fan_out by PEFT's update_layer(): a Linear has [out, in], a Conv1D [in, out], for any file."""
    place = directory / "orders"

    def find_warning(source, said):
        report = json.loads(
            case.tester.poise("convert", source, "-o", directory / "o.zt", "--lora", place, "--dry-run", "--json")
        )
        warned = [text for text in report["warnings"] if "fan_in_fan_out" in text]
        require(len(warned) == 1 and warned[0].startswith(f"fan_in_fan_out is {said}, "), f"{report['warnings']}")
        return warned[0]

    # Linear: square and not
    two = {module: pair(*MATRICES[module]) for module in (Q, DOWN)}
    tensors = {key: array for module, matrices in two.items() for key, array in thin(module, matrices).items()}
    wanted = {
        module + ".weight": case.base[module + ".weight"] + 6 / 4 * matrices[0] @ matrices[1]
        for module, matrices in two.items()
    }
    adapter(place, tensors, target_modules=["q_proj", "down_proj"], fan_in_fan_out=True)
    case.require(case.merged(place), wanted)
    require("and 1 more as [out, in]" in find_warning(case.path, "true"), "the other matrix is not counted")

    # Conv1D of GPT-2
    width, layer = 32, "transformer.h.0."
    shapes = {"attn.c_attn": (width, 3 * width), "attn.c_proj": (width, width), "mlp.c_fc": (width, 4 * width)}
    shapes["mlp.c_proj"] = (4 * width, width)
    normal = lambda *shape: rng.normal(0, 0.3, shape).astype(np.float32)
    gpt = {"transformer.wte.weight": normal(TOKENS, width), "transformer.wpe.weight": normal(16, width)}
    for norm in ("transformer.ln_f", layer + "ln_1", layer + "ln_2"):
        gpt.update({norm + ".weight": normal(width), norm + ".bias": normal(width)})
    for module, shape in shapes.items():
        gpt.update({f"{layer}{module}.weight": normal(*shape), f"{layer}{module}.bias": normal(shape[1])})
    config = {"model_type": "gpt2", "n_embd": width, "n_head": 4, "n_layer": 1, "n_positions": 16, "vocab_size": TOKENS}
    matrices = {layer + module: pair(shape[1], shape[0]) for module, shape in shapes.items()}
    tensors = {key: array for module, thin_ones in matrices.items() for key, array in thin(module, thin_ones).items()}
    wanted = {
        name: array + (6 / 4 * (matrices[name[:-7]][0] @ matrices[name[:-7]][1]).T if name[:-7] in matrices else 0)
        for name, array in gpt.items()
    }
    path = directory / "gpt"
    path.mkdir(exist_ok=True)
    save(path / "model.safetensors", gpt)
    for model_type in ("gpt2", "another"):  # without a family the shapes decide; for a square matrix, the file
        (path / "config.json").write_text(json.dumps({**config, "model_type": model_type}))
        for said in (True, False):
            adapter(place, tensors, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=said)
            found = case.merged(place, source=path)
            for name, array in wanted.items():
                if model_type == "another" and not said and name == layer + "attn.c_proj.weight":
                    array = gpt[name] + 6 / 4 * matrices[name[:-7]][0] @ matrices[name[:-7]][1]
                require(np.allclose(found[name], array, rtol=0, atol=2e-6), f"{model_type}, {said}: {name}")
        require("as [in, out]" in find_warning(path, "false"), "[in, out]")
    adapter(place, tensors, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)
    report = json.loads(case.tester.poise("verify", place, "--json"))
    require("fan_in_fan_out" not in json.dumps(report), f"{report}")


def bits_of(numbers):
    """Returns the bits of the nearest bfloat16 numbers, ties to even."""
    bits = np.ascontiguousarray(numbers, np.float32).view(np.uint32)
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


def bf16_numbers(numbers):
    return (bits_of(numbers) << 16).astype(np.uint32).view(np.float32)


def types(case, directory):
    """Tests types: the sum is float32 and then gets the output's type, by default that of the base's matrix."""
    place, poise = directory / "types", case.tester.poise
    one, two = pair(HIDDEN, HIDDEN), pair(HIDDEN, INNER)
    adapter(place, {**thin(Q, one), **thin(DOWN, two)})
    products = {Q + ".weight": 6 / 4 * one[0] @ one[1], DOWN + ".weight": 6 / 4 * two[0] @ two[1]}

    def convert(source, name, *options):
        poise("convert", source, "-o", directory / name, "--force", "--quiet", *options)
        return directory / name

    def equal(a, b):
        return json.loads(poise("diff", a, b, "--json", "--values"))["equal"]

    # bfloat16
    base = {name: bf16_numbers(array) for name, array in case.base.items()}
    sums = {name: array + products.get(name, np.float32(0)) for name, array in base.items()}
    stored = {name: Typed("BF16", bits_of(array).astype(np.uint16)) for name, array in base.items()}
    source = case.tester.make("brain", None, stored)
    wide = case.tester.make("wide", None, base)
    found = load(convert(source, "sums.safetensors", "--dtype", "f32", "--lora", place))
    for name, array in sums.items():
        require(np.allclose(found[name], array, rtol=0, atol=2e-6), f"{name}: the sum is rounded before it is float32")
    require(not np.allclose(found[Q + ".weight"], bf16_numbers(sums[Q + ".weight"]), rtol=0, atol=1e-4), "no case")
    for options in (["--quantize", "q8_0"], ["--dtype", "f16"], ["--quantize", "q5_0", "--keep", Q + ".weight=f32"]):
        a = convert(source, "a.zt", "--lora", place, *options)
        b = convert(wide, "b.zt", "--lora", place, *options)
        require(equal(a, b), f"{options}: another sum than that of a float32 base with the same numbers")
    own = convert(source, "own.safetensors", "--lora", place)
    rows = {row["name"]: row["type"] for row in json.loads(poise("inspect", own, "--json"))["tensors"]}
    require(set(rows.values()) == {"bf16"}, f"{rows}")
    found = load(convert(own, "own-wide.safetensors", "--dtype", "f32"))
    for name, array in sums.items():
        step = np.maximum(np.abs(array), 2.0**-126) * 2.0**-8  # half a unit in the last of 8 bits
        require((np.abs(found[name] - array) <= step + 2e-6).all(), f"{name}: not the nearest bfloat16 number")
    twice = load(convert(source, "twice.safetensors", "--dtype", "f32", "--lora", place, "--lora", f"{place}:-1"))
    require(np.allclose(twice[Q + ".weight"], base[Q + ".weight"], rtol=0, atol=2e-6), "two adapters, one sum")

    # float64: numbers stay exact where the adapter adds 0
    adapter(directory / "small", thin(Q, pair(HIDDEN, HIDDEN)), lora_alpha=2.0**-30)
    double = {"x.weight": rng.normal(0, 1, (HIDDEN, HIDDEN))}
    save(directory / "double.safetensors", {Q + ".weight": Typed("F64", double["x.weight"])})
    target = convert(directory / "double.safetensors", "double-merged.safetensors", "--lora", directory / "small")
    data = target.read_bytes()
    length = int.from_bytes(data[:8], "little")
    require(b'"F64"' in data[8 : 8 + length], "a float64 matrix keeps its type")
    found = np.frombuffer(data[8 + length :], np.float64).reshape(HIDDEN, HIDDEN)
    require(0 < np.abs(found - double["x.weight"]).max() < 1e-7, "a float64 matrix with its digits")

    # codes keep their types, and the file keeps its general.file_type
    quantized = convert(wide, "base.gguf", "--quantize", "q8_0", "--keep", DOWN + ".weight=q5_1")
    numbers = load(convert(quantized, "base.safetensors", "--dtype", "f32"))
    sums = {name: array + products.get(name, np.float32(0)) for name, array in numbers.items()}
    label = lambda path: next(
        row["value"]
        for row in json.loads(poise("inspect", path, "--json", "--keys"))["keys"]
        if row["key"] == "general.file_type"
    )
    for form in ("gguf", "zt"):
        merged = convert(quantized, f"merged.{form}", "--lora", place)
        rows = {row["name"]: row["type"] for row in json.loads(poise("inspect", merged, "--json"))["tensors"]}
        require((rows[Q + ".weight"], rows[DOWN + ".weight"]) == ("q8_0", "q5_1"), f"{rows}")
        require(form != "gguf" or label(merged) == label(quantized), "another label")
        found = load(convert(merged, "merged.safetensors", "--dtype", "f32"))
        for name, bits in ((Q + ".weight", 8), (DOWN + ".weight", 5)):
            blocks = sums[name].reshape(-1, 32)
            spread = 2 * np.abs(blocks).max(1) / 254 if bits == 8 else (blocks.max(1) - blocks.min(1)) / 31
            error = np.abs(found[name].reshape(-1, 32) - blocks).max(1)
            # half a step, and float16 scales (and minimums, of q5_1) that are off by 2^-11 of themselves
            bound = 0.5 * spread + 2.0**-11 * (np.abs(blocks).max(1) + 31 * spread) + 1e-6
            require((error <= bound).all(), f"{name} in {form}: {np.max(error / bound)} of the bound")
        for name in numbers:
            require(name in products or np.array_equal(found[name], numbers[name]), f"{name} has changed")
    report = json.loads(poise("convert", quantized, "-o", directory / "r.gguf", "--force", "--lora", place, "--json"))
    require(
        sorted((row["type"], row["matrices"]) for row in report["merged"]) == [("q5_1", 1), ("q8_0", 1)],
        f"{report['merged']}",
    )
    text = poise("convert", quantized, "-o", directory / "r.gguf", "--force", "--lora", place, "--dry-run")
    require("2 matrices merged with adapters: " in text and "1 as q5_1" in text and "1 as q8_0" in text, text)
    rows = json.loads(poise("inspect", convert(quantized, "f.zt", "--lora", place, "--dtype", "f16"), "--json"))
    require({row["type"] for row in rows["tensors"]} == {"f16"}, "a type that is asked for")

    # sums that are not finite although all terms are
    large = {Q + ".weight": np.full((HIDDEN, HIDDEN), 3e38, np.float32)}
    save(directory / "large.safetensors", large)
    adapter(directory / "huge", thin(Q, (np.ones((HIDDEN, 4), np.float32), np.ones((4, HIDDEN), np.float32))))
    adapter(directory / "wide-product", thin(Q, tuple(np.full(m.shape, 1e25, np.float32) for m in one)))
    for source, factor in (
        (directory / "large.safetensors", f"{directory / 'huge'}:1e38"),
        (wide, directory / "wide-product"),
    ):
        out = directory / "no.safetensors"
        message = poise("convert", source, "-o", out, "--lora", factor, fails=True)
        require(f"tensor {Q}.weight: element 0 is not finite after the adapter's change" in message, message)
        require(not out.exists(), "an output")
        require(Q in poise("run", wide, "--lora", factor, "--tokens", "1", "--logits", fails=True), "run")
    # numbers of the base or the adapter that are not finite stay as they are, as in PEFT
    infinite = dict(base)
    infinite[Q + ".weight"] = base[Q + ".weight"].copy()
    infinite[Q + ".weight"][0, 0] = np.inf
    found = load(convert(case.tester.make("infinite", None, infinite), "i.safetensors", "--lora", place))
    require(np.isinf(found[Q + ".weight"][0, 0]) and np.isfinite(found[Q + ".weight"]).sum() == HIDDEN**2 - 1, "inf")


def key_of(patterns, module):
    """Returns the key as get_pattern_key() of PEFT does."""
    return next((key for key in patterns if re.match(rf"(.*\.)?({key})$", module)), None)


def patterns(case, directory):
    """Compares rank_pattern, alpha_pattern and target_modules with Python's own regular expressions."""
    place = directory / "patterns"
    modules = list(MATRICES)
    for ranks, alphas in (
        ({r".*\.q_proj": 2, "k_proj|v_proj": 3, "proj": 9}, {r"layers\.\d+\.mlp\.(up|gate)_proj": 11.5}),
        (
            {"^model.layers.0.self_attn.q_proj": 5, "self_attn": 7, r"(?!.*down)mlp.*": 6},
            {"^layers.0.mlp.up_proj": 3, r"[a-k]_proj": 2, r"\w+$": 8},
        ),
        (
            {"model.layers.0.mlp.up_proj": 2, "o_proj": 1, "_proj": 3, "layers.0.mlp.gate.proj": 5, "": 4},
            {"q_proj$": -1, "q_proj": 5},
        ),
    ):
        tensors, wanted = {}, {}
        for module in modules:
            rank = ranks.get(key_of(ranks, module), 4)
            alpha = alphas.get(key_of(alphas, module), 6)
            out, inside = MATRICES[module]
            matrices = pair(out, inside, rank)
            tensors.update(thin(module, matrices))
            wanted[module + ".weight"] = case.base[module + ".weight"] + alpha / rank * matrices[0] @ matrices[1]
        require(len({len(tensors[f"{module}.lora_A.weight"]) for module in modules}) > 2, "patterns that match nothing")
        case.require(
            case.merged(adapter(place, tensors, rank_pattern=ranks, alpha_pattern=alphas, target_modules="all-linear")),
            wanted,
        )

    two = {module: pair(*MATRICES[module]) for module in modules}
    tensors = {key: array for module, matrices in two.items() for key, array in thin(module, matrices).items()}
    for targets in (
        ["q_proj", "down_proj"],
        r".*\.(self_attn|mlp)\.(q|up)_proj",
        "q_proj",
        ["mlp.up_proj", "proj"],
        modules,
        r"(?:.*?(?:layers).*?(?:self_attn|mlp).*?proj)",
    ):
        named = [
            module
            for module in modules
            if (
                re.fullmatch(targets, module)
                if isinstance(targets, str)
                else any(module == one or module.endswith("." + one) for one in targets)
            )
        ]
        adapter(place, tensors, target_modules=targets)
        report = json.loads(case.tester.poise("verify", place, "--json"))
        warnings = json.dumps(report)
        left = len(modules) - len(named)
        require(("target_modules does not name" in warnings) == (left > 0), f"{targets}: {warnings}")
        require(left < 2 or f"and {left - 1} more" in warnings, f"{targets}: {warnings}")
        require(
            not named
            or "PEFT leaves them out" not in warnings
            or all(f"does not name {module}" not in warnings for module in named),
            warnings,
        )


def fields(case, directory):
    """Gives every field of adapter_config.json impossible values. inspect must open the directory anyway."""
    place = directory / "fields"
    tensors = thin(Q, pair(HIDDEN, HIDDEN))
    wrong = {
        "peft_type": 3,
        "r": -1,
        "lora_alpha": "x",
        "use_rslora": 1,
        "fan_in_fan_out": "no",
        "rank_pattern": [],
        "alpha_pattern": {"q_proj": None},
        "target_modules": {"a": 1},
        "base_model_name_or_path": ["x"],
        "use_dora": 0,
        "ensure_weight_tying": "no",
    }
    for key, value in wrong.items():
        adapter(place, tensors, **{key: value})
        case.refused(key, "expected", where=place)
    for key, value in {
        "r": 1.5,
        "rank_pattern": {"q_proj": 2**40},
        "target_modules": [3],
        "lora_alpha": True,
    }.items():
        adapter(place, tensors, **{key: value})
        case.refused(key, "expected", where=place)
    adapter(place, tensors, **wrong)
    case.refused(*wrong, f"{len(wrong)} ", where=place)
    report = case.tester.poise("verify", place, "--json", fails=None)
    require(all(key in report for key in wrong), report)
    case.tester.poise("inspect", place)
    for key, value in {
        "peft_type": "LOHA",
        "use_dora": True,
        "lora_bias": True,
        "use_qalora": True,
        "layer_replication": [[0, 1]],
        "megatron_config": {"a": 1},
        "alora_invocation_tokens": [1],
        "target_parameters": ["a"],
        "trainable_token_indices": [1],
    }.items():
        adapter(place, tensors, **{key: value})
        case.refused(key, "supported", where=place)
    adapter(place, tensors, rank_pattern={f"x{i}": 4 for i in range(5000)})
    case.refused("rank_pattern has 5000 patterns", where=place)
    adapter(place, tensors, rank_pattern={"((((q*)*)*)*)*x" + "(.*)*" * 20 + "y": 4})
    case.tester.poise("verify", place, fails=None)  # ends
    adapter(place, tensors, base_model_name_or_path="someone/base", r=4)
    found = json.loads(case.tester.poise("inspect", place, "--json"))
    require(
        found["adapter"]
        == {"kind": "lora", "alpha": 6.0, "rank": 4, "targets": ["q_proj"], "matrices": 1, "base_model": "someone/base"}
        and found["warnings"] == [],
        f"{found}",
    )
    require(found["attributes"]["adapter_config"]["lora_alpha"] == 6, "adapter_config")
    case.tester.poise("verify", place)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        try:
            for check in (run, orders, types, patterns, fields):
                check(Case(Path(made), sys.argv[1]), Path(made))
        except Failure as failure:
            sys.exit(str(failure))
