"""Opens files of only the smallest items of each format, and compares the command's peak memory with what
the file justifies: 4 times its size and 80 MiB, the program itself and the mapped file among them; 128 MiB where a
limit on entries or bytes ends the reading. Files may be opened or refused. Sound files of
100,000 tensors, as large models have them, are opened and listed in 80 MB. An adapter is merged in 64 MiB, whatever the
base takes.

    peak_memory.py POISE

The files follow the specifications; the script uses no code of the library.
"""
import hashlib
import io
import itertools
import os
import string
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

ALLOWED_TIMES = 4
ALLOWED_BYTES = 80 << 20
ALLOWED_BYTES_AT_A_LIMIT = 128 << 20
AT_A_LIMIT = {
    "attributes.zt",
    "config",
    "index",
    "long_names.msgpack",
    "metadata.safetensors",
    "numbers.pt",
    "shard_metadata",
    "version_2_attributes.zt",
}
# About 62 MB are needed: 500 bytes for each tensor, and 10 MB for the program.
LISTED_BYTES = 80_000_000


WORDS = ("".join(word) for n in itertools.count(1) for word in itertools.product(string.ascii_lowercase, repeat=n))
MADE = []


def distinct(count):
    """Returns `count` different short texts of letters."""
    MADE.extend(itertools.islice(WORDS, max(0, count - len(MADE))))
    return MADE[:count]


def safetensors(header):
    header = header.encode()
    return struct.pack("<Q", len(header)) + header


def head(major, number):
    for size, code in ((1, 24), (2, 25), (4, 26), (8, 27)):
        if size == 1 and number < 24:
            return bytes([major << 5 | number])
        if number < 1 << 8 * size:
            return bytes([major << 5 | code]) + number.to_bytes(size, "big")


TEXT_HEADS = [head(3, size) for size in range(24)]


def text(value):
    content = value.encode()
    return (TEXT_HEADS[len(content)] if len(content) < 24 else head(3, len(content))) + content


def numbers_and_zeros(count):
    """Returns the pairs of a map: keys from 0 on, and zeros as values."""
    return b"".join(head(0, i) + b"\0" for i in range(65536)) + b"".join(
        b"\x1a%b\0" % i.to_bytes(4, "big") for i in range(65536, count)
    )


def cbor_map(pairs):
    pairs = list(pairs)
    return head(5, len(pairs)) + b"".join(text(key) + value for key, value in pairs)


def zt1(root):
    manifest = cbor_map(root)
    return b"ZTEN1000".ljust(64, b"\0") + manifest + struct.pack("<Q", len(manifest)) + b"ZTEN1000"


def zt1_object(components):
    return cbor_map([("shape", b"\x81\x00"), ("format", text("dense")), ("components", cbor_map(components))])


def zt1_objects(count, components=("data",)):
    component = cbor_map([("dtype", text("u8")), ("offset", head(0, 64)), ("length", head(0, 0))])
    one = zt1_object([(role, component) for role in components])
    return zt1([("version", text("1.1.0")), ("objects", cbor_map((name, one) for name in distinct(count)))])


def zt1_attributes(entries):
    return zt1([("version", text("1.1.0")), ("objects", b"\xa0"), ("attributes", entries)])


def zt1_unknown(value):
    return zt1([("unknown", value), ("version", text("1.1.0")), ("objects", b"\xa0")])


def zt10_long_type(components):
    component = cbor_map([("offset", head(0, 64)), ("length", head(0, 0))])
    one = cbor_map(
        [
            ("shape", b"\x81\x00"),
            ("format", text("x")),
            ("dtype", text("x" * 100_000)),
            ("components", cbor_map((name, component) for name in distinct(components))),
        ]
    )
    manifest = cbor_map([("version", text("1.0.0")), ("tensors", cbor_map([("a", one)]))])
    return b"ZTEN1000".ljust(64, b"\0") + manifest + struct.pack("<Q", len(manifest))


def zt1_long_name(parts):
    component = cbor_map(
        [("dtype", text("u8")), ("offset", head(0, 64)), ("length", head(0, 0)), ("encoding", text("x"))]
    )
    one = cbor_map(
        [
            ("shape", b"\x81\x00"),
            ("format", text("x")),
            ("components", cbor_map((name, component) for name in distinct(parts))),
        ]
    )
    return zt1([("version", text("1.1.0")), ("objects", cbor_map([("n" * 100_000, one)]))])


