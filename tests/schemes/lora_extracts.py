"""Extracts adapters from random models and converts them, with the command, and compares with NumPy.

    lora_extracts.py POISE

numpy.linalg.svd gives the best product of each rank. The order of rows and the shapes in GGUF are those of llama.cpp's
convert_lora_to_gguf.py, which gguf_adapters.py describes.
"""
import json
import shutil
import sys
import tempfile
from pathlib import Path

from gguf_adapters import permuted
from lora_merges import DOWN, EMBEDDING, Q, Case, adapter, pair, thin
from quantized_directories import CONFIG, HIDDEN, INNER, TOKENS, Failure, load, np, require, rng, save

UP = "model.layers.0.mlp.up_proj"


def dumped(case, path):
    """Returns the tensors of an adapter in any format as NumPy arrays."""
    target = case.directory / "dumped.npz"
    case.tester.poise("convert", path, "-o", target, "--force", "--quiet")
    return dict(np.load(target))


def model(case, name, changes, config=None):
    """Writes the base with other tensors; None removes one."""
    place = case.directory / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    (place / "config.json").write_text(json.dumps({**CONFIG, **(config or {})}))
    tensors = {key: array for key, array in {**case.base, **changes}.items() if array is not None}
    save(place / "model.safetensors", tensors)
    return place


def extracted(case, base, tuned, *options, output=None):
    output = output or case.directory / "extracted"
    return json.loads(
        case.tester.poise(
            "lora",
            "extract",
            base,
            tuned,
            "-o",
            f"{output}/" if not output.suffix else output,
            "--force",
            "--json",
            *options,
        )
    )


def best(delta, rank):
    """Returns the best product of a rank, and its share of the sum of squares."""
    u, s, v = np.linalg.svd(delta.astype(np.float64), full_matrices=False)
    return (u[:, :rank] * s[:rank]) @ v[:rank], (s[:rank] ** 2).sum() / (s**2).sum()


def spectrum(rows, columns, values):
    """Returns a matrix with these singular values."""
    u = np.linalg.qr(rng.normal(size=(rows, len(values))))[0]
    v = np.linalg.qr(rng.normal(size=(columns, len(values))))[0]
    return ((u * values) @ v.T).astype(np.float32)


def product(directory, module, factor=1):
    tensors = load(directory / "adapter_model.safetensors")
    name = "base_model.model." + module
    if name + ".lora_embedding_A" in tensors:
        return factor * (tensors[name + ".lora_embedding_B"] @ tensors[name + ".lora_embedding_A"]).T
    return factor * tensors[name + ".lora_B.weight"] @ tensors[name + ".lora_A.weight"]


def close(found, wanted, tolerance, what):
    require(
        np.abs(found - wanted).max() <= tolerance * np.abs(wanted).max(),
        f"{what} is off by {np.abs(found - wanted).max() / np.abs(wanted).max()} of its largest number",
    )


def refused(case, *arguments, text):
    message = case.tester.poise("lora", *arguments, fails=True)
    require(text in message, f"no {text!r} in {message}")


