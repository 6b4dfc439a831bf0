"""Parses zTensor 1.1 and 2 files to the last byte, independently of Poise, by the specifications.

    parse_ztensor.py FILE...                       structure, padding, digests; for version 2 the content digest
    parse_ztensor.py --group-error DENSE GROUPS    the largest error of version 1.1's quantized_group, in units of a
    scale

Uses the standard library and the tools zstd and xxhsum.
"""
import hashlib
import struct
import subprocess
import sys

MAGIC1, MAGIC2 = b"ZTEN1000", b"\x89ZT2\r\n\x1a\n"


def tool(*command, data):
    return subprocess.run(command, input=data, capture_output=True, check=True).stdout


class Cbor:
    """Decodes CBOR (RFC 8949) with definite lengths. `strict`: keys are sorted by their encoding, and heads and floats
    are as short as possible."""

    def __init__(self, data, strict):
        self.data, self.at, self.strict = data, 0, strict

    def take(self, count):
        assert self.at + count <= len(self.data)
        self.at += count
        return self.data[self.at - count : self.at]

    def argument(self, low):
        if low < 24:
            return low
        assert low <= 27
        value = int.from_bytes(self.take(1 << (low - 24)), "big")
        if self.strict:
            assert value >= (24 if low == 24 else 1 << (8 << (low - 25)))
        return value

    def value(self):
        head = self.take(1)[0]
        major, low = head >> 5, head & 31
        if major == 7:
            if low in (20, 21, 22):
                return {20: False, 21: True, 22: None}[low]
            return struct.unpack({25: ">e", 26: ">f", 27: ">d"}[low], self.take(1 << (low - 24)))[0]
        argument = self.argument(low)
        if major == 0:
            return argument
        if major == 1:
            return -1 - argument
        if major == 2:
            return self.take(argument)
        if major == 3:
            return self.take(argument).decode()
        if major == 4:
            return [self.value() for _ in range(argument)]
        assert major == 5
        result, last = {}, b""
        for _ in range(argument):
            begin = self.at
            key = self.value()
            encoded = self.data[begin : self.at]
            assert key not in result and (not self.strict or encoded > last)
            last = encoded
            result[key] = self.value()
        return result


def encode(value):
    """Encodes text, integers, lists and maps in core deterministic CBOR."""

    def head(major, argument):
        for low, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
            if argument < 24:
                return bytes([major << 5 | argument])
            if argument < 1 << 8 * size:
                return bytes([major << 5 | low]) + argument.to_bytes(size, "big")

    if isinstance(value, bool) or value is None:
        return bytes([{False: 0xF4, True: 0xF5, None: 0xF6}[value]])
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(encode, value))
    entries = sorted((encode(key), encode(item)) for key, item in value.items())
    return head(5, len(entries)) + b"".join(key + item for key, item in entries)


def digest(algorithm, data):
    if algorithm == "sha256":
        return "sha256:" + hashlib.sha256(data).hexdigest()
    assert algorithm == "xxh3"
    return "xxh3:" + tool("xxhsum", "-H3", data=data).split()[-1].decode()  # XXH3 (stdin) = ...


def check_padding(data, ranges, begin, end, align):
    """Checks that every byte belongs to a blob or is a zero before one."""
    at = begin
    for offset, length in sorted(set(ranges)):
        assert offset % align == 0 and offset >= at and not any(data[at:offset]), hex(at)
        at = offset + length
    return at


