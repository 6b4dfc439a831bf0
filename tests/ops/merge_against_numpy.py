#!/usr/bin/env python3
"""Compares `poise merge` with the published formulas, computed by NumPy in float64.

    merge_against_numpy.py POISE

docs/merging.md names the sources. Choices follow the float32 numbers that Poise chooses by: magnitudes of
differences, and the sign of a sum.
"""
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    sys.exit(77)

RANDOM = np.random.default_rng(20261128)
LAYERS = 3
SHAPES = {"model.embed_tokens.weight": (50, 96)}
for layer in range(LAYERS):
    SHAPES[f"model.layers.{layer}.self_attn.q_proj.weight"] = (96, 96)
    SHAPES[f"model.layers.{layer}.mlp.up_proj.weight"] = (130, 96)  # rows that end inside blocks
    SHAPES[f"model.layers.{layer}.input_layernorm.weight"] = (96,)
SHAPES["model.norm.weight"] = (96,)
SHAPES["lm_head.weight"] = (50, 96)
SHAPES["model.long.weight"] = (1, 150_001)


def write(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        kind = {"float32": "F32", "uint16": "BF16"}[array.dtype.name]
        header[name] = {
            "dtype": kind,
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + array.nbytes],
        }
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        raw = data[8 + size + begin : 8 + size + end]
        assert entry["dtype"] == "F32", entry
        tensors[name] = np.frombuffer(raw, np.float32).reshape(entry["shape"])
    return tensors


def widen(array):
    return (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else array


def to_bf16(array):
    return (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


# Random numbers: FNV-1a makes the key, SplitMix64 the numbers.


def random_numbers(seed, model, name, count):
    key = 0xCBF29CE484222325
    for byte in struct.pack("<QQ", seed, model) + name.encode():
        key = (key ^ byte) * 0x100000001B3 % 2**64
    with np.errstate(over="ignore"):
        bits = np.uint64(key) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits ^= bits >> np.uint64(31)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


# Formulas. x: the models' tensors as float64; p(name, model): the parameters of this tensor.


def linear(x, base, p, name):
    weights = [p("weight", i, 1) for i in range(len(x))]
    total = sum(weights) if p("normalize", 0, True) else 1
    return sum(w * t for w, t in zip(weights, x)) / total


def arc(a, b, t, nearly_parallel):
    u, v = a.ravel(), b.ravel()
    cosine = np.clip(u @ v / (np.linalg.norm(u) * np.linalg.norm(v)), -1, 1)
    if nearly_parallel(cosine):
        return (1 - t) * a + t * b
    angle = math.acos(cosine)
    return (math.sin((1 - t) * angle) * a + math.sin(t * angle) * b) / math.sin(angle)


def slerp(x, base, p, name):
    return arc(x[0], x[1], p("t", 0, 0.5), lambda cosine: abs(cosine) > 0.9995)


def nuslerp(x, base, p, name):
    t = p("weight", 1, 1) / (p("weight", 0, 1) + p("weight", 1, 1))
    a, b = (x[0], x[1]) if base is None else (x[0] - base, x[1] - base)
    parallel = lambda cosine: math.sqrt(1 - cosine * cosine) < 1e-8
    if p("nuslerp_flatten", 0, True) or a.ndim < 2:
        merged = arc(a, b, t, parallel)
    else:
        merged = np.stack([arc(row, other, t, parallel) for row, other in zip(a, b)])
    return merged if base is None else base + merged


def karcher(x, base, p, name):
    tolerance = p("tol", 0, 1e-5)
    norms = [np.linalg.norm(t) for t in x]
    units = [(t / n).ravel() for t, n in zip(x, norms) if n > 0]
    if not units:
        return np.zeros_like(x[0])
    mean = sum(units) / len(units)
    mean = units[0] if np.linalg.norm(mean) < tolerance else mean / np.linalg.norm(mean)
    for _ in range(int(p("max_iter", 0, 10))):
        step = np.zeros_like(mean)
        for unit in units:
            cosine = np.clip(mean @ unit, -1, 1)
            angle = math.acos(cosine)
            if angle >= tolerance:
                step += angle / math.sin(angle) * (unit - cosine * mean) / len(units)
        length = np.linalg.norm(step)
        if length < tolerance:
            break
        mean = math.cos(length) * mean + math.sin(length) * step / length
        mean /= np.linalg.norm(mean)
    return (sum(norms) / len(norms) * mean).reshape(x[0].shape)


def model_stock(x, base, p, name):
    def merge(x, base):
        deltas = [(t - base).ravel() for t in x]
        cosines = [
            np.clip(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)), -1, 1)
            for i, a in enumerate(deltas)
            for b in deltas[i + 1 :]
        ]
        cosine, n = sum(cosines) / len(cosines), len(x)
        t = n * cosine / (1 + (n - 1) * cosine)
        return t * sum(x) / n + (1 - t) * base

    if p("filter_wise", 0, False) and base.ndim == 2:
        return np.stack([merge([t[row] for t in x], base[row]) for row in range(len(base))])
    return merge(x, base)


