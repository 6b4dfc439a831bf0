"""Merges random adapters in GGUF files, as llama.cpp's convert_lora_to_gguf.py writes them, by the command and NumPy.

    gguf_adapters.py POISE

This script computes the order of rows and the shapes as llama.cpp's scripts do.
"""
import json
import struct
import sys
import tempfile
from pathlib import Path

from lora_merges import DOWN, EMBEDDING, Case, adapter, pair, thin
from quantized_directories import CONFIG, HEADS, HIDDEN, INNER, LAYERS, TOKENS, Failure, np, require, rng, save

U32, F32, TEXT, ARRAY = 4, 6, 8, 9


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    body = text(value) if kind == TEXT else struct.pack("<f" if kind == F32 else "<I", value)
    return text(key) + struct.pack("<I", kind) + body


def gguf(path, entries, tensors):
    """Writes tensors of float32. GGUF lists dimensions in reverse order."""
    infos, data = b"", b""
    for name, array in tensors.items():
        array = np.ascontiguousarray(array, np.float32)
        infos += (
            text(name)
            + struct.pack("<I", array.ndim)
            + struct.pack(f"<{array.ndim}Q", *array.shape[::-1])
            + struct.pack("<IQ", 0, len(data))
        )
        data += array.tobytes() + b"\0" * (-array.nbytes % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries) + infos
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)
    return path


def keys(alpha=6.0, architecture="llama", kind="lora", general="adapter"):
    rows = [
        entry("general.architecture", TEXT, architecture),
        entry("general.type", TEXT, general),
        entry("adapter.type", TEXT, kind),
        entry("general.base_model.0.name", TEXT, "Tiny Base"),
    ]
    return rows if alpha is None else [*rows, entry("adapter.lora.alpha", F32, alpha)]


def permuted(rows, heads=HEADS):
    """Orders rows as LlamaModel.permute() of convert_hf_to_gguf.py does."""
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def lora(name, matrices):
    return {name + ".lora_a": matrices[1], name + ".lora_b": matrices[0]}


def refused(case, base, path, *texts):
    message = case.tester.poise("convert", base, "-o", case.directory / "no.safetensors", "--lora", path, fails=True)
    for one in texts:
        require(one in message, f"no {one!r} in {message}")


