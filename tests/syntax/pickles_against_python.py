#!/usr/bin/env python3
"""Random programs for the stack machine of pickles, run by Poise and by CPython's three readers of them: the C code
from memory and from a file, and Lib/pickle.py. No program may hide a name from Poise, or build other objects.

usage: pickles_against_python.py PRINT_PICKLES [SEED [COUNT]]
"""

import collections
import io
import json
import pickle
import random
import re
import struct
import subprocess
import sys

UNSUPPORTED = "unsupported"


# The objects that Python builds, without running anything.
class Class(type):
    def __call__(cls, *arguments, **keywords):
        return made(cls, False, cls, arguments, keywords)


class Object(metaclass=Class):
    def __new__(cls, *arguments, **keywords):
        return made(cls, True, cls, arguments, keywords)

    def __call__(self, *arguments):
        return made(type(self), False, self, arguments, {})

    def __setstate__(self, state):
        self.states.append(state)

    def append(self, item):
        self.items.append(item)

    add = append

    def __setitem__(self, key, value):
        self.pairs += [key, value]


def made(cls, is_new, function, arguments, keywords):
    result = object.__new__(cls)
    result.__dict__.update(
        is_new=is_new, function=function, arguments=arguments, keywords=keywords, states=[], items=[], pairs=[]
    )
    return result


class Persistent:
    __slots__ = ("key",)

    def __init__(self, key):
        self.key = key


class Record:
    """Runs a program. Records the names that a reader looks up, and its result or error."""

    def __init__(self, reader, stream):
        self.names = []
        self.error = None
        classes = {}

        class Reader(reader):
            def find_class(_, module, name):
                self.names.append((module, name))
                return classes.setdefault((module, name), Class("Named", (Object,), {"path": (module, name)}))

            def persistent_load(_, key):
                return Persistent(key)

        try:
            self.result = Reader(stream, encoding="utf-8").load()
            self.size = stream.tell()
        except Exception as error:  # any of those that Python has
            self.error = error


class Buffered(io.BytesIO):
    """A file with peek(), as files of open() have."""

    def peek(self, size=0):
        return self.getvalue()[self.tell() : self.tell() + 4096]


class Different(Exception):
    pass


