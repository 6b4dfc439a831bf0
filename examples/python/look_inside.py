#!/usr/bin/env python3
"""look_inside.py [FOLDER OF EXAMPLES]

Prints the configuration of a model, some of its tensors, and some rows of the embedding.
"""

import sys

import poise

folder = sys.argv[1] if len(sys.argv) > 1 else "examples"
model = poise.open(f"{folder}/nano-mistral")

print(
    f"{model.path}: {model.format}, {len(model)} tensors, "
    f"{model.config['num_hidden_layers']} layers of {model.config['hidden_size']}"
)
for tensor in model.tensors[:5]:
    print(f"  {tensor.name:45} {str(tensor.shape):12} {tensor.stored:6} {tensor.nbytes:>8} bytes")

embedding = model["model.embed_tokens.weight"]
rows = embedding[100:104].numpy(dtype="f32")  # reads and decodes only these rows
for token, row in enumerate(rows, 100):
    print(f"  token {token} {model.vocabulary[token][0]!r}: norm {(row @ row) ** 0.5:.3f}")
