#!/usr/bin/env python3
"""Makes the other inputs of the recipes in docs/cookbook.md besides a Mistral: make_ingredients.py MODEL"""
import json
import pathlib
import struct
import sys

config = json.loads((pathlib.Path(sys.argv[1]) / "config.json").read_text())
hidden = config["hidden_size"]
queries = hidden  # heads of hidden_size / num_attention_heads

# An adapter of rank 1, as PEFT saves it.
tensors = {
    "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight": [1, hidden],
    "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight": [queries, 1],
}
header, data = {}, b""
for name, shape in tensors.items():
    numbers = struct.pack(f"<{shape[0] * shape[1]}f", *(0.02 * (i % 5 - 2) for i in range(shape[0] * shape[1])))
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(numbers)]}
    data += numbers
text = json.dumps(header).encode()
folder = pathlib.Path("adapter")
folder.mkdir()
(folder / "adapter_model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
(folder / "adapter_config.json").write_text(
    json.dumps({"peft_type": "LORA", "r": 1, "lora_alpha": 1, "target_modules": ["q_proj"]})
)

pathlib.Path("chat.jinja").write_text(
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}story:\n{% endif %}"
)
pathlib.Path("talk.json").write_text('[{"role": "user", "content": "Tell me a story."}]\n')
pathlib.Path("prompts.jsonl").write_text(
    '{"id": 1, "prompt": "One day, a mouse"}\n{"id": 2, "prompt": "Once upon a time", "max_tokens": 3}\n'
)
