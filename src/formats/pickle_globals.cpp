#include "formats/pickle_globals.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "formats/pickle_files.hpp"
#include "formats/spellings.hpp"

namespace poise::pytorch {
namespace {

constexpr std::array kStorages = std::to_array<Spelling<std::string_view>>({
    {DType::f64, "torch.DoubleStorage"},
    {DType::f32, "torch.FloatStorage"},
    {DType::f16, "torch.HalfStorage"},
    {DType::bf16, "torch.BFloat16Storage"},
    {DType::complex64, "torch.ComplexFloatStorage"},
    {DType::complex128, "torch.ComplexDoubleStorage"},
    {DType::i64, "torch.LongStorage"},
    {DType::i32, "torch.IntStorage"},
    {DType::i16, "torch.ShortStorage"},
    {DType::i8, "torch.CharStorage"},
    {DType::u8, "torch.ByteStorage"},
    {DType::boolean, "torch.BoolStorage"},
    // Poise reads the classes below, but never writes them.
    {DType::u8, "torch.storage.UntypedStorage"},
    {DType::u8, "torch.UntypedStorage"},
    {DType::f32, "torch.cuda.FloatStorage"},
    {DType::f16, "torch.cuda.HalfStorage"},
    {DType::i8, "torch.QInt8Storage"},
    {DType::u8, "torch.QUInt8Storage"},
    {DType::i32, "torch.QInt32Storage"},
});

constexpr std::array kDTypes = std::to_array<Spelling<std::string_view>>({
    {DType::f64, "torch.float64"},
    {DType::f64, "torch.double"},
    {DType::f32, "torch.float32"},
    {DType::f32, "torch.float"},
    {DType::f16, "torch.float16"},
    {DType::f16, "torch.half"},
    {DType::bf16, "torch.bfloat16"},
    {DType::f8_e4m3, "torch.float8_e4m3fn"},
    {DType::f8_e5m2, "torch.float8_e5m2"},
    {DType::f8_e4m3fnuz, "torch.float8_e4m3fnuz"},
    {DType::f8_e5m2fnuz, "torch.float8_e5m2fnuz"},
    {DType::f8_e8m0, "torch.float8_e8m0fnu"},
    {DType::complex64, "torch.complex64"},
    {DType::complex128, "torch.complex128"},
    {DType::i64, "torch.int64"},
    {DType::i64, "torch.long"},
    {DType::i32, "torch.int32"},
    {DType::i32, "torch.int"},
    {DType::i16, "torch.int16"},
    {DType::i8, "torch.int8"},
    {DType::u64, "torch.uint64"},
    {DType::u32, "torch.uint32"},
    {DType::u16, "torch.uint16"},
    {DType::u8, "torch.uint8"},
    {DType::boolean, "torch.bool"},
});

// Checkpoints need these names, but do not call them: types, ways of quantizing, and arguments of calls.
constexpr std::array kNamedTypes = std::to_array<std::string_view>(
    {"torch.complex32", "torch.chalf",   "torch.qint8",   "torch.quint8",  "torch.qint32", "torch.quint4x2",
     "torch.quint2x4",  "torch.bits1x8", "torch.bits2x4", "torch.bits4x2", "torch.bits8",  "torch.bits16",
     "torch.int1",      "torch.int2",    "torch.int3",    "torch.int4",    "torch.int5",   "torch.int6",
     "torch.int7",      "torch.uint1",   "torch.uint2",   "torch.uint3",   "torch.uint4",  "torch.uint5",
     "torch.uint6",     "torch.uint7"});
constexpr std::array kNamedSchemes = std::to_array<std::string_view>(
    {"torch.float4_e2m1fn_x2", "torch.storage.TypedStorage", "torch.per_tensor_affine", "torch.per_tensor_symmetric",
     "torch.per_channel_affine", "torch.per_channel_symmetric", "torch.per_channel_affine_float_qparams",
     "torch.QUInt4x2Storage", "torch.QUInt2x4Storage"});
constexpr std::array kNamedArguments = std::to_array<std::string_view>(
    {"builtins.list", "builtins.dict", "builtins.tuple", "builtins.int", "builtins.float", "builtins.str",
     "builtins.long", "builtins.unicode", "numpy.ndarray"});

// The tables below have beginnings of names, grouped by the effect of these functions and classes. A dot at the end
// stands for a whole module.
constexpr std::array kRunCommands = std::to_array<std::string_view>(
    {"os.system",    "os.popen",    "os.exec",       "os.spawn",      "os.posix_spawn",    "os.startfile",
     "posix.system", "posix.popen", "posix.exec",    "posix.spawn",   "nt.system",         "subprocess.",
     "commands.",    "popen2.",     "pty.",          "asyncio.",      "distutils.",        "platform.popen",
     "test.",        "uuid._",      "_osx_support.", "_aix_support.", "_pyrepl.",          "imaplib.",
     "ensurepip.",   "venv.",       "setuptools.",   "pexpect.",      "_posixsubprocess.", "numpy.distutils."});
constexpr std::array kRunCode = std::to_array<std::string_view>(
    {"builtins.eval", "builtins.exec", "builtins.compile", "builtins.apply", "builtins.map", "builtins.filter",
     "builtins.breakpoint", "builtins.input", "builtins.type", "builtins.__build_class__", "builtins.help",
     "collections.namedtuple", "dataclasses.make_dataclass"});
constexpr std::array kCodeModules = std::to_array<std::string_view>(
    {"multiprocessing.", "runpy.",       "code.",     "codeop.",  "types.",   "marshal.",  "timeit.",
     "trace.",           "profile.",     "cProfile.", "bdb.",     "pdb.",     "doctest.",  "ctypes.",
     "_ctypes.",         "threading.",   "_thread.",  "idlelib.", "lib2to3.", "unittest.", "concurrent.",
     "cgitb.",           "rlcompleter.", "atexit.",   "sched."});
constexpr std::array kCodePackages = std::to_array<std::string_view>(
    {"cffi.", "torch._inductor.", "torch.utils.", "numpy.testing.", "numpy.f2py.", "torch.jit.", "torch.fx.",
     "torch._dynamo.", "torch.multiprocessing.", "torch.package.", "numpy.ctypeslib.", "keras."});
constexpr std::array kLoadPickles = std::to_array<std::string_view>(
    {"pickle.", "_pickle.", "cloudpickle.", "dill.", "torch.load", "shelve.", "pandas.read_pickle", "joblib.load",
     "torch.storage._load_from_bytes", "torch.serialization.load"});
constexpr std::array kImportModules =
    std::to_array<std::string_view>({"builtins.__import__", "importlib.", "imp.", "pkgutil.", "zipimport.", "pydoc.",
                                     "pip.", "site.", "_frozen_importlib", "_imp."});
constexpr std::array kReachFunctions = std::to_array<std::string_view>(
    {"builtins.getattr", "builtins.setattr", "builtins.delattr", "builtins.globals", "builtins.locals", "builtins.vars",
     "sys.", "gc.", "inspect.", "operator.", "_operator.", "functools.", "itertools.", "copyreg.", "copy_reg."});
constexpr std::array kTalkToNetwork = std::to_array<std::string_view>(
    {"torch.hub.", "socket.", "_socket.", "ssl.", "urllib", "http", "requests.", "aiohttp.", "ftplib.", "smtplib.",
     "telnetlib.", "xmlrpc.", "webbrowser.", "socketserver.", "poplib.", "nntplib.", "torch.distributed.rpc."});
constexpr std::array kStopPrograms = std::to_array<std::string_view>({"signal."});
// Paths of pathlib are expected names; its other functions are not.
constexpr std::array kChangeFiles = std::to_array<std::string_view>(
    {"os.",        "posix.",         "nt.",          "builtins.open",  "io.",        "_io.",
     "shutil.",    "tempfile.",      "pathlib.",     "glob.",          "fileinput.", "linecache.",
     "tarfile.",   "zipfile.",       "sqlite3.",     "numpy.load",     "logging.",   "mmap.",
     "dbm.",       "py_compile.",    "compileall.",  "zipapp.",        "mailbox.",   "codecs.open",
     "torch.ops.", "torch.classes.", "numpy.memmap", "numpy.fromfile", "numpy.save"});

struct Danger {
  std::string_view what;
  std::span<const std::string_view> beginnings;
};
// The first match counts, because some functions do more than the others of their module.
constexpr std::array kDangers = std::to_array<Danger>({
    {"runs commands", kRunCommands},
    {"runs code", kRunCode},
    {"runs code", kCodeModules},
    {"runs code", kCodePackages},
    {"loads another pickle", kLoadPickles},
    {"imports modules", kImportModules},
    {"reaches any function by its name", kReachFunctions},
    {"talks to the network", kTalkToNetwork},
    {"stops programs", kStopPrograms},
    {"reads and changes files", kChangeFiles},
});

}  // namespace

std::string make_full_name(const pickle::Global& global) { return fmt::format("{}.{}", global.module, global.name); }

std::optional<DType> find_storage_dtype(std::string_view name) { return find_spelled_dtype(kStorages, name); }
std::optional<DType> find_torch_dtype(std::string_view name) { return find_spelled_dtype(kDTypes, name); }
std::string_view find_storage_name(DType dtype) { return find_spelling(kStorages, dtype).value_or(std::string_view()); }

std::string canonicalize_name(std::string_view name) {
  constexpr std::string_view kOld = "__builtin__.";
  return name.starts_with(kOld) ? fmt::format("builtins.{}", name.substr(kOld.size())) : std::string(name);
}

namespace {

// Python 3.11 pickles an enumerator as a call: getattr(class, "NAME").
constexpr std::string_view kGetAttribute = "builtins.getattr";

bool gets_only_enumerators(const pickle::Pickle& pickle) {
  for (pickle::Id id = 0; id < pickle.count_objects(); ++id) {
    if (pickle.kind(id) != pickle::Kind::call) continue;
    const pickle::Call& call = pickle.call(id);
    if (canonicalize_name(find_function_name(pickle, id)) != kGetAttribute) continue;
    const std::span<const pickle::Id> arguments = pickle.items(call.arguments);
    const bool is_enumerator = arguments.size() == 2 && pickle.kind(arguments[0]) == pickle::Kind::global &&
                               make_full_name(pickle.global(arguments[0])).ends_with("MEM_FORMAT_ENCODING") &&
                               is_checkpoint_class(make_full_name(pickle.global(arguments[0]))) &&
                               pickle.kind(arguments[1]) == pickle::Kind::text &&
                               pickle.text(arguments[1]).starts_with("TORCH_") && !call.state && call.items.empty() &&
                               call.pairs.empty() && call.keywords.empty();
    if (!is_enumerator) return false;
  }
  return true;
}

}  // namespace

bool is_checkpoint_class(std::string_view name) {
  constexpr std::array kModules = std::to_array<std::string_view>(
      {"torch.distributed.checkpoint.metadata.", "torch.distributed.checkpoint.filesystem.",
       "torch.distributed._shard.checkpoint.metadata.", "torch.distributed._shard.checkpoint.filesystem.",
       "torch.distributed._shard.sharded_tensor.metadata."});
  constexpr std::array kClasses = std::to_array<std::string_view>(
      {"Metadata", "TensorStorageMetadata", "BytesStorageMetadata", "TensorProperties", "ChunkStorageMetadata",
       "MetadataIndex", "StorageMeta", "_StorageInfo", "_MEM_FORMAT_ENCODING", "MEM_FORMAT_ENCODING"});
  return std::ranges::any_of(kModules, [&](std::string_view module) {
    return name.starts_with(module) && std::ranges::find(kClasses, name.substr(module.size())) != kClasses.end();
  });
}

bool is_expected_global(std::string_view name) {
  const std::string full = canonicalize_name(name);
  const auto has_name = [&](std::span<const std::string_view> names) {
    return std::ranges::find(names, full) != names.end();
  };
  return is_allowed_function(full) || has_name(kNamedTypes) || has_name(kNamedSchemes) || has_name(kNamedArguments) ||
         find_storage_dtype(name) || find_torch_dtype(name);
}

std::string_view describe_danger(std::string_view name) {
  const std::string full = canonicalize_name(name);
  for (const auto& [what, beginnings] : kDangers) {
    for (const std::string_view beginning : beginnings) {
      if (full.starts_with(beginning)) return what;
    }
  }
  return {};
}

std::vector<Finding> list_unexpected_globals(const pickle::Pickle& pickle, const std::string& path) {
  constexpr std::size_t kMostNames = 100;
  std::vector<Finding> findings;
  std::size_t more = 0;
  pickle::Id last = pickle::kNone;
  for (const pickle::Id id : pickle.list_globals()) {
    const std::string name = make_full_name(pickle.global(id));
    if (is_expected_global(name) || (canonicalize_name(name) == kGetAttribute && gets_only_enumerators(pickle)))
      continue;
    if (findings.size() == kMostNames) {
      ++more;
      last = id;
      continue;
    }
    const std::string_view danger = describe_danger(name);
    findings.push_back(
        {Severity::error,
         danger.empty()
             ? fmt::format("it names {}, which no checkpoint needs: Python imports it to load the file", name)
             : fmt::format("it names {}, which {}: the file is malicious, or not a checkpoint", name, danger),
         path, pickle.offset(id)});
  }
  if (more > 0)
    findings.push_back({Severity::error, fmt::format("it has {} more names that no checkpoint needs", more), path,
                        pickle.offset(last)});
  return findings;
}

}  // namespace poise::pytorch
