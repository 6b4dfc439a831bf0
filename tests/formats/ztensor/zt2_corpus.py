"""Writes a conformance corpus for zTensor 2, built from the format's rules by code that shares nothing with Poise.

    zt2_corpus.py DIRECTORY

DIRECTORY/cases.txt lists the cases, a line each: expectation, file, a word that a refusal has to hold, and the offset
it has to name; separated by tabs.

    valid     opens; verify finds nothing at all
    warns     opens; verify warns, with the word if there is one, but finds no error
    listed    opens and can be listed, but refuses to be decoded (what it uses is unknown here); verify warns with the
    word broken    opens, but verify finds an error refused   does not open

Needs the tools xxhsum and zstd.
"""
import hashlib
import pathlib
import re
import struct
import subprocess
import sys

MAGIC = b"\x89ZT2\r\n\x1a\n"


class Raw(bytes):
    """CBOR that is written as it stands."""


class Ordered(list):
    """The pairs of a map, in the order they are written in."""


def head(major, argument):
    if argument < 24:
        return bytes([major << 5 | argument])
    for low, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if argument < 1 << 8 * size:
            return bytes([major << 5 | low]) + argument.to_bytes(size, "big")


def encode(value):
    if isinstance(value, Raw):
        return bytes(value)
    if value is None or isinstance(value, bool):
        return {False: b"\xf4", True: b"\xf5", None: b"\xf6"}[value]
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, str):
        data = value.encode("utf-8")
        return head(3, len(data)) + data
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, Ordered):
        return head(5, len(value)) + b"".join(encode(key) + encode(item) for key, item in value)
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(encode, value))
    pairs = sorted((encode(key), encode(item)) for key, item in value.items())
    return head(5, len(pairs)) + b"".join(key + item for key, item in pairs)


def tool(*command, data):
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


def xxh3(data):
    return tool("xxhsum", "-H3", data=data).split()[-1].decode().split("_")[-1]


def footer(offset=0, length=0, digest=0, version=2, reserved=0, magic=MAGIC):
    return struct.pack("<QQQII", offset, length, digest, version, reserved) + magic


def zt2(manifest, blobs=None, at=65536, header=MAGIC, between=b"", **changes):
    """A file; `changes` are to the footer."""
    manifest = manifest if isinstance(manifest, bytes) else encode(manifest)
    data = bytearray(at)
    data[:8] = header
    for offset, blob in (blobs if blobs is not None else {4096: bytes(16)}).items():
        data[offset : offset + len(blob)] = blob
    fields = {"offset": at, "length": len(manifest), "digest": int(xxh3(manifest), 16), **changes}
    return bytes(data) + manifest + between + footer(**fields)


def part(dtype="u8", offset=4096, length=16, **more):
    return {"dtype": dtype, "blob": [offset, length], **more}


def dense(shape=(16,), data=None, **more):
    return {"shape": list(shape), "layout": "dense", "parts": {"data": data or part()}, **more}


def manifest(objects=None, **more):
    return {"objects": {"t": dense()} if objects is None else objects, **more}


def one(tensor, **more):
    return zt2(manifest({"t": tensor}), **more)


def without(mapping, key):
    return {name: value for name, value in mapping.items() if name != key}


def end(distance):
    """The place of an error, in bytes before the end of the file."""
    return lambda data: len(data) - distance


def behind(mark, nth=0):
    """The place of an error: behind the first bytes that are like `mark` (or the second ...)."""

    def find(data):
        found = data.index(mark)
        for _ in range(nth):
            found = data.index(mark, found + 1)
        return found + len(mark)

    return find


# The value of a tensor, of its part data, and of an attribute, in manifests that have one.
TENSOR = behind(b"gobjects\xa1at")
DATA = behind(b"eparts\xa1ddata")
ATTRIBUTE = behind(b"jattributes\xa1aa")


class Corpus:
    def __init__(self, directory):
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.lines = []

    def add(self, expectation, name, data, word="", place=None, shards=()):
        stem = f"{len(self.lines):03}-" + re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        (self.directory / f"{stem}.zt").write_bytes(data)
        for shard, content in dict(shards).items():
            (self.directory / f"{stem}-{shard}.zt").write_bytes(content)
        self.lines.append(f"{expectation}\t{stem}.zt\t{word}\t{place(data) if place else ''}\n")

    def valid(self, name, data, **more):
        self.add("valid", name, data, **more)

    def warns(self, name, data, word="", **more):
        self.add("warns", name, data, word, **more)

    def listed(self, name, data, **more):
        self.add("listed", name, data, **more)

    def broken(self, name, data, word, **more):
        self.add("broken", name, data, word, **more)

    def refused(self, name, data, word, place, **more):
        self.add("refused", name, data, word, place, **more)

    def finish(self):
        (self.directory / "cases.txt").write_text("".join(self.lines))


