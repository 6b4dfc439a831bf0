"""Random templates from a grammar of Jinja's constructs. The same seed gives the same templates."""

import random

VARIABLES = {
    "s": "Hello, World",
    "t": "  mixed Case\ttext\nsecond line  ",
    "u": "naïve Ünïcode ß 日本 🎉",
    "e": "",
    "n": 7,
    "m": -3,
    "z": 0,
    "f": 2.5,
    "yes": True,
    "no": False,
    "none": None,
    "l": [3, 1, 2],
    "names": ["bob", "Alice", "carol", "Bob"],
    "deep": {"a": {"b": [1, {"c": "found"}]}, "x": 1.0, "items": "shadowed"},
    "people": [
        {"name": "Ann", "age": 31, "tags": ["x", "y"]},
        {"name": "bert", "age": 25, "tags": []},
        {"name": "Cyd", "age": 25, "tags": ["y"], "extra": None},
    ],
    "d": {"b": 2, "a": 1, "C": [1, 2]},
    "html": '<a href="x">&\'</a>',
}

TEXTS = ["s", "t", "u", "e", "html", "'a'", "'lo'", "', '", "'ab\\ncd'", '"q\\"q"', "'%s-%s'", "'x' 'y'"]
NUMBERS = ["n", "m", "z", "f", "1", "2", "3.5", "10", "0", "-1", "1e3", "0x1f", "1_000"]
LISTS = [
    "l",
    "names",
    "people",
    "[1, 2, 3]",
    "['a', 'b']",
    "range(4)",
    "[]",
    "(1, 2)",
    "deep.a.b",
    "d.items()|list",
    "d.keys()|list",
]
DICTS = ["d", "deep", "people[0]", "{'k': 1, 'j': [2]}", "{}", "dict(a=1, b='x')"]
OTHERS = ["yes", "no", "none", "missing", "deep.missing", "people[9]", "d['zz']", "loop"]

TEXT_METHODS = [
    "upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()", "lstrip()", "rstrip()", "strip('Hd')",
    "split()",
    "split(',')", "split(' ', 1)", "rsplit(None, 1)", "rsplit(' ', 1)", "splitlines()", "splitlines(true)",
    "startswith('Hel')",
    "endswith(('ld', 'x'))", "replace('l', 'L')", "replace('', '-', 3)", "find('o')", "rfind('o')", "find('o', 5)",
    "count('l')",
    "index('l')", "partition(',')", "rpartition(' ')", "zfill(15)", "center(20, '*')", "ljust(15)", "rjust(15, '.')",
    "isdigit()",
    "isalpha()", "isalnum()", "isspace()", "islower()", "isupper()", "istitle()", "removeprefix('He')",
    "removesuffix('ld')",
    "casefold()", "expandtabs(4)", "isascii()", "isidentifier()", "isprintable()", "isnumeric()", "join(['a', 'b'])",
    "format('A', 'B')", "encode", "append", "__class__", "nothing",
]  # fmt: skip
DICT_METHODS = [
    "items()",
    "keys()",
    "values()",
    "get('a')",
    "get('zz', 5)",
    "copy()",
    "pop('a')",
    "update({})",
    "a",
    "b",
]
LIST_METHODS = ["index(2)", "count(1)", "append(3)", "copy()", "nothing", "0"]

