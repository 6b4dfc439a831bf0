#!/usr/bin/env python3
"""Compares Poise with Hugging Face's library on tokenizers made of random parts.

    compare_random_tokenizers.py POISE HUGGINGFACE [COUNT [SEED]]

POISE is the command, HUGGINGFACE the npm package tokenizers (0.23.2: npm pack tokenizers, untar; needs node). Each
tokenizer.json has a small random vocabulary of one of the four models, and normalizers, pre-tokenizers,
post-processors, decoders and added tokens with random fields. Both programs encode 60 random texts, with special tokens
and without, and decode the ids. Prints a line for each tokenizer with a difference, and keeps its file.

docs/tokenizers.md lists the known differences. If two added tokens have the same normalized text, the programs may find
different ones.
"""
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import unicodedata

NODE = """
const {Tokenizer} = require(process.argv[2]), fs = require('fs');
(async () => {
  const tokenizer = Tokenizer.fromFile(process.argv[3]), out = [];
  for (const text of JSON.parse(fs.readFileSync(0))) {
    for (const special of [false, true]) {
      try {
        const ids = (await tokenizer.encode(text, null, {addSpecialTokens: special})).getIds();
        out.push({ids, text: await tokenizer.decode(ids, false)});
      } catch (error) { out.push({error: String(error)}); }
    }
  }
  console.log(JSON.stringify(out));
})();
"""
SPACE = "\u2581"
WORDS = """the quick brown fox isn't I'LL we've DON'T it\u2019s 's 'S '\u017f 've \u00dcber stra\u00dfe
\u0130stanbul \u0391\u03a3 \u03c2 fa\u00e7ade co-op 3.14159 1,000 0xDEADBEEF \u0661\u0662\u0663 \u2461\u2462
\u2167 \u00bd for(int i=0;i<n;++i){a[i]+=b;} def f(x): https://example.com/a?b=c&d=e%20f \u65e5\u672c\u8a9e
\u30c6\u30b9\u30c8 \u4e2d\u6587\u5b57\u7b26\u3002 \ud55c\uad6d\uc5b4 \u0939\u093f\u0928\u094d\u0926\u0940
\u0e44\u0e17\u0e22 \u05e2\u05d1\u05e8\u05d9\u05ea \u0627\u0644\u0639\u0631\u0628\u064a\u0629
\u041f\u0440\u0438\u0432\u0435\u0442 e\u0301 A\u030a \ufb01 \u338f _private__ camelCase HTTPServer \\n ...
\u2026 '' ``` !!! (((""".split()
SPACES = [
    " ",
    "  ",
    "   ",
    "\t",
    "\n",
    "\r\n",
    "\u00a0",
    "\u2003",
    "\u200b",
    "\u3000",
    "\x0b",
    "\x85",
    "\u2028",
    "\n" * 5,
]
MARKS = [
    "<unk>",
    "<s>",
    "</s>",
    "<pad>",
    "[MASK]",
    "\n\n",
    "<h1>",
    SPACE,
    SPACE * 2,
    "<0x41>",
    "\u0120",
    "##a",
    "the quick",
    "hello world",
]
RANGES = [
    (0x20, 0x7E),
    (0xA0, 0x17F),
    (0x300, 0x36F),
    (0x370, 0x4FF),
    (0x590, 0x6FF),
    (0x900, 0x97F),
    (0xE00, 0xE7F),
    (0x1E00, 0x206F),
    (0x20A0, 0x218F),
    (0x2460, 0x24FF),
    (0x3000, 0x30FF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xF900, 0xFAFF),
    (0xFE00, 0xFFEF),
    (0x1D400, 0x1D7FF),
    (0x1F300, 0x1F6FF),
]
EXPRESSIONS = [
    r"\s+",
    "[0-9]",
    r"\p{L}+",
    "(?i)the|a",
    r"\d{1,3}(?=(\d{3})*\b)",
    " {2,}",
    r"[^\s\p{L}\p{N}]+",
    r"\w+|[^\w\s]+",
    r"\p{Han}+",
    r"[[:punct:]]",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+|\s+(?!\S)|\s+",
    r"\b",
    r"[\W]+",
    r"\p{Uppercase_Letter}",
]
PRINTABLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
BYTES = {byte: chr(byte) for byte in PRINTABLE} | {
    byte: chr(256 + i) for i, byte in enumerate(b for b in range(256) if b not in PRINTABLE)
}

