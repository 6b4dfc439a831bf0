"""Train nano-tiny-llama, a model in the Tiny Llama weight format that writes stories.

    python3 train_nano_tiny_llama.py                    train, write ../nano-tiny-llama, measure
    python3 train_nano_tiny_llama.py --reference-only   measure the files that exist

Writes weights.tllm, vocab.txt, merges.txt and reference.json: what a right implementation must
compute from the first three. The reference comes from a second forward pass, in numpy and
float64, that reads the files back.
"""

import argparse
import collections
import math
import os
import re
import struct

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import common
import corpus

HERE = os.path.dirname(os.path.abspath(__file__))
OUTPUT = os.path.join(HERE, "..", "nano-tiny-llama")
HELDOUT = os.path.join(HERE, "heldout.txt")
CORPUS_SEED = 2
CORPUS_STORIES = 50000

MAGIC, VERSION = 0x544C4C4D, 1
MODEL_DIM, LAYERS, HEADS, FFN_DIM, POSITIONS, VOCABULARY = 96, 4, 4, 192, 512, 640
DROPOUT = 0.0
EPSILON = 1e-5
GELU_SCALE = 0.7978845608028654  # sqrt(2 / pi)

SPECIALS = ["<unk>", "<pad>", "<bos>", "<eos>"]
UNK, PAD, BOS, EOS = range(4)

# name, text, tokens to generate, whether the logits are kept
PROMPTS = [
    ("short", "Once upon a time", 200, True),
    ("names", "Once upon a time, a little fox named Pip", 200, True),
    ("mid_story", "Lily was a small girl who lived by the sea. She was afraid of the dark.\n" "One night,", 160, False),
    ("white_space", "Tom  was\ta bear.", 120, False),
    ("empty", "", 160, False),
    (
        "long",
        "Once upon a time, there was a little hedgehog named Bramble. She lived in a cozy nest of "
        "leaves near the old stone bridge. Her favorite thing in the world was a silver bell.\n"
        "One windy morning, Bramble could not find the bell. She looked under the bed. She looked "
        "behind the door. But the silver bell was not there.",
        200,
        True,
    ),
]
TOKENIZER_TEXTS = ["Hello, world!", " two  spaces ", "A\tB\nC", "caf\u00e9", "12:30 #1", "<eos>", ""]


# The tokenizer.


def split_words(text):
    """Return the words in lower case, and single spaces, in order."""
    lowered = "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in text)
    return [" " if piece.isspace() else piece for piece in re.findall(r"[ \t\n]|[^ \t\n]+", lowered)]


def merge_pair(symbols, pair):
    """Join every occurrence of `pair` in a list of symbols, from the left."""
    merged, i = [], 0
    while i < len(symbols):
        if tuple(symbols[i : i + 2]) == pair:
            merged.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            merged.append(symbols[i])
            i += 1
    return merged


def learn_merges(stories, count):
    """Return byte-pair merges of letters, and of punctuation, by frequency within words."""
    parts = collections.Counter(
        part for story in stories for word in split_words(story) for part in re.findall(r"[a-z]+|[^a-z]+", word)
    )
    spelled = [(list(part), frequency) for part, frequency in sorted(parts.items())]
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for symbols, frequency in spelled:
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += frequency
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        spelled = [(merge_pair(symbols, best), frequency) for symbols, frequency in spelled]
    return merges


def write_tokenizer(directory, stories):
    """Write merges.txt, and vocab.txt: specials, space, other printable ASCII but capitals, merges."""
    characters = [chr(code) for code in range(32, 127) if not "A" <= chr(code) <= "Z"]
    merges = learn_merges(stories, VOCABULARY - len(SPECIALS) - len(characters))
    tokens = SPECIALS + characters + [left + right for left, right in merges]
    assert len(set(tokens)) == VOCABULARY
    with open(os.path.join(directory, "vocab.txt"), "w", newline="\n") as file:
        file.writelines(f"{token}\t{i}\n" for i, token in enumerate(tokens))
    with open(os.path.join(directory, "merges.txt"), "w", newline="\n") as file:
        file.write("#version: 0.2\n")
        file.writelines(f"{left} {right}\n" for left, right in merges)


