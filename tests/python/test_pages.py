"""The programs of docs/python.md and docs/embeddings.md run, one after the other, as a reader would type them."""

import io
import json
import os
import pathlib
import re
import shutil

import pytest

import poise

np = pytest.importorskip("numpy")
SOURCE = pathlib.Path(os.environ["POISE_SOURCE"])
TEMPLATE = "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"


def find_programs(page):
    return re.findall(r"^```python\n(.*?)^```$", (SOURCE / "docs" / page).read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture
def namespace(examples, tmp_path, monkeypatch):
    """The names and files that the pages use: a model with a long context and a chat template."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(examples)
    directory = tmp_path / "model"
    shutil.copytree(examples / "nano-mistral", directory)
    config = json.loads((directory / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 8192}))
    (directory / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    poise.convert(directory, "model.gguf")
    poise.convert("model.gguf", "model.alt")
    poise.convert("model.gguf", "q4.gguf", quantize="q4_0")
    (tmp_path / "wiki.txt").write_text("One day, a mouse saw the moon. " * 80)
    return {
        "np": np,
        "poise": poise,
        "model": poise.open("model.gguf"),
        "torch_tensor": np.ones(3, np.float32),
        "file": io.BytesIO(),
        "texts": ["One text", "another"],
        "ids": [1, 5, 9],
    }


@pytest.mark.parametrize("page", ["python.md", "embeddings.md"])
def test_programs_of_a_page(page, namespace):
    programs = [program.replace("layer=12", "layer=4") for program in find_programs(page)]  # the model has four layers
    assert programs
    for number, program in enumerate(programs, 1):
        namespace.update(model=poise.open("model.gguf"))
        exec(compile(program, f"{page}, program {number}", "exec"), namespace)
