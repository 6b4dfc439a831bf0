"""The environment in which Hugging Face's transformers render chat templates, over Debian's python3-jinja2."""

import datetime
import functools
import json

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

NOW = datetime.datetime(2024, 7, 26, 13, 4, 5)  # render_lines.cpp has the same


class Generation(jinja2.ext.Extension):
    """{% generation %}: a block that marks what a model wrote."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def make_environment():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = NOW.strftime
    return environment


@functools.lru_cache(maxsize=None)
def compiled(environment, template):
    """Keeps compiled templates: jinja2 spends most of the time compiling, and cases share templates."""
    return environment.from_string(template)


def render(environment, template, variables):
    """Returns the text, or None if jinja2 raises an error."""
    try:
        return compiled(environment, template).render(**variables)
    except Exception:  # noqa: BLE001: jinja2 raises what Python raises
        return None