class Comparison:
    def __init__(self, objects):
        self.objects = objects
        self.ids = {}  # of Python's objects that steps can change
        self.kept = []

    def plain(self, found):
        """Returns a value for an object that may be a key. Values are equal if Python's objects are equal."""
        kind, *parts = self.objects[found]
        if kind == "int" or kind == "bool":
            return int(parts[0])
        if kind == "real":
            value = struct.unpack(">d", bytes.fromhex(parts[0]))[0]
            return value if value == value else ("nan", found)
        if kind == "wide":
            return int.from_bytes(bytes.fromhex(parts[0]), "little", signed=True)
        if kind == "tuple":
            return tuple(self.plain(one) for one in parts[0])
        if kind == "set":
            return frozenset(self.plain(one) for one in parts[0])
        if kind == "call" or kind == "persistent" or kind == "global":
            return (kind, found if kind != "global" else tuple(parts))
        return (kind, *parts) if parts else None

    def expect(self, is_same, expected, found):
        if not is_same:
            raise Different(f"Python: {expected!r}, Poise: {self.objects[found]}")

    def list(self, expected, found):
        """Does the same as object() for several objects."""
        if len(expected) != len(found):
            raise Different(f"Python: {expected!r}, Poise: {[self.objects[one] for one in found]}")
        for one, other in zip(expected, found):
            self.object(one, other)

    def object(self, expected, found):
        kind, *parts = self.objects[found]
        if isinstance(expected, (list, dict, Object, Persistent)) and not isinstance(expected, type):
            if id(expected) in self.ids:
                return self.expect(self.ids[id(expected)] == found, expected, found)
            self.ids[id(expected)] = found
            self.kept.append(expected)
        if expected is None or isinstance(expected, (bool, int, float)):
            self.expect(kind in ("none", "bool", "int", "wide", "real"), expected, found)
            if kind == "wide" and not parts[0]:
                return None  # of more than 64 digits
            plain = self.plain(found)
            same = plain == expected or (expected != expected and isinstance(plain, tuple))
            return self.expect(same and isinstance(expected, float) == (kind == "real"), expected, found)
        if isinstance(expected, str):
            coded = expected.encode("utf-8", "surrogatepass").hex()
            return self.expect(kind in ("text", "bytes") and parts[0] == coded, expected, found)
        if isinstance(expected, (bytes, bytearray, memoryview)):
            return self.expect(kind == "bytes" and parts[0] == bytes(expected).hex(), expected, found)
        if isinstance(expected, type):
            path = [name.encode().hex() for name in expected.path]
            return self.expect(kind == "global" and parts == path, expected, found)
        if isinstance(expected, Persistent):
            self.expect(kind == "persistent", expected, found)
            return self.object(expected.key, parts[0])
        if isinstance(expected, (set, frozenset)):
            self.expect(kind == "set", expected, found)
            return self.expect(len({self.plain(one) for one in parts[0]}) == len(expected), expected, found)
        if isinstance(expected, dict):
            self.expect(kind == "dict", expected, found)
            pairs = {}
            for key, value in zip(parts[0][::2], parts[0][1::2]):
                pairs[self.plain(key)] = (pairs.get(self.plain(key), (key,))[0], value)
            self.list(list(expected), [key for key, _ in pairs.values()])
            return self.list(list(expected.values()), [value for _, value in pairs.values()])
        if isinstance(expected, (list, tuple)):
            self.expect(kind == type(expected).__name__, expected, found)
            return self.list(expected, parts[0])
        self.expect(kind == "call", expected, found)
        is_new, function, arguments, state, items, pairs, keywords = parts
        self.expect(is_new == expected.is_new or not expected.arguments, expected, found)
        self.object(expected.function, function)
        self.list(expected.arguments, self.objects[arguments][1])
        self.list(expected.states, [] if state is None else [state])
        self.list(expected.items, items)
        self.list(expected.pairs, pairs)
        return self.list([part for pair in expected.keywords.items() for part in pair], keywords)