def container(corpus):
    corpus.valid("one tensor", one(dense(), at=8192))
    corpus.warns("reserved is ignored", zt2(manifest(), at=8192, reserved=7), word="reserved: expected 0, found 7")
    corpus.valid("no tensors", zt2(manifest({}), {}, at=4096))
    corpus.valid("unknown keys", zt2(manifest(zz=1), at=8192))
    corpus.valid("unknown keys that are not text", zt2({"objects": {}, 1: 2}, {}, at=4096))
    corpus.warns("data shard", MAGIC + bytes(4088) + footer())
    corpus.warns("data shard of 48 bytes", MAGIC + footer())
    corpus.refused("47 bytes", (MAGIC + footer())[1:], "", end(0))
    corpus.refused("shard with an offset", MAGIC + footer(offset=4096), "offset", end(32))
    for name, changes, word, place in (
        ("length 0", {"length": 0}, "offset", 32),
        ("offset 0", {"offset": 0}, "offset", 40),
        ("offset and length 0", {"offset": 0, "length": 0}, "hash", 32),
        ("hash", {"digest": 1}, "hash", 24),
        ("version 1", {"version": 1}, "version", 16),
        ("version 3", {"version": 3}, "version", 16),
        ("footer magic", {"magic": b"ZTEN1000"}, "", 8),
        ("huge length", {"length": 2**63}, "length", 32),
        ("huge offset", {"offset": 2**64 - 4096}, "offset", 40),
        ("length behind the footer", {"length": 400}, "manifest_offset", 40),
        ("length above 1 GiB", {"length": 2**30 + 1}, "length", 32),
        ("manifest elsewhere", {"offset": 8192}, "hash", 24),
    ):
        corpus.refused("footer: " + name, zt2(manifest(), **changes), word, end(place))
    # a file of version 1 that is cut off
    corpus.refused("header magic", zt2(manifest(), header=b"ZTEN1000"), "", end(0))
    corpus.refused("manifest not aligned", zt2(manifest(), at=65536 + 64), "4096", end(40))
    corpus.warns("bytes between manifest and footer", zt2(manifest(), at=8192, between=b"x" * 100))
    corpus.warns("bytes between blobs", one(dense(), blobs={4096: bytes(16), 4200: b"x"}, at=8192))
    corpus.warns(
        "a blob nobody refers to", one(dense(), at=4 * 65536), word="no entry of the file refers to these 258032 bytes"
    )
    corpus.warns(
        "a blob of zeros nobody refers to, in a file aligned to 4096",
        one(dense(), at=12288),
        word="no entry of the file refers to these 8176 bytes",
    )
    corpus.warns(
        "a small blob nobody refers to between two",
        zt2(manifest({"a": dense(), "b": dense(data=part(offset=12288))}), {8192: b"blob"}, at=16384),
        word="no entry of the file refers to these 8176 bytes",
    )
    corpus.warns(
        "a blob nobody refers to between two on multiples of 64 KiB",
        zt2(
            manifest({"a": dense(data=part(offset=65536)), "b": dense(data=part(offset=196608))}),
            {131072: b"blob"},
            at=262144,
        ),
        word="no entry of the file refers to these 131056 bytes",
    )
    corpus.valid(
        "a manifest on another multiple than the blobs",
        zt2(manifest({"t": dense(data=part(offset=65536))}), {}, at=65536 + 4096),
    )
    corpus.valid(
        "padding up to 1 MiB",
        zt2(manifest({"a": dense(data=part(offset=1 << 20)), "b": dense(data=part(offset=2 << 20))}), {}, at=3 << 20),
    )
    corpus.warns(
        "padding up to 1 MiB that is not zero",
        zt2(
            manifest({"a": dense(data=part(offset=1 << 20)), "b": dense(data=part(offset=2 << 20))}),
            {(2 << 20) - 1: b"x"},
            at=3 << 20,
        ),
        word="no entry of the file refers to these bytes, which are not zero",
    )
    corpus.warns(
        "padding that is not zero where no blob can begin",
        one(dense(), blobs={4096: bytes(16), 5000: b"x"}, at=8192),
        word="the padding is not zero",
    )
    corpus.warns(
        "a blob nobody refers to in what may be padding",
        one(dense(), blobs={4096: bytes(16), 8192: b"x"}),
        word="no entry of the file refers to these bytes, which are not zero",
    )
    corpus.valid("a manifest on the next multiple of 64 KiB", one(dense()))