def task(x, base, p, name):
    return mix([t - base for t in x], base, p, False)


def mix(deltas, base, p, elects, normalizes=False):
    weights = [p("weight", i, 1) for i in range(len(deltas))]
    total = sum(weights) or 1
    if elects:
        weighted = [np.float32(d) * np.float32(w) for d, w in zip(deltas, weights)]
        signs = np.zeros_like(weighted[0])
        for part in weighted:
            signs = signs + part
        signs = np.where(signs >= 0, 1, -1)
        masks = [np.sign(part) == signs for part in weighted]
        deltas = [d * m for d, m in zip(deltas, masks)]
        total = sum(w * m for w, m in zip(weights, masks))
        total = np.where(total == 0, 1, total)
    mixed = sum(w * d for w, d in zip(weights, deltas))
    if p("normalize", 0, normalizes):
        mixed = mixed / total
    return base + p("lambda", 0, 1) * mixed


def differences(x, base):
    """Returns the differences as float32, rounded as Poise rounds them."""
    return [(np.float32(t) - np.float32(base)) for t in x]


def ties(x, base, p, name):
    kept = []
    for i, delta in enumerate(differences(x, base)):
        density = p("density", i, 1)
        if density < 1:
            count = max(int(density * delta.size), 1)
            order = np.argsort(-np.abs(delta.ravel()), kind="stable")
            mask = np.zeros(delta.size)
            mask[order[:count]] = 1
            delta = delta * mask.reshape(delta.shape)
        kept.append(np.float64(delta))
    return mix(kept, base, p, True, True)


def dare(elects):
    def merge(x, base, p, name):
        kept = []
        for i, delta in enumerate(differences(x, base)):
            density = p("density", i, 1)
            if density < 1:
                mask = random_numbers(p("seed", 0, 0), i, name, delta.size).reshape(delta.shape) < density
                delta = delta * mask * np.float32(1 / density if p("rescale", 0, True) else 1)
            kept.append(np.float64(delta))
        return mix(kept, base, p, elects)

    return merge


def della(elects):
    def merge(x, base, p, name):
        kept = []
        for i, delta in enumerate(differences(x, base)):
            density, epsilon = p("density", i, 1), p("epsilon", i, 0.15)
            if density < 1:
                rows = delta.reshape(-1, delta.shape[-1])
                order = np.argsort(np.abs(rows), axis=1, kind="stable")
                ranks = np.argsort(order, axis=1, kind="stable") / (rows.shape[1] - 1)
                keep = density - epsilon + 2 * epsilon * ranks
                mask = random_numbers(p("seed", 0, 0), i, name, delta.size).reshape(rows.shape) < keep
                scale = np.float32(1 / keep) if p("rescale", 0, True) else 1
                delta = (rows * mask * scale).reshape(delta.shape)
            kept.append(np.float64(delta))
        return mix(kept, base, p, elects)

    return merge


FORMULAS = {
    "linear": linear,
    "slerp": slerp,
    "nuslerp": nuslerp,
    "karcher": karcher,
    "model_stock": model_stock,
    "task_arithmetic": task,
    "ties": ties,
    "dare_linear": dare(False),
    "dare_ties": dare(True),
    "della_linear": della(False),
    "della": della(True),
}