class Program:
    """Makes a program that is usually valid: it knows what is on its stack."""

    # Each list has texts that Python reads, then texts that it refuses.
    LINES = (
        ["0", "1", "00", "01", "7", "-3", "+1", " 5", "5 ", "1_0", "0x1f", "-0", "0o17", "0b11", "\t2", "9" * 30]
        + ["-" + "9" * 25, "5\r", "0x_F", "12345678901234567890"],
        ["1__0", "", "x", "5L", "08", "010", "L", "1_", "_1", "5\0x", "0x", "- 1", "0o8"],
    )
    REALS = (
        ["1.5", "-2", "1e5", "+Infinity", "-inf", "nan", "NaN", ".5", "5.", "1e+2", "-0.0", "1e-999", "2E-3"],
        [" 1.5", "1_0.5", "1e999", "-1e400", ".", "1e", "0x1", "1.5\0x", "infin", "1.5\r", "1e5_0", "", "1.5.2"],
    )
    STRINGS = (
        [b"'ab'", b'"ab"', b"'a\\x41'", b"'\\101\\0\\7'", b"'\\n\\t\\a\\b\\f\\v\\r'", b"'\\q\\\\'", b"'\\''", b"''"]
        + [b"'\\1234'", b"'\\8'", b"'\xc3\xa9'", b"'\\u0041'", b"'it's'", b"'\\163ystem'"],
        [b"'", b"'a\"", b"ab", b"'\\x4'", b"'\\'", b""],
    )
    UNICODES = (
        [b"ab", b"\xe9", b"\\u0041", b"\\\\u0041", b"\\\\\\u0041", b"\\U0001F600", b"\\ud800", b"\\", b"\\x41", b"a\\n"]
        + [b"", b"\\\\", b"\\ud83d\\ude00"],
        [b"\\u00", b"\\U00110000", b"\\U1234"],
    )
    NAMES = ["os", "system", "collections", "OrderedDict", "builtins", "a.b", "c d", "\u00e9"]

    def __init__(self, chance):
        self.chance = chance
        self.bytes = b""
        self.stack = [[]]  # kinds of objects, in a list for each mark
        self.memo = {}
        self.built = set()  # places of the stack whose object has got a state
        self.framed = chance.random() < 0.3
        self.is_wild = chance.random() < 0.3  # most of these are refused

    def write(self, step, push=None, count=0):
        if count:
            del self.stack[-1][-count:]
        self.bytes += step
        if push is not None:
            self.stack[-1].append(push)

    OPEN = {"list", "dict", "set", "array", "open"}  # kinds that have no hash; open: a tuple with one of them

    def tuple_of(self, items):
        return "open" if self.OPEN & set(items) else "tuple"

    def one_of(self, lists):
        return self.chance.choice(lists[self.is_wild and self.chance.random() < 0.2])

    def number(self, size):
        return self.chance.randrange(256**size).to_bytes(size, "little")

    def key(self):
        if self.memo and self.chance.random() < 0.6:
            return self.chance.choice(list(self.memo))
        few = self.chance.random() < 0.8
        return self.chance.randrange(12) if few else self.chance.choice([255, 256, 70000])

    def counted(self, data):
        return len(data).to_bytes(4, "little") + data

    def push_plain(self):
        chance = self.chance
        word = chance.choice(self.NAMES).encode()
        line = self.one_of(self.LINES).encode() + b"\n"
        kind, step = chance.choice(
            [
                ("none", b"N"),
                ("int", b"\x88"),
                ("int", b"\x89"),
                ("int", b"K" + self.number(1)),
                ("int", b"M" + self.number(2)),
                ("int", b"J" + self.number(4)),
                ("int", b"I" + line),
                ("int", b"L" + line),
                ("int", b"\x8a" + bytes([size := chance.choice([0, 1, 3, 8, 9, 12])]) + self.number(size)),
                ("int", b"\x8b" + self.counted(self.number(2))),
                ("real", b"G" + struct.pack(">d", chance.choice([0.5, -1e300, float("inf")]))),
                ("real", b"F" + self.one_of(self.REALS).encode() + b"\n"),
                ("text", b"S" + self.one_of(self.STRINGS) + b"\n"),
                ("text", b"V" + self.one_of(self.UNICODES) + b"\n"),
                ("name", b"X" + self.counted(word)),
                ("name", b"\x8c" + bytes([len(word)]) + word),
                ("text", b"\x8d" + len(word).to_bytes(8, "little") + word),
                ("name", b"U" + bytes([len(word)]) + word),
                ("text", b"T" + self.counted(word)),
                ("bytes", b"C\x02\xff\x00"),
                ("bytes", b"B" + self.counted(word)),
                ("bytes", b"\x8e" + (1).to_bytes(8, "little") + b"x"),
                ("array", b"\x96" + (1).to_bytes(8, "little") + b"y"),
                ("tuple", b")"),
                ("list", b"]"),
                ("dict", b"}"),
                ("set", b"\x8f"),
                ("global", b"c" + word + b"\n" + chance.choice(self.NAMES).encode() + b"\n"),
                ("persistent", b"Pabc\n"),
            ]
        )
        self.write(step, kind)

    def use_memo(self):
        chance = self.chance
        top = self.stack[-1][-1] if self.stack[-1] else None
        if top is not None and chance.random() < 0.6:
            if chance.random() < 0.3:
                self.memo[len(self.memo)] = top
                return self.write(b"\x94")
            key = self.key()
            forms = [b"p%d\n" % key, b"p %d \n" % key, b"r" + key.to_bytes(4, "little")]
            self.memo[key] = top
            return self.write(chance.choice([*forms, b"q%c" % key] if key < 256 else forms))
        key = self.key()
        if key not in self.memo and not self.is_wild:
            return None
        forms = [b"g%d\n" % key, b"g+%d\n" % key, b"j" + key.to_bytes(4, "little")]
        return self.write(chance.choice([*forms, b"h%c" % key] if key < 256 else forms), self.memo.get(key, "none"))

    def use_mark(self):
        chance = self.chance
        if len(self.stack) == 1 or chance.random() < 0.3:
            self.stack.append([])
            return self.write(b"(")
        items = self.stack.pop()
        top = self.stack[-1][-1] if self.stack[-1] else None
        is_hashable = self.is_wild or not self.OPEN & set(items)
        choices = [(b"t", self.tuple_of(items)), (b"l", "list"), (b"1", None)]
        choices += [(b"\x91", "fixed")] * is_hashable
        if top in ("list", "object"):
            choices += [(b"e", None)] * 6
        if top == "object" or (top == "set" and is_hashable):
            choices += [(b"\x90", None)] * 6
        if len(items) % 2 == 0 and (self.is_wild or not self.OPEN & set(items[::2])):
            choices += [(b"d", "dict")] * 2
            if top in ("dict", "object"):
                choices += [(b"u", None)] * 6
        if items and items[0] == "global":
            choices += [(b"o", "object")] * 6
        choices += [(b"ios\nsystem\n", "object")]
        step, push = chance.choice(choices)
        return self.write(step, push)

    def use_stack(self):
        chance = self.chance
        kinds = self.stack[-1]
        if not kinds:
            return self.write(b"0") if self.is_wild else self.push_plain()
        choices = [(b"0", None, 1), (b"2", kinds[-1], 0), (b"\x85", self.tuple_of(kinds[-1:]), 1)]
        choices += [(b"Q", "persistent", 1)]
        if kinds[-1] == "bytes" or self.is_wild:
            choices += [(b"\x98", None, 0)]
        if len(kinds) >= 2:
            choices += [(b"\x86", self.tuple_of(kinds[-2:]), 2)]
            if kinds[-2] in ("list", "object"):
                choices += [(b"a", None, 1)] * 5
            if kinds[-2] == "object" and (self.is_wild or len(kinds) not in self.built):
                choices += [(b"b", None, 1)] * 5
            if kinds[-2] in ("global", "object") and kinds[-1] in ("tuple", "open"):
                choices += [(b"R", "object", 2)] * 8
                choices += [(b"\x81", "object", 2)] * (4 if kinds[-2] == "global" else 0)
            if kinds[-2:] == ["name", "name"]:
                choices += [(b"\x93", "global", 2)] * 8
            if self.is_wild and chance.random() < 0.3:
                choices += [(b"b", None, 1), (b"R", "object", 2), (b"a", None, 1), (b"\x93", "global", 2)]
                choices += [(b"s", None, 2), (b"\x92", "object", 3), (b"\x81", "object", 2)] * (len(kinds) > 2)
        if len(kinds) >= 3:
            choices += [(b"\x87", self.tuple_of(kinds[-3:]), 3)]
            if kinds[-3] == "object" or (kinds[-3] == "dict" and kinds[-2] not in self.OPEN):
                choices += [(b"s", None, 2)] * 5
        step, push, count = chance.choice(choices)
        if step == b"b":
            self.built.add(len(kinds))
        return self.write(step, push, count)

    def set_in_list(self):
        """Writes steps that belong together: they make a list, and set one or two of its items."""
        size = self.chance.randrange(1, 4)
        at = self.chance.randrange(-size, size + self.is_wild)
        self.write(b"](" + b"N" * size + b"e", "list")
        self.write(self.chance.choice([b"I%d\nK\1s", b"(L%dL\nNu"]) % at)

    def make_new(self):
        word = self.chance.choice(self.NAMES).encode()
        self.write(b"cm\n" + word + b"\n)}(" + b"X" + self.counted(b"key") + b"Nu\x92", "object")

    def frame(self):
        """Puts the steps so far into a frame, or into one that cuts a step in two."""
        cut = self.chance.randrange(len(self.bytes) + 1) if self.is_wild else len(self.bytes)
        self.bytes = b"\x80\x04\x95" + cut.to_bytes(8, "little") + self.bytes

    def finish(self):
        chance = self.chance
        if not self.is_wild or chance.random() < 0.7:
            while len(self.stack) > 1:
                self.stack.pop()
                self.write(b"t", "tuple")
        # Objects of the memo are loaded again, so that the result depends on the memo.
        for key in list(self.memo)[:6]:
            self.write(b"j" + key.to_bytes(4, "little"), "any")
        for _ in range(len(self.stack[-1]) - 1):
            self.write(b"\x86", "tuple", 2)
        if not self.stack[-1]:
            self.write(b"N", "none")
        self.bytes += b"."
        if self.framed:
            self.frame()
        if self.is_wild and chance.random() < 0.3:
            at = chance.randrange(len(self.bytes))
            self.bytes = self.bytes[:at] + self.number(1) + self.bytes[at + 1 :]
        return self.bytes