def zt2(root):
    manifest = head(5, len(root)) + b"".join(
        key + value for key, value in sorted((text(key), value) for key, value in root)
    )
    digest = int(
        subprocess.run(["xxhsum", "-H3"], input=manifest, capture_output=True, check=True)
        .stdout.split()[-1]
        .split(b"_")[-1],
        16,
    )
    magic = b"\x89ZT2\r\n\x1a\n"
    return magic.ljust(4096, b"\0") + manifest + struct.pack("<QQQII", 4096, len(manifest), digest, 2, 0) + magic


def sorted_map(pairs):
    pairs = sorted((text(key), value) for key, value in pairs)
    return head(5, len(pairs)) + b"".join(key + value for key, value in pairs)


def zt2_objects(names, parts=("data",)):
    part = sorted_map([("blob", b"\x82\x19\x10\x00\x00"), ("dtype", text("u8"))])
    one = sorted_map(
        [
            ("shape", b"\x81\x00"),
            ("layout", text("dense" if len(parts) == 1 else "a.b/1")),
            ("parts", sorted_map((role, part) for role in parts)),
        ]
    )
    return zt2([("objects", sorted_map((name, one) for name in names))])


def zt0(count):
    def entry(name):
        fields = [
            ("name", text(name)),
            ("offset", head(0, 64)),
            ("size", head(0, 0)),
            ("dtype", text("int8")),
            ("shape", b"\x81\x00"),
            ("encoding", text("raw")),
        ]
        return cbor_map(fields)

    index = head(4, count) + b"".join(entry(name) for name in distinct(count))
    return b"ZTEN0001".ljust(64, b"\0") + index + struct.pack("<Q", len(index))


def sentencepiece(count):
    pieces = (b"\x0a%c\x0a%c%b" % (len(name) + 2, len(name), name.encode()) for name in distinct(count))
    return b"".join(pieces) + b"\x0a\x09\x0a\x05<unk>\x18\x02"


def alt2_tensors(count):
    records = []
    for name in distinct(count):
        records.append(
            struct.pack("<4i", -1, -4, -1, -1)
            + struct.pack("<2i", 1, 0)
            + struct.pack("<i", len(name))
            + name.encode()
            + struct.pack("<i3fb", 0, 0, 0, 0, 0)
        )
    content = struct.pack("<qqii", count, count, 0, count) + b"".join(records)
    start = struct.pack("<qqii", 0x616C7400, 8, 2, 32)
    size = len(content) + 16
    padding = b"\0" * (-(32 + size) % 32)
    return (
        start.ljust(32, b"\0")
        + struct.pack("<qq", 0xFACEFEED, size + len(padding))
        + content
        + padding
        + struct.pack("<q", 0x0FFFFFFF)
    )


def archive(members):
    """Returns a zip archive of small stored members. zipfile takes ten times as long."""
    local, central, at = [], [], 0
    for name, content in members:
        name = name.encode()
        fields = struct.pack(
            "<HHHHHIIIHH", 20, 0, 0, 0, 33, zlib.crc32(content), len(content), len(content), len(name), 0
        )
        local.append(b"PK\3\4%b%b%b" % (fields, name, content))
        central.append(b"PK\1\2\24\0%b%b%b" % (fields, struct.pack("<HHHII", 0, 0, 0, 0, at), name))
        at += len(local[-1])
    directory, count = b"".join(central), len(central)
    ends = struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, len(directory), at)
    locator = struct.pack("<IQI", 0, at + len(directory), 1)
    few = min(count, 0xFFFF)
    end = struct.pack("<HHHHIIH", 0, 0, few, few, len(directory), at, 0)
    return b"".join(local) + directory + b"PK\6\6" + ends + b"PK\6\7" + locator + b"PK\5\6" + end