def cbor(corpus):
    encoded = encode(manifest())

    def attribute(text):
        return zt2(manifest({}, attributes={"a": Raw(bytes.fromhex(text))}), {}, at=4096)

    corpus.refused("cbor: a byte behind", zt2(encoded + b"\0"), "manifest", end(41))
    corpus.refused("cbor: cut off", zt2(encoded[:-1]), "manifest", behind(b"flayout"))
    corpus.refused("cbor: empty", zt2(b""), "", end(32))
    corpus.refused("root is a list", zt2([1]), "map", end(42))
    corpus.refused("root is a tag", zt2(bytes.fromhex("c000")), "tag", end(42))
    corpus.refused("objects is a list", zt2({"objects": []}), "objects", end(41))
    corpus.refused("no objects", zt2({"attributes": {}}), "objects", end(40))
    corpus.refused("keys not sorted", zt2(Ordered([("objects", {"t": dense()}), ("a", 1)])), "", end(43))
    corpus.refused("a key twice", zt2(Ordered([("objects", {}), ("objects", {})])), "objects", behind(b"gobjects\xa0"))
    corpus.refused(
        "a tensor twice", zt2(manifest(Ordered([("t", dense()), ("t", dense())]))), "t", behind(b"layoutedense")
    )
    corpus.refused(
        "tensors not sorted", zt2(manifest(Ordered([("u", dense()), ("t", dense())]))), "t", behind(b"layoutedense")
    )
    corpus.valid("short keys first", zt2(manifest({"zz": dense(), "aaa": dense()}), at=8192))
    corpus.refused(
        "keys sorted without their lengths",
        zt2(manifest(Ordered([("aaa", dense()), ("zz", dense())]))),
        "zz",
        behind(b"layoutedense"),
    )
    # longer heads than needed
    for text in (
        "1800 1817 190001 1900ff 1a0000ffff 1b00000000ffffffff 3800 5801aa 7800 b800 9800 "
        "7f6161ff 5f4161ff 9fff bfff "  # indefinite lengths
        "c000 c11a00000000 d9d9f700 "  # tags
        # floats
        "fb3ff0000000000000 fa3f800000 fa7fc00000 f97e01 f9fe00 fb7ff8000000000000 fa7f800000 "
        "fb7ff0000000000000 fb47efffffe0000000 "
        "f0 f7 f818 f8ff e0 "  # simple values, undefined
        "1c 3f ff "  # reserved heads, a stray break
        "62c328 61ff 63eda080 64f4908080 62c080 "  # no UTF-8
        "5b7fffffffffffffff 7b7fffffffffffffff "
    ).split():  # lengths no file can hold
        corpus.refused("cbor: " + text, attribute(text), "", ATTRIBUTE)
    for text in ("9b0000000fffffffff", "bb7fffffffffffffff"):  # counts no file can hold: they fail behind their heads
        corpus.refused("cbor: " + text, attribute(text), "", end(40))
    for text in ("a2616101616101", "a2616201616101"):  # keys twice, not sorted
        corpus.refused("cbor: " + text, attribute(text), "", end(43))
    for text in (
        "00 17 1818 1903e8 1a00010000 1bffffffffffffffff 20 37 3818 3bffffffffffffffff 40 41aa 60 80 a0 f4 f5 f6 "
        "f93c00 f97c00 f9fc00 f97e00 f98000 f90001 f90400 fa47c35000 fa00000001 fb3ff199999999999a "
        "fb0000000000000001 a201020304"
    ).split():
        corpus.valid("cbor: " + text, attribute(text))
    corpus.valid("30 levels of arrays below the third", attribute("81" * 29 + "00"))
    corpus.refused("40 levels", attribute("81" * 40 + "00"), "deep", behind(b"jattributes\xa1aa" + b"\x81" * 31))
    corpus.refused(
        "100000 levels", attribute("81" * 100000 + "00"), "deep", behind(b"jattributes\xa1aa" + b"\x81" * 31)
    )
    corpus.refused("attribute key is a number", zt2(manifest(attributes={1: 2})), "attributes", end(42))
    corpus.refused("attributes are a list", zt2(manifest(attributes=[1])), "attributes", end(42))
    corpus.refused("attributes are a number", zt2(manifest(attributes=7)), "attributes", end(41))
    corpus.refused("a tensor's attributes are a number", one(dense(attributes=1)), "attributes", end(41))


def names(corpus):
    for name in ("", "x" * 1025, "a\0b"):
        word = "name"
        corpus.refused("tensor name " + name[:3], zt2(manifest({name: dense()})), word, behind(b"gobjects\xa1"))
        corpus.refused(
            "part name " + name[:3],
            one({"shape": [16], "layout": "foo.x/1", "parts": {name: part()}}),
            word,
            behind(b"eparts\xa1"),
        )
        corpus.refused(
            "attribute name " + name[:3], zt2(manifest(attributes={name: 1})), word, behind(b"jattributes\xa1")
        )
    corpus.valid("name of 1024 bytes", zt2(manifest({"x" * 1024: dense()}), at=8192))
    corpus.valid("names are not paths", zt2(manifest({"../a b\n": dense()}), at=8192))


def tensors(corpus):
    for key in ("shape", "layout", "parts"):
        corpus.refused(f"no {key}", one(without(dense(), key)), key, TENSOR)
    corpus.refused("no parts in parts", one(dense() | {"parts": {}}), "parts", TENSOR)
    corpus.refused("layout is a number", one(dense() | {"layout": 3}), "layout", behind(b"flayout"))
    corpus.refused("shape is a map", one(dense() | {"shape": {}}), "shape", behind(b"eshape"))
    corpus.refused("negative dimension", one(dense([-1])), "shape", behind(b"eshape\x81"))
    corpus.refused("dimension 16.0", one(dense([Raw(b"\xf9\x4c\x00")])), "shape", behind(b"eshape\x81"))
    corpus.valid("rank 64", one(dense([1] * 63 + [16]), at=8192))
    corpus.refused("rank 65", one(dense([1] * 64 + [16])), "shape", behind(b"\1" * 64))
    corpus.refused("product above 64 bits", one(dense([2**32, 2**32]) | {"layout": "foo.x/1"}), "shape", TENSOR)
    corpus.refused("product above 64 bits in two steps", one(dense([2**64 - 1, 2])), "shape", TENSOR)
    corpus.valid("scalar", one(dense([], part(length=1)), at=8192, blobs={4096: b"\1"}))
    corpus.refused("a byte short", one(dense([17])), "data", TENSOR)
    corpus.refused("a byte over", one(dense([15])), "data", TENSOR)
    corpus.refused("dense with two parts", one(dense() | {"parts": {"data": part(), "more": part()}}), "data", TENSOR)
    corpus.refused("dense without data", one(dense() | {"parts": {"values": part()}}), "data", TENSOR)
    corpus.valid("no elements", one(dense([0, 4], part("f32", 4096, 0)), blobs={}, at=4096))
    corpus.listed(
        "unknown layout", one(dense() | {"layout": "acme.x/1"}, at=8192), word='the layout "acme.x/1" is not known'
    )
    corpus.listed(
        "unknown layout of a plain name",
        one(dense() | {"layout": "acme"}, at=8192),
        word='the layout "acme" is not known',
    )


