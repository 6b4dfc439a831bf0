#!/usr/bin/env python3
"""Compares Poise's GGUF files with llama.cpp's, one architecture after the other, on small random models.

    compare_llama_cpp.py POISE LLAMA_CPP GENERATE [ARCHITECTURE...]

POISE is the command; LLAMA_CPP the source of llama.cpp v0.5.0, whose gguf-py reads and writes GGUF here; GENERATE a
program that is called with a GGUF file, a text and a number, and prints "ids of the text | ids of the continuation"
(scripts/greedy_llama_cpp.cpp). Needs NumPy.

For each architecture, writes a Hugging Face directory, and a GGUF file with the names, values and keys that llama.cpp's
conversion/ gives that directory. Then it compares:
  write      Poise converts the directory to GGUF: the tensors are equal byte by byte, and so are the hyperparameters
  general    this file has the keys "general.*" that llama.cpp's converter makes of the directory's name, card and
             configuration
  read       Poise reads llama.cpp's file: it gets the tensors and the configuration of the directory
  again      Poise reads its own file: it gets the configuration of the directory
  llama.cpp  llama.cpp generates the same tokens with both files
  Poise      Poise generates these tokens with the directory and both files. Both programs round activations to 8 bits
             for MXFP4, but differently. So Poise runs with --exact, and its tokens are compared with those of a file of
             the same numbers in float32
Prints a table; exits with 1 if something differs. "-" is a model that Poise refuses to run.
"""
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
TOKENIZER = os.path.join(HERE, "..", "examples", "nano-mistral", "tokenizer.model")
VOCABULARY, HIDDEN, HEADS, KEYS, INNER, EXPERTS = 960, 64, 4, 2, 96, 4
CARD = """---
license: apache-2.0
language: [en, de]
tags:
- tiny
pipeline_tag: text-generation
base_model: acme/Base-7B-v0.3
datasets:
- roneneldan/TinyStories
---
# A model
"""
GENERATION = {"do_sample": True, "temperature": 0.6, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.05}
GREEDY = ("--temperature", "0", "--repetition-penalty", "1")  # overrides GENERATION
TEXT, TOKENS = "Once upon a time there was a small bird that lived in a tall tree near the sea", 24


def make_f32(*shape, spread=None, around=0.0):
    scale = spread if spread is not None else 1.6 / math.sqrt(shape[-1])
    return (around + RANDOM.standard_normal(shape) * scale).astype(np.float32)


def permute_rows(rows, heads):
    """Returns the rows of a matrix of queries or keys in llama.cpp's order."""
    halves = rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(rows.shape)