def deflated_archive(members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as target:
        for name, content in members:
            target.writestr(name, content)
    return buffer.getvalue()


def npy(descr, shape, elements):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + elements


def same_members(count, array):
    return ((name + ".npy", array) for name in distinct(count))


def unicode(value):
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def checkpoint(pickle, archive=archive):
    return archive([("a/data.pkl", b"\x80\x02" + pickle + b"."), ("a/data/0", b"")])


def pickled_tensor(name):
    """Returns a view of storage 0. The memo has the storage as 0, the function as 1, an empty OrderedDict (the hooks)
    as 2."""
    return unicode(name) + b"h\x01(h\x00K\x00K\x00\x85K\x01\x85\x89h\x02tR"


def checkpoint_tensors(count):
    storage = (
        b"("
        + unicode("storage")
        + b"ctorch\nByteStorage\n"
        + unicode("0")
        + unicode("cpu")
        + b"K\x00tQq\x000"
        + b"ctorch._utils\n_rebuild_tensor_v2\nq\x010ccollections\nOrderedDict\n)Rq\x020"
    )
    return checkpoint(storage + b"}(" + b"".join(pickled_tensor(name) for name in distinct(count)) + b"u")


def varint(value):
    result = b""
    while value >= 0x80:
        result += bytes([value & 0x7F | 0x80])
        value >>= 7
    return result + bytes([value])


def message(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def onnx(graph):
    return b"\x08\x08" + message(7, graph)


def packed_text(value):
    return b"\xd9" + bytes([len(value)]) + value.encode()


def flax_array(elements):
    content = b"\x93\x91" + bytes([elements]) + packed_text("int8") + b"\xc4" + bytes([elements]) + bytes(elements)
    return b"\xc7" + bytes([len(content), 1]) + content


def flax(count, items):
    """Returns a file with an array, and a list or map of `count` items."""
    kind = b"\xdf" if isinstance(items, dict) else b"\xdd"
    parts = b"".join(packed_text(name) + items[name] for name in items) if isinstance(items, dict) else items
    return b"\x82" + packed_text("w") + flax_array(1) + packed_text("v") + kind + struct.pack(">I", count) + parts


CONFIG = (
    '{"model_type":"llama","hidden_act":"silu","hidden_size":8,"intermediate_size":8,"max_position_embeddings":8,'
    '"num_attention_heads":1,"num_hidden_layers":1,"num_key_value_heads":1,"vocab_size":8,'
    '"rms_norm_eps":1e-5,"rope_theta":10000.0'
)


def directory(**files):
    base = {"config.json": CONFIG + "}", "model.safetensors": safetensors("{}")}
    base.update({name.replace("__", "."): content for name, content in files.items()})
    return base


TENSOR = '{"dtype":"U8","shape":[0],"data_offsets":[0,0]}'
LONG_NAME = "model.layers.{}.block_sparse_moe.experts.{}.w1.weight"

EXPERTS = [f"model.layers.{i // 100}.mlp.experts.{i % 100}.gate_proj.weight" for i in range(100_000)]


def zt1_experts(*digest):
    component = cbor_map([("dtype", text("u8")), ("offset", head(0, 64)), ("length", head(0, 0)), *digest])
    one = zt1_object([("data", component)])
    return zt1([("version", text("1.1.0")), ("objects", cbor_map((name, one) for name in EXPERTS))])


LISTED = {
    "experts.safetensors": lambda: safetensors("{" + ",".join(f'"{name}":{TENSOR}' for name in EXPERTS) + "}"),
    "experts.zt1.zt": zt1_experts,
    "experts.sha256.zt": lambda: zt1_experts(("digest", text("sha256:" + hashlib.sha256(b"").hexdigest()))),
    "experts.zt": lambda: zt2_objects(EXPERTS),
}

FILES = {
    "metadata.safetensors": lambda: safetensors(
        '{"__metadata__":{' + ",".join(f'"{name}":""' for name in distinct(1_000_000)) + "}}"
    ),
    "escaped.safetensors": lambda: safetensors(
        '{"__metadata__":{' + ",".join(f'"\\n{name}":""' for name in distinct(250_000)) + "}}"
    ),
    "metadata_fits.safetensors": lambda: safetensors(
        '{"__metadata__":{' + ",".join(f'"{name}":""' for name in distinct(400_000)) + "}}"
    ),
    "tensors.safetensors": lambda: safetensors(
        "{" + ",".join(f'"{name}":{TENSOR}' for name in distinct(125_000)) + "}"
    ),
    "more.safetensors": lambda: safetensors("{" + ",".join(f'"{name}":{TENSOR}' for name in distinct(150_000)) + "}"),
    "long.safetensors": lambda: safetensors(
        "{" + ",".join(f'"{LONG_NAME.format(i // 512, i % 512)}":{TENSOR}' for i in range(125_000)) + "}"
    ),
    "rank.safetensors": lambda: safetensors(
        '{"a":{"dtype":"U8","shape":[' + "0," * 5_000_000 + '0],"data_offsets":[0,0]}}'
    ),
    "array.safetensors": lambda: safetensors('{"a":[' + "0," * 5_000_000 + "0]}"),
    "lists.safetensors": lambda: safetensors('{"a":[' + "[]," * 5_000_000 + "0]}"),
    "maps.safetensors": lambda: safetensors('{"a":[' + '{"":0},' * 1_500_000 + "0]}"),
    "objects.zt": lambda: zt1_objects(125_000),
    "more.zt": lambda: zt1_objects(150_000),
    "parts.zt": lambda: zt1_objects(1, distinct(500_000)),
    "few_parts.zt": lambda: zt1_objects(40_000, distinct(10)),
    "attributes.zt": lambda: zt1_attributes(cbor_map((name, b"\x00") for name in distinct(1_500_000))),
    "attributes_fit.zt": lambda: zt1_attributes(cbor_map((name, b"\x00") for name in distinct(400_000))),
    "no_text_keys.zt": lambda: zt1_attributes(cbor_map([("a", head(5, 1_500_000) + numbers_and_zeros(1_500_000))])),
    "array.zt": lambda: zt1_attributes(cbor_map([("a", head(4, 15_000_000) + b"\x00" * 15_000_000)])),
    "lists.zt": lambda: zt1_attributes(cbor_map([("a", head(4, 10_000_000) + b"\x80" * 10_000_000)])),
    "rank.zt": lambda: zt1(
        [
            ("version", text("1.1.0")),
            ("objects", cbor_map([("a", cbor_map([("shape", head(4, 10_000_000) + b"\x00" * 10_000_000)]))])),
        ]
    ),
    "pieces.zt": lambda: zt1_attributes(cbor_map([("a", b"\x7f" + b"\x60" * 10_000_000 + b"\xff")])),
    "version_0.zt": lambda: zt0(125_000),
    "unknown_numbers.zt": lambda: zt1_unknown(head(5, 2_000_000) + numbers_and_zeros(2_000_000)),
    "unknown_texts.zt": lambda: zt1_unknown(cbor_map((name, b"\x00") for name in distinct(2_000_000))),
    "unknown_pieces.zt": lambda: zt1_unknown(head(4, 5_000_000) + b"\x7f\xff" * 5_000_000),
    "long_type.zt": lambda: zt10_long_type(5000),
    "long_name.zt": lambda: zt1_long_name(5000),
    "version_0_fields.zt": lambda: b"ZTEN0001".ljust(64, b"\0")
    + b"\x81"
    + (fields := cbor_map((name, b"\x00") for name in distinct(1_000_000)))
    + struct.pack("<Q", len(fields) + 1),
    "version_2.zt": lambda: zt2_objects(distinct(125_000)),
    "version_2_parts.zt": lambda: zt2_objects(["a"], distinct(125_000)),
    "version_2_attributes.zt": lambda: zt2(
        [("attributes", sorted_map((name, b"\x00") for name in distinct(1_000_000))), ("objects", b"\xa0")]
    ),
    "version_2_shards.zt": lambda: zt2(
        [
            ("objects", b"\xa0"),
            (
                "shards",
                sorted_map(
                    (name, sorted_map([("size", head(0, 4096)), ("digest", text("xxh3:0000000000000000"))]))
                    for name in distinct(100_000)
                ),
            ),
        ]
    ),
    "version_2_blob.zt": lambda: zt2(
        [
            (
                "objects",
                sorted_map(
                    [
                        (
                            "a",
                            sorted_map(
                                [
                                    (
                                        "parts",
                                        sorted_map(
                                            [("a", sorted_map([("blob", head(4, 10_000_000) + b"\x00" * 10_000_000)]))]
                                        ),
                                    )
                                ]
                            ),
                        )
                    ]
                ),
            )
        ]
    ),
    "tensors.alt": lambda: alt2_tensors(125_000),
    "layers.safetensors": lambda: safetensors(
        '{"__metadata__":{"poise.card":"{\\"model_type\\":\\"llama\\"}"},'
        + ",".join(f'"{name}":{TENSOR}' for name in distinct(65_536))
        + "}"
    ),
    "layers": lambda: directory(
        config__json=CONFIG.replace('"num_hidden_layers":1', '"num_hidden_layers":65536') + "}",
        model__safetensors=safetensors("{" + ",".join(f'"{name}":{TENSOR}' for name in distinct(125_000)) + "}"),
    ),
    "disjoint": lambda: directory(
        model__safetensors=None,
        **{
            "model__safetensors__index__json": '{"weight_map":{'
            + ",".join(f'"{name}_":"a"' for name in distinct(100_000))
            + "}}",
            "a": safetensors("{" + ",".join(f'"{name}":{TENSOR}' for name in distinct(125_000)) + "}"),
        },
    ),
    "index": lambda: directory(
        model__safetensors=None,
        **{
            "model__safetensors__index__json": '{"weight_map":{'
            + ",".join(f'"{name}":"a"' for name in distinct(1_000_000))
            + "}}",
            "a": safetensors("{}"),
        },
    ),
    "shard_metadata": lambda: directory(
        model__safetensors=None,
        **{
            "model__safetensors__index__json": '{"weight_map":{' + ",".join(f'"t{i}":"s{i}"' for i in range(12)) + "}}",
            **{
                f"s{i}": safetensors(
                    '{"__metadata__":{' + ",".join(f'"{name}{i}":""' for name in distinct(100_000)) + "}}"
                )
                for i in range(12)
            },
        },
    ),
    "shards": lambda: directory(
        model__safetensors=None,
        **{
            "model__safetensors__index__json": '{"weight_map":{'
            + ",".join(f'"{name}":"{name}"' for name in distinct(150_000))
            + "}}"
        },
    ),
    "config": lambda: directory(
        config__json=CONFIG + "," + ",".join(f'"{name}":0' for name in distinct(1_000_000)) + "}"
    ),
    "members.npz": lambda: archive(same_members(100_000, npy("|u1", "(0,)", b""))),
    "texts.npz": lambda: archive(same_members(100_000, npy("|S1", "(9,)", b"a" * 9))),
    "bomb.npz": lambda: deflated_archive(
        [("a.npy", npy("|S100", "(2_000_000,)".replace("_", ""), bytes(200_000_000)))]
    ),
    "members.pt": lambda: archive(
        [("a/data.pkl", b"\x80\x02}.")] + [("a/data/" + name, b"") for name in distinct(100_000)]
    ),
    "tensors.pt": lambda: checkpoint_tensors(250_000),
    "lists.pt": lambda: checkpoint(b"}(" + unicode("a") + b"](" + b"]" * 10_000_000 + b"eu"),
    "numbers.pt": lambda: checkpoint(b"}(" + unicode("a") + b"](" + b"K\x00" * 5_000_000 + b"eu"),
    "memo.pt": lambda: checkpoint(b"}" + b"\x94" * 15_000_000),
    "pickle_bomb.pt": lambda: checkpoint(b"}(" + unicode("a") + b"](" + b"]" * 200_000_000 + b"eu", deflated_archive),
    "initializers.onnx": lambda: onnx(
        b"".join(message(5, b"\x0a\x01\x00\x10\x01" + message(8, name.encode())) for name in distinct(120_000))
    ),
    "inputs.onnx": lambda: onnx(message(11, b"") * 5_000_000),
    "pieces.onnx": lambda: onnx(message(5, b"\x10\x07\x38\x00" + b"\x38\x00" * 10_000_000)),
    "arrays.msgpack": lambda: flax(125_000, {name: flax_array(1) for name in distinct(125_000)}),
    "keys.msgpack": lambda: flax(500_000, {name: b"\xc0" for name in distinct(500_000)}),
    "nils.msgpack": lambda: flax(10_000_000, b"\xc0" * 10_000_000),
    "few_nils.msgpack": lambda: flax(200_000, b"\xc0" * 200_000),
    "long_names.msgpack": lambda: b"\x81\xda\x0f\x00"
    + b"w" * 0x0F00
    + b"\xdd"
    + struct.pack(">I", 100_000)
    + flax_array(1) * 100_000,
    "tokenizer": lambda: directory(tokenizer__model=sentencepiece(149_999)),
    "larger_tokenizer": lambda: directory(tokenizer__model=sentencepiece(1_500_000)),
}


def size_of(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(path, name)) for name in os.listdir(path))


def peak_bytes(command):
    """Returns the largest resident set, and how the command ended. A helper process waits, so that children do not
    mix."""
    script = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,"
        " errors='replace')\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024, done.returncode,"
        " done.stderr.strip()[:150].replace(chr(10), ' '))\n"
    )
    line = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=True).stdout
    peak, code, message = line.rstrip("\n").split(" ", 2)
    return int(peak), int(code), message


