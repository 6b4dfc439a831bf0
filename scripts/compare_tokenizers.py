#!/usr/bin/env python3
"""Compares the ids that Poise and other programs find with tokenizers that Poise has written.

    compare_tokenizers.py POISE DATA HUGGINGFACE [LLAMA_SOURCE LLAMA_LIBRARIES]

DATA has directories with tokenizer.json or tokenizer.model, and optionally expected.json: [{"text", "ids",
"ids_special", ...}]. Without that file the expected ids are those of Hugging Face's library, or of SentencePiece
(python3-sentencepiece) for a tokenizer.model. HUGGINGFACE is the npm package tokenizers (0.23.2), LLAMA_SOURCE
llama.cpp's tree, LLAMA_LIBRARIES the folder with its libraries (npm pack @node-llama-cpp/linux-x64@3.22.1:
bins/linux-x64). A tiny Llama with each tokenizer is converted to a directory, to GGUF, and from GGUF to a directory
again. The programs encode the texts with all three. Prints a row for each program and file, with the number of texts
that have the expected ids.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

NODE = """
const {Tokenizer} = require(process.argv[2]), fs = require('fs');
(async () => {
  const tokenizer = Tokenizer.fromFile(process.argv[3]), out = [];
  for (const text of JSON.parse(fs.readFileSync(0))) {
    const ids = async (add) => (await tokenizer.encode(text, null, {addSpecialTokens: add})).getIds();
    out.push([await ids(false), await ids(true)]);
  }
  console.log(JSON.stringify(out));
})();
"""
LLAMA = r"""
#include <cstdio>
#include <string>
#include <vector>
#include "llama.h"
int main(int, char** arguments) {
  llama_log_set([](ggml_log_level, const char*, void*) {}, nullptr);
  auto parameters = llama_model_default_params();
  parameters.vocab_only = true;
  llama_model* model = llama_model_load_from_file(arguments[1], parameters);
  if (!model) return 1;
  for (unsigned size; std::fread(&size, 4, 1, stdin) == 1;) {
    std::string text(size, 0);
    if (std::fread(text.data(), 1, size, stdin) != size) return 1;
    for (int add = 0; add < 2; ++add) {
      std::vector<llama_token> ids(2 * size + 16);
      const int count =
          llama_tokenize(llama_model_get_vocab(model), text.data(), size, ids.data(), ids.size(), add, true);
      for (int i = 0; i < count; ++i) std::printf("%d ", ids[i]);
      std::puts("");
    }
  }
}
"""


def make_model(tokenizer, folder):
    """Writes a Llama of one layer whose numbers are zeros, with the files of a tokenizer."""
    folder.mkdir()
    for file in tokenizer.iterdir():
        if file.name != "expected.json":
            (folder / file.name).symlink_to(file)
    rows = 1 << 18
    config = {
        "model_type": "llama",
        "hidden_size": 2,
        "intermediate_size": 2,
        "num_attention_heads": 1,
        "num_hidden_layers": 1,
        "vocab_size": rows,
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config))
    layer = "model.layers.0."
    names = [
        "input_layernorm",
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.o_proj",
        "post_attention_layernorm",
        "mlp.gate_proj",
        "mlp.up_proj",
        "mlp.down_proj",
    ]
    shapes = {layer + name + ".weight": [2] if "norm" in name else [2, 2] for name in names}
    shapes.update({"model.embed_tokens.weight": [rows, 2], "model.norm.weight": [2]})
    entries, at = {}, 0
    for name, shape in shapes.items():
        size = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        entries[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    header = json.dumps(entries).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(at))


class Programs:
    def __init__(self, options, scratch):
        self.poise_path, _, self.package = options[:3]
        (scratch / "ids.js").write_text(NODE)
        self.node = scratch / "ids.js"
        self.llama_program = None
        if len(options) > 3:
            source, libraries = options[3:]
            self.llama_program = scratch / "llama"
            (scratch / "llama.cpp").write_text(LLAMA)
            found = [
                str(path)
                for path in pathlib.Path(libraries).iterdir()
                if path.name.startswith(("libllama.", "libggml.", "libggml-base."))
            ]
            subprocess.run(
                [
                    "c++",
                    "-O1",
                    scratch / "llama.cpp",
                    f"-I{source}/include",
                    f"-I{source}/ggml/include",
                    "-o",
                    self.llama_program,
                    *found,
                    f"-Wl,-rpath,{libraries}",
                    "-Wl,--allow-shlib-undefined",
                ],
                check=True,
            )

    def convert(self, source, target):
        to = "gguf" if target.suffix == ".gguf" else "huggingface"
        subprocess.run([self.poise_path, "convert", source, "-o", target, "--to", to], check=True, capture_output=True)

    def encode_with_poise(self, path, texts):
        def encode_all(*options):
            lines = "".join(json.dumps(text) + "\n" for text in texts)
            done = subprocess.run(
                [self.poise_path, "tokenize", path, "--jsonl", *options],
                input=lines.encode(),
                check=True,
                stdout=subprocess.PIPE,
            )
            return [json.loads(line)["ids"] for line in done.stdout.decode().split("\n") if line]

        return list(zip(encode_all("--no-special"), encode_all()))

    def encode_with_hugging_face(self, path, texts):
        done = subprocess.run(
            ["node", self.node, self.package, path / "tokenizer.json"],
            input=json.dumps(texts).encode(),
            check=True,
            stdout=subprocess.PIPE,
        )
        return [tuple(pair) for pair in json.loads(done.stdout)]

    def encode_with_sentencepiece(self, path, texts):
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor(model_file=str(path / "tokenizer.model"))
        return [(processor.encode(text), processor.encode(text, add_bos=True)) for text in texts]

    def encode_with_llama(self, path, texts):
        data = b"".join(struct.pack("<I", len(text.encode())) + text.encode() for text in texts)
        lines = (
            subprocess.run([self.llama_program, path], input=data, check=True, stdout=subprocess.PIPE)
            .stdout.decode()
            .splitlines()
        )
        ids = [[int(id) for id in line.split()] for line in lines]
        return list(zip(ids[0::2], ids[1::2]))


def main():
    options = sys.argv[1:]
    if len(options) not in (3, 5):
        raise SystemExit(__doc__)
    data = pathlib.Path(options[1]).resolve()
    folders = sorted(
        path for path in data.iterdir() if (path / "tokenizer.json").exists() or (path / "tokenizer.model").exists()
    )
    known = [json.loads((path / "expected.json").read_text()) for path in folders if (path / "expected.json").exists()]
    usual = [one["text"] for one in known[0]] if known else ["Once upon a time", "  two  spaces", "déjà vu 123"]
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        programs = Programs(options, scratch)
        for tokenizer in folders:
            model, written, gguf, back = (
                scratch / f"{tokenizer.name}{end}" for end in ("", "-written", ".gguf", "-back")
            )
            make_model(tokenizer, model)
            is_json = (tokenizer / "tokenizer.json").exists()
            if (tokenizer / "expected.json").exists():
                expected = json.loads((tokenizer / "expected.json").read_text())
                texts, ids = [one["text"] for one in expected], [(one["ids"], one["ids_special"]) for one in expected]
            else:
                texts, ids = usual, (
                    programs.encode_with_hugging_face if is_json else programs.encode_with_sentencepiece
                )(model, usual)
            for source, target in ((model, written), (model, gguf), (gguf, back)):
                programs.convert(source, target)
            rows = [
                ("Poise", programs.encode_with_poise, written),
                ("Hugging Face", programs.encode_with_hugging_face, written),
                ("Poise", programs.encode_with_poise, gguf),
                ("Poise", programs.encode_with_poise, back),
                ("Hugging Face", programs.encode_with_hugging_face, back),
            ]
            rows += [
                ("SentencePiece", programs.encode_with_sentencepiece, path)
                for path in (written, back)
                if (path / "tokenizer.model").exists()
            ]
            rows += [("llama.cpp", programs.encode_with_llama, gguf)] if programs.llama_program else []
            for name, program, path in rows:
                found = program(path, texts)
                same = sum(list(map(list, a)) == list(map(list, b)) for a, b in zip(found, ids))
                print(
                    f"{tokenizer.name:14} {path.name[len(tokenizer.name) + 1:]:8} {name:14} {same:3} of {len(texts)}",
                    flush=True,
                )


main()
