"""Whole files: save, convert, plan, verify, hash, diff, edit; and what these report."""

import collections.abc
import os
import typing
from dataclasses import dataclass, field

from . import _poise
from ._dtypes import known_name
from ._errors import BadArgumentError
from ._inputs import require_texts
from ._model import Finding, Model, open
from ._progress import callback_of

_STORAGE = """
    format: "zt", "safetensors", "alt", ... (poise.formats()); without it the extension of the output says it.
    dtype: floating-point tensors become "f32", "f16" or "bf16". quantize: they become codes: "qint8", "qint4", "group8", "group4", "group4:64", "q4_k", ...,
    or what a recipe gives them: "q4_k_m", ... (docs/quantization.md). imatrix: a file of llama-imatrix, by which the errors of blocks are weighed.
    keep: {pattern: type} for tensors that become something else. only, skip: patterns (or a list of them) of names. sparse: "csr" or "coo" where at
    least min_sparsity of the elements are zero. card: {"author": ..., ...}, what replaces the model's.
    compress: "zstd" or "zstd:LEVEL". digest: "xxh3", "sha256", "crc32c" or "none". align, shard_size: bytes. dialect: "alt.c".
    overwrite: replace an existing file. verify: compare the bytes with the digests that the input has for them.
    progress: a callable (done, total, item) in bytes, which may return False to stop; True: a bar, on a terminal.
"""


def _documented(function):
    function.__doc__ = function.__doc__.replace("\n    OPTIONS\n", _STORAGE)
    return function


@dataclass(frozen=True)
class Cast:
    """What a change of floating-point types did."""

    source: str
    target: str
    values: int
    to_zero: int  #: were not zero, are now
    to_subnormal: int  #: are below the target's normal range
    worst_error: float


@dataclass(frozen=True)
class Quantized:
    """What quantizing a tensor did."""

    tensor: str
    type: str
    bytes_in: int
    bytes_out: int
    worst: float
    rms: float
    signal_to_noise_db: float


@dataclass(frozen=True)
class ConvertReport:
    """What a conversion wrote and lost."""

    format: str
    outputs: "list[str]"  #: the file that opens the model, by the name that it got, then the others of its model; or the directory
    tensors: int
    skipped: int
    bytes_in: int
    bytes_out: int
    bytes_padding: int
    seconds: float
    warnings: "list[Finding]"
    losses: "list[str]"  #: what the format cannot hold, a sentence each
    casts: "list[Cast]"
    quantized: "list[Quantized]"


@dataclass(frozen=True)
class PlannedTensor:
    name: str
    shape: "tuple[int, ...]"
    source: str  #: how it is stored before: "bf16", "sparse_csr f16", ...
    target: str
    bytes_in: int
    bytes_out: typing.Optional[int]  #: before compression; None where it may become sparse


@dataclass(frozen=True)
class Plan:
    """What a conversion will do, from headers alone."""

    format: str
    tensors: "list[PlannedTensor]"
    skipped: "list[str]"
    warnings: "list[Finding]"
    losses: "list[str]"
    bytes_out: typing.Optional[int]
    exact: bool  #: False: bytes_out is the most there can be


@dataclass(frozen=True)
class VerifyReport:
    """Everything that is wrong with a file, in its order."""

    format: str
    tensors: int
    bytes: int  #: decoded, that were looked at
    digests: int  #: that were checked
    findings: "list[Finding]"

    @property
    def errors(self) -> "list[Finding]":
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def warnings(self) -> "list[Finding]":
        return [finding for finding in self.findings if finding.severity == "warning"]

    @property
    def ok(self) -> bool:
        """No errors; there may be warnings."""
        return not self.errors


@dataclass(frozen=True)
class ModelHash:
    """SHA-256 over decoded bytes: the same in every format."""

    parts: "dict[tuple[str, str], str]"  #: (tensor, role) -> 64 hexadecimal digits
    model: str
    content: typing.Optional[str]  #: of a zTensor 2 file: its content digest


@dataclass(frozen=True)
class FieldDifference:
    field: str
    a: str  #: "-" for an absent value
    b: str


@dataclass(frozen=True)
class TensorDifference:
    name: str
    a: str
    b: str
    different: typing.Optional[int] = None  #: elements; None where they cannot be compared
    max_absolute: typing.Optional[float] = None
    rms: typing.Optional[float] = None


@dataclass(frozen=True)
class DiffReport:
    fields: "list[FieldDifference]" = field(default_factory=list)
    tensors: "list[TensorDifference]" = field(default_factory=list)
    equal_tensors: int = 0

    @property
    def same(self) -> bool:
        return not self.fields and not self.tensors


@dataclass(frozen=True)
class EditReport:
    way: str  #: "appended" (a new manifest), "in place" (bytes of the header), or "rewritten" (the whole file)
    bytes: int  #: appended, replaced, or of the new file


@dataclass(frozen=True)
class FormatInfo:
    name: str
    description: str
    extension: str  #: "" for directories
    readable: bool
    writable: bool


Path = typing.Union[str, os.PathLike]


def _patterns(given):
    return [given] if isinstance(given, str) else given


