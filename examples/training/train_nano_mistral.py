"""Train nano-mistral, a model of the Mistral architecture that writes stories.

    python3 train_nano_mistral.py                    train, write ../nano-mistral, measure
    python3 train_nano_mistral.py --reference-only   measure the files that exist
    python3 train_nano_mistral.py --wide             the same for ../nano-mistral-wide

Writes a Hugging Face directory (config.json, model.safetensors in bfloat16, tokenizer.model)
and reference.json: what a right implementation must compute from those three files. The
reference comes from a second forward pass, in numpy and float64, that reads the files back.
"""

import argparse
import json
import math
import os
import struct

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F
from torch import nn

import common
import corpus

HERE = os.path.dirname(os.path.abspath(__file__))
OUTPUT = os.path.join(HERE, "..", "nano-mistral")
WIDE_OUTPUT = os.path.join(HERE, "..", "nano-mistral-wide")
HELDOUT = os.path.join(HERE, "heldout.txt")
CORPUS_SEED = 1
CORPUS_STORIES = 60000
BOS, EOS = 1, 2

CONFIG = {
    "architectures": ["MistralForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": BOS,
    "eos_token_id": EOS,
    "hidden_act": "silu",
    "hidden_size": 128,
    "initializer_range": 0.02,
    "intermediate_size": 320,
    "max_position_embeddings": 512,
    "model_type": "mistral",
    "num_attention_heads": 4,
    "num_hidden_layers": 4,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0,
    "sliding_window": 128,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.36.0",
    "use_cache": True,
    "vocab_size": 960,
}
# The differences of nano-mistral-wide, whose rows fill blocks of 256 weights.
WIDE = {
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_attention_heads": 8,
    "num_hidden_layers": 2,
    "num_key_value_heads": 4,
}
STEPS, WIDE_STEPS = 3500, 1500

LONG_PROMPT = (
    "Once upon a time, there was a little hedgehog named Bramble. She lived in a cozy nest of "
    "leaves near the old stone bridge. Her best friend was a kind old mole named Walter. Her "
    "favorite thing in the world was a silver bell. It was a gift from her grandmother.\n"
    "One windy morning, Bramble could not find the bell. The trees bent and swayed in the wind. "
    "She looked under the bed. She looked behind the door. But the silver bell was not there. "
    '"Oh dear! Where is my silver bell?" she cried. Walter heard her and came over.'
)
# name, text, tokens to generate, whether the logits are kept
PROMPTS = [
    ("short", "Once upon a time", 100, True),
    ("names", "Once upon a time, a little fox named Pip", 120, False),
    ("mid_story", "Lily was a small girl who lived by the sea. She was afraid of the dark.\n" "One night,", 120, False),
    ("bytes", "Zo\u00e9 and Bj\u00f6rn were best friends. \U0001f98a", 80, True),
    ("empty", "", 100, False),
    ("longer_than_window", LONG_PROMPT, 120, True),
]
TOKENIZER_TEXTS = [
    "Hello, world!",
    " two  spaces ",
    "a\tb\nc",
    "caf\u00e9 \u00e0 12:30",
    "\u65e5\u672c \U0001f98a\U0001f3fd",
    "<s></s><unk><0x41>",
    "\u2581low",
    "e\u0301",
    "",
]


def train_tokenizer(stories, prefix):
    """Write a SentencePiece BPE model with the settings of those of Mistral and Llama."""
    paragraphs = (line for story in stories for line in story.split("\n"))
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=paragraphs,
        model_prefix=prefix,
        model_type="bpe",
        vocab_size=CONFIG["vocab_size"],
        byte_fallback=True,
        split_digits=True,
        normalization_rule_name="identity",
        add_dummy_prefix=True,
        remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True,
        character_coverage=0.9999,
        unk_id=0,
        bos_id=BOS,
        eos_id=EOS,
        pad_id=-1,
        minloglevel=2,
    )
    os.remove(prefix + ".vocab")


