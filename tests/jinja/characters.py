"""Every character in the methods of texts that depend on its properties."""

import unicodedata

METHODS = [
    "isspace", "isalpha", "isdecimal", "isdigit", "isnumeric", "isalnum", "islower", "isupper", "istitle", "isprintable",
    "isidentifier", "lower", "upper", "title", "swapcase", "casefold", "capitalize",
]  # fmt: skip
# Each template takes 64 characters c. The last lines look for words, and for the end of a word.
TEMPLATE = (
    "{% for c in s %}" + "".join(f"{{{{ c.{method}() }}}}," for method in METHODS) + "{{ ('a' + c).isidentifier() }}"
    "{{ (c + 'Σ').lower() }}{{ ('AΣ' + c).lower() }}{{ ('ΑΣ' + c + 'Α').lower() }}{{ (c + 'a').title() }}"
    "{{ (c ~ 'x ' ~ c)|wordcount }}{{ (c ~ 'Σ')|title }}{{ c|int(-1) }}{{ [c] }}{{ '%a' % c }}{{ '{!a}'.format(c) }}"
    "\n{% endfor %}"
)


def is_tested(code):
    """Leaves out characters that are alike in all properties, and those that Python's Unicode lacks."""
    character = chr(code)
    if unicodedata.category(character) in ("Cn", "Cs", "Co"):
        return False
    name = unicodedata.name(character, "")
    is_alike = name.startswith(("CJK UNIFIED", "HANGUL SYLLABLE", "TANGUT", "NUSHU", "CUNEIFORM", "EGYPTIAN"))
    return not is_alike or character.isnumeric() or code % 1024 == 0


def cases():
    tested = [chr(code) for code in range(0x110000) if is_tested(code)]
    for begin in range(0, len(tested), 64):
        yield TEMPLATE, {"s": "".join(tested[begin : begin + 64])}
