#!/usr/bin/env python3
"""Prints tests/codec/golden_blocks.inc: ggml's results for the numbers and blocks that block_type_test.cpp also makes.

    make_golden_blocks.py DIRECTORY > golden_blocks.inc

DIRECTORY holds libggml-base.so of llama.cpp v0.5.0 (the npm package @node-llama-cpp/linux-x64 3.22.1 has it, in
bins/linux-x64).
"""
import array
import ctypes
import hashlib
import struct
import sys

# Name, number, and whether Poise writes the type.
TYPES = [
    ("q4_0", 2, True),
    ("q4_1", 3, True),
    ("q5_0", 6, True),
    ("q5_1", 7, True),
    ("q8_0", 8, True),
    ("q8_1", 9, False),
    ("q2_K", 10, True),
    ("q3_K", 11, True),
    ("q4_K", 12, True),
    ("q5_K", 13, True),
    ("q6_K", 14, True),
    ("q8_K", 15, False),
    ("iq2_xxs", 16, True),
    ("iq2_xs", 17, True),
    ("iq3_xxs", 18, True),
    ("iq1_s", 19, True),
    ("iq4_nl", 20, True),
    ("iq3_s", 21, True),
    ("iq2_s", 22, True),
    ("iq4_xs", 23, True),
    ("iq1_m", 29, True),
    ("tq1_0", 34, True),
    ("tq2_0", 35, True),
    ("mxfp4", 39, True),
    ("nvfp4", 40, True),
    ("q1_0", 41, False),
    ("q2_0", 42, False),
]
# ggml refuses these without an importance: then all numbers weigh the same here.
NEED_IMPORTANCE = ("iq2_xxs", "iq2_xs", "iq1_s")
# The digests leave this block out: it has groups of zeros before another number. For this type, ggml puts the codes
# of all later groups where those of the zeros belong.
ZERO_GROUPS, ZERO_GROUPS_BLOCK = "iq3_s", 34
BLOCKS = 256  # of random bytes
ROWS, LENGTH = 12, 1024


class Random:
    """Knuth's linear congruential generator; the upper bits."""

    def __init__(self, seed):
        self.state = seed

    def bits(self, count):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return self.state >> (64 - count)


def random_bytes(seed, count):
    random = Random(seed)
    return bytes(random.bits(8) for _ in range(count))


def bell(random):
    """The sum of four uniform numbers: about -2 to 2, in steps of 2^-18."""
    return (sum(random.bits(18) for _ in range(4)) - 2**19) / 2**18


def rows_to_encode():
    """Rows like those of models, of many scales, and rows of special cases."""
    random = Random(1)
    special = [
        lambda i, x: 0.0,
        lambda i, x: 0.5,
        lambda i, x: 1.0 if i % 256 == 77 else 0.0,
        lambda i, x: abs(x),
        lambda i, x: -abs(x),
        lambda i, x: x * 2.0**20,  # beyond float16
        lambda i, x: x * 2.0**-24,
        lambda i, x: x * 2.0**-60,
        lambda i, x: float(random.bits(2)) - 1,
        lambda i, x: (random.bits(5) - 16) / 2,  # halves of codes
        lambda i, x: x * 64 if i % 32 == 5 else x / 64,
        lambda i, x: x + 8,
        lambda i, x: x if random.bits(1) else 0.0,
        lambda i, x: x * 2.0 ** (i // 16 % 16 - 8),
        lambda i, x: -1.0 if i % 2 else 1.0,
        lambda i, x: x * 2.0**-140,
    ]
    values = array.array("f")
    for row in range(ROWS):
        for i in range(LENGTH):
            x = bell(random)
            values.append(x * 2.0 ** (-2 * row) if row < 8 else special[4 * (row - 8) + i // 256](i, x))
    return values


def importance():
    random = Random(2)
    return array.array("f", [random.bits(20) / 2.0**20 if random.bits(4) else 0.0 for _ in range(LENGTH)])


def address(buffer):
    return (
        ctypes.c_void_p(buffer.buffer_info()[0])
        if isinstance(buffer, array.array)
        else ctypes.cast(buffer, ctypes.c_void_p)
    )


def canonical(floats):
    """Replaces every NaN by the same one, because the processor chooses among them."""
    return array.array("f", [x if x == x else struct.unpack("<f", struct.pack("<I", 0x7FC00000))[0] for x in floats])


def main():
    ggml = ctypes.CDLL(sys.argv[1] + "/libggml-base.so")
    ggml.ggml_type_size.restype = ctypes.c_size_t
    ggml.ggml_blck_size.restype = ctypes.c_int64
    ggml.ggml_type_name.restype = ctypes.c_char_p
    ggml.ggml_quantize_chunk.restype = ctypes.c_size_t
    rows, weights = rows_to_encode(), importance()

    ones = array.array("f", [1.0] * LENGTH)

    def encode(name, number, size, elements, weights):
        out = ctypes.create_string_buffer(ROWS * LENGTH // elements * size)
        ggml.ggml_quantize_chunk(
            number,
            address(rows),
            address(out),
            ctypes.c_int64(0),
            ctypes.c_int64(ROWS),
            ctypes.c_int64(LENGTH),
            address(ones) if weights is None and name in NEED_IMPORTANCE else weights,
        )
        blocks = out.raw
        if name == ZERO_GROUPS:
            blocks = blocks[: ZERO_GROUPS_BLOCK * size] + blocks[(ZERO_GROUPS_BLOCK + 1) * size :]
        return hashlib.sha256(blocks).hexdigest()

    print("// Made by make_golden_blocks.py with ggml of llama.cpp v0.5.0.")
    print("// clang-format off")
    for name, number, written in TYPES:
        assert ggml.ggml_type_name(number).decode() == name
        size, elements = ggml.ggml_type_size(number), ggml.ggml_blck_size(number)
        blocks = random_bytes(number, BLOCKS * size)
        fields = ['"%s", %d, %d, %d' % (name.lower(), number, elements, size)]
        if name == "q8_1":
            fields += ['"", "", {}']
        else:
            out = array.array("f", bytes(4 * BLOCKS * elements))
            getattr(ggml, "dequantize_row_" + name)(blocks, address(out), ctypes.c_int64(BLOCKS * elements))
            decoded = [out[b * elements : (b + 1) * elements] for b in range(BLOCKS)]
            first = next(b for b in range(BLOCKS) if all(abs(x) < 1e30 for x in decoded[b]))
            bits = decoded[first].tobytes()
            shown = [struct.unpack_from("<I", bits, 4 * (i * (elements - 1) // 7))[0] for i in range(8)]
            fields += [
                '"%s",\n   "%s",\n   {%s}'
                % (
                    hashlib.sha256(canonical(out).tobytes()).hexdigest(),
                    blocks[first * size : (first + 1) * size].hex(),
                    ", ".join("0x%08x" % x for x in shown),
                )
            ]
        if written:
            fields += [
                '"%s",\n   "%s"'
                % (encode(name, number, size, elements, None), encode(name, number, size, elements, address(weights)))
            ]
        else:
            fields += ['"", ""']
        print("  {" + ",\n   ".join(fields) + "},")
    print("// clang-format on")


if __name__ == "__main__":
    main()
