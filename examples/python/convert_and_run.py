#!/usr/bin/env python3
"""convert_and_run.py [FOLDER OF EXAMPLES]

Converts, verifies and runs a model. Writes nano.gguf to the current folder.
"""

import sys

import poise

folder = sys.argv[1] if len(sys.argv) > 1 else "examples"
report = poise.convert(f"{folder}/nano-mistral", "nano.gguf", quantize="q8_0", overwrite=True, progress=True)
worst = max(tensor.worst for tensor in report.quantized)
print(f"{report.bytes_in} bytes became {report.bytes_out}, worst error {worst:.4f}")

checked = poise.verify("nano.gguf")
print("ok" if checked.ok else "\n".join(map(str, checked.errors)))

session = poise.Session("nano.gguf")
for piece in session.generate("One day, a mouse", max_tokens=40, temperature=0.5, seed=1):
    print(piece, end="", flush=True)
print()
