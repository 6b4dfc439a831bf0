#!/usr/bin/env python3
"""Compares the rows and the tokens of `poise merge --tokenizer-source` with NumPy and with BPE written here.

    merge_tokenizers.py POISE EXAMPLES

docs/merging.md has the rules, which follow the README.md and mergekit/tokenizer/ of mergekit. If the Python package
sentencepiece is installed, it encodes texts with the tokenizer.model of a result.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    sys.exit(77)

RANDOM = np.random.default_rng(20261129)
HIDDEN = 32
TEXTS = ["", "a cab", "abcabc abc", "the cat<end> the", "bab<|x|>cab<end>", " caab tthe", "héé"]


# Files of models.


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        array = np.ascontiguousarray(array, np.float32)
        header[name] = {
            "dtype": "F32",
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + array.nbytes],
        }
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            assert entry["dtype"] == "F32", entry
            begin, end = entry["data_offsets"]
            tensors[name] = np.frombuffer(data[8 + size + begin : 8 + size + end], np.float32).reshape(entry["shape"])
    return tensors


def byte_letters():
    """The characters by which byte-level BPE spells bytes: printable ones are themselves."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {**{b: chr(b) for b in plain}, **{b: chr(256 + i) for i, b in enumerate(others)}}


LETTERS = byte_letters()