def parts(corpus):
    for key in ("dtype", "blob"):
        corpus.refused(f"part without {key}", one(dense(data=without(part(), key))), key, DATA)
    for dtype in ("bool", "float32", "F32", "f4", "f8_e4m3", "u128", "", 5):
        corpus.refused(
            f"dtype {dtype}",
            one(dense(data=part() | {"dtype": dtype})),
            "dtype",
            behind(b"edtype") if dtype == 5 else DATA,
        )
    for blob in ([4096], [4096, 16, 1], [0, 4096, 16], {}, "a"):
        corpus.refused(f"blob {blob}", one(dense(data={"dtype": "u8", "blob": blob})), "blob", behind(b"dblob"))
    corpus.refused(
        "blob of a negative length", one(dense(data=part(length=-1))), "blob", behind(b"dblob\x82\x19\x10\x00")
    )
    for blob in (
        [64, 16],
        [0, 16],
        [4097, 16],
        [2048, 16],
        [65536, 16],
        [4096, 70000],
        [69632, 16],
        [2**64 - 4096, 4096],
        [4096, 2**64 - 1],
        [8192, 2**63],
    ):
        corpus.refused(f"blob {blob}", one(dense(data={"dtype": "u8", "blob": blob})), "blob", DATA)
    corpus.refused("empty blob behind the end", one(dense([0], part(offset=2**40, length=0))), "blob", DATA)
    corpus.refused("empty blob at 0", one(dense([0], part(offset=0, length=0))), "blob", DATA)
    corpus.valid(
        "empty blob in another",
        zt2(manifest({"a": dense([8192], part(length=8192)), "b": dense([0], part(offset=8192, length=0))}), at=12288),
    )
    corpus.valid("the same blob twice", zt2(manifest({"a": dense(), "b": dense()}), at=8192))
    corpus.refused(
        "blobs overlap",
        zt2(manifest({"a": dense([8192], part(length=8192)), "b": dense([16], part(offset=8192))})),
        "overlap",
        behind(b"eparts\xa1ddata", 1),
    )
    corpus.refused(
        "blobs begin together", zt2(manifest({"a": dense(), "b": dense([8], part(length=8))})), "overlap", DATA
    )


def digests(corpus):
    zeros = bytes(16)
    right, sha256 = xxh3(zeros), hashlib.sha256(zeros).hexdigest()
    corpus.valid("xxh3", one(dense(data=part(digest="xxh3:" + right)), at=8192))
    corpus.valid("sha256", one(dense(data=part(digest="sha256:" + sha256)), at=8192))
    corpus.broken("another xxh3", one(dense(data=part(digest="xxh3:" + "0" * 16))), "xxh3")
    corpus.broken("another sha256", one(dense(data=part(digest="sha256:" + "0" * 64))), "sha256")
    for digest in (
        "xxh3:00FF00FF00FF00FF",
        "xxh3:" + right[1:],
        "xxh3:" + right + "0",
        "sha256:" + sha256[1:],
        "sha256:" + "A" * 64,
        "xxh3",
        "",
        "xxh3:",
        "XXH3:" + right,
        5,
    ):
        corpus.refused(f"digest {digest}"[:20], one(dense(data=part(digest=digest))), "digest", behind(b"fdigest"))
    # version 2 names none of these
    for digest in ("md5:" + "0" * 32, "crc32c:0xDEADBEEF", "crc32c:deadbeef", "blake3:AbC="):
        corpus.warns(
            f"digest of an unknown kind {digest[:10]}",
            one(dense(data=part(digest=digest)), at=8192),
            word=f"the digest {digest} is of a kind that Poise cannot compute",
        )


def types(corpus):
    for kind, elements, dtype, size in (
        ("bool", 16, "u8", 16),
        ("f8_e4m3fn", 16, "u8", 16),
        ("f8_e5m2", 16, "u8", 16),
        ("f8_e4m3fnuz", 16, "u8", 16),
        ("f8_e5m2fnuz", 16, "u8", 16),
        ("f8_e8m0", 16, "u8", 16),
        ("f4_e2m1", 32, "u8", 16),
        ("f4_e2m1", 31, "u8", 16),
        ("f4_e2m1", 5, "u8", 3),
        ("complex64", 2, "f32", 16),
        ("complex128", 1, "f64", 16),
    ):
        corpus.valid(
            f"{kind} {elements}",
            one(dense([elements], part(dtype, length=size, type=kind)), blobs={4096: bytes(size)}, at=8192),
        )
    for kind, elements, dtype in (
        ("bool", 16, "i8"),
        ("bool", 8, "u16"),
        ("f8_e5m2", 16, "i8"),
        ("complex64", 2, "f64"),
        ("complex128", 2, "f32"),
    ):
        corpus.refused(f"{kind} in {dtype}", one(dense([elements], part(dtype, type=kind))), "type", DATA)
    for kind, elements, dtype in (("f4_e2m1", 33, "u8"), ("f4_e2m1", 30, "u8"), ("complex64", 4, "f32")):
        corpus.refused(
            f"{elements} of {kind} in 16 bytes", one(dense([elements], part(dtype, type=kind))), "data", TENSOR
        )
    corpus.listed(
        "unknown type",
        one(dense([999], part(type="x.future/1")), at=8192),
        word='data: the type "u8:x.future/1" is not known',
    )
    corpus.listed(
        "unknown type over f32",
        one(dense([999], part("f32", type="vec2")), at=8192),
        word='data: the type "f32:vec2" is not known',
    )
    corpus.broken("bool 2", one(dense(data=part(type="bool")), blobs={4096: bytes(15) + b"\2"}), "neither 0 nor 1")
    corpus.broken(
        "half a byte behind the end",
        one(dense([31], part(type="f4_e2m1")), blobs={4096: bytes(15) + b"\x10"}),
        "unused half",
    )