def check_extraction(case):
    place = case.directory / "extracted"
    # If the differences have the adapter's rank, merging it into the base gives the tuned model.
    deltas = {
        Q: spectrum(HIDDEN, HIDDEN, [1, 0.3, 0.1]),
        DOWN: spectrum(HIDDEN, INNER, [1, 1e-2, 1e-3]),
        UP: spectrum(INNER, HIDDEN, [2, 2, 2]) * np.float32(1e-4),
        "lm_head": spectrum(TOKENS, HIDDEN, [1]),
        EMBEDDING: spectrum(TOKENS, HIDDEN, [1, 0.5]),
    }
    tuned_tensors = {name + ".weight": case.base[name + ".weight"] + delta for name, delta in deltas.items()}
    tuned = model(case, "tuned", tuned_tensors)
    report = extracted(case, case.path, tuned, "--rank", "3")
    require([m["rank"] for m in report["matrices"]] == [3] * 5, f"ranks: {report}")
    require(report["equal"] == len(case.base) - 5 and report["warnings"] == [], f"report: {report}")
    require(report["captured"] > 1 - 1e-6, f"captured: {report['captured']}")
    case.require(case.merged(place), tuned_tensors, tolerance=1e-6)
    for name, delta in deltas.items():
        close(product(place, name), delta, 2e-6 if name != UP else 2e-3, name)  # the sum in the model is rounded, too
    config = json.loads((place / "adapter_config.json").read_text())
    require(
        (config["peft_type"], config["r"], config["lora_alpha"], config["fan_in_fan_out"]) == ("LORA", 3, 3, False)
        and sorted(config["target_modules"]) == ["down_proj", "embed_tokens", "lm_head", "q_proj", "up_proj"]
        and config["base_model_name_or_path"] == str(case.path),
        f"configuration: {config}",
    )
    # The same in every format, from every format, and twice.
    again = case.directory / "again"
    extracted(case, case.path, tuned, "--rank", "3", output=again)
    require(
        (again / "adapter_model.safetensors").read_bytes() == (place / "adapter_model.safetensors").read_bytes(),
        "a second extraction differs",
    )
    for name in ("a.gguf", "a.zt", "a.safetensors"):
        extracted(case, case.path, tuned, "--rank", "3", output=case.directory / name)
        case.require(case.merged(case.directory / name), tuned_tensors, tolerance=1e-6)
    for path in (case.path, tuned):
        case.tester.poise("convert", path, "-o", case.directory / (path.name + ".gguf"), "--quiet", "--force")
    extracted(case, case.directory / "base.gguf", case.directory / "tuned.gguf", "--rank", "3", output=again)
    case.require(case.merged(again), tuned_tensors, tolerance=1e-6)

    # Differences of full rank are approximated as well as the best product of this rank does (by NumPy's SVD).
    slow = np.array([0.9**i for i in range(HIDDEN)])
    flat = np.ones(HIDDEN)
    for values, rank, tolerance in ((slow, 8, 1e-3), (slow, 40, 1e-3), (flat, 16, 0.3), (slow, 64, 1e-4)):
        delta = spectrum(INNER, HIDDEN, values)
        wanted, share = best(delta, rank)
        tuned = model(case, "tuned", {UP + ".weight": case.base[UP + ".weight"] + delta})
        report = extracted(case, case.path, tuned, "--rank", str(rank))
        require(
            share * (1 - tolerance) <= report["captured"] <= share + 1e-6,
            f"rank {rank}: captured {report['captured']}, the best is {share}",
        )
        found = product(place, UP)
        rest = np.linalg.norm(found - delta) ** 2 / np.linalg.norm(delta) ** 2
        require(abs(1 - rest - report["captured"]) < 1e-5, f"rank {rank}: {1 - rest} is captured, not {report}")
        if values is slow and rank < HIDDEN:
            close(found, wanted, 0.02, f"rank {rank}")
    # A matrix whose shorter side is less than the rank.
    small = model(
        case,
        "tuned",
        {
            "lm_head.weight": case.base["lm_head.weight"] + rng.normal(size=(TOKENS, HIDDEN)).astype(np.float32),
            UP + ".weight": case.base[UP + ".weight"] + delta,
        },
    )
    report = extracted(case, case.path, small, "--rank", "60")
    require(
        {m["name"]: m["rank"] for m in report["matrices"]} == {"lm_head.weight": TOKENS, UP + ".weight": 60},
        f"{report}",
    )
    close(
        product(place, "lm_head"),
        load(small / "model.safetensors")["lm_head.weight"] - case.base["lm_head.weight"],
        1e-5,
        "lm_head",
    )
    require(case.merged(place)["lm_head.weight"].shape == (TOKENS, HIDDEN), "merged")

    # Numbers whose squares are not float32 numbers.
    for size in (1e-30, 1e30):
        base = model(case, "zeros", {Q + ".weight": np.zeros((HIDDEN, HIDDEN), np.float32)})
        delta = (spectrum(HIDDEN, HIDDEN, [1, 0.5]) * np.float32(size)).astype(np.float32)
        tuned = model(case, "tuned", {Q + ".weight": delta})
        extracted(case, base, tuned, "--rank", "2")
        close(product(place, Q), delta, 1e-5, f"{size}")


