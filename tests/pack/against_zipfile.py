"""Poise reads archives that Python's zipfile writes, with all of its options. It refuses archives in which another
reader would find other members.

    against_zipfile.py PATH/TO/poise
"""
import io
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import zipfile
import zlib

POISE = sys.argv[1]


def array(*numbers):
    """Returns an .npy file of float32, by NumPy's description of the format."""
    text = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % len(numbers)
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + struct.pack(f"<{len(numbers)}f", *numbers)


ONE, TWO = array(1, 2, 3), array(*range(1000))


class Stream(io.RawIOBase):
    """Acts as a pipe, so that zipfile writes sizes and checksums after the bytes."""

    def __init__(self):
        self.bytes = b""

    def writable(self):
        return True

    def seekable(self):
        return False

    def write(self, some):
        self.bytes += bytes(some)
        return len(some)


def archive(members, streamed=False, zip64=False, method=zipfile.ZIP_STORED, comment=b""):
    target = Stream() if streamed else io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as file:
        file.comment = comment
        for name, content in members:
            with file.open(name, "w", force_zip64=zip64) as member:
                member.write(content)
    return target.bytes if streamed else target.getvalue()


def aligned(extra):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as file:
        info = zipfile.ZipInfo("one.npy")
        info.extra = extra
        file.writestr(info, ONE)
    return target.getvalue()


def tensors(path):
    done = subprocess.run([POISE, "inspect", "--json", path], capture_output=True, text=True)
    assert done.returncode in (0, 1), done
    if done.returncode == 1:
        return None, done.stderr
    return [tensor["name"] for tensor in json.loads(done.stdout)["tensors"]], ""


MEMBERS = [("one.npy", ONE), ("folder/two.npy", TWO)]
NAMES = ["one", "folder/two"]

# The records of an archive with one member, which the tests combine in other ways.
plain = archive([("one.npy", ONE)])
end = plain.rindex(b"PK\5\6")
begin = plain.index(b"PK\1\2")
member, entry, record = plain[:begin], plain[begin:end], plain[end:]
other = archive([("two.npy", ONE)])
other_begin, other_end = other.index(b"PK\1\2"), other.rindex(b"PK\5\6")


def end_record(members, size, offset, comment=b"", comment_bytes=None):
    length = len(comment) if comment_bytes is None else comment_bytes
    return b"PK\5\6" + struct.pack("<4H2LH", 0, 0, members, members, size, offset, length) + comment


def zip64_end(members, size, offset, at, disks=1, more=b""):
    first = b"PK\6\6" + struct.pack("<Q2H2L4Q", 44 + len(more), 45, 45, 0, 0, members, members, size, offset) + more
    return first, b"PK\6\7" + struct.pack("<LQL", 0, at, disks)


def with_zip64(between=b"", at=None, narrow=None, disks=1, more=b"", wide=None):
    first, locator = zip64_end(*(wide or (1, len(entry), begin)), end if at is None else at, disks, more)
    return plain[:end] + first + between + locator + end_record(*(narrow or (0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF)))


def patched(bytes_, at, some):
    return bytes_[:at] + some + bytes_[at + len(some) :]


# Both directories are complete: readers of one do not find the members of the other.
two_ways = member + entry + other[:other_begin]
second = other[other_begin:other_end]
second = second[:42] + struct.pack("<L", len(member) + len(entry)) + second[46:]
hidden_end = end_record(1, len(second), len(two_ways))
streamed = archive([("one.npy", ONE)], streamed=True)
descriptor = streamed.index(b"PK\7\x08")
wide_streamed = archive([("one.npy", ONE)], streamed=True, zip64=True)
unicode_path = b"\1" + struct.pack("<L", zlib.crc32(b"one.npy")) + b"two.npy"

SOUND = {
    "stored": (archive(MEMBERS), NAMES),
    "deflated": (archive(MEMBERS, method=zipfile.ZIP_DEFLATED), NAMES),
    "streamed": (archive(MEMBERS, streamed=True), NAMES),
    "streamed and deflated": (archive(MEMBERS, streamed=True, method=zipfile.ZIP_DEFLATED), NAMES),
    "zip64": (archive(MEMBERS, zip64=True), NAMES),
    "zip64, streamed": (archive(MEMBERS, streamed=True, zip64=True), NAMES),
    "a descriptor without signature": (
        streamed[:descriptor]
        + streamed[descriptor + 4 : streamed.rindex(b"PK\1\2")]
        + entry
        + end_record(1, len(entry), begin + 12),
        ["one"],
    ),
    "zip64 records that are not needed": (with_zip64(narrow=(1, len(entry), begin)), ["one"]),
    "zip64 records": (with_zip64(), ["one"]),
    "a comment": (archive(MEMBERS, comment=b"made by hand"), NAMES),
    "a folder": (archive([("folder/", b""), *MEMBERS]), NAMES),
    "padding of PyTorch": (aligned(b"FB" + struct.pack("<H", 7) + b"Z" * 7), ["one"]),
    "padding of zeros": (aligned(bytes(13)), ["one"]),
    "an archive in it": (archive([("one.npy", ONE), ("last.zip", plain)]), ["one"]),
    "70,000 members": (archive([(f"{i}.npy", ONE) for i in range(70_000)]), None),
}