class Model:
    """Holds the tensors and configuration of a directory, and those that llama.cpp's conversion makes of it."""

    def __init__(self, architecture, config, head=16, layers=3, permute=False, one=False):
        self.architecture, self.head, self.layers, self.permute, self.one = architecture, head, layers, permute, one
        self.packed = False  # True: has tensors of codes, which are compared in a directory
        self.vision = False  # True: is the text model of a multimodal directory
        self.config = {
            "hidden_size": HIDDEN,
            "intermediate_size": INNER,
            "num_attention_heads": HEADS,
            "num_key_value_heads": KEYS,
            "num_hidden_layers": layers,
            "max_position_embeddings": 512,
            "vocab_size": VOCABULARY,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
            "tie_word_embeddings": False,
            "bos_token_id": 1,
            "eos_token_id": 2,
            **config,
        }
        self.tensors, self.expected, self.keys = {}, {}, {}
        self.exact = {}  # float32 tensors in place of codes, for which llama.cpp would round activations
        self.add("model.embed_tokens.weight", "token_embd.weight", make_f32(VOCABULARY, HIDDEN, spread=0.05))

    def add(self, name, gguf, values, stored=None):
        self.tensors[name] = values
        if gguf:
            self.expected[gguf] = values if stored is None else stored

    def add_norm(self, name, gguf, length=HIDDEN):
        values = make_f32(length, spread=0.2, around=0.0 if self.one else 1.0)
        self.add(name, gguf, values, values + np.float32(1) if self.one else values)

    def add_linear(self, layer, name, gguf, rows, columns, heads=0, bias=False):
        values = make_f32(rows, columns)
        self.add(
            f"model.layers.{layer}.{name}.weight",
            f"blk.{layer}.{gguf}.weight",
            values,
            permute_rows(values, heads) if heads else values,
        )
        if bias:
            values = make_f32(rows, spread=0.2)
            self.add(
                f"model.layers.{layer}.{name}.bias",
                f"blk.{layer}.{gguf}.bias",
                values,
                permute_rows(values, heads) if heads else values,
            )

    def add_attention(self, layer, bias=False, out_bias=False, norms=0):
        heads, keys = (HEADS, KEYS) if self.permute else (0, 0)
        self.add_linear(layer, "self_attn.q_proj", "attn_q", HEADS * self.head, HIDDEN, heads, bias)
        self.add_linear(layer, "self_attn.k_proj", "attn_k", KEYS * self.head, HIDDEN, keys, bias)
        self.add_linear(layer, "self_attn.v_proj", "attn_v", KEYS * self.head, HIDDEN, 0, bias)
        self.add_linear(layer, "self_attn.o_proj", "attn_output", HIDDEN, HEADS * self.head, 0, out_bias)
        if norms:  # the length: that of one head, or of all heads
            self.add_norm(f"model.layers.{layer}.self_attn.q_norm.weight", f"blk.{layer}.attn_q_norm.weight", norms)
            self.add_norm(
                f"model.layers.{layer}.self_attn.k_norm.weight",
                f"blk.{layer}.attn_k_norm.weight",
                min(norms, KEYS * self.head),
            )

    def add_mlp(self, layer):
        self.add_linear(layer, "mlp.gate_proj", "ffn_gate", INNER, HIDDEN)
        self.add_linear(layer, "mlp.up_proj", "ffn_up", INNER, HIDDEN)
        self.add_linear(layer, "mlp.down_proj", "ffn_down", HIDDEN, INNER)

    def add_experts(self, layer, prefix, names, inner):
        self.add_linear(layer, f"{prefix}.gate", "ffn_gate_inp", EXPERTS, HIDDEN)
        for name, gguf, rows, columns in zip(
            names, ("ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"), (inner, inner, HIDDEN), (HIDDEN, HIDDEN, inner)
        ):
            parts = [make_f32(rows, columns) for _ in range(EXPERTS)]
            for i, part in enumerate(parts):
                self.add(f"model.layers.{layer}.{prefix}.experts.{i}.{name}.weight", None, part)
            self.expected[f"blk.{layer}.{gguf}.weight"] = np.stack(parts)

    def add_layer_norm(self, layer, name, gguf):
        self.add_norm(f"model.layers.{layer}.{name}.weight", f"blk.{layer}.{gguf}.weight")

    def finish(self):
        self.add_norm("model.norm.weight", "output_norm.weight")
        if not self.config["tie_word_embeddings"]:
            self.add("lm_head.weight", "output.weight", make_f32(VOCABULARY, HIDDEN))
        c = self.config
        usual = {
            "context_length": c["max_position_embeddings"],
            "embedding_length": HIDDEN,
            "block_count": self.layers,
            "feed_forward_length": INNER,
            "attention.head_count": HEADS,
            "attention.head_count_kv": KEYS,
            "attention.layer_norm_rms_epsilon": np.float32(c["rms_norm_eps"]),
            "rope.freq_base": np.float32(c["rope_theta"]),
        }
        self.keys = {**usual, **self.keys}
        return self


def make_plain(
    architecture, model_type, permute=False, head=16, norms=0, bias=False, out_bias=False, layers=3, **config
):
    m = Model(architecture, {"model_type": model_type, **config}, permute=permute, head=head, layers=layers)
    for layer in range(layers):
        m.add_layer_norm(layer, "input_layernorm", "attn_norm")
        m.add_attention(layer, bias, out_bias, norms)
        m.add_layer_norm(layer, "post_attention_layernorm", "ffn_norm")
        m.add_mlp(layer)
    return m.finish()


def make_llama():
    m = make_plain("llama", "llama", permute=True, rope_theta=500000.0)
    m.keys["rope.dimension_count"] = 16
    return m


def make_llama_scaled():
    scaling = {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    }
    m = make_plain(
        "llama",
        "llama",
        permute=True,
        rope_theta=500000.0,
        rope_scaling=scaling,
        attention_bias=True,
        bias=True,
        out_bias=True,
    )
    frequencies = 500000.0 ** -(np.arange(0, 16, 2) / 16)
    factors = []
    for wave in 2 * math.pi / frequencies:
        smooth = (8192 / wave - 1) / 3
        factors.append(1 if wave < 8192 / 4 else 8 if wave > 8192 else 1 / ((1 - smooth) / 8 + smooth))
    m.expected["rope_freqs.weight"] = np.array(factors, np.float32)
    return m


