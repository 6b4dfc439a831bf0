#!/usr/bin/env python3
"""change_a_tensor.py [FOLDER OF EXAMPLES]

Doubles one tensor of a model, and writes the model as louder.safetensors to the current folder.
"""

import sys

import numpy as np

import poise

folder = sys.argv[1] if len(sys.argv) > 1 else "examples"
model = poise.open(f"{folder}/nano-mistral")

louder = 2 * model["model.norm.weight"].numpy(dtype="f32")  # a new array
changed = poise.Model({**model, "model.norm.weight": louder}, like=model)  # all others are read from the file
poise.save(changed, "louder.safetensors", dtype="bf16", overwrite=True)

for tensor in poise.diff(model, "louder.safetensors").tensors:
    print(f"{tensor.name}: {tensor.different} elements differ by at most {tensor.max_absolute}")
np.testing.assert_allclose(poise.open("louder.safetensors")["model.norm.weight"].numpy("f32"), louder)