def zstd(corpus):
    def frame(data, checksum=True):
        return tool("zstd", "-q", "-c", "--check" if checksum else "--no-check", data=data)

    def seekable(frames, sizes=None, descriptor=0, magic=0x8F92EAB1, skippable=0x184D2A5E):
        table = b"".join(struct.pack("<II", len(data), size) for data, size in sizes or frames)
        table += struct.pack("<IBI", len(frames), descriptor, magic)
        return b"".join(data for data, _ in frames) + struct.pack("<II", skippable, len(table)) + table

    def encoded(blob, decoded, length=None, dtype="u8", width=1):
        described = part(
            dtype,
            length=len(blob),
            encoding="zt.zstd-seekable/1",
            decoded_length=len(decoded) if length is None else length,
            digest="xxh3:" + xxh3(decoded),
        )
        return one(
            dense([len(decoded) // width], described), blobs={4096: blob}, at=(4096 + len(blob) + 4095) // 4096 * 4096
        )

    def cut(decoded, size):
        return seekable(
            [(frame(decoded[at : at + size]), len(decoded[at : at + size])) for at in range(0, len(decoded), size)]
        )

    data = bytes(range(200)) * 10
    whole = frame(data)
    corpus.refused(
        "encoding without decoded_length", one(dense(data=part(encoding="zt.zstd-seekable/1"))), "decoded_length", DATA
    )
    corpus.refused(
        "unknown encoding without decoded_length", one(dense(data=part(encoding="x.z/1"))), "decoded_length", DATA
    )
    corpus.refused("decoded_length without encoding", one(dense(data=part(decoded_length=16))), "decoded_length", DATA)
    corpus.listed("unknown encoding", one(dense(data=part(encoding="acme/1", decoded_length=16)), at=8192))
    corpus.valid("zstd: one frame", encoded(seekable([(whole, 2000)]), data))
    corpus.valid(
        "zstd: three frames",
        encoded(seekable([(frame(data[:900]), 900), (frame(data[900:1800]), 900), (frame(data[1800:]), 200)]), data),
    )
    corpus.valid("zstd: nothing", encoded(seekable([]), b""))
    corpus.valid("zstd: nothing in a frame", encoded(seekable([(frame(b""), 0)]), b""))
    corpus.refused(
        "zstd: nothing in two frames",
        encoded(seekable([(frame(b""), 0)] * 2), b""),
        "2 frames are too many for 0 bytes",
        lambda data: 4096,
    )
    tiny = b"\x7f\x00\x00\x80" * 500  # read from another byte on, these numbers are infinite or no numbers
    for size in (3, 1001, 1999):
        corpus.valid(f"zstd: f32 in frames of {size}", encoded(cut(tiny, size), tiny, dtype="f32", width=4))
    large = tiny * 1000
    corpus.valid(
        "zstd: f32 in large frames that are not whole numbers",
        encoded(cut(large, 300_001), large, dtype="f32", width=4),
    )
    nan = tiny[:1600] + b"\x00\x00\xc0\x7f" + tiny[1604:]
    corpus.warns(
        "zstd: the 400th number in frames of 1001",
        encoded(cut(nan, 1001), nan, dtype="f32", width=4),
        "element 400 is not finite",
    )
    corpus.refused("zstd: decoded_length is another", encoded(seekable([(whole, 2000)]), data, 1999), "data", TENSOR)
    flipped = bytearray(seekable([(whole, 2000)]))
    flipped[len(whole) - 1] ^= 1
    full, larger = bytes(16 << 20), bytes((16 << 20) + 1)
    corpus.valid("zstd: a frame of 16 MiB", encoded(seekable([(frame(full), len(full))]), full))
    for name, blob, decoded in (
        ("no checksum", seekable([(frame(data, False), 2000)]), data),
        (
            "frames of unequal size",
            seekable([(frame(data[:800]), 800), (frame(data[800:1800]), 1000), (frame(data[1800:]), 200)]),
            data,
        ),
        ("no seek table", whole, data),
        ("the table lies of the content", seekable([(whole, 2000)], sizes=[(whole, 1999)]), data),
        ("the table lies of the frames", seekable([(whole, 2000)], sizes=[(whole + b"x", 2000)]), data),
        ("a frame of fewer bytes", seekable([(frame(data[:1999]), 2000)]), data),
        ("a frame of more bytes", seekable([(frame(data + b"x"), 2000)]), data),
        ("magic of the table", seekable([(whole, 2000)], magic=1), data),
        ("magic of the skippable frame", seekable([(whole, 2000)], skippable=0x184D2A50), data),
        ("reserved bits", seekable([(whole, 2000)], descriptor=0x7C), data),
        ("a flipped checksum", bytes(flipped), data),
        ("bytes before the table", whole + b"junk" + seekable([(whole, 2000)])[len(whole) :], data),
        ("two frames as one", seekable([(frame(data[:1000]) + frame(data[1000:]), 2000)]), data),
        (
            "an empty frame between",
            seekable([(frame(data[:1000]), 1000), (frame(b""), 0), (frame(data[1000:]), 1000)]),
            data,
        ),
        ("a frame above 16 MiB", seekable([(frame(larger), len(larger))]), larger),
    ):
        corpus.broken("zstd: " + name, encoded(blob, decoded), "")


def sparse(corpus):
    width = {"u32": "I", "u64": "Q", "i64": "q"}

    def numbers(dtype, values):
        return struct.pack(f"<{len(values)}{width[dtype]}", *values)

    def csr(shape=(2, 3), indptr=(0, 1, 3), indices=(2, 0, 1), values=3, dtype="u32", other=None, drop=None):
        pointers, columns = numbers(dtype, indptr), numbers(other or dtype, indices)
        roles = {
            "values": part("f32", 4096, 4 * values),
            "indptr": part(dtype, 8192, len(pointers)),
            "indices": part(other or dtype, 12288, len(columns)),
        }
        tensor = {"shape": list(shape), "layout": "zt.sparse_csr/1", "parts": without(roles, drop)}
        return one(tensor, blobs={4096: bytes(4 * values), 8192: pointers, 12288: columns}, at=16384)

    corpus.valid("csr", csr())
    corpus.valid("csr of u64", csr(dtype="u64"))
    corpus.refused("csr of i64", csr(dtype="i64"), "u64", TENSOR)
    # Parts of unknown types have no size to check, but their roles are those of the layout.
    codebook = {"shape": [32], "layout": "poise.codebook/1", "attributes": {"block": 16}}
    corpus.refused(
        "codebook without its numbers", one({**codebook, "parts": {"data": part(type="mystery")}}), "codebook", TENSOR
    )
    corpus.refused("csr of u32 and u64", csr(other="u64"), "u32", TENSOR)
    corpus.refused("csr of rank 3", csr(shape=(2, 3, 1)), "rank", TENSOR)
    corpus.refused("csr of rank 1", csr(shape=(6,)), "rank", TENSOR)
    corpus.refused("csr without indptr", csr(drop="indptr"), "indptr", TENSOR)
    corpus.refused("csr: indptr of two", csr(indptr=(0, 3)), "indptr", TENSOR)
    corpus.refused("csr: four values for three indices", csr(values=4), "values", TENSOR)
    corpus.refused("csr: two values for three indices", csr(values=2), "values", TENSOR)
    for name, arrays, word in (
        ("begins with 1", {"indptr": (1, 1, 3)}, "indptr"),
        ("ends with 2", {"indptr": (0, 1, 2)}, "indptr"),
        ("falls", {"indptr": (0, 4, 3)}, "indptr"),
        ("column 3 of 3", {"indices": (3, 0, 1)}, "indices"),
        ("a column twice", {"indices": (2, 1, 1)}, "indices"),
        ("columns fall", {"indices": (2, 1, 0)}, "indices"),
    ):
        corpus.broken("csr: " + name, csr(**arrays), word)

    def coo(shape=(2, 3), coords=(0, 1, 1, 2, 0, 1), dtype="u32"):
        data = numbers(dtype, coords)
        roles = {"values": part("f32", 4096, 12), "coords": part(dtype, 8192, len(data))}
        return one(
            {"shape": list(shape), "layout": "zt.sparse_coo/1", "parts": roles},
            blobs={4096: bytes(12), 8192: data},
            at=12288,
        )

    corpus.valid("coo", coo())
    corpus.valid("coo in another order", coo(coords=(1, 0, 1, 0, 2, 1)))
    corpus.valid("coo of rank 1", coo(shape=(6,), coords=(0, 3, 5)))
    corpus.refused("coo of rank 0", coo(shape=()), "rank", TENSOR)
    corpus.refused("coo: five coordinates", coo(coords=(0, 1, 1, 2, 0)), "coords", TENSOR)
    corpus.refused("coo of i64", coo(dtype="i64"), "u64", TENSOR)
    corpus.broken("coo: row 2 of 2", coo(coords=(0, 2, 1, 2, 0, 1)), "coords")
    corpus.broken("coo: a cell twice", coo(coords=(0, 0, 1, 2, 2, 1)), "coords")


def quantized(corpus):
    plain = {
        "bits": 4,
        "axis": 1,
        "group_size": 16,
        "packing": {"word": "u8", "order": "lsb_first", "per_word": 2},
        "scale_form": "f16_factors",
        "zero_point": {"form": "none"},
    }
    tensor_zeros = {"form": "tensor", "packing": "plain"}

    def group(
        shape=(2, 32), data=32, scales=8, zeros=None, word="u8", scale=("f16", None), drop=None, more=None, **changes
    ):
        roles = {
            "data": part(word, 4096, data),
            "scales": part(scale[0], 8192, scales, **({"type": scale[1]} if scale[1] else {})),
        }
        if more:
            roles[more] = roles["data"]
        blobs = {4096: bytes(data), 8192: bytes(scales)}
        if zeros is not None:
            roles["zeros"] = part("f16", 12288, zeros)
            blobs[12288] = bytes(zeros)
        tensor = {
            "shape": list(shape),
            "layout": "zt.quant_group/1",
            "parts": roles,
            "attributes": without({**plain, **changes}, drop),
        }
        return one(tensor, blobs=blobs, at=16384 if zeros is not None else 12288)

    corpus.valid("groups", group())
    corpus.valid("groups: implied zero", group(zero_point={"form": "implied", "value": 8}))
    corpus.valid("groups: zeros", group(zeros=8, zero_point=tensor_zeros))
    corpus.valid("groups: along axis 0", group(axis=0, group_size=2, scales=64))
    corpus.valid("groups: high bits first", group(packing={"word": "u8", "order": "msb_first", "per_word": 2}))
    corpus.valid("groups: f32 factors stored as f16", group(scale_form="f32_factors"))
    corpus.valid("groups: exponents", group(scales=4, scale=("u8", "f8_e8m0"), scale_form="e8m0_exponent"))
    corpus.valid(
        "groups: words of 32 bits", group(word="u32", packing={"word": "u32", "order": "lsb_first", "per_word": 8})
    )
    corpus.valid(
        "groups: signed words", group(word="i32", packing={"word": "u32", "order": "lsb_first", "per_word": 8})
    )
    corpus.valid("groups: a scale for each row", group(axis=0, group_size=0, scales=4))
    corpus.valid("groups: a scale for each code", group(axis=0, group_size=0, scales=128))
    for key in plain:
        corpus.refused(f"groups: no {key}", group(drop=key), key, TENSOR)
    for name, changes, word in (
        ("7 bits", {"bits": 7}, "bits"),
        ("0 bits", {"bits": 0}, "bits"),
        ("1 bit", {"bits": 1}, "bits"),
        ("axis 2 of 2", {"axis": 2}, "axis"),
        ("3 bits in u8", {"bits": 3}, "bits: expected 2, 4 or 8, found 3"),
        ("5 bits", {"bits": 5}, "bits: expected 2, 4 or 8, found 5"),
        ("6 bits", {"bits": 6}, "bits: expected 2, 4 or 8, found 6"),
        ("groups of 15", {"group_size": 15}, "group_size"),
        ("another order", {"packing": {"word": "u8", "order": "x", "per_word": 2}}, "order"),
        ("3 in a byte", {"packing": {"word": "u8", "order": "lsb_first", "per_word": 3}}, "per_word"),
        ("signed word", {"packing": {"word": "i8", "order": "lsb_first", "per_word": 2}}, "word"),
        ("words of another type", {"packing": {"word": "u32", "order": "lsb_first", "per_word": 8}}, "32 bits"),
        ("another scale_form", {"scale_form": "x"}, "scale_form"),
        ("exponents that are f16", {"scale_form": "e8m0_exponent"}, "scales"),
        ("another zero_point", {"zero_point": {"form": "x"}}, "zero_point"),
        ("implied without value", {"zero_point": {"form": "implied"}}, "zero_point"),
        ("zeros without packing", {"zero_point": {"form": "tensor"}, "zeros": 8}, "packing"),
        ("zeros missing", {"zero_point": tensor_zeros}, "zeros"),
        ("zeros too many", {"zeros": 8}, "zeros"),
        ("zeros too short", {"zero_point": tensor_zeros, "zeros": 6}, "zeros"),
        ("scales too short", {"scales": 6}, "scales"),
        ("data too short", {"data": 31}, "tensor t: data: expected"),
        ("data of f32", {"word": "f32"}, "tensor t: data: expected words"),
        ("packing as in version 1", {"packing": "2_per_u8"}, "packing: expected a map"),
        ("version 1's role, too", {"more": "packed_weight"}, "packed_weight"),
        ("scales of u16", {"scale": ("u16", None)}, "scales"),
    ):
        corpus.refused("groups: " + name, group(**changes), word, TENSOR)

    def mx(shape=(2, 32), data=64, scales=2, kind="f8_e4m3fn", exponent="f8_e8m0", drop=None, **changes):
        attributes = without({"block_size": 32, "axis": 1, "scale_form": "e8m0_exponent", **changes}, drop)
        element = part("u8", 4096, data, type=kind) if kind else part("i8", 4096, data)
        roles = {"data": element, "scales": part("u8", 8192, scales, **({"type": exponent} if exponent else {}))}
        tensor = {"shape": list(shape), "layout": "zt.mx/1", "parts": roles, "attributes": attributes}
        return one(tensor, blobs={4096: bytes(data), 8192: b"\x7f" * scales}, at=12288)

    corpus.valid("mx", mx())
    corpus.valid("mx of f4", mx(data=32, kind="f4_e2m1"))
    corpus.valid("mx of i8", mx(kind=None))
    corpus.valid("mx without axis", mx(drop="axis"))
    corpus.valid("mx without scale_form", mx(drop="scale_form"))
    for name, changes, word in (
        ("three scales", {"scales": 3}, "scales"),
        ("blocks of 0", {"block_size": 0}, "block_size"),
        ("blocks of 1", {"block_size": 1}, "block_size"),
        ("blocks of 31", {"block_size": 31}, "block_size"),
        ("no block_size", {"drop": "block_size"}, "block_size"),
        ("axis 2", {"axis": 2}, "axis"),
        ("another scale_form", {"scale_form": "f32_factors"}, "scale_form"),
        ("scales without their type", {"exponent": None}, "f8_e8m0"),
        ("data of bool", {"kind": "bool"}, "bool"),
    ):
        corpus.refused("mx: " + name, mx(**changes), word, TENSOR)

    def gguf(data=34, drop=None, more=None, layout="gguf.q8_0/1", shape=(32,), **changes):
        attributes = without({"elems_per_block": 32, "block_bytes": 34, **changes}, drop)
        return one(
            {
                "shape": list(shape),
                "layout": layout,
                "parts": {"data": part("u8", 4096, data, **(more or {}))},
                "attributes": attributes,
            },
            blobs={4096: bytes(data)},
            at=8192,
        )

    corpus.valid("gguf", gguf())
    columns = "poise.q8_0.columns/1"
    corpus.valid("blocks of columns", gguf(layout=columns, shape=(32, 1)))
    for name, shape in (
        ("rows", (1, 32)),
        ("no matrix", (32,)),
        ("three dimensions", (32, 1, 1)),
        ("half a column", (16, 2)),
    ):
        corpus.refused("blocks of columns: " + name, gguf(layout=columns, shape=shape), "columns", TENSOR)
    corpus.refused(
        "blocks of columns: no elems_per_block",
        gguf(layout=columns, shape=(32, 1), drop="elems_per_block"),
        "elems_per_block",
        TENSOR,
    )
    corpus.listed("gguf of an unknown type", gguf(layout="gguf.q9_9/1"))
    for name, changes, word in (
        ("33 bytes", {"data": 33}, "data"),
        ("0 elements", {"elems_per_block": 0}, "elems_per_block"),
        ("0 bytes", {"block_bytes": 0}, "block_bytes"),
        ("no elems_per_block", {"drop": "elems_per_block"}, "elems_per_block"),
        ("a type", {"more": {"type": "bool"}}, "u8"),
    ):
        corpus.refused("gguf: " + name, gguf(**changes), word, TENSOR)


def shards(corpus):
    content = MAGIC + bytes(4088) + b"\1" * 16 + footer()

    def root(table="a", reference="a", size=None, digest=None, offset=4096, **table_changes):
        described = {
            "size": len(content) if size is None else size,
            "digest": digest or "xxh3:" + xxh3(content),
            **table_changes,
        }
        objects = {"t": dense(data=part(offset=offset, shard=reference))}
        return zt2(manifest(objects, **({"shards": {table: described}} if table is not None else {})), {}, at=4096)

    beside = {"a": content}
    corpus.valid("shard", root(), shards=beside)
    corpus.valid(
        "shard and own blobs",
        zt2(
            {
                "objects": {"here": dense(), "there": dense(data=part(shard="a"))},
                "shards": {"a": {"size": len(content), "digest": "xxh3:" + xxh3(content)}},
            },
            at=8192,
        ),
        shards=beside,
    )
    corpus.broken("shard is not there", root(), "shard")
    corpus.broken("shard with another digest", root(digest="xxh3:" + "0" * 16), "shard", shards=beside)
    corpus.refused(
        "shard with another version",
        root(),
        "version",
        lambda data: len(content) - 16,
        shards={"a": content[:-16] + b"\3" + content[-15:]},
    )
    corpus.refused(
        "shard of another size",
        root(size=len(content) + 4096),
        "needs 8248 bytes",
        lambda data: len(content),
        shards=beside,
    )
    corpus.refused("shard not in the table", root(reference="b"), "shard", DATA)
    corpus.refused("no table of shards", root(table=None), "shard", DATA)
    corpus.refused("blob behind the shard's end", root(offset=8192), "blob", DATA)
    corpus.refused("shard of 47 bytes", root(size=47), "size", behind(b"fshards\xa1aa"))
    corpus.refused("shard whose size is text", root(size="x"), "size", behind(b"dsize"))
    for name in ("", ".a", "a/b", "..", "../etc/passwd", "x" * 65, "a b", "\u00e9"):
        corpus.refused("shard name " + name[:5], root(table=name, reference=name), "shard", behind(b"fshards\xa1"))
    digest = "xxh3:" + xxh3(content)
    corpus.refused(
        "shard key is a number",
        zt2({"objects": {}, "shards": {1: {"size": 4152, "digest": digest}}}, {}),
        "shards",
        behind(b"fshards\xa1"),
    )
    corpus.refused(
        "shard without size",
        zt2({"objects": {}, "shards": {"a": {"digest": digest}}}, {}),
        "size",
        behind(b"fshards\xa1aa"),
    )
    corpus.refused(
        "shard without digest",
        zt2({"objects": {}, "shards": {"a": {"size": 4152}}}, {}),
        "digest",
        behind(b"fshards\xa1aa"),
    )
    corpus.refused(
        "blobs overlap in a shard",
        zt2(
            {
                "objects": {
                    "a": dense([8192], part(length=8192, shard="a")),
                    "b": dense(data=part(offset=8192, shard="a")),
                },
                "shards": {"a": {"size": 1 << 20, "digest": digest}},
            },
            {},
        ),
        "overlap",
        behind(b"eparts\xa1ddata", 1),
    )


def main():
    corpus = Corpus(sys.argv[1])
    for section in (container, cbor, names, tensors, parts, digests, types, zstd, sparse, quantized, shards):
        section(corpus)
    corpus.finish()


main()