pick, chance = random.choice, lambda share: random.random() < share


def make_character():
    while True:
        found = chr(random.randint(*pick(RANGES)))
        if unicodedata.category(found) != "Cn":
            return found


def make_text():
    if chance(0.15):
        return pick(WORDS + MARKS + SPACES) * random.randint(1, 40)
    if chance(0.2):
        return "".join(make_character() for _ in range(random.randint(1, 40)))
    if chance(0.15):
        return "".join(chr(random.randint(0, pick([0x7F, 0x2FF]))) for _ in range(random.randint(1, 40)))
    kinds = [lambda: pick(WORDS)] * 3 + [
        lambda: pick(SPACES),
        lambda: " ",
        lambda: pick(MARKS),
        make_character,
        lambda: str(random.randint(0, 10**9)),
    ]
    return "".join(pick(kinds)() + pick(["", " "]) for _ in range(random.randint(1, 20)))


def make_pattern():
    return pick(
        [
            {"String": pick([" ", "a", "  ", "''", "e\u0301", "\n"])},
            {"Regex": pick(EXPRESSIONS)},
            {"Regex": pick(EXPRESSIONS)},
        ]
    )


def make_metaspace():
    return {
        "type": "Metaspace",
        "replacement": pick(SPACE + "_"),
        "prepend_scheme": pick(["always", "never", "first"]),
        "split": chance(0.6),
    }


def make_byte_level(regex=None):
    return {
        "type": "ByteLevel",
        "add_prefix_space": chance(0.5),
        "trim_offsets": chance(0.5),
        "use_regex": chance(0.6) if regex is None else regex,
    }


def make_step(kinds, listed, depth=0):
    """Makes one of the kinds, or a Sequence of several."""
    if chance(0.15) and depth < 2:
        return {"type": "Sequence", listed: [make_step(kinds, listed, depth + 1) for _ in range(random.randint(0, 3))]}
    made = pick(kinds)()
    return made if isinstance(made, dict) else {"type": made}


def list_kinds(*names):
    return [lambda name=name: name for name in names]