class Tokenizer:
    """Byte-level BPE without a cut into words, with added tokens."""

    def __init__(self, order, merges, added, holes=()):
        self.merges = [tuple(merge) for merge in merges]
        self.added = list(added)
        self.texts = [LETTERS[b] for b in order] + ["".join(merge) for merge in self.merges]
        for hole in holes:
            self.texts.insert(hole, None)
        self.texts += self.added
        self.end = self.texts.index(self.added[0]) if self.added else 0

    def encode(self, text):
        ids = []
        while text:
            found = [(text.index(token), -len(token), token) for token in self.added if token in text]
            begin, _, token = min(found) if found else (len(text), 0, "")
            ids += self.encode_piece(text[:begin])
            if token:
                ids.append(self.texts.index(token))
            text = text[begin + len(token) :]
        return ids

    def encode_piece(self, text):
        parts = [LETTERS[b] for b in text.encode()]
        ranks = {merge: rank for rank, merge in enumerate(self.merges)}
        while True:
            pairs = [(ranks[pair], i) for i, pair in enumerate(zip(parts, parts[1:])) if pair in ranks]
            if not pairs:
                return [self.texts.index(part) for part in parts]
            _, i = min(pairs)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]

    def write(self, folder):
        vocab = {text: id for id, text in enumerate(self.texts) if text is not None and text not in self.added}
        added = [
            {
                "id": self.texts.index(text),
                "content": text,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for text in self.added
        ]
        cut = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
        model = {"type": "BPE", "vocab": vocab, "merges": [" ".join(merge) for merge in self.merges]}
        (folder / "tokenizer.json").write_text(
            json.dumps(
                {
                    "version": "1.0",
                    "added_tokens": added,
                    "normalizer": None,
                    "pre_tokenizer": cut,
                    "post_processor": None,
                    "decoder": cut,
                    "model": model,
                }
            )
        )
        end = self.added[0]
        decoder = {str(entry["id"]): {k: v for k, v in entry.items() if k != "id"} for entry in added}
        config = {"eos_token": end, "added_tokens_decoder": decoder, "chat_template": f"{end} of {len(self.texts)}"}
        (folder / "tokenizer_config.json").write_text(json.dumps(config))


def read_varint(data, at):
    number, shift = 0, 0
    while True:
        number |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return number, at


class Pieces:
    """SentencePiece's tokenizer.model: pieces are (text, score, type), the bytes of all other fields stay."""

    def __init__(self, pieces, rest):
        self.pieces, self.rest, self.end = pieces, rest, 2
        self.texts = [text for text, _, _ in pieces]

    @staticmethod
    def read(path):
        data, at, pieces, rest = path.read_bytes(), 0, [], b""
        while at < len(data):
            begin = at
            tag, at = read_varint(data, at)
            assert tag & 7 == 2
            size, at = read_varint(data, at)
            field, at = data[at : at + size], at + size
            if tag >> 3 != 1:
                rest += data[begin:at]
                continue
            text, score, kind, place = None, 0.0, 1, 0
            while place < len(field):
                tag, place = read_varint(field, place)
                if tag == 1 << 3 | 2:
                    size, place = read_varint(field, place)
                    text, place = field[place : place + size].decode(), place + size
                elif tag == 2 << 3 | 5:
                    score, place = struct.unpack_from("<f", field, place)[0], place + 4
                else:
                    assert tag == 3 << 3, tag
                    kind, place = read_varint(field, place)
            pieces.append((text, score, kind))
        return Pieces(pieces, rest)

    def write(self, folder):
        out = b""
        for text, score, kind in self.pieces:
            bytes_of_text = text.encode()
            assert len(bytes_of_text) < 100
            field = bytes([1 << 3 | 2, len(bytes_of_text)]) + bytes_of_text
            field += bytes([2 << 3 | 5]) + struct.pack("<f", score) + bytes([3 << 3, kind])
            out += bytes([1 << 3 | 2, len(field)]) + field
        (folder / "tokenizer.model").write_bytes(out + self.rest)


def write_model(folder, tokenizer, rows=None, tied=False, vector=None):
    """Writes a Llama with random numbers; returns its tensors."""
    rows = len(tokenizer.texts) if rows is None else rows
    folder.mkdir()
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": HIDDEN,
        "intermediate_size": 64,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "num_hidden_layers": 1,
        "vocab_size": rows,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": tied,
        "eos_token_id": tokenizer.end,
    }
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {"model.embed_tokens.weight": (rows, HIDDEN)}
    for name, shape in {
        "self_attn.q_proj": (HIDDEN, HIDDEN),
        "self_attn.k_proj": (HIDDEN, HIDDEN),
        "self_attn.v_proj": (HIDDEN, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HIDDEN),
        "mlp.gate_proj": (64, HIDDEN),
        "mlp.up_proj": (64, HIDDEN),
        "mlp.down_proj": (HIDDEN, 64),
        "input_layernorm": (HIDDEN,),
        "post_attention_layernorm": (HIDDEN,),
    }.items():
        shapes[f"model.layers.0.{name}.weight"] = shape
    shapes["model.norm.weight"] = (HIDDEN,)
    if not tied:
        shapes["lm_head.weight"] = (rows, HIDDEN)
    tensors = {name: RANDOM.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    write_safetensors(folder / "model.safetensors", tensors)
    tokenizer.write(folder)
    return tensors


# The rules of docs/merging.md.


def join(own, others):
    """The tokens of `own`, new tokens that the models make, then added tokens; and the merges."""
    made = Tokenizer([], [], [])
    made.texts, made.merges, made.added = list(own.texts), list(own.merges), list(own.added)
    added = []
    for other in others:
        for text in other.texts:
            if text is None or text in made.texts or text in added:
                continue
            if text in other.added:
                added.append(text)
            else:
                made.texts.append(text)
        for left, right in other.merges:
            if left + right not in own.texts and (left, right) not in made.merges:
                if left in made.texts and right in made.texts and left + right in made.texts:
                    made.merges.append((left, right))
    made.texts += added
    made.added += added
    return made


def arrange(tokens, models, i, base):
    """The rows of models[i]; models are pairs of a tokenizer and a matrix. `base` is an index or None."""

    def find(model, id, text):
        tokenizer, matrix = models[model]
        if text is None:  # a hole of the first model
            return matrix[id] if model == 0 and tokenizer.texts[id : id + 1] == [None] else None
        if text not in tokenizer.texts or tokenizer.texts.index(text) >= len(matrix):
            return None
        return matrix[tokenizer.texts.index(text)]

    rows = []
    for id, text in enumerate(tokens):
        own = [row for row in [find(i, id, text)] if row is not None]
        of_base = [row for row in [find(base, id, text)] if row is not None] if base is not None else []
        all_rows = [row for row in (find(j, id, text) for j in range(len(models))) if row is not None]
        rows.append(np.mean(np.float64(own or of_base or all_rows), axis=0))
    return np.stack(rows)


class Checker:
    def __init__(self, poise, folder):
        self.poise, self.folder, self.cases = poise, folder, 0

    def run(self, *arguments):
        done = subprocess.run([self.poise, *arguments], cwd=self.folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"poise {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def merge(self, *arguments):
        out = self.folder / f"out{self.cases}"
        self.run("merge", *arguments, "-o", f"{out}/", "--dtype", "f32", "--quiet")
        self.cases += 1
        return out

    def check(self, what, found, expected):
        if not found:
            sys.exit(f"{what}: {expected}")

    def compare(self, out, expected):
        found = read_safetensors(out / "model.safetensors")
        self.check(out, sorted(found) == sorted(expected), f"has {sorted(found)}, expected {sorted(expected)}")
        for name, numbers in expected.items():
            self.check(
                f"{out}: {name}", found[name].shape == numbers.shape, f"shape {found[name].shape}, not {numbers.shape}"
            )
            worst = np.abs(found[name] - numbers).max()
            self.check(f"{out}: {name}", worst <= 1e-6, f"differs by {worst}")

    def compare_tokens(self, model, tokenizer):
        for text in TEXTS:
            found = json.loads(self.run("tokenize", str(model), text, "--json", "--no-special"))["ids"]
            expected = tokenizer.encode(text)
            self.check(f"{model}: {text!r}", found == expected, f"{found}, expected {expected}")


def check_linear(checker, a, b):
    """Two models without a base: a missing row is that of the other model."""
    (a_tokens, a_tensors), (b_tokens, b_tensors) = a, b
    sources = {"union": join(a_tokens, [b_tokens]), "base": a_tokens, "b": b_tokens}
    for source, tokens in sources.items():
        texts = tokens.texts
        expected = {}
        for name in a_tensors:
            pairs = [(a_tokens, a_tensors[name]), (b_tokens, b_tensors[name])]
            if name in ("model.embed_tokens.weight", "lm_head.weight"):
                parts = [arrange(texts, pairs, i, None) for i in range(2)]
            else:
                parts = [np.float64(matrix) for _, matrix in pairs]
            expected[name] = (2 * parts[0] + parts[1]) / 3
        out = checker.merge("a:2", "b", "--method", "linear", "--tokenizer-source", source)
        checker.compare(out, expected)
        checker.compare_tokens(out, tokens)
        config = json.loads((out / "config.json").read_text())
        owner = b_tokens if source == "b" else a_tokens
        checker.check(out, config["vocab_size"] == len(texts), f"vocab_size {config['vocab_size']}, not {len(texts)}")
        end = owner.texts.index(owner.added[0])
        checker.check(out, config["eos_token_id"] == end, f"eos_token_id {config['eos_token_id']}, not {end}")
        settings = json.loads((out / "tokenizer_config.json").read_text())
        checker.check(out, settings["eos_token"] == owner.added[0], f"eos_token {settings['eos_token']}")
        for id, entry in settings["added_tokens_decoder"].items():
            checker.check(out, texts[int(id)] == entry["content"], f"{id} is {entry['content']}")
        checker.check(out, len(settings["added_tokens_decoder"]) == len(tokens.added), settings)
        listed = json.loads((out / "tokenizer.json").read_text())
        checker.check(out, [e["content"] for e in listed["added_tokens"]] == tokens.added, listed["added_tokens"])
        checker.run("verify", str(out))
        checker.run("run", str(out), "-p", "the cat<end>", "-n", "2", "--quiet")
        # Other formats and inputs have the same tokens.
        for other in (f"{out}.zt", f"{out}.gguf"):
            checker.run("convert", str(out), "-o", other, "--quiet")
            checker.compare_tokens(other, tokens)
            checker.run("run", other, "-p", "the cat<end>", "-n", "2", "--quiet")
        for kind in ("b.gguf", "b.zt1"):
            again = checker.merge(
                "a:2", kind, "--method", "linear", "--tokenizer-source", kind if source == "b" else source
            )
            checker.compare(again, expected)


def check_texts(tokens, own):
    """With the union, each token of a text is made of whole tokens of the first model, except added tokens."""
    for text in TEXTS:
        ends, begin = set(), 0
        for id in own.encode(text):
            begin += len(own.texts[id])
            ends.add(begin)
        begin = 0
        for id in tokens.encode(text):
            begin += len(tokens.texts[id])
            if not any(added in text for added in tokens.added):
                assert begin in ends, text


def check_base(checker, models):
    """Three models and a base: a row that only two models have is their mean in the others."""
    names = ["base", "a", "b", "c"]
    tokens = join(models["base"][0], [models[name][0] for name in names[1:]])
    expected = {}
    for name in models["base"][1]:
        pairs = [(models[model][0], models[model][1][name]) for model in names]
        if name in ("model.embed_tokens.weight", "lm_head.weight"):
            parts = [arrange(tokens.texts, pairs, i, 0) for i in range(4)]
        else:
            parts = [np.float64(matrix) for _, matrix in pairs]
        expected[name] = parts[0] + 0.5 * sum(part - parts[0] for part in parts[1:])
    recipe = {
        "merge_method": "task_arithmetic",
        "base_model": "base",
        "models": [{"model": name, "parameters": {"weight": 0.5}} for name in names[1:]],
    }
    for keys in ({"tokenizer_source": "union"}, {"tokenizer": {"source": "union"}}):
        (checker.folder / "recipe.yaml").write_text(json.dumps({**recipe, **keys}))
        out = checker.merge("recipe.yaml")
        checker.compare(out, expected)
        checker.compare_tokens(out, tokens)
    # A recipe without sources of the base has its rows as well.
    parts = [(models[name][0], models[name][1]) for name in names]
    for name in expected:
        pairs = [(tokenizer, tensors[name]) for tokenizer, tensors in parts]
        is_token = name in ("model.embed_tokens.weight", "lm_head.weight")
        of = [arrange(tokens.texts, pairs, i, 0) if is_token else np.float64(pairs[i][1]) for i in (1, 2)]
        expected[name] = (of[0] + of[1]) / 2
    (checker.folder / "recipe.yaml").write_text(
        json.dumps(
            {
                "merge_method": "linear",
                "base_model": "base",
                "models": [{"model": "a"}, {"model": "b"}],
                "tokenizer_source": "union",
            }
        )
    )
    without_c = join(models["base"][0], [models[name][0] for name in ("a", "b")])
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        pairs = [(models[model][0], models[model][1][name]) for model in names[:3]]
        expected[name] = sum(arrange(without_c.texts, pairs, i, 0) for i in (1, 2)) / 2
    checker.compare(checker.merge("recipe.yaml"), expected)


def check_slices(checker, models):
    """The embedding is that of the first slice. A token of the second slice alone has the row of that model."""
    tokens = join(models["a"][0], [models["b"][0]])
    expected = {}
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        pairs = [(models[model][0], models[model][1][name]) for model in ("a", "b")]
        expected[name] = arrange(tokens.texts, pairs, 1 if name == "lm_head.weight" else 0, None)
    expected["model.norm.weight"] = models["b"][1]["model.norm.weight"]
    for name in models["a"][1]:
        if ".layers.0." in name:
            expected[name] = models["a"][1][name]
            expected[name.replace(".0.", ".1.")] = models["b"][1][name]
    (checker.folder / "recipe.yaml").write_text(
        json.dumps(
            {
                "merge_method": "passthrough",
                "slices": [{"sources": [{"model": model, "layer_range": [0, 1]}]} for model in ("a", "b")],
                "tokenizer_source": "union",
            }
        )
    )
    checker.compare(checker.merge("recipe.yaml"), expected)


def check_tied(checker, a, tied):
    """One model stores an output matrix, and the other ties it to the embedding."""
    (a_tokens, a_tensors), (tied_tokens, tied_tensors) = a, tied
    tied_tensors = {**tied_tensors, "lm_head.weight": tied_tensors["model.embed_tokens.weight"]}
    tokens = join(tied_tokens, [a_tokens])
    expected = {}
    for name in tied_tensors:
        pairs = [(tied_tokens, tied_tensors[name]), (a_tokens, a_tensors[name])]
        is_token = name in ("model.embed_tokens.weight", "lm_head.weight")
        parts = [arrange(tokens.texts, pairs, i, None) if is_token else np.float64(pairs[i][1]) for i in range(2)]
        expected[name] = (parts[0] + parts[1]) / 2
    checker.compare(checker.merge("tied", "a", "--method", "linear", "--tokenizer-source", "union"), expected)
    del tied_tensors["lm_head.weight"]
    expected = {}
    for name in tied_tensors:
        if name == "model.embed_tokens.weight":
            expected[name] = arrange(tied_tokens.texts, [(tied_tokens, tied_tensors[name])], 0, None)
        else:
            expected[name] = np.float64(tied_tensors[name])
    checker.compare(checker.merge("tied", "tied", "--method", "linear", "--tokenizer-source", "base"), expected)


def check_sentencepiece(checker, examples):
    """New pieces get scores below those of all others; merges of the others come first."""
    a = Pieces.read(examples / "nano-mistral" / "tokenizer.model")
    texts = ["Once upon a time there was a little girl.", "the cat sat on the mat", "xyz <mark> Once"]
    model_a = write_model(checker.folder / "pieces_a", a)
    new = []
    for text in texts:
        found = json.loads(checker.run("tokenize", "pieces_a", text, "--json", "--no-special"))["pieces"]
        for left, right in zip(found[::2], found[1::2]):
            if left + right not in a.texts + [piece for piece, _, _ in new]:
                new.append((left + right, -2.0 - len(new) % 5, 1))
    new.append(("<mark>", 0.0, 4))  # user-defined
    kept = a.pieces[:259] + a.pieces[:258:-1][40:]
    b = Pieces(kept[:300] + new + kept[300:], a.rest)
    model_b = write_model(checker.folder / "pieces_b", b)

    least = min(score for _, score, kind in a.pieces if kind == 1)
    normal = [piece for piece in b.pieces if piece in new and piece[2] == 1]
    by_score = sorted(normal, key=lambda piece: -piece[1])
    rank = {piece[0]: i for i, piece in enumerate(by_score)}
    pieces = (
        a.pieces + [(text, np.floor(least) - 1 - rank[text], 1) for text, _, _ in normal] + [("<mark>", -1000.0, 4)]
    )
    union = Pieces(pieces, a.rest)

    expected = {}
    for name in model_a:
        pairs = [(a, model_a[name]), (b, model_b[name])]
        is_token = name in ("model.embed_tokens.weight", "lm_head.weight")
        parts = [arrange(union.texts, pairs, i, None) if is_token else np.float64(pairs[i][1]) for i in range(2)]
        expected[name] = (parts[0] + parts[1]) / 2
    out = checker.merge("pieces_a", "pieces_b", "--method", "linear", "--tokenizer-source", "union")
    checker.compare(out, expected)
    found = Pieces.read(out / "tokenizer.model")
    checker.check(out, found.pieces == pieces, [pair for pair in zip(found.pieces, pieces) if pair[0] != pair[1]][:5])
    for kind in ("gguf", "zt", "alt"):
        checker.run("convert", str(out), "-o", f"pieces.{kind}", "--quiet")
    uses_new = 0
    for text in texts:
        encode = lambda model: json.loads(checker.run("tokenize", str(model), text, "--json", "--no-special"))["ids"]
        before, after = encode("pieces_a"), encode(out)
        uses_new += sum(id >= len(a.pieces) for id in after)
        join_texts = lambda ids, texts: "".join(texts[id] for id in ids)
        same = join_texts(before, a.texts) == join_texts(after, union.texts)
        checker.check(text, same or "<mark>" in text, after)
        try:
            import sentencepiece
        except ImportError:
            pass
        else:
            known = sentencepiece.SentencePieceProcessor(model_file=str(out / "tokenizer.model")).encode(text)
            checker.check(text, after == known, f"{after}, SentencePiece has {known}")
        # In GGUF, the text after a token that is found whole begins with a space.
        for kind in ("zt", "alt") if "<mark>" in text else ("gguf", "zt", "alt"):
            checker.check(f"{kind}: {text}", encode(f"pieces.{kind}") == after, encode(f"pieces.{kind}"))
    checker.check(out, uses_new > 5, f"{uses_new} new tokens are used")


def main():
    with tempfile.TemporaryDirectory() as folder:
        checker = Checker(str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(folder))
        shuffled = [int(b) for b in RANDOM.permutation(256)]
        tokenizers = {
            "a": Tokenizer(range(256), ["ab", ("t", "h"), ("c", "ab")], ["<end>", "<|a|>"]),
            "b": Tokenizer(shuffled, ["ca", ("ca", "t"), ("t", "h"), ("th", "e"), ("a", "ca")], ["<|x|>", "<end>"]),
            "c": Tokenizer(shuffled[::-1], [("th", "e"), ("b", "a"), ("t", "h")], ["<|x|>", "<|y|>"]),
            "base": Tokenizer(range(255, -1, -1), [("c", "a")], ["<end>"], holes=[100, 257]),
        }
        models = {
            "a": (tokenizers["a"], write_model(checker.folder / "a", tokenizers["a"], rows=264)),
            "b": (tokenizers["b"], write_model(checker.folder / "b", tokenizers["b"])),
            "c": (tokenizers["c"], write_model(checker.folder / "c", tokenizers["c"])),
            "base": (tokenizers["base"], write_model(checker.folder / "base", tokenizers["base"], rows=320)),
        }
        tied = write_model(checker.folder / "tied", tokenizers["c"], rows=300, tied=True)
        checker.run("convert", "b", "-o", "b.gguf", "--quiet")
        checker.run("convert", "b", "-o", "b.zt1", "--to", "zt1", "--compress", "zstd", "--quiet")
        check_texts(join(tokenizers["a"], [tokenizers["b"]]), tokenizers["a"])
        check_linear(checker, models["a"], models["b"])
        check_base(checker, models)
        check_slices(checker, models)
        check_tied(checker, models["a"], (tokenizers["c"], tied))
        check_sentencepiece(checker, pathlib.Path(sys.argv[2]))
        print(f"{checker.cases} merges are equal")


if __name__ == "__main__":
    main()