class Tokenizer:
    """Reads vocab.txt and merges.txt; encodes and decodes."""

    def __init__(self, directory):
        with open(os.path.join(directory, "vocab.txt")) as file:
            rows = [line.rstrip("\n").rsplit("\t", 1) for line in file]
        self.ids = {token: int(number) for token, number in rows}
        self.tokens = {number: token for token, number in self.ids.items()}
        with open(os.path.join(directory, "merges.txt")) as file:
            pairs = [tuple(line.split()) for line in file.readlines()[1:]]
        self.ranks = {pair: rank for rank, pair in enumerate(pairs)}
        self.cache = {}

    def encode_word(self, word):
        """Merge the pair of lowest rank until none is left. Symbols are bytes, as latin-1."""
        if word not in self.cache:
            symbols = list(word.encode().decode("latin-1"))
            while len(symbols) > 1:
                best = min(zip(symbols, symbols[1:]), key=lambda pair: self.ranks.get(pair, math.inf))
                if best not in self.ranks:
                    break
                symbols = merge_pair(symbols, best)
            self.cache[word] = [self.ids.get(symbol, UNK) for symbol in symbols]
        return self.cache[word]

    def encode(self, text):
        return [i for word in split_words(text) for i in self.encode_word(word)]

    def decode(self, ids):
        return "".join(self.tokens[i] for i in ids if i not in (PAD, BOS, EOS))


def encode_stories(tokenizer, stories):
    """Return the ids of <bos> story <eos> for each story that is ASCII and fits the positions."""
    sequences = ([BOS] + tokenizer.encode(story) + [EOS] for story in stories if story.isascii())
    return [sequence for sequence in sequences if len(sequence) <= POSITIONS]


# The model for training, in PyTorch. Weights are [in, out]: y = x W.


def make_matrix(rows, columns, scale):
    return nn.Parameter(torch.randn(rows, columns) * scale)