def load_tokenizer(directory):
    return sentencepiece.SentencePieceProcessor(model_file=os.path.join(directory, "tokenizer.model"))


def encode_story(tokenizer, story):
    """Return the ids of <s> story </s>."""
    return [BOS] + tokenizer.encode(story) + [EOS]


# The model for training, in PyTorch. Parameters are named as in Hugging Face's Mistral.


class RMSNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + CONFIG["rms_norm_eps"])


def make_rotary_tables(positions, head_dim):
    """Return cos and sin, [positions, head_dim]; both halves of a head have the same angles."""
    inverse = CONFIG["rope_theta"] ** (-torch.arange(0, head_dim, 2).float() / head_dim)
    angles = torch.outer(torch.arange(positions).float(), inverse)
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos(), angles.sin()


def rotate(x, cos, sin):
    """Apply the rotary embedding: element i is rotated with element i + head_dim / 2."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


class Attention(nn.Module):
    """Computes grouped-query attention: query head h uses key and value head h / (heads / kv_heads)."""

    def __init__(self, c):
        super().__init__()
        self.heads, self.kv_heads = c["num_attention_heads"], c["num_key_value_heads"]
        self.head_dim = c["hidden_size"] // self.heads
        kv_size = self.kv_heads * self.head_dim
        self.q_proj = nn.Linear(c["hidden_size"], c["hidden_size"], bias=False)
        self.k_proj = nn.Linear(c["hidden_size"], kv_size, bias=False)
        self.v_proj = nn.Linear(c["hidden_size"], kv_size, bias=False)
        self.o_proj = nn.Linear(c["hidden_size"], c["hidden_size"], bias=False)

    def forward(self, x, cos, sin, mask):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, self.heads, -1).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.kv_heads, -1).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.kv_heads, -1).transpose(1, 2)
        group = self.heads // self.kv_heads
        q = rotate(q, cos, sin) / math.sqrt(self.head_dim)
        k = rotate(k, cos, sin).repeat_interleave(group, dim=1)
        scores = q @ k.transpose(-1, -2) + mask
        mixed = scores.softmax(-1) @ v.repeat_interleave(group, dim=1)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


class MLP(nn.Module):
    """Computes SwiGLU."""

    def __init__(self, c):
        super().__init__()
        self.gate_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.up_proj = nn.Linear(c["hidden_size"], c["intermediate_size"], bias=False)
        self.down_proj = nn.Linear(c["intermediate_size"], c["hidden_size"], bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = RMSNorm(c["hidden_size"])
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c["hidden_size"])
        self.mlp = MLP(c)

    def forward(self, x, cos, sin, mask):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin, mask)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.norm = RMSNorm(c["hidden_size"])


class Mistral(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.model = Body(c)
        self.lm_head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)
        self.cos, self.sin = make_rotary_tables(
            c["max_position_embeddings"], c["hidden_size"] // c["num_attention_heads"]
        )
        self.window = c["sliding_window"]
        self.initialize(c)

    def initialize(self, c):
        """Set normally distributed weights; those that write into the residual stream are smaller."""
        for name, parameter in self.named_parameters():
            if parameter.dim() == 2:
                scale = c["initializer_range"]
                if name.endswith(("o_proj.weight", "down_proj.weight")):
                    scale /= math.sqrt(2 * c["num_hidden_layers"])
                nn.init.normal_(parameter, std=scale)

    def list_inner_matrices(self):
        return [p for p in self.model.layers.parameters() if p.dim() == 2]

    def forward(self, ids):
        length = ids.shape[1]
        distance = torch.arange(length)[:, None] - torch.arange(length)[None, :]
        hidden = (distance < 0) | (distance >= self.window)
        mask = torch.zeros(length, length).masked_fill(hidden, -math.inf)
        x = self.model.embed_tokens(ids)
        for layer in self.model.layers:
            x = layer(x, self.cos[:length], self.sin[:length], mask)
        return self.lm_head(self.model.norm(x))


# The files.


def to_bfloat16(values):
    """Return the upper 16 bits of float32 numbers, rounded to nearest, ties to even."""
    bits = np.ascontiguousarray(values, dtype="<f4").view("<u4").astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def write_safetensors(path, tensors):
    """Write the header's size as uint64, a JSON header padded with spaces to 8 bytes, and the tensors' bytes."""
    header, blobs, offset = {"__metadata__": {"format": "pt"}}, [], 0
    for name in sorted(tensors):
        blob = to_bfloat16(tensors[name]).tobytes()
        header[name] = {
            "dtype": "BF16",
            "shape": list(tensors[name].shape),
            "data_offsets": [offset, offset + len(blob)],
        }
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def read_safetensors(path):
    """Return all tensors of a bfloat16 file, as float64 arrays."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack_from("<Q", data)[0]
    header, tensors = json.loads(data[8 : 8 + size]), {}
    header.pop("__metadata__")
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        halves = np.frombuffer(data[8 + size + begin : 8 + size + end], dtype="<u2")
        floats = (halves.astype("<u4") << 16).view("<f4").astype(np.float64)
        tensors[name] = floats.reshape(entry["shape"])
    return tensors