def run(case, directory):
    base, place = case.base, directory / "a.gguf"
    names = [f"model.layers.0.self_attn.{name}.weight" for name in ("q_proj", "k_proj", "v_proj")]
    thins = [pair(HIDDEN, HIDDEN) for _ in names]
    down, rows = pair(HIDDEN, INNER), pair(HIDDEN, TOKENS)
    norm = rng.normal(1, 0.1, HIDDEN).astype(np.float32)
    tensors = {
        **lora("blk.0.attn_q.weight", (permuted(thins[0][0]), thins[0][1])),
        **lora("blk.0.attn_k.weight", (permuted(thins[1][0]), thins[1][1])),
        **lora("blk.0.attn_v.weight", thins[2]),
        **lora("blk.0.ffn_down.weight", down),
        **lora("token_embd.weight", (rows[0], rows[1].T)),
        "output_norm.weight": norm,
    }
    gguf(place, keys(), tensors)
    change = {
        **{name: thin[0] @ thin[1] for name, thin in zip(names, thins)},
        DOWN + ".weight": down[0] @ down[1],
        EMBEDDING + ".weight": (rows[0] @ rows[1]).T,
    }
    wanted = lambda factor: {
        **{name: base[name] + factor * product for name, product in change.items()},
        "model.norm.weight": norm,
    }
    case.require(case.merged(place), wanted(1.5))
    case.require(case.merged(f"{place}:-2"), wanted(-3))
    for alpha in (0.0, None):  # counts as the rank
        case.require(case.merged(gguf(directory / "b.gguf", keys(alpha), tensors)), wanted(1))

    # the same adapter for a base in a GGUF file, and in zTensor
    converted = directory / "base.gguf"
    case.tester.poise("convert", case.path, "-o", converted, "--quiet")
    case.tester.poise("convert", place, "-o", directory / "a.zt", "--quiet")
    for one in (place, directory / "a.zt"):
        case.require(case.merged(one, source=converted), wanted(1.5))

    # the same numbers as with the PEFT directory
    modules = {}
    for name, matrices in zip(names, thins):
        modules.update(thin(name.removesuffix(".weight"), matrices))
    peft = adapter(directory / "peft", modules)
    same = gguf(directory / "c.gguf", keys(), {key: array for key, array in tensors.items() if "attn" in key})
    logits = [
        case.tester.poise("run", case.path, "--lora", one, "--tokens", "1,7,3", "--logits") for one in (peft, same)
    ]
    require(logits[0] == logits[1], "a GGUF adapter and the PEFT directory that it was made of differ")

    # inspect and verify
    shown = json.loads(case.tester.poise("inspect", place, "--json"))["adapter"]
    require(
        shown
        == {
            "kind": "lora",
            "alpha": 6.0,
            "rank": 4,
            "targets": ["attn_k", "attn_q", "attn_v", "ffn_down", "token_embd"],
            "matrices": 5,
            "whole_tensors": 1,
            "base_model": "Tiny Base",
        },
        f"inspect: {shown}",
    )
    require("adapter\n  kind" in case.tester.poise("inspect", place), "inspect for people")
    case.tester.poise("verify", place)

    # experts, stacked
    mixtral = {
        **CONFIG,
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "num_local_experts": 3,
        "num_experts_per_tok": 2,
    }
    expert = lambda number, name: f"model.layers.0.block_sparse_moe.experts.{number}.{name}.weight"
    weights = {name: array for name, array in base.items() if ".mlp." not in name}
    weights["model.layers.0.block_sparse_moe.gate.weight"] = rng.normal(0, 1, (3, HIDDEN)).astype(np.float32)
    for number in range(3):
        weights.update(
            {
                expert(number, "w1"): rng.normal(0, 0.3, (INNER, HIDDEN)).astype(np.float32),
                expert(number, "w3"): rng.normal(0, 0.3, (INNER, HIDDEN)).astype(np.float32),
                expert(number, "w2"): rng.normal(0, 0.3, (HIDDEN, INNER)).astype(np.float32),
            }
        )
    moe = directory / "moe"
    moe.mkdir()
    (moe / "config.json").write_text(json.dumps(mixtral))
    save(moe / "model.safetensors", weights)
    thins = [pair(HIDDEN, INNER) for _ in range(3)]
    gguf(
        place,
        keys(),
        lora("blk.0.ffn_down_exps.weight", (np.stack([one[0] for one in thins]), np.stack([one[1] for one in thins]))),
    )
    case.tester.poise("convert", moe, "-o", directory / "moe.safetensors", "--lora", place, "--quiet")
    found = case.loaded(directory / "moe.safetensors")
    for number, one in enumerate(thins):
        require(
            np.allclose(
                found[expert(number, "w2")], weights[expert(number, "w2")] + 1.5 * one[0] @ one[1], rtol=0, atol=2e-6
            ),
            f"expert {number}",
        )
    require(np.array_equal(found[expert(0, "w1")], weights[expert(0, "w1")]), "an expert's other matrix")
    gguf(
        place,
        keys(),
        lora(
            "blk.0.ffn_down_exps.weight", (np.stack([one[0] for one in thins[:2]]), np.stack([one[1] for one in thins]))
        ),
    )
    refused(case, moe, place, "blk.0.ffn_down_exps.weight", "[2, 64, 4]", "[3, 4, 128]")
    refused(case, case.path, place, "blk.0.ffn_down_exps.weight")

    # every field wrong
    one = pair(HIDDEN, HIDDEN)
    good = lora("blk.0.attn_q.weight", one)
    for given, *texts in (
        ((keys(kind="loha"), good), 'adapter.type: only "lora" is supported, found "loha"'),
        ((keys(float("nan")), good), "adapter.lora.alpha"),
        ((keys(architecture="qwen2"), good), "general.architecture: expected that of the model, llama, found qwen2"),
        ((keys(general="model"), good), "this is not an adapter"),
        ((keys(), {}), "the adapter has no matrices: expected tensors whose names end in .lora_a"),
        (([*keys(None), entry("adapter.lora.alpha", TEXT, "16")], good), "adapter.lora.alpha"),
        ((keys(), {"blk.0.attn_q.weight.lora_a": one[1]}), "blk.0.attn_q.weight: lora_b is missing"),
        ((keys(), {"blk.0.attn_q.weight.lora_b": one[0]}), "blk.0.attn_q.weight: lora_a is missing"),
        ((keys(), lora("blk.0.attn_q.weight", (one[0], one[1][:3]))), "their ranks differ"),
        (
            (keys(), lora("blk.0.attn_q.weight", (one[0].T, one[1].T))),
            "expected 4 heads with an even number of rows each, found 4 rows",
        ),
        ((keys(), lora("blk.0.attn_v.weight", (one[0].T, one[1].T))), "B A is [4, 4]"),
        ((keys(), lora("blk.0.attn_q.weight", (one[0][:, 0], one[1]))), "expected a matrix of numbers"),
        (
            (keys(), lora("token_embd.weight", rows)),
            "token_embd.weight: lora_b is [64, 4] and lora_a transposed is [48, 4]",
        ),
        ((keys(), lora("blk.0.attn_norm.weight", one)), "blk.0.attn_norm.weight"),
        (
            (keys(), {**good, "blk.0.attn_q.bias_of_mine": one[0]}),
            "blk.0.attn_q.bias_of_mine: the model has no such tensor",
        ),
        (
            (
                keys(),
                {
                    **lora("blk.0.attn_q.weight", (one[0][:60], one[1])),
                    **lora("blk.0.ffn_down.weight", one),
                    **lora("blk.7.attn_v.weight", one),
                    **lora("nothing.weight", one),
                },
            ),
            "blk.0.attn_q.weight",
            "60",
            "B A is [64, 64], the model's matrix is [64, 128]",
            "blk.7.attn_v.weight: the model has no such matrix",
            "nothing.weight",
        ),
    ):
        refused(case, case.path, gguf(place, *given), *texts)
    gguf(
        place,
        keys(float("inf")),
        {**lora("blk.0.attn_q.weight", (one[0], one[1][:3])), "blk.0.attn_v.weight.lora_a": one[1]},
    )
    report = case.tester.poise("verify", place, "--json", fails=None)
    for part in ("adapter.lora.alpha", "their ranks differ", "blk.0.attn_v.weight: lora_b is missing"):
        require(part in report, f"verify does not report {part}: {report}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        try:
            run(Case(Path(made), sys.argv[1]), Path(made))
        except Failure as failure:
            sys.exit(str(failure))