class Checker:
    def __init__(self, poise, folder):
        self.poise, self.folder, self.cases = poise, folder, 0
        base = {name: np.float32(RANDOM.normal(0, 0.1, shape)) for name, shape in SHAPES.items()}
        self.models = {"base": base}
        for model, deviation in (("a", 0.01), ("b", 0.02), ("c", 0.3)):
            change = lambda shape: RANDOM.normal(0, deviation, shape) * (RANDOM.random(shape) < 0.7)
            self.models[model] = {name: np.float32(t + change(t.shape)) for name, t in base.items()}
        # Coarse numbers: many differences are equal, and many are 0.
        for model in ("base", "a", "b", "c"):
            self.models["coarse_" + model] = {name: to_bf16(t) for name, t in self.models[model].items()}
        for model, tensors in self.models.items():
            write(folder / f"{model}.safetensors", tensors)

    def run(self, *arguments):
        output = self.folder / "out.safetensors"
        command = [self.poise, "merge", *arguments, "-o", str(output), "--force", "--quiet", "--dtype", "f32"]
        subprocess.run(command, cwd=self.folder, check=True)
        return read(output)

    def compare(self, what, merged, expected):
        self.cases += 1
        assert list(merged) == list(expected), (what, list(merged))
        for name, numbers in expected.items():
            error = np.abs(merged[name] - numbers)
            allowed = 6e-7 * np.abs(numbers) + 6e-7
            if not np.all(error <= allowed):
                worst = np.unravel_index(np.argmax(error - allowed), error.shape)
                sys.exit(f"{what}: {name}{list(map(int, worst))}: {merged[name][worst]}, expected {numbers[worst]}")

    def numbers(self, model, name):
        return np.float64(widen(self.models[model][name]))

    def check(self, method, models, base=None, **parameters):
        """Checks the command. A parameter is a number, or a list of one for each model."""

        def p(name, model, usual):
            value = parameters.get(name, usual)
            return value[model] if isinstance(value, list) else value

        weights = parameters.get("weight")
        arguments = [f"{m}.safetensors" + (f":{weights[i]}" if weights else "") for i, m in enumerate(models)]
        arguments += ["--method", method] + (["--base", f"{base}.safetensors"] if base else [])
        for name, value in parameters.items():
            if name == "seed":
                arguments += ["--seed", str(value)]
            elif name != "weight":
                arguments += ["-p", f"{name}={json.dumps(value)}"]
        expected = {
            name: FORMULAS[method](
                [self.numbers(m, name) for m in models], self.numbers(base, name) if base else None, p, name
            )
            for name in SHAPES
        }
        self.compare(" ".join(arguments), self.run(*arguments), expected)


def check_command(checker):
    checker.check("linear", ["a", "b", "c"])
    checker.check("linear", ["a", "b", "c"], weight=[0.5, -0.25, 1])
    checker.check("linear", ["coarse_a", "b"], weight=[0.5, 0.25], normalize=False)
    checker.check("slerp", ["a", "c"], t=0.3)
    checker.check("slerp", ["a", "b"])
    checker.check("nuslerp", ["a", "c"], weight=[0.2, 0.6])
    checker.check("nuslerp", ["a", "c"], weight=[0.2, 0.6], nuslerp_flatten=False)
    checker.check("nuslerp", ["b", "c"], base="base", weight=[1, 3])
    checker.check("nuslerp", ["b", "c"], base="base", nuslerp_flatten=False)
    checker.check("karcher", ["a", "b", "c"])
    checker.check("karcher", ["a", "b", "c"], max_iter=1)
    checker.check("karcher", ["a", "b", "c", "base"], tol=1e-9, max_iter=50)
    checker.check("model_stock", ["a", "b"], base="base")
    checker.check("model_stock", ["a", "b", "c"], base="base", filter_wise=True)
    checker.check("task_arithmetic", ["a", "b"], base="base", weight=[0.7, -0.3])
    checker.check("task_arithmetic", ["a", "b", "c"], base="base", **{"lambda": 0.5, "normalize": True})
    for prefix in ("", "coarse_"):
        models, base = [prefix + m for m in "abc"], prefix + "base"
        checker.check("ties", models, base=base)
        checker.check("ties", models, base=base, density=0.3, weight=[1, 0.5, 0.2])
        checker.check("ties", models, base=base, density=0.05, normalize=False, **{"lambda": 1.5})
        checker.check("dare_linear", models, base=base, density=0.4, seed=7)
        checker.check("dare_linear", models, base=base, density=0.4, rescale=False)
        checker.check("dare_ties", models, base=base, density=0.6, weight=[0.5, 0.5, 1], normalize=True)
        checker.check("della_linear", models, base=base, density=0.5, epsilon=0.1)
        checker.check("della", models, base=base, density=0.3, seed=2**63 + 5, **{"lambda": 0.9})


# Recipes in mergekit's YAML. JSON is a part of YAML. A setting is a number, a gradient, or a list of filters.


def evaluate(setting, name, position):
    if isinstance(setting, list) and isinstance(setting[0], dict):
        for case in setting:
            if case.get("filter", "*") == "*" or case["filter"] in name:
                return evaluate(case["value"], name, position)
        return None
    if isinstance(setting, list):
        place = position * (len(setting) - 1)
        below = int(place)
        above = min(below + 1, len(setting) - 1)
        return (1 - place + below) * setting[below] + (place - below) * setting[above]
    return setting