def train_and_write(directory, stories_count, steps):
    """Make the corpus and the tokenizer, train, and write the model's directory."""
    os.makedirs(directory, exist_ok=True)
    stories = corpus.make_stories(CORPUS_SEED, stories_count)
    train_tokenizer(stories[:6000], os.path.join(directory, "tokenizer"))
    tokenizer = load_tokenizer(directory)
    sequences = [encode_story(tokenizer, story) for story in stories]
    print(f"{len(sequences)} stories, {sum(map(len, sequences))} tokens, " f"longest {max(map(len, sequences))}")
    model = Mistral(CONFIG)
    print(f"{sum(p.numel() for p in model.parameters())} parameters", flush=True)
    common.train(model, sequences, steps)
    with open(os.path.join(directory, "config.json"), "w", encoding="utf-8") as file:
        json.dump(CONFIG, file, indent=2)
        file.write("\n")
    write_safetensors(
        os.path.join(directory, "model.safetensors"), {name: p.detach().numpy() for name, p in model.named_parameters()}
    )


# The reference: an independent forward pass over the written files.


class Reference:
    """Computes the model of a written directory in float64."""

    def __init__(self, directory):
        with open(os.path.join(directory, "config.json"), encoding="utf-8") as file:
            self.config = json.load(file)
        self.tensors = read_safetensors(os.path.join(directory, "model.safetensors"))
        self.heads = self.config["num_attention_heads"]
        self.group = self.heads // self.config["num_key_value_heads"]
        self.head_dim = self.config["hidden_size"] // self.heads

    def normalize(self, x, name):
        scale = np.sqrt((x * x).mean(-1, keepdims=True) + self.config["rms_norm_eps"])
        return x / scale * self.tensors[name]

    def rotate(self, heads):
        """Rotate each pair (i, i + head_dim / 2) of [T, head, head_dim] as a complex number."""
        half = self.head_dim // 2
        speed = self.config["rope_theta"] ** (-np.arange(half) / half)
        turn = np.exp(1j * np.outer(np.arange(len(heads)), speed))[:, None, :]
        turned = (heads[..., :half] + 1j * heads[..., half:]) * turn
        return np.concatenate([turned.real, turned.imag], axis=-1)

    def attend(self, x, prefix):
        length = len(x)
        q, k, v = (
            (x @ self.tensors[f"{prefix}.{part}_proj.weight"].T).reshape(length, -1, self.head_dim) for part in "qkv"
        )
        q, k = self.rotate(q), self.rotate(k)
        ages = np.arange(length)[:, None] - np.arange(length)[None, :]
        visible = (ages >= 0) & (ages < self.config["sliding_window"])
        mixed = np.empty_like(q)
        for head in range(self.heads):
            scores = q[:, head] @ k[:, head // self.group].T / math.sqrt(self.head_dim)
            chances = np.exp(common.compute_log_softmax(np.where(visible, scores, -np.inf)))
            mixed[:, head] = chances @ v[:, head // self.group]
        return mixed.reshape(length, -1) @ self.tensors[f"{prefix}.o_proj.weight"].T

    def apply_mlp(self, x, prefix):
        gate, up = (x @ self.tensors[f"{prefix}.{part}_proj.weight"].T for part in ("gate", "up"))
        return (gate / (1 + np.exp(-gate)) * up) @ self.tensors[f"{prefix}.down_proj.weight"].T

    def forward(self, ids):
        """Return the logits [T,V] of the ids."""
        x = self.tensors["model.embed_tokens.weight"][ids]
        for i in range(self.config["num_hidden_layers"]):
            layer = f"model.layers.{i}"
            x = x + self.attend(self.normalize(x, f"{layer}.input_layernorm.weight"), f"{layer}.self_attn")
            x = x + self.apply_mlp(self.normalize(x, f"{layer}.post_attention_layernorm.weight"), f"{layer}.mlp")
        return self.normalize(x, "model.norm.weight") @ self.tensors["lm_head.weight"].T


def make_prompt_record(model, tokenizer, name, text, count, keep_logits):
    """Return an entry of "prompts" in reference.json."""
    tokens = [BOS] + tokenizer.encode(text)
    greedy_tokens, margin = common.continue_greedily(model.forward, tokens, count, EOS)
    whole = tokenizer.decode(tokens + greedy_tokens)
    assert whole.startswith(text)
    record = {
        "name": name,
        "text": text,
        "tokens": tokens,
        "greedy_tokens": greedy_tokens,
        "greedy_text": whole[len(text) :],
        "smallest_margin": round(float(margin), 6),
    }
    if keep_logits:
        record["logits"] = [round(float(v), 6) for v in model.forward(tokens)[-1]]
    return record


def write_reference(directory):
    """Compute and write reference.json; print samples."""
    model, tokenizer = Reference(directory), load_tokenizer(directory)
    stories = corpus.read_stories(HELDOUT)
    score = common.compute_perplexity(model.forward, [encode_story(tokenizer, s) for s in stories])
    reference = {
        "about": "Computed in float64 from the bfloat16 weights. Prompts begin with <s> (1); "
        "greedy_tokens end with </s> (2) where the story ends. Position i attends to "
        "positions j with i - sliding_window < j <= i. logits are those of the token "
        "after the prompt. tokenizer entries are without <s>.",
        "heldout": {
            "file": "../training/heldout.txt",
            "stories": len(stories),
            **score,
            "method": "Stories are separated by an empty line; the newline that ends the "
            "file is not part of the last. Each is one sequence: <s>, the "
            "tokens of its text (newlines inside included), </s>. Perplexity "
            "= exp(sum of -ln p over all tokens but <s> / their number).",
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
        drawn = common.continue_at_random(model.forward, tokens, 300, EOS, 0.8, seed)
        print(f"\n[temperature 0.8] {tokenizer.decode(tokens + drawn)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--wide", action="store_true", help="two layers of 256 instead of four of 128")
    parser.add_argument("--output", metavar="DIR")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--stories", type=int, default=CORPUS_STORIES)
    parser.add_argument("--reference-only", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    if args.wide:
        CONFIG.update(WIDE)
    output = args.output or (WIDE_OUTPUT if args.wide else OUTPUT)
    if not args.reference_only:
        train_and_write(output, args.stories, args.steps or (WIDE_STEPS if args.wide else STEPS))
    write_reference(output)


if __name__ == "__main__":
    main()
