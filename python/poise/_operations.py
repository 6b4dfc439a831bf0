"""Operations on whole files: save, convert, plan, verify, hash, stats, report, diff, edit."""

from __future__ import annotations

import collections.abc
import os
import pathlib
import tempfile
import typing

from . import _poise
from ._dtypes import normalize_type_name
from ._errors import BadArgumentError
from ._inputs import make_dict, require_texts
from ._model import Model, open
from ._progress import show_progress
from ._reports import (
    Cast,
    ConvertReport,
    DiffReport,
    EditReport,
    FieldDifference,
    Finding,
    FormatInfo,
    ModelHash,
    Plan,
    PlannedTensor,
    Quantized,
    TensorDifference,
    TensorStatistics,
    VerifyReport,
)
from ._types import Arrays, ConvertOptions, Function, Path, Patterns, Progress, SaveOptions, add_options

if typing.TYPE_CHECKING:
    from typing_extensions import Unpack

_STORAGE = """
    format: "zt", "safetensors", "alt", ... (poise.formats()); None: by the extension of the output. A name that ends in
    a slash is a directory, for a Hugging Face model.
    dtype: floating-point tensors become "f32", "f16" or "bf16". quantize: they become codes: "qint8", "qint4",
    "group8", "group4", "q4_k", ..., or the types of a recipe: "q4_k_m", ... (docs/quantization.md), or "auto": types
    with which the output has at most `size` bytes, or `bpw` bits per weight (docs/quantize-to-a-size.md). text: a file;
    for "auto", matrices weigh as much as they change the predictions for its text. group_size:
    codes of a group (default: 128). imatrix: a file of llama-imatrix that weighs the errors of blocks.
    delta: a file of poise delta, which is applied to the model, its base, first (docs/deltas.md).
    lora: an adapter that is merged first (a directory of PEFT or a GGUF file), or {path: scale} for several.
    strip_prefix, rename, add_prefix: new names for tensors, {"a.*": "b.*", "re:(x+)": "$1"}. layers: those that stay,
    "0:12,16:32". vocab_size: the number of tokens that stay; drop_rows: drop rows without a token
    (docs/rename-and-cut.md). set: {"card.license": ..., "config.rope_theta": ..., "note": ...}, values of card,
    configuration and attributes. keep: {pattern: type}, types for tensors whose names match. only, skip: a pattern or a
    list of patterns of names. sparse: "csr" or "coo" if at least min_sparsity (default: 0.5) of the elements are zero.
    card: {"author": ..., ...}, fields that replace the model's.
    compress: "zstd" or "zstd:LEVEL". digest: "xxh3", "sha256", "crc32c" or "none". align, shard_size: bytes, 4096 or
    "4KiB". dialect: "alt.c". vocab, merges: a Tiny Llama's tokenizer files.
    overwrite: replace an existing file. verify: compare the bytes with the digests that the input has for them.
    strict: refuse an input with warnings, such as a pickle that names code; nothing is written."""
_PROGRESS = """
    progress: True: a bar on a terminal, else lines; "plain": lines; or a function of (done, total, item), in bytes,
    which may return False to stop."""


def _add_docs(function: Function) -> Function:
    """Replaces OPTIONS and PROGRESS in a docstring by the descriptions above."""
    text = function.__doc__ or ""
    function.__doc__ = text.replace("\n    OPTIONS", _STORAGE).replace("\n    PROGRESS", _PROGRESS)
    return function


def _select_given(arguments: typing.Mapping[str, typing.Any]) -> dict[str, typing.Any]:
    """Returns the options of a conversion that are not None, in the extension's form."""
    options = {name: value for name, value in arguments.items() if value is not None}
    if "dtype" in options:
        options["dtype"] = normalize_type_name(options["dtype"])
    if "keep" in options:
        kept = make_dict("keep", options["keep"]) or {}
        options["keep"] = {pattern: normalize_type_name(dtype) for pattern, dtype in kept.items()}
    options.update({name: make_dict(name, options[name]) for name in ("card", "rename", "set") if name in options})
    options.update({name: _make_list(options[name]) for name in ("only", "skip") if name in options})
    return options


def _make_list(patterns: Patterns) -> list[str]:
    return [patterns] if isinstance(patterns, str) else list(patterns)


def _make_report(report: dict[str, typing.Any]) -> ConvertReport:
    report["warnings"] = [Finding(*one) for one in report["warnings"]]
    report["casts"] = [Cast(**one) for one in report["casts"]]
    report["quantized"] = [Quantized(**one) for one in report["quantized"]]
    return ConvertReport(**report)