def split(name):
    """The layer, and the name after it."""
    words = name.split(".")
    return (int(words[2]), ".".join(words[3:])) if words[1] == "layers" else (None, name)


def check_recipe(checker, recipe):
    method, base = recipe["merge_method"], recipe.get("base_model", "").removesuffix(".safetensors") or None
    slices = recipe.get("slices") or [{"sources": [dict(m, layer_range=[0, LAYERS]) for m in recipe["models"]]}]
    expected, number = {}, 0

    def add(name, piece, position, layer):
        rest = split(name)[1]
        inputs = [s for s in piece["sources"] if s["model"].removesuffix(".safetensors") != base or method == "slerp"]

        def name_in(source):
            return name if layer is None else f"model.layers.{source['layer_range'][0] + layer}.{rest}"

        def p(parameter, model, usual):
            for level in (inputs[model], piece, recipe):
                setting = level.get("parameters", {}).get(parameter)
                value = None if setting is None else evaluate(setting, name, position)
                if value is not None:
                    return value
            return usual

        x = [checker.numbers(s["model"].removesuffix(".safetensors"), name_in(s)) for s in inputs]
        b = checker.numbers(base, name_in(piece["sources"][0])) if base else None
        expected[name] = x[0] * p("scale", 0, 1) if method == "passthrough" else FORMULAS[method](x, b, p, name)

    for name in SHAPES:
        if split(name)[0] is not None:
            if number == 0:
                for piece in slices:
                    begin, end = piece["sources"][0]["layer_range"]
                    for layer in range(end - begin):
                        position = 1 if end - begin == 1 else layer / (end - begin - 1)
                        for other in SHAPES:
                            if split(other)[0] == 0:
                                add(f"model.layers.{number}.{split(other)[1]}", piece, position, layer)
                        number += 1
        else:
            is_last = name in ("model.norm.weight", "lm_head.weight")
            add(name, slices[-1 if is_last else 0], 1.0 if is_last else 0.0, None)
    (checker.folder / "recipe.yaml").write_text(json.dumps(recipe))
    checker.compare(json.dumps(recipe), checker.run("recipe.yaml"), expected)


def check_recipes(checker):
    def models(**parameters):
        return [
            {"model": f"{m}.safetensors", "parameters": {k: v[i] for k, v in parameters.items()}}
            for i, m in enumerate("abc")
        ]

    base = {"base_model": "base.safetensors"}
    gradient = [
        {"filter": "self_attn", "value": [0, 0.5, 0.3, 0.7, 1]},
        {"filter": "mlp", "value": [1, 0]},
        {"value": 0.5},
    ]
    check_recipe(checker, {"models": models()[:2], "merge_method": "slerp", "parameters": {"t": gradient}})
    check_recipe(
        checker,
        {
            "models": [
                {"model": "base.safetensors"},
                *models(density=[[1, 0.7, 0.1], 0.5, 0.33], weight=[1, [0, 1], gradient]),
            ],
            "merge_method": "ties",
            **base,
            "parameters": {"normalize": True, "int8_mask": True},
            "dtype": "float16",
        },
    )
    check_recipe(
        checker,
        {"models": models(weight=[[1, 0], [0, 1], 0.5]), "merge_method": "linear", "parameters": {"normalize": False}},
    )
    check_recipe(checker, {"models": models(density=[0.3, 0.4, 0.5]), "merge_method": "dare_ties", **base})
    piece = lambda model, begin, end, **more: {"model": f"{model}.safetensors", "layer_range": [begin, end], **more}
    check_recipe(
        checker,
        {
            "slices": [
                {"sources": [piece("a", 0, 2)]},
                {
                    "sources": [
                        piece("b", 1, 3, parameters={"scale": [{"filter": "up_proj", "value": 0.5}, {"value": 1}]})
                    ]
                },
                {"sources": [piece("c", 1, 2)]},
            ],
            "merge_method": "passthrough",
        },
    )
    check_recipe(
        checker,
        {
            "slices": [
                {"sources": [piece("a", 0, 2), piece("b", 1, 3)], "parameters": {"t": [0, 1]}},
                {"sources": [piece("c", 2, 3), piece("base", 2, 3)], "parameters": {"t": 0.25}},
            ],
            "merge_method": "slerp",
        },
    )


def main():
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(folder))
        check_command(checker)
        check_recipes(checker)
        print(f"{checker.cases} merges are equal")


if __name__ == "__main__":
    main()
