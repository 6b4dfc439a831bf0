"""The forward pass of each family in NumPy and float64, written from the models' definition (config.json's keys and
transformers' documentation)."""
import math

import numpy as np


def get(config, key, default):
    """Null counts as absent."""
    value = config.get(key)
    return default if value is None else value


def text_config(config):
    return {**config["text_config"], "model_type": config["model_type"]} if "text_config" in config else config


def head_size(config):
    return get(config, "head_dim", config["hidden_size"] // config["num_attention_heads"])


def rms(x, weight, epsilon):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight


def layer_norm(x, weight, bias, epsilon):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * weight + bias


def silu(x):
    return x / (1 + np.exp(-x))


def gelu_tanh(x):
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    weights = np.exp(x - x.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def cap(x, limit):
    return x if limit is None else limit * np.tanh(x / limit)


def rope(config, theta, scaling, tokens):
    """Returns the frequencies of half of the rotated numbers, and the factor by which they are scaled."""
    size = int(head_size(config) * config.get("partial_rotary_factor", 1.0))
    frequency = theta ** (-np.arange(0, size, 2) / size)
    scaling = scaling or {}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    factor = scaling.get("factor")
    positions = config["max_position_embeddings"]
    original = config.get("original_max_position_embeddings", scaling.get("original_max_position_embeddings"))
    original = original or (4096 if config["model_type"] == "phi3" else positions)
    if kind == "linear":
        return frequency / factor, 1.0
    if kind == "llama3":
        result = []
        for one in frequency:
            length = 2 * math.pi / one
            low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
            if length < original / high:
                result.append(one)
            elif length > original / low:
                result.append(one / factor)
            else:
                smooth = (original / length - low) / (high - low)
                result.append((1 - smooth) * one / factor + smooth * one)
        return np.array(result), 1.0
    if kind == "yarn":

        def dimension(rotations):
            return size * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(theta))

        low, high = dimension(scaling.get("beta_fast", 32)), dimension(scaling.get("beta_slow", 1))
        if scaling.get("truncate", True):
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, size - 1)
        ramp = np.clip((np.arange(size // 2) - low) / ((high - low) or 0.001), 0, 1)
        attention = scaling.get("attention_factor", 0.1 * math.log(factor) + 1)
        return frequency / factor * ramp + frequency * (1 - ramp), attention
    if kind in ("longrope", "su"):
        ratio = factor or positions / original
        divisors = scaling["long_factor"] if tokens > original else scaling["short_factor"]
        return frequency / np.array(divisors), math.sqrt(1 + math.log(ratio) / math.log(original)) if ratio > 1 else 1.0
    assert kind in ("default", "dynamic"), kind
    return frequency, 1.0


def rotated(x, frequency, factor):
    """x [tokens, heads, head]: rotates the first 2 * len(frequency) numbers of each head."""
    angle = np.arange(len(x))[:, None, None] * frequency
    cosine, sine, half = np.cos(angle) * factor, np.sin(angle) * factor, len(frequency)
    first, second, rest = x[..., :half], x[..., half : 2 * half], x[..., 2 * half :]
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine, rest], -1)


def attended(queries, keys, values, window, scale, limit=None, sinks=None):
    """Queries [tokens, heads, head], keys and values [tokens, kv heads, head]."""
    position = np.arange(len(queries))
    distance = position[:, None] - position[None, :]
    visible = distance >= 0 if not window else (distance >= 0) & (distance < window)
    heads = []
    for head in range(queries.shape[1]):
        shared = head * keys.shape[1] // queries.shape[1]
        scores = np.where(visible, cap(queries[:, head] @ keys[:, shared].T * scale, limit), -np.inf)
        if sinks is not None:
            scores = np.concatenate([scores, np.full((len(scores), 1), sinks[head])], -1)
        heads.append(softmax(scores)[:, : len(queries)] @ values[:, shared])
    return np.concatenate(heads, -1)


def top(scores, used):
    return np.argsort(-scores, kind="stable")[:used]


class Decoder:
    """Llama; families override what they do otherwise."""

    plus_one = False

    def __init__(self, config, weights):
        self.c, self.w = text_config(config), weights
        self.epsilon = self.c.get("rms_norm_eps")

    def weight(self, name):
        return self.w[name]

    def norm(self, x, name):
        return rms(x, self.weight(name + ".weight") + self.plus_one, self.epsilon)

    def linear(self, x, name):
        y = x @ self.weight(name + ".weight").T
        return y + self.weight(name + ".bias") if name + ".bias" in self.w else y

    def window(self, layer):
        return self.c.get("sliding_window")

    def rope(self, layer, tokens):
        scaling = self.c.get("rope_scaling")
        return rope(self.c, self.c.get("rope_theta", 10000.0), scaling, tokens)

    def qkv(self, x, name):
        return [self.linear(x, f"{name}self_attn.{which}_proj") for which in "qkv"]

    def scale(self):
        return head_size(self.c) ** -0.5

    def qk_norm(self, q, k, name):
        return q, k

    def attention(self, x, layer, name):
        q, k, v = self.qkv(x, name)
        q, k = self.qk_norm(q, k, name)
        q, k, v = (part.reshape(len(x), -1, head_size(self.c)) for part in (q, k, v))
        turning = self.rope(layer, len(x))
        if turning is not None:
            q, k = rotated(q, *turning), rotated(k, *turning)
        seen = attended(
            q,
            k,
            v,
            self.window(layer),
            self.scale(),
            self.c.get("attn_logit_softcapping"),
            self.w.get(name + "self_attn.sinks"),
        )
        return self.linear(seen, name + "self_attn.o_proj")

    def activation(self, x):
        return silu(x)

    def mlp(self, x, layer, name):
        gate, up = self.linear(x, name + "mlp.gate_proj"), self.linear(x, name + "mlp.up_proj")
        return self.linear(self.activation(gate) * up, name + "mlp.down_proj")

    def layer(self, x, layer, name):
        x = x + self.attention(self.norm(x, name + "input_layernorm"), layer, name)
        return x + self.mlp(self.norm(x, name + "post_attention_layernorm"), layer, name)

    def embedded(self, tokens):
        return self.weight("model.embed_tokens.weight")[tokens]

    def output(self, x):
        head = self.w.get("lm_head.weight")
        return x @ (self.weight("model.embed_tokens.weight") if head is None else head).T

    def final_norm(self, x):
        return self.norm(x, "model.norm")

    def hidden_states(self, tokens):
        """[tokens, hidden_size] of each layer, as transformers has them: the embedding, the output of each block, but
        that of the last one after the final norm."""
        states = [self.embedded(tokens)]
        for layer in range(self.c["num_hidden_layers"]):
            states.append(self.layer(states[-1], layer, f"model.layers.{layer}."))
        return [*states[:-1], self.final_norm(states[-1])]

    def logits(self, tokens):
        return self.output(self.hidden_states(tokens)[-1][-1])

    def by_type(self, layer, default):
        types = self.c.get("layer_types")
        sliding = types[layer] == "sliding_attention" if types else default
        return self.c["sliding_window"] if sliding else None


class Qwen2(Decoder):
    def window(self, layer):
        if not self.c.get("use_sliding_window"):
            return None
        return self.by_type(layer, layer >= self.c["max_window_layers"])


class Qwen3(Qwen2):
    def qk_norm(self, q, k, name):
        return tuple(
            self.norm(part.reshape(len(part), -1, head_size(self.c)), f"{name}self_attn.{which}_norm")
            for part, which in ((q, "q"), (k, "k"))
        )


class Qwen3Moe(Qwen3):
    def window(self, layer):
        return None

    def mlp(self, x, layer, name):
        if layer in self.c.get("mlp_only_layers", []) or (layer + 1) % self.c.get("decoder_sparse_step", 1):
            return super().mlp(x, layer, name)
        out = np.zeros_like(x)
        for token, weights in enumerate(softmax(self.linear(x, name + "mlp.gate"))):
            chosen = top(weights, self.c["num_experts_per_tok"])
            total = weights[chosen].sum() if self.c.get("norm_topk_prob") else 1
            for expert in chosen:
                gate, up = (
                    self.linear(x[token], f"{name}mlp.experts.{expert}.{which}_proj") for which in ("gate", "up")
                )
                out[token] += (
                    weights[expert] / total * self.linear(silu(gate) * up, f"{name}mlp.experts.{expert}.down_proj")
                )
        return out


class Mixtral(Decoder):
    def mlp(self, x, layer, name):
        name += "block_sparse_moe."
        out = np.zeros_like(x)
        for token, scores in enumerate(self.linear(x, name + "gate")):
            chosen = top(scores, self.c["num_experts_per_tok"])
            for expert, weight in zip(chosen, softmax(scores[chosen])):
                gate, up = (self.linear(x[token], f"{name}experts.{expert}.{which}") for which in ("w1", "w3"))
                out[token] += weight * self.linear(silu(gate) * up, f"{name}experts.{expert}.w2")
        return out


class Olmo2(Decoder):
    def qk_norm(self, q, k, name):
        return self.norm(q, name + "self_attn.q_norm"), self.norm(k, name + "self_attn.k_norm")

    def layer(self, x, layer, name):
        x = x + self.norm(self.attention(x, layer, name), name + "post_attention_layernorm")
        return x + self.norm(self.mlp(x, layer, name), name + "post_feedforward_layernorm")


class SmolLm3(Decoder):
    def turns(self, layer):
        layers = self.c.get("no_rope_layers")
        return layers[layer] != 0 if layers else (layer + 1) % self.c.get("no_rope_layer_interval", 4) != 0

    def rope(self, layer, tokens):
        return super().rope(layer, tokens) if self.turns(layer) else None

    def window(self, layer):
        return self.by_type(layer, not self.turns(layer)) if self.c.get("use_sliding_window") else None


class Phi3(Decoder):
    def qkv(self, x, name):
        keys = self.c["num_key_value_heads"] * head_size(self.c)
        queries = self.c["num_attention_heads"] * head_size(self.c)
        return np.split(self.linear(x, name + "self_attn.qkv_proj"), [queries, queries + keys], -1)

    def mlp(self, x, layer, name):
        gate, up = np.split(self.linear(x, name + "mlp.gate_up_proj"), 2, -1)
        return self.linear(silu(gate) * up, name + "mlp.down_proj")


class Gemma(Decoder):
    plus_one = True

    def embedded(self, tokens):
        return super().embedded(tokens) * math.sqrt(self.c["hidden_size"])

    def activation(self, x):
        return gelu_tanh(x)


class Gemma2(Gemma):
    def scale(self):
        return self.c["query_pre_attn_scalar"] ** -0.5

    def window(self, layer):
        return self.by_type(layer, layer % 2 == 0)

    def layer(self, x, layer, name):
        x = x + self.norm(
            self.attention(self.norm(x, name + "input_layernorm"), layer, name), name + "post_attention_layernorm"
        )
        return x + self.norm(
            self.mlp(self.norm(x, name + "pre_feedforward_layernorm"), layer, name), name + "post_feedforward_layernorm"
        )

    def output(self, x):
        return cap(super().output(x), self.c.get("final_logit_softcapping"))


class Gemma3(Gemma2):
    qk_norm = Qwen3.qk_norm

    def window(self, layer):
        return self.by_type(layer, (layer + 1) % self.c.get("sliding_window_pattern", 6) != 0)

    def rope(self, layer, tokens):
        kinds = self.c.get("rope_parameters")
        local = self.window(layer) is not None
        if kinds:
            parameters = kinds["sliding_attention" if local else "full_attention"]
            return rope(self.c, parameters["rope_theta"], parameters, tokens)
        if local:
            return rope(self.c, self.c["rope_local_base_freq"], None, tokens)
        return super().rope(layer, tokens)


class Gpt2(Decoder):
    def __init__(self, config, weights):
        heads = config["n_head"]
        names = {"hidden_size": config["n_embd"], "num_attention_heads": heads, "num_hidden_layers": config["n_layer"]}
        super().__init__({**config, **names}, weights)
        self.epsilon = config["layer_norm_epsilon"]
        self.start = "transformer." if "transformer.wte.weight" in weights else ""

    def norm(self, x, name):
        return layer_norm(x, self.weight(name + ".weight"), self.weight(name + ".bias"), self.epsilon)

    def linear(self, x, name):
        return x @ self.weight(name + ".weight") + self.weight(name + ".bias")

    def embedded(self, tokens):
        return self.weight(self.start + "wte.weight")[tokens] + self.weight(self.start + "wpe.weight")[: len(tokens)]

    def layer(self, x, layer, name):
        name = f"{self.start}h.{layer}."
        q, k, v = (
            part.reshape(len(x), self.c["n_head"], -1)
            for part in np.split(self.linear(self.norm(x, name + "ln_1"), name + "attn.c_attn"), 3, -1)
        )
        x = x + self.linear(attended(q, k, v, None, q.shape[-1] ** -0.5), name + "attn.c_proj")
        return x + self.linear(
            gelu_tanh(self.linear(self.norm(x, name + "ln_2"), name + "mlp.c_fc")), name + "mlp.c_proj"
        )

    def final_norm(self, x):
        return self.norm(x, self.start + "ln_f")

    def output(self, x):
        return x @ self.w.get("lm_head.weight", self.weight(self.start + "wte.weight")).T


class GptOss(Decoder):
    def window(self, layer):
        return self.by_type(layer, layer % 2 == 0)

    def mlp(self, x, layer, name):
        name += "mlp."
        out = np.zeros_like(x)
        for token, scores in enumerate(self.linear(x, name + "router")):
            chosen = top(scores, self.c["num_experts_per_tok"])
            for expert, weight in zip(chosen, softmax(scores[chosen])):
                both = (
                    x[token] @ self.weight(name + "experts.gate_up_proj")[expert]
                    + self.weight(name + "experts.gate_up_proj_bias")[expert]
                )
                gate, up = np.minimum(both[0::2], 7), np.clip(both[1::2], -7, 7)
                inner = (up + 1) * gate / (1 + np.exp(-1.702 * gate))
                out[token] += weight * (
                    inner @ self.weight(name + "experts.down_proj")[expert]
                    + self.weight(name + "experts.down_proj_bias")[expert]
                )
        return out


FAMILIES = {
    "llama": Decoder,
    "mistral": Decoder,
    "mistral3": Decoder,
    "mixtral": Mixtral,
    "qwen2": Qwen2,
    "qwen3": Qwen3,
    "qwen3_moe": Qwen3Moe,
    "olmo2": Olmo2,
    "smollm3": SmolLm3,
    "phi3": Phi3,
    "gemma": Gemma,
    "gemma2": Gemma2,
    "gemma3_text": Gemma3,
    "gemma3": Gemma3,
    "gpt2": Gpt2,
    "gpt_oss": GptOss,
}


def logits(config, weights, tokens):
    """The logits after the last token; `weights` by the names that the text model's tensors have alone."""
    return FAMILIES[config["model_type"]](config, weights).logits(tokens)


def hidden_states(config, weights, tokens):
    """The hidden states of all tokens for each layer, from the embedding to the final norm."""
    return FAMILIES[config["model_type"]](config, weights).hidden_states(tokens)
