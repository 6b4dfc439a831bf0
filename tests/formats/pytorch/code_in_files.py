"""Files that run code when Python loads them: verify reports each of them, wherever it is, and no ordinary file.

    code_in_files.py PATH/TO/poise PATH/TO/examples

Needs neither PyTorch nor NumPy: the files are made of the steps of pickles (Lib/pickletools.py).
"""
import io
import json
import pathlib
import pickle
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

POISE = sys.argv[1]
NANO = pathlib.Path(sys.argv[2]) / "nano-mistral"

# Functions that run commands or code, read or change files, reach others or talk to the network, of many modules.
CALLS = """
os.system posix.system nt.system os.popen os.execv os.remove subprocess.Popen subprocess.check_output pty.spawn
builtins.eval builtins.exec builtins.compile builtins.getattr builtins.__import__ builtins.open builtins.map
runpy.run_path code.InteractiveInterpreter.runsource codeop.compile_command timeit.timeit trace.Trace.run
profile.run cProfile.run bdb.Bdb.run pdb.run doctest.debug_script importlib.import_module pkgutil.resolve_name
pydoc.pipepager pip.main venv.create ensurepip._run_pip site.execsitecustomize idlelib.run.Executive.runcode
idlelib.calltip.get_entity lib2to3.pgen2.grammar.Grammar.loads uuid._get_command_stdout imaplib.IMAP4_stream
_osx_support._read_output _aix_support._read_cmd_output _pyrepl.pager.pipe_pager
test.support.script_helper.assert_python_ok logging.FileHandler io.FileIO shutil.rmtree tempfile.mktemp
linecache.getline glob.glob sqlite3.connect socket.create_connection ssl.get_server_certificate
urllib.request.urlopen http.client.HTTPSConnection requests.get smtplib.SMTP webbrowser.open ctypes.CDLL
marshal.loads types.CodeType types.FunctionType operator.attrgetter operator.methodcaller functools.partial
functools.reduce itertools.starmap copyreg._reconstructor pickle.loads dill.loads cloudpickle.loads joblib.load
pandas.read_pickle torch.load torch.hub.load torch.storage._load_from_bytes torch.utils.collect_env.run
torch._dynamo.guards.GuardBuilder.get torch.fx.graph_module.reduce_graph_module
torch.jit.unsupported_tensor_ops.execWrapper torch._inductor.codecache.compile_file torch.ops.load_library
numpy.f2py.crackfortran.getlincoef numpy.testing._private.utils.runstring numpy.fromfile
asyncio.unix_events._UnixSubprocessTransport._start multiprocessing.util.spawnv_passfds threading.Timer
signal.alarm gc.get_objects sys.setrecursionlimit inspect.getmembers my_project.training.Arguments
""".split()

# Steps that Python takes before a call: nothing after them may be missed.
BEFORE = {
    "a number with an underscore": b"I1_0\n0",
    "a number with a blank": b"I 5\n0",
    "a long with an underscore": b"L1_0L\n0",
    "an infinity with a sign": b"F+Infinity\n0",
    "a NaN": b"F-nAn\n0",
    "a key with a blank": b"Np 7\n0g 7\n0",
    "a key of two signs": b"Np+1_0\n0g10\n0",
    "an index of a list": b"](Ne" b"K\0K\2s0",
    "the last of a list": b"](Ne" b"J\xff\xff\xff\xffK\2s0",
    "octal escapes": b"S'\\157s'\n0",
    "escapes of a bell": b"S'\\a\\b\\f\\v\\q'\n0",
    "two backslashes": b"V\\\\u0041\n0",
    "an empty state": b"}}b0",
    "no state": b"]Nb0",
    "two empty states": b"}N}\x86b0",
    "no items for anything": b"N(e(u0",
    "bytes that are read only": b"C\1a\x980",
    "an empty frame": b"\x95" + bytes(8),
    "a key that appears twice": b"Np1\n0]p0\n0Np1\n0}\x940h\x020",
}
# Steps that Python's versions or readers take differently: the file is refused, whatever comes after them.
REFUSED = {
    "zeros before a number": b"I017\n0",
    "a step in two frames": b"\x95" + struct.pack("<Q", 2) + b"M\5\7\x09\0",
    "a line in two frames": b"\x95" + struct.pack("<Q", 3) + b"I123\n0",
    "a frame in a frame": b"\x95" + struct.pack("<Q", 12) + b"N\x95" + struct.pack("<Q", 2) + b"00N0",
    "a class with attributes": b"cpathlib\nPath\nN}\x8c\1a\x8c\1bs\x86b0",
    "a computed name": b"cpathlib\nPath\n)R\x8c\1x\x930",
    "arguments in a list": b"cpathlib\nPath\n]R0",
}