def random_program(chance):
    program = Program(chance)
    steps = [program.push_plain, program.use_memo, program.use_mark, program.use_stack]
    steps += [program.set_in_list, program.make_new]
    for _ in range(chance.randrange(1, 40)):
        chance.choices(steps, [40, 40, 30, 40, 2, 2])[0]()
    return program.finish()


# Poise once ignored a step of these, or ran it differently from Python.
WRITTEN = [
    b"Np1\n]p0\n0Np1\n}\x940h\x02.",  # a key that appears twice
    b"(I1_0\nI 5\nL1_0L\nF+Infinity\nS'\\157s'\nt.",
    b"cos\nsystem\np 7\n0g7\n.",
    b"]K\1aK\0K\2s.",
    b"]K\1aJ\xff\xff\xff\xffK\2s.",
    b"S'os'\nS'\\163ystem'\n\x93.",
    b"Vo\\u0073\nVsystem\n\x93.",
    b"V\\\\u0041\n.",
    b"}}b}Nb}N}\x86b.",
    b"N(e.",
    b"N(u.",
    b"K\1(\x90.",
    b"C\1a\x98.",
    b"I017\n.",
    b"\x80\4\x95\2\0\0\0\0\0\0\0M\5\7\x09.",
    b"\x80\4\x95\3\0\0\0\0\0\0\0I123\n..",
    b"\x80\4\x95\x0a\0\0\0\0\0\0\0N\x95\2\0\0\0\0\0\0\x000N.",
    b"\x80\4\x95\x0b\0\0\0\0\0\0\0N\x95\2\0\0\0\0\0\0\x000N.",
    b"\x80\4\x95\xff\0\0\0\0\0\0\0N.",
]


