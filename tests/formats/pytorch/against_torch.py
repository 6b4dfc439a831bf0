"""PyTorch writes, Poise reads; Poise writes, torch.load(weights_only=True) reads; directories with pytorch_model.bin
run.

    against_torch.py PATH/TO/poise PATH/TO/examples

Exit code 77: PyTorch is not installed.
"""
import argparse
import collections
import io
import json
import pathlib
import pickle
import pickletools
import random
import shutil
import subprocess
import sys
import tempfile
import zipfile

try:
    import numpy
    import torch
except ImportError:
    sys.exit(77)

POISE = sys.argv[1]
EXAMPLES = pathlib.Path(sys.argv[2])
TYPES = [
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
    torch.complex64,
    torch.complex128,
]


def poise(*arguments):
    return subprocess.run([POISE, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


class Scalar:
    """A scalar of NumPy as a big-endian machine saves it: both halves of a complex number have its byte order."""

    def __init__(self, dtype, content):
        self.dtype = dtype
        self.content = content

    def __reduce__(self):
        return numpy.core.multiarray.scalar, (numpy.dtype(self.dtype), self.content)


def tensors():
    torch.manual_seed(3)
    state = collections.OrderedDict()
    for dtype in TYPES:
        state[str(dtype)[6:]] = (torch.randn(4, 5) * 50).to(dtype)
    base = torch.randn(6, 8, 10)
    state["transposed"] = base[0].t()
    state["permuted"] = base.permute(2, 0, 1)
    state["sliced"] = base[1:5:2, ::3, 2:]
    state["expanded"] = torch.randn(3, 1).expand(3, 1000)
    state["parameter"] = torch.nn.Parameter(torch.randn(3))
    state["tied"] = state["parameter"].data
    state["scalar"] = torch.tensor(2.5)
    state["empty"] = torch.zeros(0, 4)
    state["large"] = torch.randn(300, 1000, dtype=torch.float32)
    return state


def expect_same(found, expected):
    assert sorted(found) == sorted(expected), (list(found), list(expected))  # zTensor sorts names
    for name, tensor in expected.items():
        assert found[name].shape == tensor.shape and found[name].dtype == tensor.dtype, name
        assert torch.equal(found[name], tensor.detach()), name


def with_deflated_members(path):
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(str(path) + ".z", "w", zipfile.ZIP_DEFLATED) as target:
        for member in source.namelist():
            target.writestr(member, source.read(member))
    shutil.move(str(path) + ".z", path)


with tempfile.TemporaryDirectory() as directory:
    path = pathlib.Path(directory)
    state = tensors()
    extras = {
        "epoch": 3,
        "lr": 0.5,
        "name": "é",
        "betas": (0.9, 0.999),
        "shape": torch.Size([2, 3]),
        "dtype": torch.float16,
        "none": None,
        "loss": numpy.float32(1.5),
        "steps": numpy.int64(7),
        "swapped": Scalar(">c8", numpy.array([1 + 2j], ">c8").tobytes()),
        "ids": {1, 2},
        "raw": b"\x00\xff",
        "big": 1 << 40,
        "device": torch.device("cpu"),
    }
    for zipped in (True, False):
        for root in (None, "state_dict", "model"):
            file = path / "in.pt"
            torch.save(state if root is None else {root: state, **extras}, file, _use_new_zipfile_serialization=zipped)
            for deflated in (False, True) if zipped else (False,):
                if deflated:
                    with_deflated_members(file)
                report = json.loads(poise("verify", "--json", file))["files"][0]
                assert report["ok"] and not report["findings"] and report["digests"] == zipped, report
                for middle in ("out.pt", "middle.zt"):
                    poise("convert", "--quiet", file, "-o", path / middle, "--force")
                if zipped:
                    poise("convert", "--quiet", path / "middle.zt", "-o", path / "out2.pt", "--force")
                    expect_same(torch.load(path / "out2.pt", weights_only=True), state)
                expect_same(torch.load(path / "out.pt", weights_only=True), state)
                poise("diff", file, path / "out2.pt") if root is None else None
            if root:
                attributes = json.loads(poise("inspect", "--json", file))["attributes"]
                assert attributes["pytorch.root"] == root
                expected = {
                    "epoch": 3,
                    "lr": 0.5,
                    "name": "é",
                    "betas": [0.9, 0.999],
                    "shape": [2, 3],
                    "dtype": "torch.float16",
                    "none": None,
                    "loss": 1.5,
                    "steps": 7,
                    "swapped": [1.0, 2.0],
                    "ids": [1, 2],
                    "raw": "00ff",
                    "big": 1 << 40,
                    "device": "cpu",
                }
                for key, value in expected.items():
                    assert attributes[key] == value, (key, attributes[key], value)
    # Tied weights are stored once, and are one storage when they are loaded.
    mask = state["large"] > 0
    torch.save({"a": state["large"], "b": state["large"], "c": mask, "d": mask}, path / "tied.pt")
    poise("convert", "--quiet", path / "tied.pt", "-o", path / "tied_again.pt")
    tied = torch.load(path / "tied_again.pt", weights_only=True)
    assert (
        tied["a"].data_ptr() == tied["b"].data_ptr()
        and tied["c"].data_ptr() == tied["d"].data_ptr()
        and (path / "tied_again.pt").stat().st_size < 1.1 * (path / "tied.pt").stat().st_size
    )
    with zipfile.ZipFile(path / "tied_again.pt") as archive:
        assert archive.testzip() is None
    # Sparse and quantized tensors come as the numbers that PyTorch makes of them.
    dense = torch.randn(5, 7) * (torch.rand(5, 7) < 0.4)
    special = {
        "coo": dense.to_sparse_coo() if hasattr(dense, "to_sparse_coo") else dense.to_sparse(),
        "csr": dense.to_sparse_csr(),
        "coo3": (torch.rand(3, 4, 5) < 0.2).float().to_sparse(),
        "dense": dense,
        "q8": torch.quantize_per_tensor(dense, 0.03125, 3, torch.qint8),
        "qu8": torch.quantize_per_tensor(dense.t(), 0.05, 120, torch.quint8),
        "rows": torch.quantize_per_channel(
            dense, torch.rand(5) * 0.1 + 0.01, torch.randint(-9, 9, (5,)), 0, torch.qint8
        ),
        "columns": torch.quantize_per_channel(
            dense, torch.rand(7) * 0.1 + 0.01, torch.randint(9, 200, (7,)), 1, torch.quint8
        ),
        "filters": torch.quantize_per_channel(
            torch.randn(4, 3, 2, 2),
            torch.rand(4).double() * 0.1 + 0.01,
            torch.zeros(4, dtype=torch.int64),
            0,
            torch.qint8,
        ),
        "table": torch.quantize_per_channel(dense, torch.rand(5) * 0.1 + 0.01, torch.rand(5) * 9, 0, torch.quint8),
        "qp": torch.nn.Parameter(
            torch.quantize_per_tensor(torch.randn(2, 3, 4), 0.0625, 0, torch.qint8), requires_grad=False
        ),
    }
    for zipped in (True, False):
        torch.save(special, path / "special.pt", _use_new_zipfile_serialization=zipped)
        findings = json.loads(poise("verify", "--json", path / "special.pt"))["files"][0]["findings"]
        assert len(findings) == 1 and "the scale of 1 quantized tensor has 64 bits" in findings[0]["message"], findings
        for middle in ("special.zt", "special2.zt"):
            poise(
                "convert",
                "--quiet",
                path / "special.pt" if middle == "special.zt" else path / "special.zt",
                "-o",
                path / middle,
                "--force",
            )
        poise("convert", "--quiet", "--dtype", "f32", path / "special2.zt", "-o", path / "dense.pt", "--force")
        expected = {
            name: tensor.dequantize() if tensor.is_quantized else tensor.to_dense() for name, tensor in special.items()
        }
        # PyTorch multiplies by scales of 64 bits before it rounds, where there are several; Poise by float32.
        filters, scales = special["filters"], special["filters"].q_per_channel_scales().view(-1, 1, 1, 1)
        assert torch.allclose(filters.int_repr() * scales.float(), expected["filters"], rtol=2.0**-22)
        expected["filters"] = filters.int_repr() * scales.float()
        expect_same(torch.load(path / "dense.pt", weights_only=True), expected)
    # Signed codes with zero points that are not integers.
    torch.save(
        {"w": torch.quantize_per_channel(dense, torch.ones(5), torch.zeros(5), 0, torch.qint8)}, path / "channels.pt"
    )
    refused = subprocess.run([POISE, "inspect", path / "channels.pt"], capture_output=True, text=True)
    assert refused.returncode == 1 and "zero_points: f32 with codes that are signed" in refused.stderr, refused
    # A state dict's data about its modules are kept where they have a meaning.
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    torch.save({"model": module.state_dict(), "epoch": 1}, path / "module.pt")
    inspected = json.loads(poise("inspect", "--json", path / "module.pt"))
    assert inspected["attributes"]["_metadata"]["1"] == {"version": 2} and not inspected.get("warnings"), inspected
    torch.save(module[0].state_dict(), path / "module.pt")
    assert "_metadata" not in json.loads(poise("inspect", "--json", path / "module.pt"))["attributes"]
    # A directory of PyTorch's is the same model as that of safetensors.
    nano = EXAMPLES / "nano-mistral"
    poise("convert", "--quiet", nano, "-o", path / "whole.pt")
    weights = torch.load(path / "whole.pt", weights_only=True)
    answer = poise("run", nano, "-p", "One day", "-n", "8", "--temperature", "0")
    names = list(weights)
    for shards in (1, 2):
        copy = path / f"nano-{shards}"
        shutil.copytree(nano, copy, ignore=shutil.ignore_patterns("*.safetensors*"))
        if shards == 1:
            torch.save(weights, copy / "pytorch_model.bin")
        else:
            index = {}
            for shard in range(2):
                name = f"pytorch_model-{shard + 1:05}-of-00002.bin"
                torch.save(
                    {key: weights[key] for key in names[shard::2]},
                    copy / name,
                    _use_new_zipfile_serialization=shard == 0,
                )
                index |= {key: name for key in names[shard::2]}
            (copy / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
        assert poise("run", copy, "-p", "One day", "-n", "8", "--temperature", "0") == answer
        report = json.loads(poise("verify", "--json", copy))
        assert (
            report["ok"]
            and report["files"][0]["digests"]
            and report["files"][0]["digests_checked"] > len(weights) / 2 - 1
        ), report
        same = json.loads(subprocess.run([POISE, "diff", "--json", nano, copy], capture_output=True, text=True).stdout)
        assert not same["tensors"], same
    # Plain data of the kinds that protocol 2 spells as Python 2 did.
    plain = {
        "w": torch.ones(2),
        "counts": collections.defaultdict(list, {"a": [1]}),
        "range": range(3),
        "device": torch.device("cuda:1"),
        "half": numpy.float16(2.5),
        "arguments": argparse.Namespace(lr=0.5, out=pathlib.PurePosixPath("/a/b")),
        "large": 2**64 - 1,
        None: "nothing",
    }
    for protocol in (2, 4):
        torch.save(plain, path / "plain.pt", pickle_protocol=protocol)
        assert json.loads(poise("verify", "--json", path / "plain.pt"))["ok"]
        attributes = json.loads(poise("inspect", "--json", path / "plain.pt"))["attributes"]
        assert attributes["counts"] == {"a": [1]} and attributes["device"] == "cuda:1" and attributes["half"] == 2.5
        assert attributes["arguments"] == {"lr": 0.5, "out": "/a/b"} and attributes["large"] == 2**64 - 1, attributes

    # Files of before version 1.6 in the pickles of all protocols.
    for protocol in range(1, 5):
        torch.save(tensors(), path / "old.pt", _use_new_zipfile_serialization=False, pickle_protocol=protocol)
        poise("convert", "--quiet", path / "old.pt", "-o", path / "new.pt", "--force")
        expect_same(torch.load(path / "new.pt", weights_only=True), tensors())

    # Code wherever torch.load() would run it: in each of the five pickles of an old file, in a tar archive that is an
    # old file, too, under a name that differs in case, in files next to the weights.
    def told(*arguments):
        done = subprocess.run([POISE, "verify", "--json", *map(str, arguments)], capture_output=True, text=True)
        assert done.returncode == 1, done
        return done.stdout + done.stderr

    torch.save({"w": torch.ones(2)}, path / "old.pt", _use_new_zipfile_serialization=False)
    old = (path / "old.pt").read_bytes()
    begins = [0]
    for _ in range(5):
        stream = io.BytesIO(old[begins[-1] :])
        pickletools.dis(stream, out=io.StringIO())
        begins.append(begins[-1] + stream.tell())
    attack = b"cos\nsystem\n(X\4\0\0\0truetR0"  # its result is dropped
    for begin in begins[:5]:
        (path / "attack.pt").write_bytes(old[: begin + 2] + attack + old[begin + 2 :])
        assert "it names os.system, which runs commands" in told(path / "attack.pt"), begin
    facts = pickle.dumps({"little_endian": True, "padding": bytes(600)}, protocol=3)
    both = bytearray(old[: begins[2]] + facts + old[begins[3] :])
    both[148:156] = b" " * 8
    for number in (b"%06o\0 ", b"0o%05o\0", b"\t+%05o\0"):  # as int(text, 8) takes them
        both[148:156] = b" " * 8
        both[148:156] = number % sum(both[:512])
        (path / "attack.pt").write_bytes(both)
        assert "the header of a tar archive" in told(path / "attack.pt"), number
    torch.save({"w": torch.ones(2)}, path / "attack.pt")
    with zipfile.ZipFile(path / "attack.pt", "a") as archive:
        archive.writestr("attack/DATA.PKL", b"\x80\2" + attack + b"N.")
    assert "two pickles" in told(path / "attack.pt")
    numpy.savez(path / "attack.npz", w=numpy.ones(2))
    with zipfile.ZipFile(path / "attack.npz", "a") as archive:
        archive.writestr("DATA.PKL", b"\x80\2" + attack + b"N.")
    told(path / "attack.npz")
    copy = path / "nano-with-code"
    shutil.copytree(nano, copy)
    torch.save({"lr": 0.1}, copy / "optimizer.pt")
    assert json.loads(poise("verify", "--json", copy))["ok"]
    (copy / "numbers.bin").write_bytes(bytes(range(64)))
    assert json.loads(poise("verify", "--json", copy))["ok"]
    for name, content, words in (
        ("module.bin", b"\x80\2cmy.training\nArguments\n)R.", "it names my.training.Arguments"),
        ("numbers.bin", b"\x80\2" + bytes(range(64)), "a pickle breaks off"),
    ):
        (copy / name).write_bytes(content)
        assert words in told(copy), name
        (copy / name).unlink()
    for name, content in (
        ("training_args.bin", old[:2] + attack + old[2:]),
        ("broken.bin", b"\x80\2" + attack + b"\xff"),
        ("protocol_0.pkl", attack + b"N."),
    ):
        (copy / name).write_bytes(content)
        for place in (copy, shutil.make_archive(copy, "zip", copy)):
            assert name in told(place) and "os.system" in told(place), (name, place)
        (copy / name).unlink()
    shutil.move(shutil.make_archive(path / "oldest", "tar", path / "nano-with-code"), copy / "oldest.pt")
    assert "a tar archive, whose members Poise does not read" in told(copy)
    (copy / "oldest.pt").unlink()
    (path / "target").write_bytes(attack + b"N.")
    (copy / "linked.bin").symlink_to(path / "target")
    assert "linked.bin" in told(copy)
    (copy / "linked.bin").unlink()
    torch.save({"w": torch.ones(2)}, copy / "other.zip")
    with zipfile.ZipFile(copy / "other.zip", "a") as archive:
        archive.writestr("other/x/DATA.PKL", b"\x80\2" + attack + b"N.")
        archive.writestr("config.json", "{}")
        archive.writestr("model.safetensors", "")
    assert "two pickles" in told(copy)

    # A list that holds a list twice, and so on, has a tensor under 2^40 names.
    shared = torch.ones(1)
    for _ in range(40):
        shared = [shared, shared]
    torch.save({"k" * 4000: shared}, path / "shared.pt")

    # What torch 2 writes for x.conj(), which torch 1.13 reads as x.
    class Call:
        def __init__(self, function, arguments):
            self.call = function, arguments

        def __reduce_ex__(self, protocol):
            return self.call

    def pending(tensor, metadata):
        hooks = collections.OrderedDict()
        arguments = (tensor.storage(), 0, tuple(tensor.shape), tensor.stride(), False, hooks, metadata)
        return Call(torch._utils._rebuild_tensor_v2, arguments)

    torch.save({"x": pending(torch.ones(2, dtype=torch.complex64), {"conj": True})}, path / "conj.pt")
    torch.save({"x": pending(torch.ones(2), {"neg": True})}, path / "neg.pt")
    for name, told in (
        ("shared", "more memory than the file justifies"),
        ("conj", "x.resolve_conj()"),
        ("neg", "x.resolve_neg()"),
    ):
        refused = subprocess.run([POISE, "inspect", path / f"{name}.pt"], capture_output=True, text=True)
        assert refused.returncode == 1 and told in refused.stderr, refused
    torch.save({"x": pending(torch.ones(2), {"conj": False, "neg": False})}, path / "done.pt")
    assert json.loads(poise("verify", "--json", path / "done.pt"))["ok"]

    # Steps that change a tensor in PyTorch after it is made: torch reads other numbers than the arguments say, and
    # Poise refuses the file.
    class Changed:
        def __init__(self, tensor, state=None, pairs=()):
            self.tensor, self.state, self.pairs = tensor, state, pairs

        def __reduce_ex__(self, protocol):
            function, arguments = self.tensor.__reduce_ex__(protocol)
            return function, arguments, self.state, None, iter(self.pairs)

    ones, twos = torch.ones(2), torch.full((2,), 2.0)
    rebuild, arguments = ones.__reduce_ex__(2)
    of_type = (rebuild, torch.nn.Parameter, arguments, {"data": twos})
    kept = Call(torch._utils._rebuild_parameter, (ones, False, collections.OrderedDict()))
    for changed, has_others in (
        (Changed(ones, pairs=[(0, 5.0)]), True),
        (Changed(ones, pairs=[(0, 5.0), (1, 6.0)]), True),
        (Changed(ones, (twos.storage(), 0, (2,), (1,))), True),
        (Changed(ones, (twos, None, collections.OrderedDict(), False, False)), True),
        (Call(torch._tensor._rebuild_from_type_v2, of_type), True),
        (Call(rebuild, (*arguments[:5], {0: torch.Size})), False),
        (Changed(ones), False),
        (kept, False),
    ):
        torch.save({"x": changed}, path / "changed.pt")
        read = torch.load(path / "changed.pt")["x"]
        assert torch.equal(read, ones) != has_others, (changed, read)
        refused = subprocess.run([POISE, "inspect", path / "changed.pt"], capture_output=True, text=True)
        is_kept = changed is kept or (isinstance(changed, Changed) and not changed.state and not changed.pairs)
        assert refused.returncode == (0 if is_kept else 1), (changed.__dict__, refused)
        assert is_kept or "the pickle changes a tensor that torch._" in refused.stderr, refused

    # Objects that training saves: the states of optimizers, schedulers and random numbers, averages, options.
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    module[0].weight.tensor_model_parallel = True
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 3])
    module(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    scheduler.step()
    training = {
        "state_dict": module.state_dict(),
        "parameters": list(module.parameters()),
        "average": torch.optim.swa_utils.AveragedModel(module).state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "random": {"python": random.getstate(), "numpy": numpy.random.get_state(), "torch": torch.get_rng_state()},
        "best": numpy.float64(0.5),
        "curve": [numpy.float32(1.5), numpy.int64(3), numpy.bool_(True)],
        "array": numpy.arange(6, dtype=">i2").reshape(2, 3),
        "words": numpy.array(["a", "bc"]),
        "counts": collections.Counter("abca"),
        "groups": collections.defaultdict(list, {"a": [1]}),
        "options": argparse.Namespace(lr=0.1, out=pathlib.Path("/a"), dtype=torch.bfloat16),
        "slices": [slice(1, 5), range(3), frozenset([2]), complex(1, 2), bytearray(b"x"), b""],
    }
    for zipped in (True, False):
        for protocol in range(1 if not zipped else 2, 6):
            saved = {key: value for key, value in training.items() if protocol > 1 or key != "options"}  # by copyreg
            torch.save(saved, path / "training.pt", pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
            done = subprocess.run([POISE, "verify", "--json", path / "training.pt"], capture_output=True, text=True)
            report = json.loads(done.stdout)
            errors = [one for one in report["files"][0]["findings"] if one["severity"] == "error"]
            assert not errors and report["ok"], (protocol, zipped, errors)