def make_llama_linear():
    m = make_plain("llama", "llama", permute=True, rope_scaling={"rope_type": "linear", "factor": 4.0})
    m.keys |= {"rope.scaling.type": "linear", "rope.scaling.factor": np.float32(4)}
    return m


def make_llama_yarn():
    m = make_plain(
        "llama",
        "llama",
        permute=True,
        rope_scaling={"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128},
    )
    m.keys |= {
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": np.float32(4),
        "rope.scaling.original_context_length": 128,
    }
    return m


def make_mixtral():
    m = Model(
        "llama",
        {"model_type": "mixtral", "num_local_experts": EXPERTS, "num_experts_per_tok": 2, "sliding_window": None},
        permute=True,
    )
    for layer in range(3):
        m.add_layer_norm(layer, "input_layernorm", "attn_norm")
        m.add_attention(layer)
        m.add_layer_norm(layer, "post_attention_layernorm", "ffn_norm")
        m.add_experts(layer, "block_sparse_moe", ("w1", "w3", "w2"), INNER)
    m.keys = {"expert_count": EXPERTS, "expert_used_count": 2}
    return m.finish()


def make_qwen2():
    return make_plain("qwen2", "qwen2", bias=True, rope_theta=1e6)


def make_qwen3():
    m = make_plain("qwen3", "qwen3", head=32, norms=32, head_dim=32, tie_word_embeddings=True, rope_theta=1e6)
    m.keys |= {"attention.key_length": 32, "attention.value_length": 32}
    return m


def make_qwen3_moe():
    m = Model(
        "qwen3moe",
        {
            "model_type": "qwen3_moe",
            "num_experts": EXPERTS,
            "num_experts_per_tok": 2,
            "norm_topk_prob": True,
            "head_dim": 32,
            "moe_intermediate_size": 32,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
        },
        head=32,
    )
    for layer in range(3):
        m.add_layer_norm(layer, "input_layernorm", "attn_norm")
        m.add_attention(layer, norms=32)
        m.add_layer_norm(layer, "post_attention_layernorm", "ffn_norm")
        m.add_experts(layer, "mlp", ("gate_proj", "up_proj", "down_proj"), 32)
    m.keys = {
        "expert_count": EXPERTS,
        "expert_used_count": 2,
        "expert_feed_forward_length": 32,
        "attention.key_length": 32,
        "attention.value_length": 32,
    }
    return m.finish()


def make_gemma():
    m = Model(
        "gemma",
        {"model_type": "gemma", "head_dim": 32, "tie_word_embeddings": True, "hidden_activation": "gelu_pytorch_tanh"},
        head=32,
        one=True,
    )
    for layer in range(3):
        m.add_layer_norm(layer, "input_layernorm", "attn_norm")
        m.add_attention(layer)
        m.add_layer_norm(layer, "post_attention_layernorm", "ffn_norm")
        m.add_mlp(layer)
    m.keys = {"attention.key_length": 32, "attention.value_length": 32}
    return m.finish()


def make_gemma_2_or_3(architecture, model_type, norms, layers, keys, **config):
    m = Model(
        architecture,
        {
            "model_type": model_type,
            "head_dim": 32,
            "tie_word_embeddings": True,
            "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": 32,
            **config,
        },
        head=32,
        layers=layers,
        one=True,
    )
    for layer in range(layers):
        m.add_layer_norm(layer, "input_layernorm", "attn_norm")
        m.add_attention(layer, norms=norms)
        m.add_layer_norm(layer, "post_attention_layernorm", "post_attention_norm")
        m.add_layer_norm(layer, "pre_feedforward_layernorm", "ffn_norm")
        m.add_mlp(layer)
        m.add_layer_norm(layer, "post_feedforward_layernorm", "post_ffw_norm")
    m.keys = {"attention.key_length": 32, "attention.value_length": 32, **keys}
    return m.finish()


def make_gemma2():
    keys = {
        "attention.sliding_window": 8,
        "attn_logit_softcapping": np.float32(50),
        "final_logit_softcapping": np.float32(30),
    }
    return make_gemma_2_or_3(
        "gemma2", "gemma2", 0, 4, keys, sliding_window=8, attn_logit_softcapping=50.0, final_logit_softcapping=30.0
    )


def make_gemma3():
    keys = {"attention.sliding_window": 8, "rope.freq_base_swa": np.float32(5000)}
    return make_gemma_2_or_3(
        "gemma3",
        "gemma3_text",
        32,
        7,
        keys,
        sliding_window=8,
        sliding_window_pattern=6,
        rope_theta=1e6,
        rope_local_base_freq=5000.0,
    )


def make_gemma3_scaled():
    keys = {
        "attention.sliding_window": 8,
        "rope.freq_base_swa": np.float32(10000),
        "rope.scaling.type": "linear",
        "rope.scaling.factor": np.float32(8),
        "attention.sliding_window_pattern": [True, False, True, False],
    }
    return make_gemma_2_or_3(
        "gemma3",
        "gemma3_text",
        32,
        4,
        keys,
        sliding_window=8,
        layer_types=["sliding_attention", "full_attention"] * 2,
        rope_theta=1e6,
        rope_local_base_freq=10000.0,
        rope_scaling={"rope_type": "linear", "factor": 8.0},
    )


def make_phi3(config, partial=1.0):
    m = Model("phi3", {"model_type": "phi3", "original_max_position_embeddings": 512, "sliding_window": None, **config})
    for layer in range(3):
        m.add_layer_norm(layer, "input_layernorm", "attn_norm")
        m.add_linear(layer, "self_attn.qkv_proj", "attn_qkv", (HEADS + 2 * KEYS) * 16, HIDDEN)
        m.add_linear(layer, "self_attn.o_proj", "attn_output", HIDDEN, HIDDEN)
        m.add_layer_norm(layer, "post_attention_layernorm", "ffn_norm")
        m.add_linear(layer, "mlp.gate_up_proj", "ffn_up", 2 * INNER, HIDDEN)
        m.add_linear(layer, "mlp.down_proj", "ffn_down", HIDDEN, INNER)
    m.keys = {"rope.dimension_count": int(16 * partial), "rope.scaling.original_context_length": 512}
    return m.finish()


def make_phi3_long():
    short, long = [1.0 + 0.1 * i for i in range(6)], [1.0 + 2.0 * i for i in range(6)]
    scaling = {"type": "longrope", "short_factor": short, "long_factor": long}
    m = make_phi3({"partial_rotary_factor": 0.75, "max_position_embeddings": 2048, "rope_scaling": scaling}, 0.75)
    m.expected["rope_factors_long.weight"] = np.array(long, np.float32)
    m.expected["rope_factors_short.weight"] = np.array(short, np.float32)
    m.keys["rope.scaling.attn_factor"] = np.float32(math.sqrt(1 + math.log(4) / math.log(512)))
    return m


def make_gpt2():
    m = Model("gpt2", {}, layers=3)
    m.config = {
        "model_type": "gpt2",
        "n_positions": 512,
        "n_ctx": 512,
        "n_embd": HIDDEN,
        "n_layer": 3,
        "n_head": HEADS,
        "n_inner": 4 * HIDDEN,
        "layer_norm_epsilon": 1e-5,
        "activation_function": "gelu_new",
        "vocab_size": VOCABULARY,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "tie_word_embeddings": True,
    }
    m.tensors, m.expected = {}, {}
    m.add("transformer.wte.weight", "token_embd.weight", make_f32(VOCABULARY, HIDDEN, spread=0.05))
    m.add("transformer.wpe.weight", "position_embd.weight", make_f32(512, HIDDEN, spread=0.3))

    def add_norm(name, gguf):
        m.add(name + ".weight", gguf + ".weight", make_f32(HIDDEN, spread=0.2, around=1))
        m.add(name + ".bias", gguf + ".bias", make_f32(HIDDEN, spread=0.2))

    def add_conv(name, gguf, columns, rows):
        weight = make_f32(columns, rows, spread=1.6 / math.sqrt(columns))
        m.add(name + ".weight", gguf + ".weight", weight, np.ascontiguousarray(weight.T))
        m.add(name + ".bias", gguf + ".bias", make_f32(rows, spread=0.2))

    for i in range(3):
        add_norm(f"transformer.h.{i}.ln_1", f"blk.{i}.attn_norm")
        add_conv(f"transformer.h.{i}.attn.c_attn", f"blk.{i}.attn_qkv", HIDDEN, 3 * HIDDEN)
        add_conv(f"transformer.h.{i}.attn.c_proj", f"blk.{i}.attn_output", HIDDEN, HIDDEN)
        add_norm(f"transformer.h.{i}.ln_2", f"blk.{i}.ffn_norm")
        add_conv(f"transformer.h.{i}.mlp.c_fc", f"blk.{i}.ffn_up", HIDDEN, 4 * HIDDEN)
        add_conv(f"transformer.h.{i}.mlp.c_proj", f"blk.{i}.ffn_down", 4 * HIDDEN, HIDDEN)
    add_norm("transformer.ln_f", "output_norm")
    m.keys = {
        "context_length": 512,
        "embedding_length": HIDDEN,
        "block_count": 3,
        "feed_forward_length": 4 * HIDDEN,
        "attention.head_count": HEADS,
        "attention.layer_norm_epsilon": np.float32(1e-5),
    }
    return m


def pack_as_ggml(blocks, scales):
    """Returns rows of ggml's MXFP4 blocks from codes, two neighbours in a byte, and the exponents of their scales."""
    codes = np.stack([blocks & 15, blocks >> 4], -1).reshape(*blocks.shape[:-1], 32)
    halves = codes[..., :16] | codes[..., 16:] << 4
    return np.concatenate([scales[..., None], halves], -1).reshape(*blocks.shape[:-2], -1)


def decode_mxfp4(blocks, scales):
    book = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    codes = np.stack([blocks & 15, blocks >> 4], -1).reshape(*blocks.shape[:-1], 32)
    return (
        (book[codes] * 2.0 ** (scales.astype(float)[..., None] - 127))
        .reshape(*blocks.shape[:-2], -1)
        .astype(np.float32)
    )


def make_gpt_oss(mxfp4):
    """Makes the model as conversion/gpt_oss.py converts it. Its yarn has no `truncate`, which llama.cpp lacks."""
    inner, prefix = 96, "mlp.experts."
    config = {
        "model_type": "gpt_oss",
        "head_dim": 32,
        "num_local_experts": EXPERTS,
        "num_experts_per_tok": 2,
        "sliding_window": 8,
        "attention_bias": True,
        "rope_theta": 150000.0,
        "rms_norm_eps": 1e-5,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 32.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "original_max_position_embeddings": 128,
        },
    }
    if mxfp4:
        config["quantization_config"] = {
            "modules_to_not_convert": [
                "model.layers.*.self_attn",
                "model.layers.*.mlp.router",
                "model.embed_tokens",
                "lm_head",
            ],
            "quant_method": "mxfp4",
        }
    m = Model("gpt-oss", config, head=32, layers=4)
    m.packed = True
    for layer in range(4):
        name, gguf = f"model.layers.{layer}.", f"blk.{layer}."
        m.add_layer_norm(layer, "input_layernorm", "attn_norm")
        m.add_attention(layer, bias=True, out_bias=True)
        m.add(name + "self_attn.sinks", gguf + "attn_sinks.weight", make_f32(HEADS, spread=1.0))
        m.add_layer_norm(layer, "post_attention_layernorm", "post_attention_norm")
        m.add_linear(layer, "mlp.router", "ffn_gate_inp", EXPERTS, HIDDEN, bias=True)
        for which, rows, columns in (("gate_up_proj", 2 * inner, HIDDEN), ("down_proj", HIDDEN, inner)):
            if mxfp4:
                blocks = RANDOM.integers(0, 256, (EXPERTS, rows, columns // 32, 16), dtype=np.uint8)
                scales = RANDOM.integers(121, 125, (EXPERTS, rows, columns // 32), dtype=np.uint8)
                m.tensors[name + prefix + which + "_blocks"], m.tensors[name + prefix + which + "_scales"] = (
                    blocks,
                    scales,
                )
                stored, exact = pack_as_ggml(blocks, scales), decode_mxfp4(blocks, scales)
            else:
                values = make_f32(EXPERTS, columns, rows, spread=1.6 / math.sqrt(columns))
                m.tensors[name + prefix + which] = values
                stored = exact = np.ascontiguousarray(values.swapaxes(1, 2))
            bias = m.tensors[name + prefix + which + "_bias"] = make_f32(EXPERTS, rows, spread=0.2)
            parts = (
                (("ffn_gate_exps", 0, 2), ("ffn_up_exps", 1, 2))
                if which == "gate_up_proj"
                else (("ffn_down_exps", 0, 1),)
            )
            for part, first, step in parts:
                m.expected[f"{gguf}{part}.weight"] = np.ascontiguousarray(stored[:, first::step])
                m.exact[f"{gguf}{part}.weight"] = np.ascontiguousarray(exact[:, first::step])
                m.expected[f"{gguf}{part}.bias"] = np.ascontiguousarray(bias[:, first::step])
    m.keys = {
        "attention.key_length": 32,
        "attention.value_length": 32,
        "attention.sliding_window": 8,
        "expert_count": EXPERTS,
        "expert_used_count": 2,
        "expert_feed_forward_length": inner,
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": np.float32(32),
        "rope.scaling.original_context_length": 128,
        "rope.scaling.yarn_beta_fast": np.float32(32),
        "rope.scaling.yarn_beta_slow": np.float32(1),
    }
    return m.finish()


def make_multimodal(model, model_type, own):
    """Makes the model the text model of a multimodal directory. llama.cpp's conversion leaves out the other tensors."""
    text = {key: value for key, value in model.config.items() if not key.endswith("_token_id")}
    rest = {key: value for key, value in model.config.items() if key not in text}
    model.text = {**model.config}
    model.config = {"model_type": model_type, "text_config": text, "vision_config": {"hidden_size": 8}, **rest}
    model.tensors = {own + name: values for name, values in model.tensors.items()}
    model.tensors |= {
        "vision_tower.patch.weight": make_f32(8, 8),
        "multi_modal_projector.linear_1.weight": make_f32(HIDDEN, 8),
    }
    model.vision = True
    return model


def make_olmo2():
    m = Model("olmo2", {"model_type": "olmo2"})
    for layer in range(3):
        m.add_attention(layer, norms=HIDDEN)
        m.add_layer_norm(layer, "post_attention_layernorm", "post_attention_norm")
        m.add_mlp(layer)
        m.add_layer_norm(layer, "post_feedforward_layernorm", "post_ffw_norm")
    return m.finish()


def make_smollm3():
    m = make_plain(
        "smollm3",
        "smollm3",
        permute=True,
        layers=5,
        tie_word_embeddings=True,
        no_rope_layers=[1, 1, 1, 0, 1],
        rope_theta=5e6,
    )
    m.keys["rope.dimension_count"] = 16
    return m


MODELS = {
    "llama": make_llama,
    "llama, llama3 scaling, biases": make_llama_scaled,
    "llama, linear": make_llama_linear,
    "llama, yarn": make_llama_yarn,
    "mixtral": make_mixtral,
    "qwen2": make_qwen2,
    "qwen3": make_qwen3,
    "qwen3_moe": make_qwen3_moe,
    "gemma": make_gemma,
    "gemma2": make_gemma2,
    "gemma3": make_gemma3,
    "gemma3, linear, layer_types": make_gemma3_scaled,
    "phi3": lambda: make_phi3({}),
    "phi3, longrope, partial": make_phi3_long,
    "gpt2": make_gpt2,
    "olmo2": make_olmo2,
    "smollm3": make_smollm3,
    "gpt_oss, MXFP4": lambda: make_gpt_oss(True),
    "gpt_oss": lambda: make_gpt_oss(False),
    "gemma3, multimodal": lambda: make_multimodal(make_gemma3(), "gemma3", "language_model."),
    "mistral3": lambda: make_multimodal(
        make_plain("llama", "mistral", permute=True, sliding_window=None, head_dim=16), "mistral3", "language_model."
    ),
}


# llama.cpp's files lack these keys: they have no effect, or readers have defaults for them.
LEFT_OUT = {
    "architectures",
    "bos_token_id",
    "eos_token_id",
    "hidden_activation",
    "hidden_act",
    "sliding_window_pattern",
    "no_rope_layers",
    "n_ctx",
    "activation_function",
    "decoder_sparse_step",
    "mlp_only_layers",
    "initializer_range",
    "max_position_embeddings",
    "head_dim",
}


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, values in tensors.items():
        header[name] = {
            "dtype": "U8" if values.dtype == np.uint8 else "F32",
            "shape": list(values.shape),
            "data_offsets": [offset, offset + values.nbytes],
        }
        offset += values.nbytes
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for values in tensors.values():
            file.write(values.tobytes())


def read_safetensors(path):
    data = open(path, "rb").read()
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    types = {"F32": np.float32, "F16": np.float16, "U8": np.uint8}
    return {
        name: np.frombuffer(data[8 + length :][slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(
            entry["shape"]
        )
        for name, entry in header.items()
        if name != "__metadata__"
    }


def read_entries(path):
    reader = gguf.GGUFReader(path)
    return {key: field.contents() for key, field in reader.fields.items()}, reader


def list_differences(found, expected):
    return [
        name
        for name in sorted(set(found) | set(expected))
        if name not in found
        or name not in expected
        or not np.array_equal(found[name].view(np.uint8), np.ascontiguousarray(expected[name]).view(np.uint8))
    ]


def read_tensors(reader):
    return {
        t.name: np.array(t.data)
        if t.data.dtype == np.uint8
        else np.array(t.data).reshape([int(n) for n in reversed(t.shape)])
        for t in reader.tensors
    }


class Comparison:
    def __init__(self, poise, generate, folder):
        self.poise, self.generate, self.folder = poise, generate, folder

    def run(self, *arguments):
        done = subprocess.run([self.poise, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return done.stdout if done.returncode == 0 else None, done.stderr

    def convert(self, source, result):
        output, error = self.run("convert", source, "-o", result, "--force")
        if output is None:
            raise RuntimeError(error.strip())

    def write_reference(self, model, ours, exact=False):
        """Writes the file that llama.cpp's conversion makes, with the vocabulary that Poise wrote."""
        path = os.path.join(self.folder, "exact.gguf" if exact else "reference.gguf")
        writer = gguf.GGUFWriter(path, model.architecture)
        for key, value in model.keys.items():
            key = f"{model.architecture}.{key}"
            if isinstance(value, np.float32):
                writer.add_float32(key, float(value))
            elif isinstance(value, str):
                writer.add_string(key, value)
            elif isinstance(value, list):
                writer.add_array(key, value)
            else:
                writer.add_uint32(key, value)
        fields, _ = read_entries(ours)
        writer.add_tokenizer_model("llama")
        writer.add_tokenizer_pre("default")
        writer.add_token_list(fields["tokenizer.ggml.tokens"])
        writer.add_token_scores(fields["tokenizer.ggml.scores"])
        writer.add_token_types(fields["tokenizer.ggml.token_type"])
        for name in ("bos", "eos", "unknown"):
            writer.add_uint32(f"tokenizer.ggml.{name}_token_id", fields[f"tokenizer.ggml.{name}_token_id"])
        for name, values in (model.expected | (model.exact if exact else {})).items():
            writer.add_tensor(
                name, values, raw_dtype=gguf.GGMLQuantizationType.MXFP4 if values.dtype == np.uint8 else None
            )
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return path

    def read_config(self, path):
        return json.loads(self.run("inspect", path, "--json")[0])["config"]

    def generate_theirs(self, path):
        done = subprocess.run(
            [self.generate, path, TEXT, str(TOKENS)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if "|" not in done.stdout:
            return None, (done.stdout + done.stderr).strip()
        before, after = done.stdout.split("|")
        return before.split(), after.split()

    def generate_ours(self, path, tokens, exact):
        options = ["--cache", "f32", *["--exact"] * exact]  # as llama.cpp computes here
        output, error = self.run(
            "run", path, "--tokens", ",".join(tokens), "-n", str(TOKENS), "--json", *GREEDY, *options
        )
        if output is None:
            return error.strip().splitlines()[0] if error else "nothing"
        return [str(token) for token in json.loads(output)["tokens"]]

    def make_general_keys(self, directory, model):
        """Returns the keys that the converter's prepare_metadata() makes of the directory."""
        writer = gguf.GGUFWriter(None, model.architecture)
        for name, values in model.expected.items():
            writer.add_tensor(
                name, values, raw_dtype=gguf.GGMLQuantizationType.MXFP4 if values.dtype == np.uint8 else None
            )
        total, shared, experts, count = writer.get_total_parameter_count()
        metadata = gguf.Metadata.load(None, pathlib.Path(directory), None, total)
        if metadata.size_label is None:
            metadata.size_label = gguf.size_label(total, shared, experts, count)
        writer.add_type(gguf.GGUFType.MODEL)
        metadata.set_gguf_meta_model(writer)
        return {key: entry.value for key, entry in writer.kv_data[0].items() if key.startswith("general.")}

    def compare(self, name, model):
        problems = []
        directory = os.path.join(self.folder, "Acme-1M-Chat-v0.2")
        shutil.rmtree(directory, ignore_errors=True)
        os.makedirs(directory)
        open(os.path.join(directory, "README.md"), "w").write(CARD)
        json.dump(GENERATION, open(os.path.join(directory, "generation_config.json"), "w"))
        json.dump(model.config, open(os.path.join(directory, "config.json"), "w"))
        write_safetensors(os.path.join(directory, "model.safetensors"), model.tensors)
        shutil.copy(TOKENIZER, directory)

        written = os.path.join(self.folder, "written.gguf")
        self.convert(directory, written)
        fields, reader = read_entries(written)
        row = {"write": "equal"}
        wrong = list_differences(read_tensors(reader), model.expected)
        wrong += [
            key for key, value in model.keys.items() if not is_same(fields.get(f"{model.architecture}.{key}"), value)
        ]
        if fields["general.architecture"] != model.architecture:
            wrong.append("general.architecture")
        if wrong:
            row["write"] = "differs"
            problems.append(f"written: {wrong}")

        expected = self.make_general_keys(directory, model)
        found = {
            key: value
            for key, value in fields.items()
            if key.startswith("general.") and key not in ("general.file_type", "general.quantization_version")
        }
        wrong = [
            f"{key}: {found.get(key)}"
            for key in expected.keys() | found
            if not is_same(found.get(key), expected.get(key))
        ]
        row["general"] = "differs" if wrong else "equal"
        if wrong:
            problems.append(f"general: {wrong}")

        reference = self.write_reference(model, written)
        back, again = os.path.join(self.folder, "back/"), os.path.join(self.folder, "again/")
        if model.packed:
            self.convert(reference, back)
            self.convert(written, again)
            found = read_safetensors(back + "model.safetensors")
        else:
            self.convert(reference, os.path.join(self.folder, "back.safetensors"))
            found = read_safetensors(os.path.join(self.folder, "back.safetensors"))
            back, again = reference, written
        expected_back = {
            name.removeprefix("language_model."): values
            for name, values in model.tensors.items()
            if not model.vision or name.startswith("language_model.")
        }
        wrong = list_differences(found, expected_back)
        if model.one:  # subtracting 1 may lose the lowest bits
            wrong = [
                name
                for name in wrong
                if not name.endswith("norm.weight") or np.abs(found[name] - expected_back[name]).max() > 2.0**-23
            ]
        if model.packed:
            wrong += [
                name + " again"
                for name in list_differences(read_safetensors(again + "model.safetensors"), model.tensors)
            ]
        original, config = self.read_config(directory), self.read_config(back)
        if model.vision:
            original = model.text  # the configuration that llama.cpp's files have
        wrong += [
            f"{key}: {config.get(key)}"
            for key, value in original.items()
            if key not in LEFT_OUT
            and not (model.vision and key == "model_type")
            and not is_same(config.get(key), value)
        ]
        row["read"] = "differs" if wrong else "equal"
        if wrong:
            problems.append(f"read: {wrong}")

        again = self.read_config(again)
        wrong = [f"{key}: {again.get(key)}" for key, value in original.items() if not is_same(again.get(key), value)]
        row["again"] = "differs" if wrong else "equal"
        if wrong:
            problems.append(f"again: {wrong}")

        tokens, expected = self.generate_theirs(reference)
        if tokens is None:
            problems.append(f"llama.cpp: {expected}")
            row["llama.cpp"] = row["Poise"] = "differs"
            return row, problems
        row["llama.cpp"] = "equal" if self.generate_theirs(written)[1] == expected else "differs"
        if model.exact:
            expected = self.generate_theirs(self.write_reference(model, written, exact=True))[1]
        row["Poise"] = "equal"
        for path in (directory, written, reference):
            found = self.generate_ours(path, tokens, bool(model.exact))
            if isinstance(found, str):
                row["Poise"] = "-"
                problems.append(f"run: {found}")
            elif found[: len(expected)] != expected[: len(found)]:
                row["Poise"] = "differs"
                problems.append(f"run {os.path.basename(path)}: {found}, llama.cpp: {expected}")
        return row, problems


def is_same(a, b):
    if isinstance(b, dict):
        kind = {"type": "rope_type"}
        return isinstance(a, dict) and all(
            is_same(a.get(kind.get(key, key), a.get(key)), value) for key, value in b.items()
        )
    if isinstance(b, list):
        return isinstance(a, list) and len(a) == len(b) and all(is_same(x, y) for x, y in zip(a, b))
    if isinstance(b, (float, np.float32)):
        return isinstance(a, (int, float, np.float32)) and abs(float(a) - float(b)) <= 1e-6 * max(1.0, abs(float(b)))
    return a == b


def main():
    global gguf, RANDOM
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    sys.path.insert(0, os.path.join(sys.argv[2], "gguf-py"))
    import gguf as module

    gguf = module
    failed = False
    columns = ("write", "general", "read", "again", "llama.cpp", "Poise")
    print("| model | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(sys.argv[1], sys.argv[3], folder)
        for name, make in MODELS.items():
            if len(sys.argv) > 4 and name not in sys.argv[4:]:
                continue
            RANDOM = np.random.default_rng(1)
            row, problems = comparison.compare(name, make())
            print(f"| {name} | " + " | ".join(row.get(column, "") for column in columns) + " |", flush=True)
            for problem in problems:
                print("    " + problem, file=sys.stderr)
            failed = failed or "differs" in row.values()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