NORMALIZERS = list_kinds("Lowercase", "NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Nmt", "ByteLevel") + [
    lambda: {
        "type": "BertNormalizer",
        "clean_text": chance(0.5),
        "handle_chinese_chars": chance(0.5),
        "strip_accents": pick([None, True, False]),
        "lowercase": chance(0.5),
    },
    lambda: {"type": "Strip", "strip_left": chance(0.5), "strip_right": chance(0.5)},
    lambda: {"type": "Replace", "pattern": make_pattern(), "content": pick([SPACE, "_", "xy", " "])},
    lambda: {"type": "Prepend", "prepend": pick([SPACE, "_", "ab"])},
]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
PRE_TOKENIZERS = list_kinds("BertPreTokenizer", "Whitespace", "WhitespaceSplit") + [
    make_byte_level,
    make_metaspace,
    lambda: {"type": "CharDelimiterSplit", "delimiter": pick([" ", "a", "-"])},
    lambda: {"type": "Split", "pattern": make_pattern(), "behavior": pick(BEHAVIORS), "invert": chance(0.3)},
    lambda: {"type": "Punctuation", "behavior": pick(BEHAVIORS)},
    lambda: {"type": "Digits", "individual_digits": chance(0.5)},
    lambda: {"type": "FixedLength", "length": random.randint(1, 7)},
]
DECODERS = list_kinds("Fuse", "ByteFallback", "ByteLevel") + [
    make_metaspace,
    lambda: {"type": "WordPiece", "prefix": pick(["##", "a"]), "cleanup": chance(0.5)},
    lambda: {"type": "BPEDecoder", "suffix": pick(["</w>", "e"])},
    lambda: {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": pick("|a"), "cleanup": chance(0.5)},
    lambda: {
        "type": "Replace",
        "pattern": pick([{"String": SPACE}, {"String": "##"}, {"Regex": "[ae]"}]),
        "content": pick([" ", "", "z"]),
    },
    # with other numbers the library fails
    lambda: {"type": "Strip", "content": pick([" ", "a", SPACE]), "start": random.randint(0, 1), "stop": 0},
]


def make_post_processor(first, last):
    if chance(0.4):
        one, other = [{"SpecialToken": {"id": name, "type_id": 0}} for name, _ in (first, last)]
        sequence = [{"Sequence": {"id": "A", "type_id": 0}}]
        return {
            "type": "TemplateProcessing",
            "single": [one] * chance(0.7) + sequence + [other] * chance(0.7),
            "pair": sequence + [{"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {n: {"id": n, "ids": [i], "tokens": [n]} for n, i in (first, last)},
        }
    pair = {"sep": list(last), "cls": list(first)}
    return pick(
        [
            {"type": "BertProcessing", **pair},
            {"type": "RobertaProcessing", "trim_offsets": True, "add_prefix_space": True, **pair},
            make_byte_level(True),
        ]
    )


def make_merges(pieces, prefix, suffix, tokens):
    """Makes random merges, each of two existing tokens, and adds the merged tokens to `tokens`."""
    frequent = [piece for piece in pieces if piece in set("etaoinshrdlu \u0120\u258101")] or pieces
    merges, seen = [], set(tokens)
    for _ in range(random.randint(0, 400)):
        left, right = (pick([pick(frequent), pick(pieces), pick(tokens)]) for _ in range(2))
        if (
            left[:1] == "<"
            or right[:1] == "<"
            or not right.startswith(prefix)
            or (suffix and left.endswith(suffix))
            or [left, right] in merges
        ):
            continue
        merges.append([left, right])
        if left + right[len(prefix) :] not in seen:
            seen.add(left + right[len(prefix) :])
            tokens.append(left + right[len(prefix) :])
    return merges


def make_model(special, corpus):
    kind = pick(["BPE", "BPE", "WordPiece", "WordLevel", "Unigram"])
    of_bytes = kind in ("BPE", "Unigram") and chance(0.5)
    letters = sorted(set("".join(corpus)))
    random.shuffle(letters)
    letters = sorted(
        BYTES.values() if of_bytes else set(letters[:250]) | set(f"abcdefghijklmnopqrstuvwxyz {SPACE}_0123456789.,'")
    )
    fallback = (
        [f"<0x{byte:02X}>" for byte in range(256)]
        if not of_bytes and kind in ("BPE", "Unigram") and chance(0.4)
        else []
    )
    tokens = special + fallback
    if kind == "BPE":
        prefix, suffix = ("", "") if of_bytes else (pick(["", "", "##"]), pick(["", "", "</w>"]))
        pieces = sorted({start + letter + end for letter in letters for start in ("", prefix) for end in ("", suffix)})
        tokens = list(dict.fromkeys(tokens + pieces))
        merges = make_merges(pieces, prefix, suffix, tokens)
        lines = chance(0.5) and not any(" " in part for pair in merges for part in pair)
        return (
            of_bytes,
            tokens,
            {
                "type": kind,
                "dropout": None,
                "unk_token": pick(["<unk>", None]),
                "continuing_subword_prefix": prefix or None,
                "end_of_word_suffix": suffix or None,
                "fuse_unk": chance(0.5),
                "byte_fallback": bool(fallback),
                "ignore_merges": chance(0.4),
                "vocab": {t: i for i, t in enumerate(tokens)},
                "merges": [" ".join(pair) for pair in merges] if lines else merges,
            },
        )
    if kind == "Unigram":
        for one in corpus:
            at = random.randint(0, len(one))
            part = one[at : at + random.randint(2, 6)]
            tokens.append("".join(BYTES[b] for b in part.encode()) if of_bytes else part.replace(" ", SPACE))
        tokens = [token for token in dict.fromkeys(special + fallback + letters + tokens) if token]
        scores = [0 if token in special else round(-14 * random.random(), pick([1, 3, 9])) for token in tokens]
        return (
            of_bytes,
            tokens,
            {
                "type": kind,
                "unk_id": pick([0, 0, None]),
                "byte_fallback": bool(fallback),
                "vocab": list(map(list, zip(tokens, scores))),
            },
        )
    prefix = pick(["##", "a"]) if kind == "WordPiece" else ""
    for word in WORDS:
        at = random.randint(0, len(word))
        tokens += [word, word[:at], prefix + word[at:], word.lower()]
    tokens = [
        token for token in dict.fromkeys(special + letters + tokens + [prefix + letter for letter in letters]) if token
    ]
    rest = (
        {"continuing_subword_prefix": prefix, "max_input_chars_per_word": pick([100, 5])} if kind == "WordPiece" else {}
    )
    return False, tokens, {"type": kind, "unk_token": "<unk>", "vocab": {t: i for i, t in enumerate(tokens)}, **rest}


def make_tokenizer():
    special = ["<unk>", "<s>", "</s>", "<pad>"]
    of_bytes, tokens, made = make_model(special, [make_text() for _ in range(300)])
    ids = {token: i for i, token in enumerate(tokens)}
    added = []
    for content in special + random.sample(
        ["<|x|>", "the", "hello world", " a", "\u00c9", "[MASK]", "<h1>", "\n\n", SPACE * 2, "ab", "abc", "THE", "  "],
        4,
    ):
        is_special = content in special or chance(0.3)
        added.append(
            {
                "id": ids.setdefault(content, len(ids)),
                "content": content,
                "single_word": chance(0.2),
                "lstrip": chance(0.25),
                "rstrip": chance(0.25),
                "normalized": chance(0.1 if is_special else 0.4),
                "special": is_special,
            }
        )
    cut = None if chance(0.15) else make_step(PRE_TOKENIZERS, "pretokenizers")
    if of_bytes and chance(0.8):
        cut = (
            make_byte_level()
            if chance(0.5)
            else {
                "type": "Sequence",
                "pretokenizers": [make_step(PRE_TOKENIZERS, "pretokenizers", 1), make_byte_level(False)],
            }
        )
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": sorted(added, key=lambda token: token["id"]),
        "normalizer": None if chance(0.35) else make_step(NORMALIZERS, "normalizers"),
        "pre_tokenizer": cut,
        "post_processor": None if chance(0.3) else make_post_processor(("<s>", 1), ("</s>", 2)),
        "decoder": None if chance(0.2) else make_step(DECODERS, "decoders"),
        "model": made,
    }


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    poise, library = sys.argv[1], str(pathlib.Path(sys.argv[2]).resolve())
    count, seed = int(sys.argv[3]) if len(sys.argv) > 3 else 200, int(sys.argv[4]) if len(
        sys.argv
    ) > 4 else random.randrange(10**6)
    random.seed(seed)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tokenizers-"))
    (folder / "ask.js").write_text(NODE)
    totals = collections.Counter()
    for number in range(count):
        path = folder / f"{number}.json"
        path.write_text(json.dumps(make_tokenizer()))
        texts = [make_text() for _ in range(60)]
        asked = subprocess.run(
            ["node", folder / "ask.js", library, path], input=json.dumps(texts), capture_output=True, text=True
        )
        if asked.returncode != 0:
            totals["the library fails"] += 1
            continue
        theirs = json.loads(asked.stdout)
        lines = "".join(json.dumps(one) + "\n" for one in texts)
        differences = []
        for special in (0, 1):
            done = subprocess.run(
                [poise, "tokenize", path, "--jsonl", "-"] + ["--no-special"] * (1 - special),
                input=lines,
                capture_output=True,
                text=True,
            )
            ours = [json.loads(line) for line in done.stdout.split("\n") if line]
            for i, one in enumerate(texts):
                expected = theirs[2 * i + special]
                if i >= len(ours):  # Poise refused the text: a character has no token, and there is no unknown token
                    totals["refused by both" if "error" in expected else "refused by Poise"] += 1
                    differences += [] if "error" in expected else [(one, done.stderr)]
                    break
                same = "error" in expected or all(ours[i][key] == expected[key] for key in ("ids", "text"))
                totals["same" if same else "different"] += 1
                differences += [] if same else [(one, expected, ours[i])]
        if differences:
            print(f"{path}: {len(differences)}, the first: {ascii(differences[0])[:400]}", flush=True)
        else:
            path.unlink()
    print(f"seed {seed}:", ", ".join(f"{number} {what}" for what, number in sorted(totals.items())))


main()
