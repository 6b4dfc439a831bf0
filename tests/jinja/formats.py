"""Random format specifications and numbers as texts. The same seed gives the same templates."""

import random

NUMBERS = [
    "0", "1", "-1", "7", "12", "255", "1234", "-1234", "65", "16777215", "123456789", "9223372036854775807",
    "-9223372036854775807", "true", "0.0", "-0.0", "1.0", "0.5", "-2.5", "123.45", "123456.0", "999999.5", "1e16",
    "1e20", "-1e-5", "0.0001", "1234567.891", "1e300", "5e-324", "big * big", "-big * big", "(big * big - big * big)", "9.5", "0.1",
]  # fmt: skip
TEXTS = ["''", "'a'", "'ab'", "'é'", "'日本🎉'", "none", "[1]", "missing", "range(3)", "'<'|safe"]

# Texts for int and float, and bases.
WRITTEN = [
    "", "0", "12", "-12", "+7", " 12 ", "1_000", "1__0", "_1", "1_", "0x1F", "0x_ff", "0X", "0b101", "0o17", "010", "00",
    "-0x1f", "12.5", "1e3", "1_0e1_0", "1_e5", "1e_5", "i_nf", "inf", "-Infinity", "nan", "+nan", "+-1", "1.", ".5", ".",
    "1e400", "-1e400", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "99999999999999999999x", "٣٤", "-１２.５", "\u30001\u2003", "\x1c12", "1\x1c", "²", "abc", "zz", "0z", "09007199254740993",
    "1 2", "nan(1)", "0x1p3", "1e5 ", "\t5\n", "𝟗𝟘",
]  # fmt: skip
BASES = [
    "", "", "(0, 0)", "(0, 2)", "(0, 8)", "(5, 16)", "(0, 36)", "(0, 40)", "(0, 1)", "(0, -3)", "('x', 10)",
    "(0, none)", "(0, 'a')", "(0, 16.0)", "(0, true)",
]  # fmt: skip
ROUNDED = [
    "2.5", "3.5", "-2.5", "2.675", "1e22", "1.5e22", "2.5e22", "123456789e20", "-8.5e30", "5e307", "1.7e308", "0.5", "-0.4",
    "45", "-45", "55", "9223372036854775807", "9007199254740993", "1e-300", "1e400", "5e15", "0.1", "1234.5678", "true", "'a'",
]  # fmt: skip
DIGITS = [
    "0", "1", "-1", "2", "-2", "5", "17", "-22", "-23", "-24", "-30", "-307", "-308", "-309", "300", "308", "310", "25",
    "none", "true", "0.5", "'a'",
]  # fmt: skip


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def any(self, items):
        return self.random.choice(items)

    def spec(self):
        fill = self.any(["", "", "<", ">", "^", "=", "*<", "é>", "0=", "0<", "🎉^", "x="])
        sign = self.any(["", "", "", "+", "-", " "])
        marks = self.any(["", "", "", "z", "#", "z#"])
        width = self.any(["", "", "0", "1", "5", "05", "010", "013", "12", "020", "٨"])
        grouping = self.any(["", "", "", ",", "_", ",_", ",,"])
        precision = self.any(["", "", "", ".0", ".1", ".2", ".3", ".7", ".20", "."])
        kind = self.any(["", "", *"dboxXcneEfFgG%sq", "é"])
        return fill + sign + marks + width + grouping + precision + kind

    def braces(self):
        value = self.any(NUMBERS + TEXTS[: self.random.randrange(1, len(TEXTS))])
        name = self.any(["", "", "", "0", "a", "0.real", "0[0]", "a.b", ".x", "0.", "0[]", "0[0", "0[0]x", "a[}]", "{"])
        conversion = self.any(["", "", "", "", "!r", "!s", "!a", "!", "!q", "!rr"])
        end = self.any(["}"] * 9 + ["", "}}"])
        more = self.any(["", "", "", "{}", "{0}", "{:{}}", "{a}", "{{}}", "{1[0]}"])
        markup = self.any(["", "", "|safe"])
        field = f"{{{name}{conversion}{self.any([':', ':', ':', ''])}{self.spec()}{end}"
        return f"('{field}{more}'{markup}).format({value}, 5, 6, a={value})"

    def percent(self):
        flags = "".join(self.any(["", "-", "+", " ", "#", "0"]) for _ in range(2))
        width = self.any(["", "", "1", "5", "12", "*"])
        precision = self.any(["", "", ".0", ".1", ".3", ".10", ".", ".*"])
        kind = self.any(["", "", "l", "h"]) + self.any(list("diuoxXeEfFgGcrsa%bq"))
        key = self.any(["", "", "", "", "(a)", "(a(b))", "(zz)", "("])
        markup = self.any(["", "", "|safe"])
        values = [self.any(["3", "12", "'x'"]) for part in (width, precision) if "*" in part]
        values.append(self.any([*NUMBERS, *TEXTS, "'12'", "'1.5'"]))
        values += self.any([[], [], [], ["1"]])
        shown = f"{{'a': {values[-1]}, 'a(b)': 'ö'}}" if key else f"({', '.join(values)},)"
        return f"('<%{key}{flags}{width}{precision}{kind}>'{markup}) % {shown}"

    def number(self):
        kind = self.random.randrange(4)
        if kind == 0:
            return f"{self.any(WRITTEN)!r}|int{self.any(BASES)}"
        if kind == 1:
            return f"{self.any(WRITTEN)!r}|float{self.any(['', '(3)'])}"
        method = self.any(["", ", 'ceil'", ", 'floor'", ", 'common'"])
        return f"({self.any(ROUNDED)})|round({self.any(DIGITS)}{method})"


def cases(count, seed=2):
    maker = Maker(seed)
    for number in range(count):
        made = [maker.braces, maker.braces, maker.percent, maker.number][number % 4]()
        yield f"{{{{ {made} }}}}", {"big": 1e300}  # jinja2 cannot compile a call with an infinite constant
