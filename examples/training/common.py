"""Functions that both training scripts use: batches, the training loop, generating, perplexity."""

import json
import math
import random
import time

import numpy as np
import torch
import torch.nn.functional as F

IGNORED = -100  # the target at padding: cross_entropy leaves it out
TOO_CLOSE = 2e-3  # between two logits


def make_batches(sequences, batch_size, steps, seed):
    """Yield `steps` batches (inputs, targets) of sequences of about the same length.

    Every pool of shuffled sequences is cut into batches by length, so little is padding.
    """
    rng = random.Random(seed)
    done = 0
    while done < steps:
        order = rng.sample(range(len(sequences)), len(sequences))
        pool = batch_size * 32
        for start in range(0, len(order) - pool + 1, pool):
            by_length = sorted(order[start : start + pool], key=lambda i: len(sequences[i]))
            groups = [by_length[i : i + batch_size] for i in range(0, pool, batch_size)]
            rng.shuffle(groups)
            for group in groups:
                if done == steps:
                    return
                yield pad_batch([sequences[i] for i in group])
                done += 1


def pad_batch(sequences):
    """Return inputs and next-token targets of one batch, padded at the end."""
    width = max(map(len, sequences)) - 1
    inputs = torch.zeros(len(sequences), width, dtype=torch.long)
    targets = torch.full((len(sequences), width), IGNORED, dtype=torch.long)
    for row, sequence in enumerate(sequences):
        ids = torch.tensor(sequence)
        inputs[row, : len(sequence) - 1] = ids[:-1]
        targets[row, : len(sequence) - 1] = ids[1:]
    return inputs, targets


def compute_learning_rate(step, steps, peak, warmup=100):
    """Return the rate of a step: a linear warm-up, then half a cosine down to a hundredth of the peak."""
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / max(1, steps - warmup)
    return peak * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * progress)))


def make_orthogonal(matrix):
    """Return about the nearest orthogonal matrix, by five Newton-Schulz steps."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.T if tall else x


class Muon:
    """Trains the matrices inside the layers with momentum, and makes each update orthogonal.

    It learns from a given text in about half the steps that AdamW needs.
    """

    def __init__(self, matrices, momentum=0.95, weight_decay=0.1):
        self.matrices, self.momentum, self.weight_decay = matrices, momentum, weight_decay
        self.buffers = [torch.zeros_like(matrix) for matrix in matrices]

    @torch.no_grad()
    def step(self, rate):
        for matrix, buffer in zip(self.matrices, self.buffers):
            buffer.mul_(self.momentum).add_(matrix.grad)
            update = make_orthogonal(matrix.grad + self.momentum * buffer)
            stretch = math.sqrt(max(matrix.shape) / min(matrix.shape))
            matrix.mul_(1 - rate * self.weight_decay).sub_(update, alpha=rate * stretch)


def train(model, sequences, steps, batch_size=8, peak=3e-3, muon_peak=0.02, seed=0):
    """Train `model`, which maps ids [B,T] to logits [B,T,V]; print the loss.

    The matrices of `model.list_inner_matrices()` are trained with Muon, all else with AdamW.
    """
    inner = model.list_inner_matrices()
    others = set(model.parameters()) - set(inner)
    adam = torch.optim.AdamW(others, betas=(0.9, 0.98), weight_decay=0.0)
    muon = Muon(inner)
    started, losses = time.time(), []
    for step, (inputs, targets) in enumerate(make_batches(sequences, batch_size, steps, seed)):
        loss = F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
        model.zero_grad()
        loss.backward()
        adam.param_groups[0]["lr"] = compute_learning_rate(step, steps, peak)
        adam.step()
        muon.step(compute_learning_rate(step, steps, muon_peak))
        losses.append(loss.item())
        if step % 100 == 99 or step == steps - 1:
            recent = losses[-100:]
            print(
                f"step {step + 1:5d}  loss {sum(recent) / len(recent):.4f}  " f"{time.time() - started:6.0f} s",
                flush=True,
            )


def compute_log_softmax(logits):
    """Return the natural logarithm of the softmax over the last axis."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def continue_greedily(forward, prompt, count, stop_id):
    """Continue `prompt` (ids) by up to `count` most likely tokens, `stop_id` included.

    `forward` maps ids to logits [T,V]. Returns the new ids and the smallest distance
    between the best and the second-best logit on the way. Stops early at a choice so close
    that another right implementation could choose the other.
    """
    new, margin = [], math.inf
    while len(new) < count and (not new or new[-1] != stop_id):
        logits = forward(prompt + new)[-1]
        second, best = np.sort(logits)[-2:]
        if best - second < TOO_CLOSE:
            break
        margin = min(margin, best - second)
        new.append(int(np.argmax(logits)))
    return new, margin


def continue_at_random(forward, prompt, count, stop_id, temperature, seed):
    """Continue `prompt` (ids) by tokens drawn at a temperature."""
    rng = np.random.default_rng(seed)
    ids = list(prompt)
    while len(ids) < len(prompt) + count and (len(ids) == len(prompt) or ids[-1] != stop_id):
        chances = np.exp(compute_log_softmax(forward(ids)[-1] / temperature))
        ids.append(int(rng.choice(len(chances), p=chances / chances.sum())))
    return ids[len(prompt) :]


def compute_perplexity(forward, sequences):
    """Return the negative log-likelihood of all tokens but each sequence's first, and the perplexity of a token."""
    total, count = 0.0, 0
    for ids in sequences:
        chances = compute_log_softmax(forward(ids[:-1]))
        total -= chances[np.arange(len(ids) - 1), ids[1:]].sum()
        count += len(ids) - 1
    return {
        "predicted_tokens": count,
        "negative_log_likelihood": round(float(total), 4),
        "perplexity": round(math.exp(total / count), 6),
    }


def write_json(path, value):
    """Write JSON, one line for each entry of the two outer levels."""

    def format_block(item, depth):
        if depth == 0 or not isinstance(item, (dict, list)) or not item:
            return json.dumps(item, ensure_ascii=False)
        pad_in, pad_out = "\n" + " " * (6 - 2 * depth), "\n" + " " * (4 - 2 * depth)
        if isinstance(item, dict):
            rows = [f"{json.dumps(key)}: {format_block(val, depth - 1)}" for key, val in item.items()]
            return "{" + pad_in + ("," + pad_in).join(rows) + pad_out + "}"
        return "[" + pad_in + ("," + pad_in).join(format_block(v, depth - 1) for v in item) + pad_out + "]"

    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(format_block(value, 2) + "\n")