def check(program, found, counts):
    """Compares Poise's result with Python's. Raises Different."""
    names = [
        tuple(bytes.fromhex(part).decode() for part in parts) for kind, *parts in found["objects"] if kind == "global"
    ]
    stop = found.get("stop")
    records = [
        Record(pickle.Unpickler, io.BytesIO(program)),
        Record(pickle.Unpickler, Buffered(program)),
        Record(pickle._Unpickler, io.BytesIO(program)),
    ]
    counts["read by Python"] += any(record.error is None for record in records)
    counts["read by Poise"] += stop is None
    counts["refused by Poise"] += stop == UNSUPPORTED
    counts["read by Poise alone"] += stop is None and all(record.error is not None for record in records)
    if stop == UNSUPPORTED:
        counts[re.sub("[0-9]+", "N", found["message"].split(",")[0])] += 1
        return
    for record in records:
        if record.names != names[: len(record.names)]:
            raise Different(f"Python names {record.names}, Poise {names}")
        if record.error is not None:
            continue
        if stop is not None:
            raise Different(f"Python reads it, Poise: {found['message']}")
        Comparison(found["objects"]).object(record.result, found["root"])
        if record.size != found["size"]:
            raise Different(f"Python reads {record.size} bytes, Poise {found['size']}")


def main():
    printer = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 10000
    chance = random.Random(seed)
    programs = WRITTEN + [random_program(chance) for _ in range(count)]
    lines = "".join(program.hex() + "\n" for program in programs)
    done = subprocess.run([printer], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    counts = collections.Counter()
    wrong = 0
    for program, line in zip(programs, done.stdout.decode().splitlines(), strict=True):
        try:
            check(program, json.loads(line), counts)
        except Different as problem:
            wrong += 1
            if wrong <= 20:
                print(f"differs: {program!r}\n  {problem}")
    print(f"{len(programs)} programs, {wrong} differ; " + ", ".join(f"{n} {what}" for what, n in counts.items()))
    read = counts["read by Python"]
    assert read > count // 4, "too few programs are right to compare"
    assert counts["refused by Poise"] < count // 4, "Poise refuses too much"
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