def parse2(data):
    manifest_at, length, hashed, version, reserved = struct.unpack("<QQQII", data[-40:-8])
    assert data[:8] == MAGIC2 and version == 2 and reserved == 0 and manifest_at + length == len(data) - 40
    manifest_bytes = data[manifest_at : manifest_at + length]
    assert digest("xxh3", manifest_bytes) == f"xxh3:{hashed:016x}"
    reader = Cbor(manifest_bytes, True)
    manifest = reader.value()
    assert reader.at == length and encode(manifest) == manifest_bytes
    ranges, digests, content, sha256 = [], 0, {}, True
    for name, item in manifest["objects"].items():
        parts = {}
        for role, part in item["parts"].items():
            offset, size = part["blob"]
            ranges.append((offset, size))
            decoded = data[offset : offset + size]
            if part.get("encoding"):
                assert part["encoding"] == "zt.zstd-seekable/1"
                decoded = tool("zstd", "-d", "-c", data=decoded)
                assert len(decoded) == part["decoded_length"]
            assert digest(part["digest"].split(":")[0], decoded) == part["digest"], name
            digests += 1
            sha256 = sha256 and part["digest"].startswith("sha256:")
            parts[role] = {key: part[key] for key in ("dtype", "type", "digest") if key in part}
        content[name] = {key: item[key] for key in ("shape", "layout", "attributes") if key in item} | {"parts": parts}
    at = check_padding(data, ranges, 8, manifest_at, 4096)
    assert not any(data[at:manifest_at])
    named = digest("sha256" if sha256 else "xxh3", encode(["zt.content/1", content]))
    return f"version 2, {len(content)} objects, {digests} digests, content {named}"


def manifest1(data):
    (length,) = struct.unpack("<Q", data[-16:-8])
    assert data[:8] == data[-8:] == MAGIC1
    begin = len(data) - 16 - length
    reader = Cbor(data[begin:-16], False)
    manifest = reader.value()
    assert reader.at == length
    return manifest, begin


def parse1(data):
    manifest, begin = manifest1(data)
    ranges, digests = [], 0
    for item in manifest["objects"].values():
        for part in item["components"].values():
            stored = data[part["offset"] : part["offset"] + part["length"]]
            ranges.append((part["offset"], part["length"]))
            assert digest("sha256", stored) == part["digest"]
            digests += 1
    assert check_padding(data, ranges, 8, begin, 64) == begin
    return f"version {manifest['version']}, {len(manifest['objects'])} objects, {digests} digests"


def group_error(dense_path, groups_path):
    """Dequantizes as in the specification's example, and compares with the float16 originals."""
    files = []
    for path in (dense_path, groups_path):
        data = open(path, "rb").read()
        files.append((data, manifest1(data)[0]["objects"]))
    (dense, dense_objects), (coded, coded_objects) = files
    worst, bits = 0, 0
    for name, item in coded_objects.items():
        if item["format"] != "quantized_group":
            continue
        bits, size = item["attributes"]["bits"], item["attributes"]["group_size"]
        count, per_word = 1, 32 // bits
        assert item["attributes"]["packing"] == f"{per_word}_per_i32"
        for dimension in item["shape"]:
            count *= dimension

        def part(role, code, number):
            place = item["components"][role]
            return struct.unpack(f"<{number}{code}", coded[place["offset"] : place["offset"] + place["length"]])

        words, scales, zeros = (
            part("packed_weight", "I", count // per_word),
            part("scales", "e", count // size),
            part("zeros", "e", count // size),
        )
        place = dense_objects[name]["components"]["data"]
        values = struct.unpack(f"<{count}e", dense[place["offset"] : place["offset"] + place["length"]])
        for i, value in enumerate(values):
            q = words[i // per_word] >> bits * (i % per_word) & (1 << bits) - 1
            scale, zero = scales[i // size], zeros[i // size]
            worst = max(worst, abs((q - zero) * scale - value) / scale)
    assert 0 < worst < 1.01, worst  # half a step, and half a step more where rounding the zero point clips
    return f"group{bits}: worst error {worst:.2f} of a scale"


def main():
    if sys.argv[1] == "--group-error":
        print(group_error(*sys.argv[2:4]))
    else:
        for path in sys.argv[1:]:
            data = open(path, "rb").read()
            print(f"{path}: {parse2(data) if data[:8] == MAGIC2 else parse1(data)}")


if __name__ == "__main__":
    main()