def write(root, name, content):
    path = os.path.join(root, name)
    if isinstance(content, dict):
        os.mkdir(path)
        for file, part in content.items():
            if part is not None:
                write(path, file, part)
        return path
    with open(path, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


# Merging a matrix of 200 MB with thin matrices of rank 16 needs memory for the
# thin matrices and for buffers, but not for the matrix.
MERGED_BYTES = 64 << 20
MERGED_SHAPE = (25_000, 4_000)


def merged():
    """Returns a base and an adapter of zeros: files with holes."""

    def zeros(name, tensors):
        entries, begin = [], 0
        for tensor, (dtype, item, shape) in tensors.items():
            end = begin + item * shape[0] * shape[1]
            entries.append(
                f'"{tensor}":{{"dtype":"{dtype}","shape":[{shape[0]},{shape[1]}],' f'"data_offsets":[{begin},{end}]}}'
            )
            begin = end
        return name, safetensors("{" + ",".join(entries) + "}"), begin

    rows, columns = MERGED_SHAPE
    matrix = "model.layers.0.mlp.up_proj"
    return (
        zeros("base.safetensors", {matrix + ".weight": ("BF16", 2, (rows, columns))}),
        zeros(
            "adapter_model.safetensors",
            {
                f"base_model.model.{matrix}.lora_A.weight": ("F32", 4, (16, columns)),
                f"base_model.model.{matrix}.lora_B.weight": ("F32", 4, (rows, 16)),
            },
        ),
    )


def merge_peak(poise, root):
    for name, header, data in merged():
        path = write(root, name, header)
        os.truncate(path, len(header) + data)
    write(root, "adapter_config.json", '{"peft_type": "LORA", "r": 16, "lora_alpha": 16}')
    base, target = os.path.join(root, "base.safetensors"), os.path.join(root, "merged.safetensors")
    return peak_bytes([poise, "convert", base, "-o", target, "--lora", root, "--io", "read", "--quiet"])


def main():
    poise = sys.argv[1]
    wanted = sys.argv[2:]
    faults = 0
    print(f"{'file':28} {'size':>10} {'peak':>10} {'allowed':>10}  exit")
    with tempfile.TemporaryDirectory() as root:
        commands = {name: lambda path: [poise, "inspect", path] for name in {**FILES, **LISTED}}
        builders = {**FILES, **LISTED}
        weights = os.path.join(os.path.dirname(__file__), "../../examples/nano-tiny-llama")
        for kind, lines in (
            ("vocab", distinct(1_000_000)),
            ("merges", [f"{name} {name}" for name in distinct(1_000_000)]),
            ("sparse_vocab", [f"{name} {20 * i + 9}" for i, name in enumerate(distinct(30_000))]),
        ):
            builders[kind + ".txt"] = lambda lines=lines: "\n".join(lines)
            pair = ("vocab", "merges") if "vocab" in kind else ("merges", "vocab")
            commands[kind + ".txt"] = lambda path, pair=pair: [
                poise,
                "run",
                f"{weights}/weights.tllm",
                f"--{pair[0]}",
                path,
                f"--{pair[1]}",
                f"{weights}/{pair[1]}.txt",
                "-p",
                "a",
                "-n",
                "1",
            ]
        for name, build in builders.items():
            if wanted and name not in wanted:
                continue
            path = write(root, name, build())
            size = size_of(path)
            peak, code, message = peak_bytes(commands[name](path))
            more = ALLOWED_BYTES_AT_A_LIMIT if name in AT_A_LIMIT else ALLOWED_BYTES
            allowed = LISTED_BYTES if name in LISTED else ALLOWED_TIMES * size + more
            ok = peak <= allowed and (code == 0 or code == 1 and name not in LISTED)
            faults += not ok
            print(
                f"{name:28} {size / 1e6:8.1f}MB {peak / 1e6:8.1f}MB {allowed / 1e6:8.1f}MB  {code} "
                f"{'' if ok else 'FAULT '}{message}",
                flush=True,
            )
            subprocess.run(["rm", "-rf", path], check=True)
    if not wanted or "merge" in wanted:
        with tempfile.TemporaryDirectory() as root:
            peak, code, message = merge_peak(poise, root)
        ok = peak <= MERGED_BYTES and code == 0
        faults += not ok
        print(
            f"{'merge':28} {2 * MERGED_SHAPE[0] * MERGED_SHAPE[1] / 1e6:8.1f}MB {peak / 1e6:8.1f}MB "
            f"{MERGED_BYTES / 1e6:8.1f}MB  {code} {'' if ok else 'FAULT '}{message}",
            flush=True,
        )
    print(f"{faults} faults")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
