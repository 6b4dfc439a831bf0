"""Random templates that set and read few names in nested scopes."""

import random

NAMES = ["x", "y", "z"]


def _reads(rng):
    return "".join(f"{{{{ {rng.choice(NAMES)} }}}}" for _ in range(rng.randint(0, 2)))


def _value(rng):
    return rng.choice([str(rng.randint(1, 9)), rng.choice(NAMES), f"'{rng.randint(1, 9)}' ~ {rng.choice(NAMES)}"])


def _statement(rng, depth):
    name = rng.choice(NAMES)
    kind = rng.randint(0, 9) if depth < 4 else 9
    inner = _body(rng, depth + 1) if kind < 9 else ""
    if kind == 0:
        test = rng.choice(["", f" if {rng.choice(NAMES)} != 3"])
        otherwise = rng.choice(["", "{% else %}" + _body(rng, depth + 1)])
        return f"{{% for {rng.choice([name, 'i'])} in {rng.choice(['[1, 2]', '[]'])}{test} %}}{inner}{otherwise}{{% endfor %}}"
    if kind in (1, 2):
        test = rng.choice(["true", "false", f"{name} is defined"])
        more = "".join(
            f"{{% elif {rng.choice(NAMES)} == 2 %}}" + _body(rng, depth + 1) for _ in range(rng.randint(0, 2))
        )
        # Not in all branches: versions of jinja2 differ if if, elif and else set the same name.
        otherwise = rng.choice(["", "{% else %}" + _body(rng, depth + 1)]) if not more else ""
        return f"{{% if {test} %}}{inner}{more}{otherwise}{{% endif %}}"
    if kind == 3:
        return f"{{% macro m({rng.choice(['', name, 'a=' + name])}) %}}{inner}{{% endmacro %}}{{{{ m() }}}}"
    if kind == 4:
        return f"{{% with {rng.choice(['', name + ' = ' + _value(rng)])} %}}{inner}{{% endwith %}}"
    if kind == 5:
        return f"{{% filter upper %}}{inner}{{% endfilter %}}"
    if kind == 6:
        return f"{{% set {name} %}}{inner}{{% endset %}}"
    if kind == 7:
        return f"{{% macro n() %}}{{{{ caller() }}}}{_reads(rng)}{{% endmacro %}}{{% call n() %}}{inner}{{% endcall %}}"
    if kind == 8:
        return f"{{% generation %}}{inner}{{% endgeneration %}}"
    return f"{{% set {name} = {_value(rng)} %}}"


def _body(rng, depth):
    return _reads(rng) + "".join(_statement(rng, depth) + _reads(rng) for _ in range(rng.randint(1, 3)))


def cases(count):
    rng = random.Random(7)
    for _ in range(count):
        given = {name: f"<{name}>" for name in NAMES if rng.random() < 0.7}
        yield _body(rng, 2), given