@_add_docs
@add_options(SaveOptions)
def save(
    model: Model | Arrays,
    path: Path | typing.BinaryIO,
    *,
    metadata: typing.Mapping[str, typing.Any] | None = None,
    config: typing.Mapping[str, typing.Any] | None = None,
    progress: Progress = None,
    **options: Unpack[SaveOptions],
) -> ConvertReport:
    """Writes a Model, or a dict of arrays, to a file, which appears whole or not at all. Existing files are refused,
    unless overwrite=True.

    path: the file or directory, or a binary file object. For a file object, `format` must name a format of
    single files.
    metadata: attributes of the file, in place of the model's; for safetensors only text. config: keys of the
    configuration that replace the model's, or are added.
    OPTIONS
    PROGRESS
    Raises BadArgumentError, UnsupportedError (the format cannot hold the model), InputOutputError, CancelledError, and
    what reading the model raises.
    """
    given = _select_given(options)
    if not isinstance(model, collections.abc.Mapping):
        raise TypeError(f"expected a Model or a dict of arrays, not {type(model).__name__}")
    if not isinstance(path, (str, bytes, os.PathLike)):
        return _save_into(path, model, metadata, config, given, progress)
    if metadata is not None and _poise.output_format(path, given.get("format")) == "safetensors":
        require_texts(metadata)
    core = _make_model(model, metadata, config)._core
    with show_progress(progress, "save") as callback:
        return _make_report(_poise.save(core, path, given, callback))


def _save_into(
    file: typing.Any,
    model: Model | Arrays,
    metadata: typing.Mapping[str, typing.Any] | None,
    config: typing.Mapping[str, typing.Any] | None,
    options: dict[str, typing.Any],
    progress: Progress,
) -> ConvertReport:
    """Saves to a file object through a temporary file, since some formats are not written from front to back."""
    if not hasattr(file, "write"):
        raise TypeError(f"expected a path or a binary file object, not {type(file).__name__}")
    wanted = options.get("format")
    if wanted is None:
        raise BadArgumentError('cannot tell the format of a file object: pass format=, such as format="safetensors"')
    if any(one.name == wanted.lower() and not one.extension for one in formats()):
        raise BadArgumentError(f"{wanted} is a directory, but a file object holds one file; pass a path")
    if "shard_size" in options:
        raise BadArgumentError("shard_size spreads a model over files, but a file object holds one; pass a path")
    with tempfile.TemporaryDirectory() as directory:
        to = os.path.join(directory, "saved")
        report = save(model, to, metadata=metadata, config=config, progress=progress, **options)
        with pathlib.Path(report.outputs[0]).open("rb") as written:
            while piece := written.read(1 << 20):
                _write_whole(file, piece)
    report.outputs.clear()
    return report


def _write_whole(file: typing.Any, piece: bytes) -> None:
    """Writes all bytes to a file object. A raw one may write a part of them, or none if it would block."""
    rest = memoryview(piece)
    while rest:
        taken = file.write(rest)
        if not taken:
            raise BlockingIOError(f"the file object does not accept more data: {len(rest)} bytes of a piece are left")
        if not 0 < taken <= len(rest):
            raise BadArgumentError(f"write() of the file object returned {taken}, expected 1 to {len(rest)} bytes")
        rest = rest[taken:]


def _make_model(
    model: Model | Arrays,
    metadata: typing.Mapping[str, typing.Any] | None = None,
    config: typing.Mapping[str, typing.Any] | None = None,
) -> Model:
    if isinstance(model, Model):
        if metadata is None and config is None:
            return model
        return Model(model, metadata=metadata, config=config, like=model)
    return Model(model, metadata=metadata, config=config)


@_add_docs
@add_options(ConvertOptions)
def convert(
    input: Path, output: Path, *, progress: Progress = None, **options: Unpack[ConvertOptions]
) -> ConvertReport:
    """Converts a file in constant memory. The output appears whole or not at all; an input is never an output.

    OPTIONS
    io: "map" or "read", as in open().
    PROGRESS
    Raises what open() and save() raise.
    """
    given = _select_given(options)
    with show_progress(progress, "convert") as callback:
        return _make_report(_poise.convert(input, output, given, callback))


@_add_docs
@add_options(ConvertOptions, io=None)
def plan(model: Model | Path | Arrays, output: Path, **options: Unpack[ConvertOptions]) -> Plan:
    """Plans a save() or convert() with the same options: what it will write and lose. Reads headers only, and writes no
    file.

    model: a Model, a path, or a dict of arrays.
    OPTIONS
    io: "map" or "read", as in open(), for a path.
    """
    given = _select_given(options)
    if isinstance(model, collections.abc.Mapping):
        if "io" in given:
            raise BadArgumentError("io applies only to paths")
        made = _poise.plan_model(_make_model(model)._core, output, given)
    else:
        made = _poise.plan_file(model, output, given)
    made["tensors"] = [PlannedTensor(**one) for one in made["tensors"]]
    made["warnings"] = [Finding(*one) for one in made["warnings"]]
    return Plan(**made)


