#!/usr/bin/env python3
"""Reads distributed checkpoints: distributed_checkpoints.py POISE EXAMPLES. Exit 77, with the reason, where it cannot run.

The first is written by Debian's PyTorch itself (1.13, torch.distributed._shard.checkpoint). The others are of several
ranks and of later versions: their pickles are made here of classes with the names and fields of PyTorch 2.9, and each
box by torch.save()."""

import dataclasses
import io
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile
import types

try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

poise, examples = sys.argv[1], pathlib.Path(sys.argv[2])
faults = []


def run(*arguments):
    done = subprocess.run([poise, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


def make_class(module, name, fields=(), frozen=False):
    made = dataclasses.make_dataclass(name, fields, frozen=frozen)
    made.__module__ = module
    owner = sys.modules.setdefault(module, types.ModuleType(module))
    setattr(owner, name, made)
    return made


METADATA = "torch.distributed.checkpoint.metadata"
Metadata = make_class(
    METADATA, "Metadata", ["state_dict_metadata", "planner_data", "storage_data", "storage_meta", "version"]
)
TensorStorageMetadata = make_class(METADATA, "TensorStorageMetadata", ["properties", "size", "chunks"])
BytesStorageMetadata = make_class(METADATA, "BytesStorageMetadata")
ChunkStorageMetadata = make_class(METADATA, "ChunkStorageMetadata", ["offsets", "sizes"])
MetadataIndex = make_class(METADATA, "MetadataIndex", ["fqn", "offset", "index"], frozen=True)
StorageInfo = make_class(
    "torch.distributed.checkpoint.filesystem",
    "_StorageInfo",
    ["relative_path", "offset", "length", "transform_descriptors"],
)
TensorProperties = make_class(
    METADATA, "TensorProperties", ["dtype", "layout", "requires_grad", "memory_format", "pin_memory"]
)
TensorProperties.__getstate__ = lambda self: (self.dtype, self.layout, self.requires_grad, 0, self.pin_memory)
StorageInfo.__getstate__ = lambda self: {key: value for key, value in vars(self).items() if value is not None}
# torch.Size, torch.dtype and the others are torch's own; these modules are of no real package here.
for module in (METADATA, "torch.distributed.checkpoint.filesystem"):
    sys.modules[module].__package__ = module.rpartition(".")[0]


class Checkpoint:
    """A directory, as the ranks of a job save it."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir()
        self.files = {}
        self.metadata = Metadata({}, {}, {}, None, "1.0.0")

    def add(self, path, tensor, boxes, transform=None):
        """boxes: (offsets, sizes) of each rank."""
        key = ".".join(map(str, path))
        self.metadata.planner_data[key] = tuple(path)
        properties = TensorProperties(tensor.dtype, torch.strided, False, 0, False)
        chunks = []
        for rank, (offsets, sizes) in enumerate(boxes):
            part = tensor[tuple(slice(o, o + s) for o, s in zip(offsets, sizes))].clone()
            place = self.write(f"__{rank}_0.distcp", part)
            chunks.append(ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes)))
            index = MetadataIndex(key, torch.Size(offsets), rank)
            self.metadata.storage_data[index] = StorageInfo(*place, transform)
        self.metadata.state_dict_metadata[key] = TensorStorageMetadata(properties, tensor.size(), chunks)

    def add_object(self, key, value):
        self.metadata.state_dict_metadata[key] = BytesStorageMetadata()
        self.metadata.planner_data[key] = (key,)
        place = self.write("__0_0.distcp", value)
        self.metadata.storage_data[MetadataIndex(key, None, None)] = StorageInfo(*place, None)

    def write(self, name, value):
        buffer = io.BytesIO()
        torch.save(value, buffer)
        file = self.files.setdefault(name, bytearray())
        begin = len(file)
        file += buffer.getvalue()
        return name, begin, len(file) - begin

    def finish(self):
        for name, data in self.files.items():
            (self.directory / name).write_bytes(data)
        (self.directory / ".metadata").write_bytes(pickle.dumps(self.metadata))
        return self.directory


def expect_tensors(path, expected, scratch):
    output = scratch / (path.name + ".npz")
    code, _, message = run("convert", path, "-o", output)
    if code != 0:
        faults.append(f"{path.name}: {message}")
        return
    found = np.load(output)
    if set(found.files) != set(expected):
        faults.append(f"{path.name}: tensors {sorted(found.files)}, expected {sorted(expected)}")
        return
    for name, tensor in expected.items():
        if found[name].shape != tuple(tensor.shape) or not np.array_equal(found[name], tensor.float().numpy()):
            faults.append(f"{path.name}: {name} differs")


def expect_error(path, *words):
    code, _, message = run("inspect", path)
    if code != 1 or not all(word in message for word in words):
        faults.append(f"{path.name}: exit {code}, {message!r}, expected {words}")


def write_by_torch(directory):
    """PyTorch's own writer. Its dataclasses have defaults that Python 3.11 takes for mutable."""
    plain = dataclasses.dataclass

    def dataclass(cls=None, **options):
        def make(owner):
            hashes = not options.get("frozen") and not {"__hash__", "__eq__"} & vars(owner).keys()
            return plain(**options, **({"unsafe_hash": True} if hashes else {}))(owner)

        return make if cls is None else make(cls)

    dataclasses.dataclass = dataclass
    try:
        import torch.distributed._shard.checkpoint as checkpoint
    except (ImportError, ValueError) as error:
        print(f"skipped: this PyTorch writes no distributed checkpoints: {error}")
        return None
    finally:
        dataclasses.dataclass = plain
    state = {
        "a": torch.arange(12, dtype=torch.float32).reshape(4, 3),
        "b": torch.arange(5).to(torch.bfloat16),
        "s": torch.tensor(2.5),
        "step": 3,
    }
    checkpoint.save_state_dict(state, checkpoint.FileSystemWriter(directory), no_dist=True)
    return {name: value for name, value in state.items() if name != "step"}


def make_ranks(directory, **options):
    """FSDP's rows, tensor parallelism's columns, a grid, uneven shares, a rank without one, a whole tensor."""
    rows = torch.arange(42, dtype=torch.float32).reshape(7, 6)
    checkpoint = Checkpoint(directory)
    checkpoint.add(("model", "model.rows"), rows, [((0, 0), (4, 6)), ((4, 0), (3, 6)), ((7, 0), (0, 6))], **options)
    checkpoint.add(("model", "model.columns"), rows.half(), [((0, 3), (7, 3)), ((0, 0), (7, 3))])
    grid = [((r, c), (h, w)) for r, h in ((0, 4), (4, 3)) for c, w in ((0, 2), (2, 4))]
    checkpoint.add(("model", "model.grid"), rows.bfloat16(), grid)
    cube = torch.arange(60, dtype=torch.float32).reshape(3, 4, 5)
    checkpoint.add(("model", "cube"), cube, [((0, k, 0), (3, 1, 5)) for k in range(4)])
    checkpoint.add(("model", "whole"), torch.tensor(1.5), [((), ())])
    checkpoint.add(("optim", "state", 0, "exp_avg"), rows, [((0, 0), (7, 6))])
    checkpoint.add_object("epoch", {"epoch": 3})
    expected = {"model.rows": rows, "model.columns": rows, "model.grid": rows, "cube": cube}
    expected |= {"whole": torch.tensor(1.5), "optim.state.0.exp_avg": rows}
    return checkpoint, expected


with tempfile.TemporaryDirectory() as temporary:
    scratch = pathlib.Path(temporary)
    expected = write_by_torch(scratch / "torch")
    if expected:
        expect_tensors(scratch / "torch", expected, scratch)
        code, text, message = run("verify", scratch / "torch")
        if code != 0 or "left out: step" not in text:
            faults.append(f"verify: exit {code}, {text}{message}")

    checkpoint, expected = make_ranks(scratch / "ranks")
    expect_tensors(checkpoint.finish(), expected, scratch)
    code, text, message = run("verify", scratch / "ranks")
    if code != 0 or ": ok" not in text:
        faults.append(f"verify ranks: exit {code}, {text}{message}")
    code, text, _ = run("inspect", scratch / "ranks", "--json")
    report = json.loads(text)
    found = {tensor["name"]: tensor.get("file_name") for tensor in report["tensors"]}
    if report["format"] != "dcp" or found["model.rows"] != "model.model.rows":
        faults.append(f"inspect: {report['format']}, {found}")

    # With a configuration next to it, the directory is a model that runs.
    model = scratch / "model"
    run("convert", examples / "nano-mistral", "-o", scratch / "nano.npz")
    checkpoint = Checkpoint(model)
    for name, values in np.load(scratch / "nano.npz").items():
        half, rest = values.shape[0] // 2, values.shape[1:]
        boxes = [((0,) * values.ndim, (half, *rest)), ((half,) + (0,) * len(rest), (values.shape[0] - half, *rest))]
        checkpoint.add((name,), torch.from_numpy(values), boxes)
    checkpoint.finish()
    for file in (examples / "nano-mistral").iterdir():
        if file.suffix in (".json", ".model"):
            (model / file.name).write_bytes(file.read_bytes())
    for index in model.glob("*.index.json"):
        index.unlink()
    story = ("-p", "One day", "-n", "20", "--exact")
    answers = [run("run", path, *story) for path in (model, examples / "nano-mistral")]
    if answers[0][0] != 0 or answers[0][1] != answers[1][1]:
        faults.append(f"config.json: {answers}")

    def spoil(name, change, *words):
        checkpoint, _ = make_ranks(scratch / name)
        change(checkpoint)
        expect_error(checkpoint.finish(), *words)

    def first_place(checkpoint):
        return next(iter(checkpoint.metadata.storage_data.values()))

    def set_field(field, value):
        return lambda checkpoint: setattr(first_place(checkpoint), field, value)

    spoil("cut", lambda c: c.files.update({"__1_0.distcp": c.files["__1_0.distcp"][:99]}), "__1_0.distcp", "cut off")
    spoil("long", set_field("length", 1 << 62), "__0_0.distcp", "cut off")
    spoil("negative", set_field("offset", -1), ".metadata", "offset", "from 0 on")
    spoil("outside", set_field("relative_path", "../x"), "relative_path", "same directory")
    spoil("absent", set_field("relative_path", "no.distcp"), "no.distcp")
    spoil("compressed", set_field("transform_descriptors", ["zstd"]), "extensions")
    spoil("other_box", set_field("offset", 0) and set_field("relative_path", "__1_0.distcp"), "model.rows")

    def drop_box(checkpoint):
        checkpoint.metadata.state_dict_metadata["model.model.rows"].chunks.pop(0)

    def drop_place(checkpoint):
        checkpoint.metadata.storage_data.pop(next(iter(checkpoint.metadata.storage_data)))

    def overlap(checkpoint):
        chunks = checkpoint.metadata.state_dict_metadata["model.model.columns"].chunks
        chunks[1] = chunks[0]

    def grow(checkpoint):
        checkpoint.metadata.state_dict_metadata["model.model.rows"].size = torch.Size([1 << 40, 1 << 40])

    spoil("drop_box", drop_box, "model.rows", "cover 4 to 7 of dimension 0")
    spoil("drop_place", drop_place, "no file holds its part at [0, 0]")
    spoil("overlap", overlap, "overlap")
    spoil("grow", grow, "too many elements")

    # A pickle that runs code is reported, and nothing runs.
    checkpoint, _ = make_ranks(scratch / "evil")

    class Evil:
        def __reduce__(self):
            return (__import__("os").system, (f"touch {scratch}/ran",))

    checkpoint.metadata.storage_meta = Evil()
    code, text, _ = run("verify", checkpoint.finish())
    if code != 1 or "system" not in text or (scratch / "ran").exists():
        faults.append(f"evil: exit {code}, {text}")

    # Every cut of the pickle is an error.
    whole = (scratch / "ranks" / ".metadata").read_bytes()
    for length in range(0, len(whole), 97):
        (scratch / "ranks" / ".metadata").write_bytes(whole[:length])
        code, _, message = run("inspect", scratch / "ranks")
        if code != 1 or "bug" in message:
            faults.append(f"cut at {length}: exit {code}, {message}")

sys.exit("\n".join(faults) if faults else 0)