def text(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def call(name, protocol=2):
    module, _, function = name.rpartition(".")
    if name.count(".") > 1 and module.rpartition(".")[2][:1].isupper():  # a method
        module, _, owner = module.rpartition(".")
        function = f"{owner}.{function}"
    if protocol >= 4:
        return text(module) + text(function) + b"\x93" + text("x") + b"\x85R"
    if protocol == 0:
        return b"(" + text("x") + b"i" + f"{module}\n{function}\n".encode()
    return f"c{module}\n{function}\n".encode() + text("x") + b"\x85R"


def program(steps, protocol=2):
    begin = b"" if protocol < 2 else bytes([0x80, protocol])
    return begin + steps + b"."


def array_of(data, descr="|O"):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (1,), }}".ljust(117) + "\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + data


def archive(members, method=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as target:
        for name, data in members.items():
            target.writestr(name, data)
    return file.getvalue()


# The flags of a member in the directory of an archive.
PLAIN, ENCRYPTED = b"PK\1\2\x14\3\x14\0\0\0", b"PK\1\2\x14\3\x14\0\1\0"
FLOATS = array_of(struct.pack("<f", 1.5), "<f4")


def places(data):
    """Files with a pickle, by the name of the file; those next to a model are in directories."""
    return {
        "raw.pkl": data,
        "raw.bin": data,
        "checkpoint.pt": archive({"a/data.pkl": data}),
        "deflated.pt": archive({"a/data.pkl": data}, zipfile.ZIP_DEFLATED),
        "array.npy": array_of(data),
        "arrays.npz": archive({"w.npy": FLOATS, "o.npy": array_of(data)}),
        "deflated.npz": archive({"w.npy": FLOATS, "o.npy": array_of(data)}, zipfile.ZIP_DEFLATED),
        "member.npz": archive({"w.npy": FLOATS, "o.pkl": data}),
    }


BESIDE = [
    ("training_args.bin", lambda data: data),
    ("notes.txt", lambda data: data),
    ("scheduler.pt", lambda data: archive({"a/data.pkl": data, "a/version": "3\n"})),
    ("other.zip", lambda data: archive({"b/c.pickle": data})),
    ("array.npy", array_of),
    ("arrays.npz", lambda data: archive({"o.npy": array_of(data)})),
]


def verify(path):
    done = subprocess.run([POISE, "verify", "--json", str(path)], capture_output=True, text=True)
    report = json.loads(done.stdout)["files"][0]
    assert done.returncode == (0 if report["ok"] else 1), done
    return report


def expect_error(path, words):
    report = verify(path)
    errors = [finding["message"] for finding in report["findings"] if finding["severity"] == "error"]
    assert not report["ok"] and any(words in error for error in errors), (path, words, report)


def expect_ok(path):
    report = verify(path)
    assert report["ok"], (path, report)


def main():
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory)
        model = path / "model"
        shutil.copytree(NANO, model)
        expect_ok(model)
        # Every call, in every place and in several protocols: named, except where the file is not a model at all.
        for number, name in enumerate(CALLS):
            data = program(call(name, number % 5), number % 5)
            for place, content in places(data).items():
                (path / place).write_bytes(content)
                expect_error(path / place, f"it names {name}, which")
                (path / place).unlink()
            beside, make = BESIDE[number % len(BESIDE)]
            (model / beside).write_bytes(make(data))
            expect_error(model, f"it names {name}, which")
            (model / beside).unlink()
        for what, steps in BEFORE.items():
            data = program(steps + call("os.system"))
            for beside, make in BESIDE:
                (model / beside).write_bytes(make(data))
                expect_error(model, "it names os.system, which runs commands")
                (model / beside).unlink()
            for place, content in places(data).items():
                (path / place).write_bytes(content)
                expect_error(path / place, "it names os.system, which runs commands")
        for what, steps in REFUSED.items():
            data = program(steps + call("os.system"), 4)
            for beside, make in BESIDE:
                if beside == "notes.txt":
                    continue  # text that begins like a pickle
                (model / beside).write_bytes(make(data))
                expect_error(model, "cannot follow a pickle to its end")
                (model / beside).unlink()
            for place, content in places(data).items():
                (path / place).write_bytes(content)
                expect_error(path / place, "")

        # Where the pickle breaks off after a call, and in pickles after the first.
        attack = call("os.system")
        for beside, data in {
            "broken.bin": b"\x80\2" + attack + b"\xff",
            "cut.pkl": b"\x80\2" + attack,
            "second.pkl": pickle.dumps({"a": 1}) + program(attack),
            "tenth.pkl": pickle.dumps(1) * 9 + program(attack),
            "magic.pt": program(call("builtins.eval")) + b"\x80\2M\xe9\3." + program(attack),
        }.items():
            (model / beside).write_bytes(data)
            expect_error(model, "it names ")
            (model / beside).unlink()
        # Files that Poise cannot look into, and files that end like a pickle but are not one.
        for beside, data in {
            "model.pkl.gz": b"\x1f\x8b" + bytes(20),
            "model.joblib": zlib.compress(pickle.dumps([1])),
            "all.7z": b"7z\xbc\xaf\x27\x1c" + bytes(20),
            "cut.pkl": pickle.dumps(list(range(1000)))[:100],
            "half.bin": b"\x80\2" + bytes(range(64)),
            "flags.zip": archive({"a.pkl": program(attack)}).replace(PLAIN, ENCRYPTED),
        }.items():
            (model / beside).write_bytes(data)
            report = verify(model)
            assert not report["ok"], (beside, report)
            (model / beside).unlink()

        # Ordinary files: what Trainer and others save, and files that begin like steps of pickles.
        ordinary = {
            "optimizer.pkl": pickle.dumps({"state": {0: {"step": 1, "exp_avg": [0.5] * 100}}, "lr": [{"a": 1e-4}]}),
            "several.pkl": pickle.dumps({"a": (1, 2)}) * 20,
            "text.pkl": pickle.dumps(["x" * 100000] * 3, protocol=4),
            "zero.pkl": pickle.dumps({"b": b"\x00" * 70000, "s": {1, 2}, "f": frozenset([3])}, protocol=4),
            "old.pkl": pickle.dumps({"a": [1.5, True, None, "\u00e9", 1 << 70]}, protocol=0),
            "labels.txt": b"cat\ndog\nbird\n",
            "LICENSE": b"(c) 2020 Somebody\nAll rights\nis licensed to\nRobert, if\nhe likes.\n",
            "vocab.txt": b"I\nam\nthe\n.\nNot\nso\n(\ncute\n)\n",
            "README.txt": b"Python is a language.\nPickles\nare not.\n.",
            "raw_weights.bin": struct.pack("<64f", *(i * 0.37 - 3 for i in range(64))) * 50,
            "openvino_model.bin": bytes(range(256)) * 40,
            "image.png": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
            "events.out": b"\x18\0\0\0\0\0\0\0" + bytes(range(200)),
            "empty.bin": b"",
            "numbers.npz": archive({"w.npy": FLOATS}),
            "strings.npy": array_of(pickle.dumps([["a", "b"], 1])),
            "files.zip": archive({"a.txt": b"cat\ndog\n", "b.json": b"{}"}),
            "merges.txt": b"#version: 0.2\n\xc4\xa0 t\n",
        }
        for beside, data in ordinary.items():
            (model / beside).write_bytes(data)
        expect_ok(model)
    print(f"{len(CALLS)} functions, {len(BEFORE)} and {len(REFUSED)} steps before them, {len(ordinary)} ordinary files")


if __name__ == "__main__":
    main()