TEXT_FILTERS = [
    "upper", "lower", "title", "capitalize", "trim", "length", "list", "reverse", "replace('l', 'r')",
    "replace('l', 'r', 1)",
    "center(20)", "indent", "indent(2, true)", "indent('>> ', blank=true)", "truncate(9)", "truncate(9, true)",
    "truncate(8, false, '~', 0)",
    "wordcount", "urlencode", "e", "escape", "forceescape", "safe", "string", "int", "float", "int(5)", "default('D')",
    "d('D', true)",
    "first", "last", "tojson", "tojson(ensure_ascii=true)", "join('-')", "format(1, 2)", "batch(3)|list",
    "slice(3)|list", "sort|join",
    "unique|list", "trim('H ')", "count", "select|list", "attr('x')", "max", "min",
]  # fmt: skip
LIST_FILTERS = [
    "length", "first", "last", "join", "join(', ')", "list", "reverse|list", "sort", "sort(reverse=true)",
    "sort(case_sensitive=true)",
    "unique|list", "min", "max", "sum", "tojson", "tojson(indent=2)", "batch(2)|list", "batch(2, 'x')|list",
    "slice(2)|list",
    "slice(2, 'x')|list", "map('upper')|list", "map('string')|join", "map(attribute='name')|list",
    "map(attribute='zz', default=1)|list",
    "select|list", "select('odd')|list", "reject('none')|list", "select('equalto', 2)|list",
    "select('in', [1, 2])|list",
    "selectattr('name')|list", "selectattr('age', '>', 26)|list",
    "rejectattr('extra', 'defined')|map(attribute='name')|list",
    "groupby('age')", "groupby('age')|map(attribute='grouper')|list", "groupby('zz', default=0)|length",
    "sort(attribute='age')",
    "sort(attribute='age,name')|map(attribute='name')|join(',')", "map('length')|list", "string", "default('D')",
    "d('D', true)",
    "max(attribute='age')", "sum(attribute='age')", "map('replace', 'a', 'b')|list", "int", "float", "tojson(indent=0)",
    "tojson(separators=(',', ':'))", "select('string')|list", "map('default', 'x')|list",
]  # fmt: skip
DICT_FILTERS = [
    "length", "list", "dictsort", "dictsort(by='value')", "dictsort(true)", "dictsort(reverse=true)", "items|list",
    "tojson",
    "tojson(indent=2)", "tojson(sort_keys=true)", "tojson(indent='\t')", "first", "string", "default(1)", "urlencode",
    "join(',')", "attr('a')",
]  # fmt: skip
NUMBER_FILTERS = [
    "abs", "int", "float", "round", "round(1)", "round(1, 'floor')", "round(0, 'ceil')", "round(-1)", "string",
    "tojson",
    "filesizeformat", "filesizeformat(true)", "default(3)", "length", "list", "int(3)",
]  # fmt: skip
OTHER_FILTERS = [
    "default('D')",
    "d('D', true)",
    "string",
    "tojson",
    "length",
    "list",
    "upper",
    "int",
    "first",
    "join",
    "trim",
    "items|list",
]

TESTS = [
    "defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "mapping", "sequence",
    "iterable", "callable",
    "odd", "even", "true", "false", "lower", "upper", "escaped", "divisibleby(2)", "divisibleby 3", "eq 2", "== 'a'",
    "gt 1", "lt(5)",
    "ge 2", "le 2", "ne 1", "in [1, 2, 'a']", "sameas true", "sameas none", "filter", "test", "equalto('a')",
]  # fmt: skip