def _options(compress=None, only=None, skip=None, **others):
    if compress is not None:
        name, _, level = str(compress).partition(":")
        if name != "zstd" or (level and not level.lstrip("-").isdigit()):
            raise BadArgumentError(f'compress is {compress!r}, expected "zstd" or "zstd:LEVEL"')
        others["zstd_level"] = int(level or 3)
    return {"only": _patterns(only), "skip": _patterns(skip), **others}


def _format_of(path, options):
    """The name of the format that save() writes; None: it will say that there is none."""
    extension = os.path.splitext(os.fsdecode(path))[1]
    return options.get("format") or next((one.name for one in formats() if one.extension and one.extension == extension), None)


def _converted(report):
    return ConvertReport(
        **{
            **report,
            "warnings": [Finding(*one) for one in report["warnings"]],
            "casts": [Cast(**one) for one in report["casts"]],
            "quantized": [Quantized(**one) for one in report["quantized"]],
        }
    )


@_documented
def save(model, path: Path, *, metadata: typing.Optional[dict] = None, progress=None, **options) -> ConvertReport:
    """Writes a Model, or a dict of arrays, to a file, which appears whole or not at all. Existing files are refused, unless overwrite=True.

    metadata: attributes of the file, in place of the model's; text alone where the format is safetensors.
    OPTIONS
    Raises BadArgumentError, UnsupportedError (the format cannot hold the model), InputOutputError, CancelledError, and what reading the model raises.
    """
    if not isinstance(model, collections.abc.Mapping):
        raise TypeError(f"a Model or a dict of arrays is saved, not {type(model).__name__}")
    if metadata is not None and _format_of(path, options) == "safetensors":
        require_texts(metadata)
    if not isinstance(model, Model) or metadata is not None:
        model = Model(dict(model), metadata=metadata, like=model if isinstance(model, Model) else None)
    return _converted(_poise.save(model._core, path, _checked(options), callback_of(progress, "save")))


@_documented
def convert(input: Path, output: Path, *, progress=None, **options) -> ConvertReport:
    """Converts a file in constant memory. The output appears whole or not at all; an input is never an output.

    vocab, merges: a Tiny Llama's tokenizer files. io: "map" or "read", as in open().
    OPTIONS
    Raises what open() and save() raise.
    """
    return _converted(_poise.convert(input, output, _checked(options), callback_of(progress, "convert")))


def plan(model, output: Path, **options) -> Plan:
    """What save() or convert() will write and lose, with the same options: from headers alone, before a byte is written.

    model: a Model, a path, or a dict of arrays.
    """
    options = _checked(options)
    if isinstance(model, collections.abc.Mapping):
        made = _poise.plan_model(_opened(model)._core, output, options)
    else:
        made = _poise.plan_file(model, output, options)
    return Plan(**{**made, "tensors": [PlannedTensor(**one) for one in made["tensors"]], "warnings": [Finding(*one) for one in made["warnings"]]})


_OPTIONS = frozenset(
    "format dtype quantize imatrix keep only skip sparse min_sparsity card compress digest align shard_size dialect overwrite verify vocab merges io".split()
)


def _checked(options):
    unknown = options.keys() - _OPTIONS
    if unknown:
        raise TypeError(f"unknown option {', '.join(sorted(unknown))}; there are {', '.join(sorted(_OPTIONS))}")
    if options.get("dtype") is not None:
        options["dtype"] = known_name(options["dtype"])
    if isinstance(options.get("keep"), dict):
        options["keep"] = {pattern: known_name(dtype) for pattern, dtype in options["keep"].items()}
    return _options(**options)


def verify(path: Path, *, io: str = "map", progress=None) -> VerifyReport:
    """Reads all of a file and tells everything that is wrong with it: structure, digests, every value."""
    report = _poise.verify(path, io, callback_of(progress, "verify"))
    return VerifyReport(**{**report, "findings": [Finding(*one) for one in report["findings"]]})


def _opened(model):
    if isinstance(model, Model):
        return model
    if isinstance(model, collections.abc.Mapping):
        return Model(model)
    if isinstance(model, (str, bytes, os.PathLike)):
        return open(model)
    raise TypeError(f"expected a Model, a path or a dict of arrays, not {type(model).__name__}")


def hash(model, *, progress=None) -> ModelHash:
    """SHA-256 of every part over decoded bytes, and one for the model. model: a Model, a path, or a dict of arrays."""
    return ModelHash(**_poise.hash(_opened(model)._core, callback_of(progress, "hash")))


def diff(a, b, *, verify: bool = True, progress=None) -> DiffReport:
    """What differs: metadata, shapes, values, across formats. a, b: Models, paths, or dicts of arrays. verify: check the files' digests on the way."""
    report = _poise.diff(_opened(a)._core, _opened(b)._core, verify, callback_of(progress, "diff"))
    return DiffReport([FieldDifference(**one) for one in report["fields"]], [TensorDifference(**one) for one in report["tensors"]], report["equal_tensors"])


def edit(path: Path, *, set: typing.Optional[dict] = None, delete: typing.Iterable[str] = (), force: bool = False) -> EditReport:
    """Changes the attributes of a zTensor or GGUF file without touching its tensors. set: {key: text}; delete: keys.
    force: change it although verify would fail afterwards, or configuration or vocabulary be lost."""
    return EditReport(**_poise.edit(path, {**(set or {})}, list(_patterns(delete)), force))


def formats() -> "list[FormatInfo]":
    """Every format there is."""
    return [FormatInfo(**one) for one in _poise.formats()]
