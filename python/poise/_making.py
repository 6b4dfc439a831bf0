"""Makes adapters, deltas and importance matrices, and downloads models."""

from __future__ import annotations

import os
import typing

from . import _poise
from ._model import Model, open
from ._progress import show_progress
from ._reports import (
    ConvertLoraReport,
    DeltaReport,
    DeltaTensor,
    ExtractedMatrix,
    ExtractLoraReport,
    FetchReport,
    ImatrixReport,
)
from ._types import Callback, Path, Patterns, Progress, Size


def _make_patterns(patterns: Patterns | None) -> list[str] | None:
    return [patterns] if isinstance(patterns, str) else None if patterns is None else list(patterns)


def extract_lora(
    base: Path,
    tuned: Path,
    output: Path,
    *,
    rank: int = 16,
    only: Patterns | None = None,
    skip: Patterns | None = None,
    format: str | None = None,
    compress: str | None = None,
    digest: str | None = None,
    align: Size | None = None,
    overwrite: bool = False,
    verify: bool = True,
    dry_run: bool = False,
    io: str = "map",
    progress: Progress = None,
) -> ExtractLoraReport:
    """Writes a LoRA adapter that turns the model at `base` into about the one at `tuned` (docs/lora.md).

    rank: the rank of the product for each matrix, at most its shorter side. only, skip: a pattern or a list of
    patterns of tensors to look at, or to leave out. format: None: by the name of the output; GGUF has llama.cpp's form,
    other formats PEFT's. compress, digest, align, overwrite, io, progress: as in convert(). verify: check the digests
    of both models. dry_run: compute everything and write no file.
    Raises BadArgumentError if no matrix differs, UnsupportedError for a matrix without a name in the form, and what
    open() and save() raise.
    """
    options = {
        "rank": rank,
        "only": _make_patterns(only),
        "skip": _make_patterns(skip),
        "format": format,
        "compress": compress,
        "digest": digest,
        "align": align,
        "overwrite": overwrite,
        "verify": verify,
        "dry_run": dry_run,
        "io": io,
    }
    with show_progress(progress, "extract") as callback:
        report = _poise.extract_lora(base, tuned, output, options, callback)
    report["matrices"] = [ExtractedMatrix(**one) for one in report["matrices"]]
    return ExtractLoraReport(**report)


def convert_lora(
    adapter: Path,
    output: Path,
    *,
    base: Path | None = None,
    format: str | None = None,
    compress: str | None = None,
    digest: str | None = None,
    align: Size | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
    io: str = "map",
    progress: Progress = None,
) -> ConvertLoraReport:
    """Writes an adapter of PEFT in llama.cpp's form (GGUF), or the reverse (other formats) (docs/lora.md).

    base: the model of the adapter, or its config.json; None: the model that the adapter names. dry_run: check
    everything and write no file. Other options: as in extract_lora().
    Raises BadArgumentError for an adapter that has the form already, and without a base; InvalidFileError, listing
    faults; UnsupportedError for kinds of adapters that Poise does not convert.
    """
    options = {
        "base": base,
        "format": format,
        "compress": compress,
        "digest": digest,
        "align": align,
        "overwrite": overwrite,
        "dry_run": dry_run,
        "io": io,
    }
    with show_progress(progress, "convert") as callback:
        return ConvertLoraReport(**_poise.convert_lora(adapter, output, options, callback))


def make_delta(
    base: Path,
    tuned: Path,
    output: Path,
    *,
    compress: str | None = None,
    digest: str | None = None,
    align: Size | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
    io: str = "map",
    progress: Progress = None,
) -> DeltaReport:
    """Writes a small file with what the model at `tuned` changes in the one at `base` (docs/deltas.md).

    convert(base, output, delta=file) makes the tuned model again. compress: None: "zstd:3". dry_run: compute everything
    and write no file. Other options: as in convert(). Raises what open() and save() raise.
    """
    options = {
        "compress": compress,
        "digest": digest,
        "align": align,
        "overwrite": overwrite,
        "dry_run": dry_run,
        "io": io,
    }
    with show_progress(progress, "delta") as callback:
        report = _poise.make_delta(base, tuned, output, options, callback)
    report["changed"] = [DeltaTensor(**one) for one in report["changed"]]
    return DeltaReport(**report)


def measure_imatrix(
    model: Model | Path | None,
    text: str | None,
    output: Path,
    *,
    chunk_size: int = 512,
    chunks: int | None = None,
    process_output: bool = False,
    dataset: str = "",
    add: Path | typing.Iterable[Path] = (),
    threads: int = 0,
    exact: bool = False,
    overwrite: bool = False,
    progress: Progress = None,
) -> ImatrixReport:
    """Writes an importance matrix, for the option imatrix= of convert() and save(), as `poise imatrix` does.

    model: a Model or a path that Poise runs. text: like the texts that the model will meet. If model and text are None,
    the function only adds files up. output: GGUF, or llama-imatrix's older format if its name ends in ".dat".
    chunk_size: tokens that are computed together. chunks: the largest number of chunks. process_output: measure the
    output matrix, too. dataset: the text's name in the file. add: a path, or paths, of other importance matrices whose
    sums are added. threads, exact: as in Session. progress: as in convert(); it counts bytes of the text.
    Raises BadArgumentError for a text without a chunk, and for files of different models.
    """
    if (model is None) != (text is None):
        raise TypeError("model and text belong together: give both, or neither and files to add")
    if text is not None and not isinstance(text, str):
        raise TypeError(f"text is of type {type(text).__name__}, expected str")
    opened = open(model) if isinstance(model, (str, bytes, os.PathLike)) else model
    if opened is not None and not isinstance(opened, Model):
        raise TypeError(f"model is of type {type(model).__name__}, expected a Model or a path")
    options = {
        "chunk_size": chunk_size,
        "chunks": chunks,
        "process_output": process_output,
        "dataset": dataset,
        "add": [add] if isinstance(add, (str, bytes, os.PathLike)) else list(add),
        "threads": threads,
        "exact": exact,
        "overwrite": overwrite,
    }
    core = None if opened is None else opened._core
    size = len((text or "").encode(errors="surrogatepass"))
    with show_progress(progress, "imatrix") as callback:
        counted = callback and _scale_progress(callback, size)
        return ImatrixReport(**_poise.measure_imatrix(core, text, output, options, counted))


def _scale_progress(callback: Callback, size: int) -> Callback:
    """Returns a callback that reports chunks as bytes of a text."""
    return lambda done, total, _: callback(
        size * done // max(total, 1), size, f"chunk {min(done + 1, total)} of {total}"
    )


def fetch(
    url: str,
    *,
    output: Path | None = None,
    only: Patterns | None = None,
    overwrite: bool = False,
    parallel: int = 4,
    progress: Progress = None,
) -> FetchReport:
    """Downloads hf://ORG/NAME[@REVISION][/FILE] and checks the digest of each file (docs/remote.md).

    output: a directory for plain files; None: the Hub's cache on this machine. only: a pattern or a list of patterns of
    file names. overwrite: replace files in the directory whose content differs. parallel: files at once, 1 to 16.
    progress: as in convert(). After an interrupted call, the next call continues.
    Raises what open_url() raises, and InvalidFileError for a wrong digest.
    """
    options = {"output": output, "only": _make_patterns(only), "overwrite": overwrite, "parallel": parallel}
    with show_progress(progress, "fetch") as callback:
        return FetchReport(**_poise.fetch(url, options, callback))