REFUSED = {
    "an end record in the comment of another": two_ways
    + second
    + end_record(1, len(entry), len(member), hidden_end + b"x"),
    "an end record with a comment that is one": two_ways + second + end_record(1, len(entry), len(member), hidden_end),
    "a signature in the comment": plain[:end] + end_record(1, len(entry), begin, b"PK\5\6 ok"),
    "an end record in the directory": member
    + patched(entry, 32, struct.pack("<H", 22))
    + hidden_end
    + end_record(1, len(entry) + 22, begin),
    "bytes before the end record": plain[:end] + b"gap" + record,
    "another directory before the end record": two_ways + second + end_record(1, len(entry), len(member)),
    "bytes at the end": plain + b"x",
    "a comment that is cut off": plain[:end] + end_record(1, len(entry), begin, b"ab", 3),
    "bytes at the beginning": b"PK\3\4" + plain[:end] + end_record(1, len(entry), begin),
    "bytes at the beginning, and the right offsets": b"PK\3\4"
    + member
    + patched(entry, 42, struct.pack("<L", 4))
    + end_record(1, len(entry), begin + 4),
    "a member that is not in the directory": member
    + other[:other_begin]
    + entry
    + end_record(1, len(entry), len(member) + other_begin),
    "bytes between members": member
    + b"gap"
    + other[:other_begin]
    + entry
    + patched(other[other_begin:other_end], 42, struct.pack("<L", len(member) + 3))
    + end_record(2, 2 * len(entry), len(member) + 3 + other_begin),
    "bytes in an archive without members": b"PK\3\4" + end_record(0, 0, 4),
    "a zip64 record that is not before its locator": with_zip64(between=b"gap"),
    "a zip64 record elsewhere": with_zip64(at=0),
    "a zip64 record with more in it": with_zip64(more=b"more"),
    "a zip64 locator of two disks": with_zip64(disks=2),
    "zip64 records with other numbers": with_zip64(narrow=(2, len(entry), begin)),
    "zip64 records with another directory": with_zip64(narrow=(1, len(entry), begin - 1)),
    "a header with another size": patched(plain, 22, struct.pack("<L", len(ONE) - 1)),
    "a header with another stored size": patched(plain, 18, struct.pack("<L", len(ONE) - 1)),
    "a header without sizes and without a descriptor": patched(plain, 18, bytes(8)),
    "a header with another CRC-32": patched(plain, 14, bytes(4)),
    "a header with another method": patched(plain, 8, b"\x08"),
    "a header with another name": patched(plain, 30, b"two"),
    "a header of an encrypted member": patched(plain, 6, b"\1"),
    "a header with another size in 64 bits": patched(wide_streamed, wide_streamed.index(ONE) - 16, b"\1"),
    "a header that promises a descriptor": patched(plain, 6, b"\x08"),
    "a descriptor with another size": patched(streamed, descriptor + 12, b"\1"),
    "a descriptor with another CRC-32": patched(streamed, descriptor + 4, b"\1\2\3\4"),
    "a descriptor with another signature": patched(streamed, descriptor, b"PK\7\7"),
    "a name of Info-ZIP": aligned(struct.pack("<HH", 0x7075, len(unicode_path)) + unicode_path),
    "one path twice": archive([("one.npy", ONE), ("./one.npy", TWO)]),
    "a file and a folder of one name": archive([("one.npy", ONE), ("one.npy/", b"")]),
}

with tempfile.TemporaryDirectory() as directory:
    path = pathlib.Path(directory) / "a.npz"
    for what, (content, names) in SOUND.items():
        path.write_bytes(content)
        assert zipfile.ZipFile(path).testzip() is None, what
        found, error = tensors(path)
        assert found is not None, (what, error)
        assert names is None or sorted(found) == sorted(names), (what, found)
    for what, content in REFUSED.items():
        path.write_bytes(content)
        found, error = tensors(path)
        assert found is None and ": zip: " in error, (what, found, error)