FORMATS = [
    "'%s'",
    "'%d'",
    "'%5.2f'",
    "'%-8s|'",
    "'%05d'",
    "'%x'",
    "'%r'",
    "'%+d'",
    "'%e'",
    "'%g'",
    "'%%'",
    "'%(a)s'",
    "'%c'",
    "'%s %s'",
    "'%.2s'",
    "'%i'",
]
BRACES = [
    "'{}'",
    "'{0}{0}'",
    "'{:>8}'",
    "'{:.2f}'",
    "'{:05d}'",
    "'{!r}'",
    "'{a}'",
    "'{0[0]}'",
    "'{:,}'",
    "'{{}}'",
    "'{:^9}'",
    "'{:x}'",
    "'{0.real}'",
    "'{:*<6}'",
    "'{'",
    "'{:e}'",
]
SLICES = [
    "[0]",
    "[-1]",
    "[1:]",
    "[:2]",
    "[::-1]",
    "[1:3]",
    "[::2]",
    "[-2:]",
    "[5:1:-2]",
    "[9]",
    "['a']",
    "[:-1]",
    "[1:2:0]",
]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def any(self, items):
        return self.random.choice(items)

    def text(self, depth):
        kind = self.random.randrange(9)
        if depth <= 0 or kind < 3:
            return self.any(TEXTS)
        if kind == 3:
            return f"{self.text(depth - 1)}.{self.any(TEXT_METHODS)}"
        if kind == 4:
            return f"({self.value(depth - 1)} ~ {self.value(depth - 1)})"
        if kind == 5:
            return f"({self.text(depth - 1)} + {self.text(depth - 1)})"
        if kind == 6:
            return f"({self.text(depth - 1)})|{self.any(TEXT_FILTERS)}"
        if kind == 7:
            return f"({self.text(depth - 1)} * {self.any(['2', '0', 'n', '-1'])})"
        return f"{self.any(TEXTS[:5])}{self.any(SLICES)}"

    def number(self, depth):
        kind = self.random.randrange(6)
        if depth <= 0 or kind < 2:
            return self.any(NUMBERS)
        if kind == 2:
            return f"({self.number(depth - 1)})|{self.any(NUMBER_FILTERS)}"
        if kind == 3:
            return f"-{self.number(depth - 1)}"
        sign = self.any(["+", "-", "*", "/", "//", "%", "+", "-"])
        return f"({self.number(depth - 1)} {sign} {self.number(depth - 1)})"

    def list(self, depth):
        kind = self.random.randrange(6)
        if depth <= 0 or kind < 2:
            return self.any(LISTS)
        if kind == 2:
            return f"({self.list(depth - 1)} + {self.list(depth - 1)})"
        if kind == 3:
            return f"({self.any(LISTS)}){self.any(SLICES)}"
        if kind == 4:
            return f"[{self.value(depth - 1)}, {self.value(depth - 1)}]"
        return f"({self.list(depth - 1)})|{self.any(LIST_FILTERS)}"

    def dict(self, depth):
        kind = self.random.randrange(4)
        if depth <= 0 or kind < 2:
            return self.any(DICTS)
        if kind == 2:
            return (
                f"{{{self.any(['1', 'none', 's', repr('k')])}: {self.value(depth - 1)}, 'z': {self.value(depth - 1)}}}"
            )
        return f"({self.dict(depth - 1)}).{self.any(DICT_METHODS)}"

    def truth(self, depth):
        kind = self.random.randrange(8)
        if kind == 0:
            return f"{self.value(depth - 1)} is {self.any(['', 'not '])}{self.any(TESTS)}"
        if kind == 1:
            return f"{self.value(depth - 1)} {self.any(['==', '!='])} {self.value(depth - 1)}"
        if kind == 2:
            return f"{self.value(depth - 1)} {self.any(['<', '>', '<=', '>='])} {self.value(depth - 1)}"
        if kind == 3:
            return f"{self.value(depth - 1)} {self.any(['in', 'not in'])} {self.value(depth - 1)}"
        if kind == 4:
            return f"not {self.value(depth - 1)}"
        if kind == 5:
            return f"({self.value(depth - 1)} {self.any(['and', 'or'])} {self.value(depth - 1)})"
        if kind == 6:
            return f"{self.number(0)} < {self.number(0)} <= {self.number(0)}"
        return self.any(["yes", "no", "l", "e", "missing is defined"])

    def value(self, depth):
        kind = self.random.randrange(14)
        if kind < 3:
            return self.text(depth)
        if kind < 6:
            return self.number(depth)
        if kind < 8:
            return self.list(depth)
        if kind < 10:
            return self.dict(depth)
        if kind == 10 and depth > 0:
            return f"({self.truth(depth)})"
        if kind == 11 and depth > 0:
            return f"({self.value(depth - 1)} if {self.truth(depth - 1)} else {self.value(depth - 1)})"
        if kind == 12 and depth > 0:
            return f"({self.any(OTHERS + LISTS + DICTS)})|{self.any(OTHER_FILTERS + LIST_FILTERS + DICT_FILTERS)}"
        return self.any(OTHERS)

    def format(self):
        if self.random.randrange(2):
            values = self.any(["s", "n", "f", "(s, n)", "d", "l", "(1,)", "none", "m", "-f", "(1, 2, 3)", "'é'", "yes"])
            return f"{self.any(FORMATS)} % {values}"
        return f"{self.any(BRACES)}.format({self.any(['s', 'n', 'f', 's, n', 'a=1', 'l', '12345678', '-f', 'none', 'd', 'yes', ''])})"

    def space(self):
        return self.any(["", " ", "\n", "  \n", "\n  ", "x", " x\n", "\t"])

    def tag(self, inner):
        return f"{{%{self.any(['', '', '-', '+'])} {inner} {self.any(['', '', '-', '+'])}%}}"

    def output(self, depth):
        return f"{{{{{self.any(['', '', '-'])} {self.value(depth)} {self.any(['', '', '-'])}}}}}"

    def statement(self, depth):
        kind = self.random.randrange(16)
        body = lambda: self.body(depth - 1)  # noqa: E731
        if depth <= 0 or kind < 3:
            return self.output(2)
        if kind == 3:
            return f"{self.tag('if ' + self.truth(2))}{body()}{self.tag('elif ' + self.truth(1))}{body()}{self.tag('else')}{body()}{self.tag('endif')}"
        if kind == 4:
            inner = self.any(
                [
                    "loop.index",
                    "loop.first",
                    "loop.last",
                    "loop.previtem",
                    "loop.nextitem",
                    "loop.length",
                    "loop.revindex",
                    "loop.cycle('a', 'b')",
                    "loop.changed(x)",
                    "x",
                    "x.name",
                    "x ~ loop.index0",
                ]
            )
            extra = self.any(["", "", " if x", " if loop is defined"])
            control = self.any(
                [
                    "",
                    "",
                    "{% if loop.index > 2 %}{% break %}{% endif %}",
                    "{% if loop.first %}{% continue %}{% endif %}",
                ]
            )
            return f"{self.tag('for x in ' + self.list(1) + extra)}{control}{{{{ {inner} }}}}{body()}{self.tag('else')}none{self.tag('endfor')}"
        if kind == 5:
            return f"{self.tag('for k, v in ' + self.any(['d.items()', 'd|dictsort', 'deep.items()', 'd|items', 'l']))}{{{{ k }}}}={{{{ v }}}};{self.tag('endfor')}"
        if kind == 6:
            return f"{self.tag('set y = ' + self.value(2))}{{{{ y }}}}{body()}{{{{ y }}}}"
        if kind == 7:
            return f"{self.tag('set y')}{body()}{self.tag('endset')}[{{{{ y }}}}]"
        if kind == 8:
            return f"{self.tag('set ns = namespace(c=0, t=s)')}{self.tag('for x in ' + self.list(1))}{{% set ns.c = ns.c + 1 %}}{{% set q = x %}}{self.tag('endfor')}{{{{ ns.c }}}}{{{{ q }}}}"
        if kind == 9:
            arguments = self.any(["1", "1, 2", "b=2", "1, c=3", "1, 2, 3, 4", "a=s, zz=1", "*l", "**{'a': 5}", ""])
            shown = self.any(
                [
                    "{{ a }}{{ b }}",
                    "{{ a }}{{ varargs }}",
                    "{{ a }}{{ kwargs }}",
                    "{{ a ~ b }}{{ varargs }}{{ kwargs }}",
                ]
            )
            return f"{self.tag('macro g(a, b=n)')}{shown}{self.tag('endmacro')}{{{{ g({arguments}) }}}}"
        if kind == 10:
            return f"{self.tag('macro w(t)')}<{{{{ t }}}}>{{{{ caller({self.any(['', 'n', '1, 2'])}) }}}}{self.tag('endmacro')}{self.tag('call' + self.any(['', '(o)', '(o=2)']) + ' w(s)')}{body()}{{{{ o }}}}{self.tag('endcall')}"
        if kind == 11:
            return f"{self.tag('filter ' + self.any(['upper', 'trim', 'replace(1, 2)', 'indent(2)', 'upper|trim']))}{body()}{self.tag('endfilter')}"
        if kind == 12:
            return f"{self.tag('with y = ' + self.value(1) + ', w = s')}{{{{ y }}}}{{{{ w }}}}{body()}{self.tag('endwith')}{{{{ w }}}}"
        if kind == 13:
            return f"{self.any(['{# c #}', '{#- c -#}', '{#+ c +#}'])}{self.tag('raw')}{{{{ x }}}}{{% y %}} {self.tag('endraw')}"
        if kind == 14:
            return f"{self.tag('for x in [1, [2, [3, 4]]] recursive')}{{{{ loop.depth }}}}{{% if x is iterable %}}({{{{ loop(x) }}}}){{% else %}}{{{{ x }}}}{{% endif %}}{self.tag('endfor')}"
        return f"{self.tag('generation')}{body()}{self.tag('endgeneration')}"

    def body(self, depth):
        return "".join(self.space() + self.statement(depth) + self.space() for _ in range(self.random.randrange(1, 3)))


def cases(count, seed=1):
    maker = Maker(seed)
    for number in range(count):
        kind = number % 4
        if kind < 2:
            yield f"{{{{ {maker.value(3)} }}}}", VARIABLES
        elif kind == 2:
            yield maker.body(3), VARIABLES
        else:
            yield f"{{{{ {maker.format() if number % 8 == 3 else maker.truth(3)} }}}}", VARIABLES