def make_waves():
    """Return the positions before training: sines and cosines, so that neighbours are alike."""
    speed = 10000.0 ** (-torch.arange(MODEL_DIM // 2) / (MODEL_DIM // 2))
    angles = torch.outer(torch.arange(POSITIONS).float(), speed)
    return nn.Parameter(0.14 * torch.cat([angles.sin(), angles.cos()], dim=1))


class Block(nn.Module):
    """Parameters are declared in the order of the file."""

    def __init__(self):
        super().__init__()
        scale = 1 / math.sqrt(MODEL_DIM)
        into_residual = 1 / math.sqrt(2 * LAYERS)
        self.query = make_matrix(MODEL_DIM, MODEL_DIM, scale)
        self.key = make_matrix(MODEL_DIM, MODEL_DIM, scale)
        self.value = make_matrix(MODEL_DIM, MODEL_DIM, scale)
        self.output = make_matrix(MODEL_DIM, MODEL_DIM, scale * into_residual)
        self.linear1 = make_matrix(MODEL_DIM, FFN_DIM, scale)
        self.bias1 = nn.Parameter(torch.zeros(FFN_DIM))
        self.linear2 = make_matrix(FFN_DIM, MODEL_DIM, into_residual / math.sqrt(FFN_DIM))
        self.bias2 = nn.Parameter(torch.zeros(MODEL_DIM))
        self.ln1_weight = nn.Parameter(torch.ones(MODEL_DIM))
        self.ln1_bias = nn.Parameter(torch.zeros(MODEL_DIM))
        self.ln2_weight = nn.Parameter(torch.ones(MODEL_DIM))
        self.ln2_bias = nn.Parameter(torch.zeros(MODEL_DIM))

    def attend(self, x, mask):
        batch, length, _ = x.shape
        q, k, v = (
            (x @ weight).view(batch, length, HEADS, -1).transpose(1, 2) for weight in (self.query, self.key, self.value)
        )
        scores = (q / math.sqrt(MODEL_DIM // HEADS)) @ k.transpose(-1, -2) + mask
        mixed = scores.softmax(-1) @ v
        return mixed.transpose(1, 2).reshape(batch, length, -1) @ self.output

    def apply_feed_forward(self, x):
        x = x @ self.linear1 + self.bias1
        x = 0.5 * x * (1 + torch.tanh(GELU_SCALE * (x + 0.044715 * x * x * x)))
        return x @ self.linear2 + self.bias2

    def forward(self, x, mask):
        size = (MODEL_DIM,)
        x = x + self.attend(F.layer_norm(x, size, self.ln1_weight, self.ln1_bias, EPSILON), mask)
        return x + self.apply_feed_forward(F.layer_norm(x, size, self.ln2_weight, self.ln2_bias, EPSILON))


class TinyLlama(nn.Module):
    """Parameters are declared in the order of the file."""

    def __init__(self):
        super().__init__()
        self.embedding = make_matrix(VOCABULARY, MODEL_DIM, 0.1)
        self.position = make_waves()
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.output_projection = make_matrix(MODEL_DIM, VOCABULARY, 0.02)

    def list_inner_matrices(self):
        return [p for p in self.blocks.parameters() if p.dim() == 2]

    def forward(self, ids):
        length = ids.shape[1]
        mask = torch.full((length, length), -math.inf).triu(1)
        x = F.embedding(ids, self.embedding) + self.position[:length]
        for block in self.blocks:
            x = block(x, mask)
        return x @ self.output_projection


def list_in_file_order(model):
    """Yield the parameters in the order of the file."""
    yield model.embedding
    yield model.position
    for block in model.blocks:
        yield from block.parameters()
    yield model.output_projection


def write_weights(path, model):
    """Write a header of 36 bytes; then each array: its dimensions as uint64, and its floats."""
    with open(path, "wb") as file:
        file.write(
            struct.pack("<2I6if", MAGIC, VERSION, MODEL_DIM, LAYERS, HEADS, FFN_DIM, POSITIONS, VOCABULARY, DROPOUT)
        )
        for parameter in list_in_file_order(model):
            array = parameter.detach().numpy().astype("<f4")
            file.write(struct.pack(f"<{array.ndim}Q", *array.shape) + array.tobytes())


def train_and_write(directory, stories_count, steps):
    """Make the corpus and the tokenizer, train, and write the files."""
    os.makedirs(directory, exist_ok=True)
    stories = corpus.make_stories(CORPUS_SEED, stories_count)
    write_tokenizer(directory, [story for story in stories[:6000] if story.isascii()])
    sequences = encode_stories(Tokenizer(directory), stories)
    print(
        f"{len(sequences)} of {len(stories)} stories, {sum(map(len, sequences))} tokens, "
        f"longest {max(map(len, sequences))}"
    )
    model = TinyLlama()
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    common.train(model, sequences, steps)
    write_weights(os.path.join(directory, "weights.tllm"), model)


# The reference: an independent forward pass over the written file.


class Reference:
    """Computes the model of a written weights.tllm in float64."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        header = struct.unpack_from("<2I6if", self.data)
        assert header[:2] == (MAGIC, VERSION)
        _, self.layers, self.heads, _, _, _ = header[2:8]
        self.offset = 36
        self.embedding, self.position = self.read_array(2), self.read_array(2)
        self.blocks = [
            [self.read_array(rank) for rank in (2, 2, 2, 2, 2, 1, 2, 1, 1, 1, 1, 1)] for _ in range(self.layers)
        ]
        self.output_projection = self.read_array(2)
        assert self.offset == len(self.data)

    def read_array(self, rank):
        """Return the next array of the file."""
        shape = struct.unpack_from(f"<{rank}Q", self.data, self.offset)
        count = math.prod(shape)
        values = np.frombuffer(self.data, "<f4", count, self.offset + 8 * rank)
        self.offset += 8 * rank + 4 * count
        return values.astype(np.float64).reshape(shape)

    def attend(self, x, query, key, value):
        length, size = len(x), x.shape[1] // self.heads
        future = np.triu(np.ones((length, length), bool), 1)
        mixed = np.empty_like(x)
        for head in range(self.heads):
            columns = slice(head * size, (head + 1) * size)
            q, k, v = x @ query[:, columns], x @ key[:, columns], x @ value[:, columns]
            scores = np.where(future, -np.inf, q @ k.T / math.sqrt(size))
            mixed[:, columns] = np.exp(common.compute_log_softmax(scores)) @ v
        return mixed

    def forward(self, ids):
        """Return the logits [T,V] of the ids."""
        x = self.embedding[ids] + self.position[: len(ids)]
        for (
            query,
            key,
            value,
            output,
            linear1,
            bias1,
            linear2,
            bias2,
            ln1_weight,
            ln1_bias,
            ln2_weight,
            ln2_bias,
        ) in self.blocks:
            normed = layer_norm(x, ln1_weight, ln1_bias)
            x = x + self.attend(normed, query, key, value) @ output
            inner = layer_norm(x, ln2_weight, ln2_bias) @ linear1 + bias1
            x = x + gelu(inner) @ linear2 + bias2
        return x @ self.output_projection


def layer_norm(x, weight, bias):
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + EPSILON) * weight + bias


def gelu(x):
    return 0.5 * x * (1 + np.tanh(GELU_SCALE * (x + 0.044715 * x**3)))


def make_prompt_record(model, tokenizer, name, text, count, keep_logits):
    """Return an entry of "prompts" in reference.json."""
    tokens = [BOS] + tokenizer.encode(text)
    greedy_tokens, margin = common.continue_greedily(model.forward, tokens, count, EOS)
    record = {
        "name": name,
        "text": text,
        "tokens": tokens,
        "greedy_tokens": greedy_tokens,
        "greedy_text": tokenizer.decode(greedy_tokens),
        "smallest_margin": round(float(margin), 6),
    }
    if keep_logits:
        record["logits"] = [round(float(v), 6) for v in model.forward(tokens)[-1]]
    return record


def write_reference(directory):
    """Compute and write reference.json; print samples."""
    model, tokenizer = Reference(os.path.join(directory, "weights.tllm")), Tokenizer(directory)
    stories = encode_stories(tokenizer, corpus.read_stories(HELDOUT))
    score = common.compute_perplexity(model.forward, stories)
    reference = {
        "about": "Computed in float64 from weights.tllm. Prompts begin with <bos> (2); "
        "greedy_tokens end with <eos> (3) where the story ends. logits are those of the "
        "token after the prompt. tokenizer entries are without <bos>.",
        "heldout": {
            "file": "../training/heldout.txt",
            "stories": len(stories),
            **score,
            "method": "Stories are separated by an empty line; the newline that ends the "
            "file is not part of the last. Those that are pure ASCII and fit "
            "the positions are each one sequence: <bos>, the tokens of its "
            "text (newlines inside become spaces), <eos>. Perplexity = "
            "exp(sum of -ln p over all tokens but <bos> / their number).",
        },
        "prompts": [make_prompt_record(model, tokenizer, *prompt) for prompt in PROMPTS],
        "tokenizer": [{"text": text, "tokens": tokenizer.encode(text)} for text in TOKENIZER_TEXTS],
    }
    common.write_json(os.path.join(directory, "reference.json"), reference)
    print("held-out:", score)
    for record in reference["prompts"]:
        print(f"\n[greedy, margin {record['smallest_margin']}] " f"{record['text']}|{record['greedy_text']}")
    for seed in range(4):
        tokens = [BOS] + tokenizer.encode(PROMPTS[seed % 3][1])
        drawn = common.continue_at_random(model.forward, tokens, POSITIONS - len(tokens), EOS, 0.8, seed)
        print(f"\n[temperature 0.8] {tokenizer.decode(tokens + drawn)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", default=OUTPUT, metavar="DIR")
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--stories", type=int, default=CORPUS_STORIES)
    parser.add_argument("--reference-only", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if not args.reference_only:
        train_and_write(args.output, args.stories, args.steps)
    write_reference(args.output)


if __name__ == "__main__":
    main()
