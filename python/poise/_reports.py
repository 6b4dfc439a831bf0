"""Defines the reports that operations on whole files return."""

from __future__ import annotations

import typing
from dataclasses import dataclass, field

from ._progress import format_bytes


class Finding(typing.NamedTuple):
    """States a fact about a file that its user should know."""

    severity: str  #: "error": the file is not what it claims to be; "warning": it can be used
    message: str
    path: str
    offset: int | None

    def __str__(self) -> str:
        return self.message if self.offset is None else f"{self.message} (at {self.offset:#x})"


@dataclass(frozen=True)
class Cast:
    """Describes the effect of a cast between floating-point types."""

    source: str
    target: str
    values: int
    to_zero: int  #: numbers other than zero that became zero
    to_subnormal: int  #: numbers that fell below the target's normal range
    not_finite: int  #: infinite numbers and NaNs, which stay so
    worst_error: float


@dataclass(frozen=True)
class Quantized:
    """Describes the effect of quantizing a tensor."""

    tensor: str
    type: str
    bytes_in: int
    bytes_out: int
    worst: float
    rms: float
    signal_to_noise_db: float


class _Short:
    """Adds a one-line representation to reports."""

    def _summarize(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"<poise.{type(self).__name__}: {self._summarize()}>"


@dataclass(frozen=True, repr=False)
class ConvertReport(_Short):
    """Describes what a conversion wrote and lost."""

    format: str
    #: the written files: first the one that opens the model, then the others; or the directory; empty for a file object
    outputs: list[str]
    tensors: int
    skipped: int
    bytes_in: int
    bytes_out: int
    bytes_padding: int
    seconds: float
    warnings: list[Finding]
    losses: list[str]  #: what the format cannot hold, one sentence each
    changes: list[str]  #: changes of names, layers, vocabulary and keys, one sentence each
    casts: list[Cast]
    quantized: list[Quantized]

    def _summarize(self) -> str:
        name = f"{self.outputs[0]!r}, " if self.outputs else ""
        return (
            f"{name}{self.format}, {_count_noun(self.tensors, 'tensor')}, {format_bytes(self.bytes_in)} in, "
            f"{format_bytes(self.bytes_out)} out{_describe_notes(self.warnings, self.losses)}"
        )


@dataclass(frozen=True)
class PlannedTensor:
    """Describes a tensor before and after a conversion."""

    name: str
    shape: tuple[int, ...]
    source: str  #: the type in the input: "bf16", "sparse_csr f16", ...
    target: str  #: the type in the output
    bytes_in: int
    bytes_out: int | None  #: the size before compression; None if it may become sparse


@dataclass(frozen=True, repr=False)
class Plan(_Short):
    """Describes the plan of a conversion, from headers alone."""

    format: str
    tensors: list[PlannedTensor]
    skipped: list[str]
    warnings: list[Finding]
    losses: list[str]
    changes: list[str]  #: changes of names, layers, vocabulary and keys, one sentence each
    bytes_out: int | None
    exact: bool  #: False: bytes_out is an upper bound

    def _summarize(self) -> str:
        size = "" if self.bytes_out is None else f", {'' if self.exact else 'at most '}{format_bytes(self.bytes_out)}"
        notes = _describe_notes(self.warnings, self.losses)
        return f"{self.format}, {_count_noun(len(self.tensors), 'tensor')}{size}{notes}"


@dataclass(frozen=True, repr=False)
class VerifyReport(_Short):
    """Lists all faults of a file, in the order of the file. The report is true if there are no errors."""

    format: str
    tensors: int
    bytes: int  #: decoded bytes that were read
    digests: int  #: checked digests of parts and whole files
    checksums: int  #: checked checksums of members of archives
    findings: list[Finding]

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def warnings(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "warning"]

    @property
    def ok(self) -> bool:
        """True if there are no errors; there may be warnings."""
        return not self.errors

    def __bool__(self) -> bool:
        return self.ok

    def _summarize(self) -> str:
        errors = self.errors
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        verdict = f"{str(errors[0])!r}{more}" if errors else "ok"
        checked = [(self.digests, "digest"), (self.checksums, "checksum")]
        digests = ", ".join(_count_noun(count, noun) for count, noun in checked if count) or "no digests"
        notes = _describe_notes(self.warnings, [])
        return f"{verdict}, {self.format}, {_count_noun(self.tensors, 'tensor')}, {digests}{notes}"


@dataclass(frozen=True, repr=False)
class ModelHash(_Short):
    """Has SHA-256 digests of decoded bytes, which are the same in every format."""

    parts: dict[tuple[str, str], str]  #: (tensor, role) -> 64 hexadecimal digits
    model: str
    content: str | None  #: the content digest of a zTensor 2 file; None for other formats

    def _summarize(self) -> str:
        return f"{self.model}, of {_count_noun(len(self.parts), 'part')}"


@dataclass(frozen=True)
class TensorStatistics:
    """Has statistics of a tensor's numbers. Codes are decoded, booleans are 0 and 1, a sparse tensor has its zeros.

    min to rms cover the finite numbers; they are NaN if there are none.
    """

    name: str
    shape: tuple[int, ...]
    type: str  #: how the elements are stored: "bf16", "q4_k", "sparse_csr f16"
    elements: int
    problem: str  #: the reason why there are no numbers; empty if there are
    min: float
    max: float
    mean: float
    std: float  #: standard deviation, divided by the count
    rms: float
    zeros: int
    subnormals: int
    nans: int
    infinities: int
    outliers: int  #: finite numbers further from the mean than six standard deviations
    #: the index in the first dimension whose numbers have the largest rms, and this rms
    largest_channel: tuple[int, float] | None
    #: low, high, and a sample of the numbers counted in eight bins of equal width between them
    histogram: tuple[float, float, tuple[int, ...]] | None


@dataclass(frozen=True)
class FieldDifference:
    """Describes a field of card, configuration, vocabulary or attributes that differs."""

    field: str
    a: str  #: "-" for an absent value
    b: str


@dataclass(frozen=True)
class TensorDifference:
    """Describes a tensor that differs."""

    name: str
    a: str
    b: str
    different: int | None = None  #: the number of elements that differ; None if they cannot be compared
    max_absolute: float | None = None
    rms: float | None = None
    max_relative: float | None = None  #: largest |a - b| / |a| of the elements of `a` that are not zero
    signal_to_noise_db: float | None = None


@dataclass(frozen=True, repr=False)
class DiffReport(_Short):
    """Lists the differences of two models."""

    fields: list[FieldDifference] = field(default_factory=list)
    tensors: list[TensorDifference] = field(default_factory=list)
    equal_tensors: int = 0
    equal_as_numbers: int = 0  #: equal tensors whose bytes differ (0.0 and -0.0, NaNs) or, with values=True, types
    within_tolerance: int = 0  #: equal tensors whose numbers differ, by at most the tolerance
    warnings: list[Finding] = field(default_factory=list)  #: digests that could not be checked

    @property
    def same(self) -> bool:
        return not self.fields and not self.tensors

    def _summarize(self) -> str:
        differ = f"{_count_noun(len(self.fields), 'field')} and {_count_noun(len(self.tensors), 'tensor')} differ"
        numbers = f", {self.equal_as_numbers} as numbers alone" if self.equal_as_numbers else ""
        numbers += f", {self.within_tolerance} within the tolerance" if self.within_tolerance else ""
        return (
            f"{'nothing differs' if self.same else differ}, {_count_noun(self.equal_tensors, 'equal tensor')}{numbers}"
        )


@dataclass(frozen=True)
class ExtractedMatrix:
    """Describes a matrix that an extracted adapter changes."""

    name: str
    shape: tuple[int, ...]
    rank: int
    rms: float  #: the root mean square of the difference of both models
    captured: float  #: the share of the difference's sum of squares that the product has: 0 to 1


@dataclass(frozen=True, repr=False)
class ExtractLoraReport(_Short):
    """Describes what extract_lora() did."""

    format: str
    output: str | None  #: None for a dry run
    matrices: list[ExtractedMatrix]
    captured: float  #: the same share, of all these matrices together
    equal: int  #: tensors that are equal in both models
    warnings: list[str]  #: what differs and is not in the adapter, one sentence each
    losses: list[str]  #: what the format cannot hold, one sentence each
    bytes_out: int
    seconds: float

    def _summarize(self) -> str:
        count = _count_noun(len(self.matrices), "matrix", "matrices")
        return f"{self.format}, {count}, {100 * self.captured:.2f} % captured, {format_bytes(self.bytes_out)} out"


@dataclass(frozen=True, repr=False)
class ConvertLoraReport(_Short):
    """Describes what convert_lora() did."""

    format: str
    output: str | None  #: None for a dry run
    matrices: int  #: matrices of the model that the adapter changes
    warnings: list[str]  #: about the adapter
    losses: list[str]  #: what the format cannot hold, one sentence each
    bytes_out: int

    def _summarize(self) -> str:
        return f"{self.format}, {_count_noun(self.matrices, 'matrix', 'matrices')}, {format_bytes(self.bytes_out)} out"


@dataclass(frozen=True)
class DeltaTensor:
    """Describes a tensor that a delta changes."""

    name: str
    form: str  #: "sparse", "xor" or "whole"
    changed: int  #: elements that differ; all elements if the tensor is stored whole
    elements: int
    bytes: int  #: before compression


@dataclass(frozen=True, repr=False)
class DeltaReport(_Short):
    """Describes what make_delta() did."""

    output: str | None  #: None for a dry run
    base: str  #: hash(base).model
    equal: int  #: tensors that are equal in both models
    changed: list[DeltaTensor]
    removed: list[str]  #: names of tensors that only the base has
    fields: list[str]  #: "card", "config", "vocabulary", "attributes", if they differ
    bytes_in: int
    bytes_out: int
    seconds: float

    def _summarize(self) -> str:
        changed = _count_noun(len(self.changed), "changed tensor")
        return f"{changed}, {self.equal:,} equal, {format_bytes(self.bytes_in)} in, {format_bytes(self.bytes_out)} out"


@dataclass(frozen=True)
class ImatrixReport:
    """Describes what measure_imatrix() did."""

    entries: int  #: matrices, or stacks of all experts' matrices
    chunks: int
    chunk_size: int
    datasets: list[str]  #: names of the texts
    unused_experts: dict[str, list[int]]  #: by entry, the experts that no token has chosen


@dataclass(frozen=True)
class FetchReport:
    """Describes what fetch() did."""

    directory: str  #: has the files, for open()
    commit: str
    files: int  #: selected files
    files_kept: int  #: files that were complete already
    bytes: int  #: received bytes
    bytes_kept: int  #: bytes that were there: whole files, and the beginnings of others


@dataclass(frozen=True)
class EditReport:
    """Describes what edit() did."""

    way: str  #: "appended" (a new manifest), "in place" (bytes of the header), or "rewritten" (the whole file)
    bytes: int  #: appended bytes, replaced bytes, or the size of the new file
    added: list[str]  #: the new keys among those that were set


@dataclass(frozen=True)
class FormatInfo:
    """Describes a format that Poise reads or writes."""

    name: str
    description: str
    extension: str  #: "" for directories
    readable: bool
    writable: bool


def _count_noun(count: int, noun: str, plural: str = "") -> str:
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def _describe_notes(warnings: list[Finding], losses: list[str]) -> str:
    notes = [_count_noun(len(warnings), "warning")] if warnings else []
    if losses:
        notes.append(_count_noun(len(losses), "loss", "losses"))
    return "".join(f", {one}" for one in notes)