def verify(path: Path, *, io: str = "map", progress: Progress = None) -> VerifyReport:
    """Reads all of a file and reports all of its faults: structure, digests, every value.

    io, progress: as in convert().
    """
    with show_progress(progress, "verify") as callback:
        report = _poise.verify(path, io, callback)
    report["findings"] = [Finding(*one) for one in report["findings"]]
    return VerifyReport(**report)


def _open_model(model: Model | Path | Arrays) -> Model:
    if isinstance(model, collections.abc.Mapping):
        return _make_model(model)
    if isinstance(model, (str, bytes, os.PathLike)):
        return open(model)
    raise TypeError(f"expected a Model, a path or a dict of arrays, not {type(model).__name__}")


def hash(model: Model | Path | Arrays, *, progress: Progress = None) -> ModelHash:
    """Computes SHA-256 of every part over decoded bytes, and one for the model.

    model: a Model, a path, or a dict of arrays. progress: as in convert().
    """
    opened = _open_model(model)
    with show_progress(progress, "hash") as callback:
        return ModelHash(**_poise.hash(opened._core, callback))


def stats(
    model: Model | Path | Arrays,
    *,
    only: Patterns | None = None,
    skip: Patterns | None = None,
    progress: Progress = None,
) -> list[TensorStatistics]:
    """Computes statistics of the numbers of each tensor, in the model's order.

    model: a Model, a path, or a dict of arrays. only, skip: a pattern or a list of patterns of names. progress: as in
    convert(). Does not check digests. Raises BadArgumentError for a pattern that matches no tensor.
    """
    options = {name: _make_list(given) for name, given in (("only", only), ("skip", skip)) if given is not None}
    opened = _open_model(model)
    with show_progress(progress, "stats") as callback:
        return [TensorStatistics(**one) for one in _poise.stats(opened._core, options, callback)]


def report(
    path: Path,
    page: Path,
    *,
    against: Path | None = None,
    overwrite: bool = False,
    io: str = "map",
    progress: Progress = None,
) -> int:
    """Writes one page of HTML about a model, for a browser, and returns its size in bytes (docs/report.md).

    against: the model that this one was made from: the page then shows what differs, and what quantizing cost.
    overwrite: replace a page that exists. io, progress: as in convert(). Faults of the data are part of the page.
    """
    with show_progress(progress, "report") as callback:
        return _poise.report(path, page, against, overwrite, io, callback)


def diff(
    a: Model | Path | Arrays,
    b: Model | Path | Arrays,
    *,
    only: Patterns | None = None,
    skip: Patterns | None = None,
    tolerance: float = 0.0,
    values: bool = False,
    verify: bool = True,
    progress: Progress = None,
) -> DiffReport:
    """Compares two models across formats: metadata, shapes, values.

    a, b: Models, paths, or dicts of arrays. only, skip: a pattern or a list of patterns of names. tolerance: numbers
    that differ by at most this are equal. values: compare names, shapes and numbers, but not metadata and types.
    verify: check the files' digests of the compared bytes. progress: as in convert().
    Raises BadArgumentError for a pattern that matches no tensor, InvalidFileError for a wrong digest.
    """
    options: dict[str, typing.Any] = {"tolerance": tolerance, "values": values, "verify": verify}
    options.update({name: _make_list(given) for name, given in (("only", only), ("skip", skip)) if given is not None})
    left, right = _open_model(a), _open_model(b)
    with show_progress(progress, "diff") as callback:
        report = _poise.diff(left._core, right._core, options, callback)
    fields = [FieldDifference(**one) for one in report["fields"]]
    tensors = [TensorDifference(**one) for one in report["tensors"]]
    warnings = [Finding(*one) for one in report["warnings"]]
    counts = {name: report[name] for name in ("equal_tensors", "equal_as_numbers", "within_tolerance")}
    return DiffReport(fields, tensors, warnings=warnings, **counts)


def edit(
    path: Path,
    *,
    set: typing.Mapping[str, typing.Any] | None = None,
    delete: Patterns = (),
    force: bool = False,
    dry_run: bool = False,
) -> EditReport:
    """Changes the attributes of a zTensor, GGUF or safetensors file without touching its tensors.

    set: {key: value}. A key of GGUF keeps its type: it takes a value of that type, or text that spells one; lists are
    spelled in JSON. Attributes of safetensors are text: other values become JSON text. The report names the keys that
    are new. delete: a key, or a list of keys. force: make the change even if verify() would then fail, or the
    configuration or vocabulary would be lost. dry_run: report the change without making it.
    """
    return EditReport(**_poise.edit(path, make_dict("set", set) or {}, _make_list(delete), force, dry_run))


def formats() -> list[FormatInfo]:
    """Returns all formats, in the order in which open() tries them."""
    return [FormatInfo(**one) for one in _poise.formats()]