def check_warnings(case):
    norm = "model.norm.weight"
    change = {Q + ".weight": case.base[Q + ".weight"] + spectrum(HIDDEN, HIDDEN, [1]), norm: case.base[norm] + 1}
    tuned = model(case, "tuned", change, {"rope_theta": 20000.0})
    report = extracted(case, case.path, tuned)
    for text in ("rope_theta", f"{norm} is left out: an adapter changes matrices alone"):
        require(any(text in warning for warning in report["warnings"]), f"no {text!r} in {report['warnings']}")
    # A directory of a known family is complete, other files need not be.
    parts = {**case.base, **change, "lm_head.weight": np.zeros((TOKENS + 1, HIDDEN), np.float32)}
    parts["mine.weight"] = np.zeros((4, 4), np.float32)
    del parts[DOWN + ".weight"]
    save(case.directory / "parts.safetensors", parts)
    report = extracted(case, case.path, case.directory / "parts.safetensors")
    for text in (
        "lm_head.weight is left out: it is f32 [48, 64] in the base and f32 [49, 64] in the tuned model",
        "mine.weight is left out: the base lacks it",
        f"{DOWN}.weight is left out: the tuned model lacks it",
    ):
        require(any(text in warning for warning in report["warnings"]), f"no {text!r} in {report['warnings']}")
    require([m["name"] for m in report["matrices"]] == [Q + ".weight"], f"{report['matrices']}")

    # The embedding of a tied model is the output matrix, too.
    tied = {"lm_head.weight": None}
    base = model(case, "tied", tied, {"tie_word_embeddings": True})
    change = {
        **tied,
        EMBEDDING + ".weight": case.base[EMBEDDING + ".weight"] + 1,
        Q + ".weight": case.base[Q + ".weight"] + 1,
    }
    tuned = model(case, "tuned", change, {"tie_word_embeddings": True})
    report = extracted(case, base, tuned, "--rank", "1")
    require(len(report["matrices"]) == 1 and "is the output matrix, too" in report["warnings"][0], f"{report}")
    report = extracted(case, base, tuned, "--rank", "1", "--skip", EMBEDDING + "*")
    require(report["warnings"] == [], f"{report}")

    out = case.directory / "no"
    refused(case, "extract", case.path, case.path, "-o", f"{out}/", text="there is nothing to extract")
    refused(case, "extract", case.path, tuned, "-o", f"{out}/", "--rank", "0", text="--rank")
    refused(case, "extract", case.path, tuned, "-o", f"{out}/", "--only", "nix*", text="nix*")
    refused(case, "extract", case.path, "-o", f"{out}/", text="expected 2 paths")
    infinite = model(case, "tuned", {Q + ".weight": np.full((HIDDEN, HIDDEN), np.inf, np.float32)})
    refused(case, "extract", case.path, infinite, "-o", f"{out}/", text="is not finite")
    require(not out.exists(), "a refused extraction left a directory")
    kept = case.directory / "extracted"
    refused(case, "extract", base, tuned, "-o", f"{kept}/", text="exists")
    refused(case, "extract", base, kept, "-o", f"{out}/", text="this is not a model")


