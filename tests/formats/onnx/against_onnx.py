"""onnx writes, Poise reads: every data type, raw and in typed fields, sparse, in other files, as constants.

    against_onnx.py PATH/TO/poise

Exit code 77: onnx is not installed.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, external_data_helper, helper, numpy_helper
except ImportError:
    sys.exit(77)

POISE = sys.argv[1]
TYPES = {
    "FLOAT": "f4",
    "DOUBLE": "f8",
    "FLOAT16": "f2",
    "INT8": "i1",
    "INT16": "i2",
    "INT32": "i4",
    "INT64": "i8",
    "UINT8": "u1",
    "UINT16": "u2",
    "UINT32": "u4",
    "UINT64": "u8",
    "BOOL": "b1",
    "COMPLEX64": "c8",
    "COMPLEX128": "c16",
}


def poise(*arguments):
    done = subprocess.run([POISE, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def arrays():
    random = np.random.default_rng(11)
    for name, dtype in TYPES.items():
        yield name, (random.standard_normal((3, 4, 5)) * 100).astype(dtype)
    yield "scalar", np.float32(1.5).reshape(())
    yield "empty", np.zeros((0, 3), "f4")
    yield "large", random.standard_normal((300, 1000)).astype("f4")
    yield "wide", random.integers(-(2**63), 2**63 - 1, 1000)


def typed(name, array):
    """In the field of its type, as packed numbers."""
    number = numpy_helper.from_array(array).data_type
    values = array.view("u2") if array.dtype == np.float16 else array
    tensor = TensorProto(name=name, data_type=number, dims=array.shape)
    field = {
        "f4": "float_data",
        "c8": "float_data",
        "f8": "double_data",
        "c16": "double_data",
        "i8": "int64_data",
        "u4": "uint64_data",
        "u8": "uint64_data",
    }.get(array.dtype.str[1:], "int32_data")
    if array.dtype.kind == "c":
        values = array.flatten().view(f"f{array.dtype.itemsize // 2}")
    getattr(tensor, field).extend(values.flatten().tolist())
    return tensor


def model_of(initializers, nodes=(), sparse=()):
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "large"], ["y"]), *nodes],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 300])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 1000])],
        initializers,
        sparse_initializer=list(sparse),
    )
    model = helper.make_model(graph, producer_name="against_onnx")
    helper.set_model_props(model, {"key": "value"})
    return model


def expect_same(path, expected):
    report = json.loads(poise("verify", "--json", path))
    assert report["ok"] and not [f for f in report["files"][0]["findings"] if "not finite" not in f["message"]], report
    poise("convert", "--quiet", path, "-o", path.with_suffix(".npz"), "--force")
    there = np.load(path.with_suffix(".npz"))
    assert sorted(there.files) == sorted(expected), (there.files, list(expected))
    for name, array in expected.items():
        assert there[name].dtype == array.dtype and there[name].shape == array.shape, name
        assert there[name].tobytes() == array.tobytes(), name


with tempfile.TemporaryDirectory() as directory:
    path = pathlib.Path(directory)
    expected = dict(arrays())
    onnx.save(model_of([numpy_helper.from_array(array, name) for name, array in expected.items()]), path / "raw.onnx")
    expect_same(path / "raw.onnx", expected)
    onnx.save(model_of([typed(name, array) for name, array in expected.items()]), path / "typed.onnx")
    expect_same(path / "typed.onnx", expected)
    # bfloat16, which NumPy does not have, is the upper half of float32.
    halves = np.array([0x3F80, 0xC000, 0x7F7F], "u2")
    for raw in (True, False):
        tensor = TensorProto(name="half", data_type=TensorProto.BFLOAT16, dims=[3])
        if raw:
            tensor.raw_data = halves.tobytes()
        else:
            tensor.int32_data.extend(halves.tolist())
        onnx.save(model_of([tensor]), path / "half.onnx")
        poise("convert", "--quiet", "--dtype", "f32", path / "half.onnx", "-o", path / "half.npz", "--force")
        assert np.array_equal(np.load(path / "half.npz")["half"], (halves.astype("u4") << 16).view("f4"))
    # In files next to the model: one for all, one for each.
    for all_in_one in (True, False):
        model = model_of([numpy_helper.from_array(array, name) for name, array in expected.items()])
        external_data_helper.convert_model_to_external_data(
            model, all_in_one, "weights.data" if all_in_one else None, size_threshold=0
        )
        folder = path / f"external{all_in_one}"
        folder.mkdir()
        onnx.save(model, str(folder / "model.onnx"))
        expect_same(folder / "model.onnx", expected)
    (folder / "large").unlink()
    refused = subprocess.run([POISE, "inspect", folder / "model.onnx"], capture_output=True, text=True)
    assert refused.returncode == 1 and "the file large is missing" in refused.stderr, refused
    # Sparse ones, in both forms of indices; constants; texts.
    cells = np.array([1, 7, 30, 59])
    values = np.array([1, -2, 3, 0.5], "f4")
    dense = np.zeros(60, "f4")
    dense[cells] = values
    dense = dense.reshape(3, 4, 5)
    sparse = [
        helper.make_sparse_tensor(
            numpy_helper.from_array(values, "flat"), numpy_helper.from_array(cells, "f"), dense.shape
        ),
        helper.make_sparse_tensor(numpy_helper.from_array(values, "listed"), typed("f", cells), dense.shape),
        helper.make_sparse_tensor(
            numpy_helper.from_array(values, "rows"), numpy_helper.from_array(np.argwhere(dense), "r"), dense.shape
        ),
        helper.make_sparse_tensor(numpy_helper.from_array(values, "line"), numpy_helper.from_array(cells, "l"), [60]),
    ]
    constant = helper.make_node("Constant", [], ["constant"], value=numpy_helper.from_array(dense))
    texts = helper.make_tensor("texts", TensorProto.STRING, [2], [b"a", "é".encode()])
    short = {
        "value_float": ("float", np.float32(0.1)),
        "value_int": ("int", np.int64(-(2**40))),
        "value_floats": ("floats", np.array([1.5, -2.25, 3e38], "f4")),
        "value_ints": ("ints", np.array([-1, 0, 2**62, 300])),
        "empty_ints": ("no_ints", np.array([], "i8")),
        "empty_floats": ("no_floats", np.array([], "f4")),
        "sparse_value": ("constant_line", dense.flatten()),
    }
    nodes = [constant, helper.make_node("Constant", [], ["word"], value_string="é")]
    nodes.append(helper.make_node("Constant", [], ["words"], value_strings=["a", ""]))
    nodes.append(helper.make_node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], auto_pad="SAME_UPPER", alpha=0.5))
    for key, (name, value) in short.items():
        if value.size == 0:  # of a type alone
            nodes.append(helper.make_node("Constant", [], [name]))
            kind = key.replace("empty_", "").upper()
            nodes[-1].attribute.add(
                name=key.replace("empty", "value"), type=onnx.AttributeProto.AttributeType.Value(kind)
            )
            continue
        nodes.append(
            helper.make_node("Constant", [], [name], **{key: sparse[-1] if key == "sparse_value" else value.tolist()})
        )
    model = model_of([texts], nodes, sparse)
    model.graph.input.append(helper.make_tensor_value_info("texts", TensorProto.STRING, [2]))
    onnx.save(model, path / "other.onnx")
    poise("convert", "--quiet", path / "other.onnx", "-o", path / "other.zt")
    poise("convert", "--quiet", "--dtype", "f32", path / "other.zt", "-o", path / "other.npz")
    there = np.load(path / "other.npz")
    for name in ("flat", "listed", "rows", "line", "constant"):
        assert np.array_equal(there[name], dense.flatten() if name == "line" else dense), name
    for name, value in short.values():
        assert there[name].shape == value.shape and np.array_equal(there[name], value), name
    told = json.loads(poise("inspect", "--json", path / "other.onnx"))["attributes"]
    assert told["texts"] == ["a", "é"] and told["onnx.metadata"] == {"key": "value"} and told["onnx.nodes"] == 12, told
    assert told["word"] == "é" and told["words"] == ["a", ""], told
    assert (
        told["onnx.inputs"] == [{"name": "x", "type": "FLOAT", "shape": ["batch", 300]}]
        and told["onnx.producer_name"] == "against_onnx"
    ), told
    # The first of two entries with one key counts, and there are not more warnings than a file can justify.
    for _ in range(2000):
        model.metadata_props.add(key="key", value="another")
    onnx.save(model, path / "twice.onnx")
    again = json.loads(poise("inspect", "--json", path / "twice.onnx"))
    assert again["attributes"]["onnx.metadata"] == {"key": "value"} and len(again["warnings"]) == 1001, again
    assert "metadata_props: a second entry of key is left out" in json.dumps(again["warnings"][0]), again["warnings"][0]
    # Texts have the number that dims states, and are in one field.
    wrong, raw = (helper.make_tensor("texts", TensorProto.STRING, [2], [b"a", b"b"]) for _ in range(2))
    wrong.string_data.append(b"c")
    raw.raw_data = b"abcd"
    for tensor, message in (
        (wrong, "string_data: found 3 texts, expected those of shape [2]"),
        (raw, "elements in another one"),
    ):
        onnx.save(model_of([tensor]), path / "wrong.onnx")
        refused = subprocess.run([sys.argv[1], "inspect", path / "wrong.onnx"], capture_output=True, text=True)
        assert refused.returncode == 1 and message in refused.stderr, refused
    # Poise recognizes a renamed file by its content.
    (path / "raw.onnx").rename(path / "raw.pb")
    assert json.loads(poise("inspect", "--json", path / "raw.pb"))["format"] == "onnx"