def check_conversion(case):
    place, there, back = case.directory / "peft", case.directory / "there.gguf", case.directory / "back"
    matrices = {Q: pair(HIDDEN, HIDDEN), DOWN: pair(HIDDEN, INNER), "lm_head": pair(TOKENS, HIDDEN)}
    rows = pair(HIDDEN, TOKENS)
    tensors = {key: array for name, both in matrices.items() for key, array in thin(name, both).items()}
    tensors.update(thin(EMBEDDING, rows, "lora_embedding_{}"))
    for config, factor in (({}, 6 / 4), ({"use_rslora": True}, 3), ({"alpha_pattern": {"down_proj": 5}}, 6 / 4)):
        adapter(place, tensors, base_model_name_or_path=str(case.path), **config)
        case.tester.poise("lora", "convert", place, "-o", there, "--force", "--quiet")
        found = dumped(case, there)
        require(
            sorted(found)
            == sorted(
                f"{name}.weight.lora_{letter}"
                for name in ("blk.0.attn_q", "blk.0.ffn_down", "output", "token_embd")
                for letter in "ab"
            ),
            f"names: {sorted(found)}",
        )
        more = 5 / 6 if "alpha_pattern" in config else 1
        wanted = {
            "blk.0.attn_q.weight": (permuted(matrices[Q][0]), matrices[Q][1]),
            "blk.0.ffn_down.weight": (matrices[DOWN][0] * np.float32(more), matrices[DOWN][1]),
            "output.weight": matrices["lm_head"],
            "token_embd.weight": (rows[0], rows[1].T),
        }
        for name, (left, right) in wanted.items():
            require(np.allclose(found[name + ".lora_b"], left, rtol=1e-6, atol=0), f"{name}.lora_b of {config}")
            require(np.array_equal(found[name + ".lora_a"], right), f"{name}.lora_a of {config}")
        keys = json.loads(case.tester.poise("inspect", there, "--json"))
        require(abs(keys["adapter"]["alpha"] - factor * 4) < 1e-6, f"alpha of {config}: {keys['adapter']}")
        changes = {name: (more if name == DOWN else 1) * factor * both[0] @ both[1] for name, both in matrices.items()}
        changes[EMBEDDING] = factor * (rows[0] @ rows[1]).T
        sums = {name + ".weight": case.base[name + ".weight"] + change for name, change in changes.items()}
        case.require(case.merged(there), sums)
        # and back, where a base with its configuration alone suffices
        bare = case.directory / "bare"
        bare.mkdir(exist_ok=True)
        shutil.copy(case.path / "config.json", bare)
        for base in (case.path, bare, bare / "config.json", case.directory / "base.gguf"):
            case.tester.poise("lora", "convert", there, "-o", f"{back}/", "--base", base, "--force", "--quiet")
            case.require(case.merged(back), sums)

    # Conv1D of GPT-2, which holds [in, out]
    gpt2 = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "n_embd": HIDDEN,
        "n_head": 4,
        "n_layer": 1,
        "n_positions": 32,
        "vocab_size": TOKENS,
        "layer_norm_epsilon": 1e-5,
        "activation_function": "gelu_new",
    }
    (bare / "config.json").write_text(json.dumps(gpt2))
    one = pair(3 * HIDDEN, HIDDEN)
    adapter(place, thin("transformer.h.0.attn.c_attn", one), fan_in_fan_out=True)
    case.tester.poise("lora", "convert", place, "-o", there, "--base", bare, "--force", "--quiet")
    found = dumped(case, there)
    require(
        np.array_equal(found["blk.0.attn_qkv.weight.lora_b"], one[0])
        and np.array_equal(found["blk.0.attn_qkv.weight.lora_a"], one[1]),
        "GPT-2 in GGUF",
    )
    case.tester.poise("lora", "convert", there, "-o", f"{back}/", "--base", bare, "--force", "--quiet")
    require(json.loads((back / "adapter_config.json").read_text())["fan_in_fan_out"] is True, "GPT-2's order")
    close(product(back, "transformer.h.0.attn.c_attn"), one[0] @ one[1], 1e-6, "GPT-2")

    # Experts are stacked.
    (bare / "config.json").write_text(
        json.dumps({**CONFIG, "model_type": "mixtral", "num_local_experts": 3, "num_experts_per_tok": 2})
    )
    name = "model.layers.0.block_sparse_moe.experts.{}.w2"
    experts = [pair(HIDDEN, INNER) for _ in range(3)]
    adapter(place, {key: array for i, one in enumerate(experts) for key, array in thin(name.format(i), one).items()})
    case.tester.poise("lora", "convert", place, "-o", there, "--base", bare, "--force", "--quiet")
    found = dumped(case, there)
    require(
        np.array_equal(found["blk.0.ffn_down_exps.weight.lora_b"], np.stack([one[0] for one in experts]))
        and np.array_equal(found["blk.0.ffn_down_exps.weight.lora_a"], np.stack([one[1] for one in experts])),
        "experts",
    )
    adapter(place, thin(name.format(0), experts[0]))
    refused(case, "convert", place, "-o", case.directory / "no.gguf", "--base", bare, text="all 3 experts")

    # GGUF cannot hold these adapters; the others are mistakes.
    target = case.directory / "no.gguf"
    adapter(place, {**thin(Q, matrices[Q]), "model.norm.weight": case.base["model.norm.weight"]})
    refused(case, "convert", place, "-o", target, "--base", case.path, text="whole tensors")
    adapter(place, thin("model.layers.0.mlp.strange", matrices[Q]))
    refused(
        case,
        "convert",
        place,
        "-o",
        target,
        "--base",
        case.path,
        text="llama.cpp has no name for model.layers.0.mlp.strange",
    )
    adapter(place, thin(Q, matrices[Q]), base_model_name_or_path="nobody/has-this")
    refused(case, "convert", place, "-o", target, text="nobody/has-this")
    refused(case, "convert", place, "-o", f"{case.directory}/no/", "--base", case.path, text="already")
    refused(case, "convert", case.path, "-o", target, "--base", case.path, text="this is not an adapter")
    adapter(place, thin(Q, matrices[Q]), use_dora=True)
    refused(case, "convert", place, "-o", target, "--base", case.path, text="use_dora")
    adapter(place, thin("lm_head", matrices["lm_head"]))
    tied = model(case, "tied", {"lm_head.weight": None}, {"tie_word_embeddings": True})
    refused(case, "convert", place, "-o", target, "--base", tied, text="which is the embedding in this base")
    require(not target.exists(), "a refused conversion left a file")


def run(case, directory):
    check_extraction(case)
    check_warnings(case)
    check_conversion(case)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        try:
            run(Case(Path(made), sys.argv[1]), Path(made))
        except Failure as failure:
            sys.exit(str(failure))
