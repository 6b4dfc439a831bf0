#include "formats/pickle_globals.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

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
    // Read, but never written.
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

// Other expected names. Building tensors of any kind is harmless, even if Poise does not read them; types are only
// named.
constexpr std::array kExpected = std::to_array<std::string_view>({
    "torch._utils._rebuild_tensor",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._utils._rebuild_sparse_tensor",
    "torch._utils._rebuild_sparse_csr_tensor",
    "torch._utils._rebuild_qtensor",
    "torch._utils._rebuild_meta_tensor_no_storage",
    "torch._utils._rebuild_device_tensor_from_numpy",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor",
    "torch._tensor._rebuild_from_type_v2",
    "torch.serialization._get_layout",
    "torch.nn.parameter.Parameter",
    "torch.nn.parameter.Buffer",
    "torch.Tensor",
    "torch.Size",
    "torch.device",
    "torch.complex32",
    "torch.chalf",
    "torch.qint8",
    "torch.quint8",
    "torch.qint32",
    "torch.quint4x2",
    "torch.quint2x4",
    "torch.float4_e2m1fn_x2",
    "torch.bits1x8",
    "torch.bits2x4",
    "torch.bits4x2",
    "torch.bits8",
    "torch.bits16",
    "torch.int1",
    "torch.int2",
    "torch.int3",
    "torch.int4",
    "torch.int5",
    "torch.int6",
    "torch.int7",
    "torch.uint1",
    "torch.uint2",
    "torch.uint3",
    "torch.uint4",
    "torch.uint5",
    "torch.uint6",
    "torch.uint7",
    "torch.storage.TypedStorage",
    "torch.per_tensor_affine",
    "torch.per_tensor_symmetric",
    "torch.per_channel_affine",
    "torch.per_channel_symmetric",
    "torch.per_channel_affine_float_qparams",
    "torch.QUInt4x2Storage",
    "torch.QUInt2x4Storage",
    "collections.OrderedDict",
    "collections.defaultdict",
    "collections.Counter",
    "builtins.set",
    "builtins.frozenset",
    "builtins.list",
    "builtins.dict",
    "builtins.tuple",
    "builtins.int",
    "builtins.float",
    "builtins.str",
    "builtins.bytes",
    "builtins.bytearray",
    "builtins.complex",
    "builtins.slice",
    "builtins.range",
    "builtins.long",
    "builtins.unicode",
    "builtins.xrange",
    "_codecs.encode",
    "numpy.core.multiarray.scalar",
    "numpy._core.multiarray.scalar",
    "numpy.core.multiarray._reconstruct",
    "numpy._core.multiarray._reconstruct",
    "numpy.core.numeric._frombuffer",
    "numpy._core.numeric._frombuffer",
    "numpy.dtype",
    "numpy.ndarray",
    "argparse.Namespace",
    "types.SimpleNamespace",
    "pathlib.Path",
    "pathlib.PosixPath",
    "pathlib.WindowsPath",
    "pathlib.PurePosixPath",
    "pathlib.PureWindowsPath",
});

struct Danger {
  std::string_view prefix;  // of the name; with a dot at its end, a whole module
  std::string_view what;
};
constexpr std::string_view kCommands = "runs commands";
constexpr std::string_view kCode = "runs code";
constexpr std::string_view kImports = "imports modules";
constexpr std::string_view kFiles = "reads and changes files";
constexpr std::string_view kNetwork = "talks to the network";
constexpr std::string_view kReach = "reaches any function by its name";
constexpr std::array kDangers = std::to_array<Danger>({
    {"os.system", kCommands},
    {"os.popen", kCommands},
    {"os.exec", kCommands},
    {"os.spawn", kCommands},
    {"os.posix_spawn", kCommands},
    {"os.startfile", kCommands},
    {"os.", kFiles},
    {"posix.system", kCommands},
    {"posix.popen", kCommands},
    {"posix.exec", kCommands},
    {"posix.spawn", kCommands},
    {"posix.", kFiles},
    {"nt.system", kCommands},
    {"nt.", kFiles},
    {"subprocess.", kCommands},
    {"commands.", kCommands},
    {"popen2.", kCommands},
    {"pty.", kCommands},
    {"asyncio.", kCommands},
    {"multiprocessing.", kCode},
    {"distutils.", kCommands},
    {"platform.popen", kCommands},
    {"builtins.eval", kCode},
    {"builtins.exec", kCode},
    {"builtins.compile", kCode},
    {"builtins.open", kFiles},
    {"builtins.getattr", kReach},
    {"builtins.setattr", kReach},
    {"builtins.delattr", kReach},
    {"builtins.globals", kReach},
    {"builtins.locals", kReach},
    {"builtins.vars", kReach},
    {"builtins.apply", kCode},
    {"builtins.map", kCode},
    {"builtins.filter", kCode},
    {"builtins.breakpoint", kCode},
    {"builtins.input", kCode},
    {"builtins.__import__", kImports},
    {"runpy.", kCode},
    {"code.", kCode},
    {"codeop.", kCode},
    {"types.", kCode},
    {"marshal.", kCode},
    {"timeit.", kCode},
    {"trace.", kCode},
    {"profile.", kCode},
    {"cProfile.", kCode},
    {"bdb.", kCode},
    {"pdb.", kCode},
    {"doctest.", kCode},
    {"ctypes.", kCode},
    {"_ctypes.", kCode},
    {"cffi.", kCode},
    {"pickle.", "loads another pickle"},
    {"_pickle.", "loads another pickle"},
    {"cloudpickle.", "loads another pickle"},
    {"dill.", "loads another pickle"},
    {"torch.load", "loads another pickle"},
    {"torch.hub.", kNetwork},
    {"torch._inductor.", kCode},
    {"torch.utils.", kCode},
    {"importlib.", kImports},
    {"imp.", kImports},
    {"pkgutil.", kImports},
    {"zipimport.", kImports},
    {"pydoc.", kImports},
    {"pip.", kImports},
    {"site.", kImports},
    {"sys.", kReach},
    {"gc.", kReach},
    {"inspect.", kReach},
    {"operator.", kReach},
    {"_operator.", kReach},
    {"functools.", kReach},
    {"itertools.", kReach},
    {"copyreg.", kReach},
    {"copy_reg.", kReach},
    {"io.", kFiles},
    {"_io.", kFiles},
    {"shutil.", kFiles},
    {"tempfile.", kFiles},
    {"pathlib.", kFiles},  // except for paths themselves
    {"glob.", kFiles},
    {"fileinput.", kFiles},
    {"linecache.", kFiles},
    {"tarfile.", kFiles},
    {"zipfile.", kFiles},
    {"sqlite3.", kFiles},
    {"socket.", kNetwork},
    {"_socket.", kNetwork},
    {"ssl.", kNetwork},
    {"urllib", kNetwork},
    {"http", kNetwork},
    {"requests.", kNetwork},
    {"aiohttp.", kNetwork},
    {"ftplib.", kNetwork},
    {"smtplib.", kNetwork},
    {"telnetlib.", kNetwork},
    {"xmlrpc.", kNetwork},
    {"webbrowser.", kNetwork},
    {"signal.", "stops programs"},
    {"threading.", kCode},
    {"_thread.", kCode},
    {"numpy.testing.", kCode},
    {"numpy.f2py.", kCode},
    {"numpy.load", kFiles},
    {"builtins.type", kCode},
    {"builtins.__build_class__", kCode},
    {"builtins.help", kCode},
    {"_frozen_importlib", kImports},
    {"_imp.", kImports},
    {"idlelib.", kCode},
    {"lib2to3.", kCode},
    {"test.", kCommands},
    {"unittest.", kCode},
    {"uuid._", kCommands},
    {"_osx_support.", kCommands},
    {"_aix_support.", kCommands},
    {"_pyrepl.", kCommands},
    {"imaplib.", kCommands},
    {"ensurepip.", kCommands},
    {"venv.", kCommands},
    {"setuptools.", kCommands},
    {"pexpect.", kCommands},
    {"_posixsubprocess.", kCommands},
    {"concurrent.", kCode},
    {"cgitb.", kCode},
    {"rlcompleter.", kCode},
    {"collections.namedtuple", kCode},
    {"dataclasses.make_dataclass", kCode},
    {"atexit.", kCode},
    {"sched.", kCode},
    {"logging.", kFiles},
    {"mmap.", kFiles},
    {"dbm.", kFiles},
    {"py_compile.", kFiles},
    {"compileall.", kFiles},
    {"zipapp.", kFiles},
    {"mailbox.", kFiles},
    {"codecs.open", kFiles},
    {"socketserver.", kNetwork},
    {"poplib.", kNetwork},
    {"nntplib.", kNetwork},
    {"shelve.", "loads another pickle"},
    {"pandas.read_pickle", "loads another pickle"},
    {"joblib.load", "loads another pickle"},
    {"torch.storage._load_from_bytes", "loads another pickle"},
    {"torch.serialization.load", "loads another pickle"},
    {"torch.jit.", kCode},
    {"torch.fx.", kCode},
    {"torch._dynamo.", kCode},
    {"torch.distributed.rpc.", kNetwork},
    {"torch.multiprocessing.", kCode},
    {"torch.ops.", kFiles},
    {"torch.classes.", kFiles},
    {"torch.package.", kCode},
    {"numpy.distutils.", kCommands},
    {"numpy.ctypeslib.", kCode},
    {"numpy.memmap", kFiles},
    {"numpy.fromfile", kFiles},
    {"numpy.save", kFiles},
    {"keras.", kCode},
});

}  // namespace

std::string full_name(const pickle::Global& global) { return fmt::format("{}.{}", global.module, global.name); }

std::optional<DType> storage_dtype(std::string_view name) { return dtype_spelled(kStorages, name); }
std::optional<DType> named_dtype(std::string_view name) { return dtype_spelled(kDTypes, name); }
std::string_view storage_name(DType dtype) { return spelling_in(kStorages, dtype).value_or(std::string_view()); }

std::string canonical_name(std::string_view name) {
  constexpr std::string_view kOld = "__builtin__.";
  return name.starts_with(kOld) ? fmt::format("builtins.{}", name.substr(kOld.size())) : std::string(name);
}

bool is_expected(std::string_view name) {
  return std::ranges::find(kExpected, canonical_name(name)) != kExpected.end() || storage_dtype(name) ||
         named_dtype(name);
}

std::string_view danger_of(std::string_view name) {
  const std::string full = canonical_name(name);
  const auto found =
      std::ranges::find_if(kDangers, [&](const Danger& danger) { return full.starts_with(danger.prefix); });
  return found == kDangers.end() ? std::string_view() : found->what;
}

std::vector<Finding> unexpected_globals(const pickle::Pickle& pickle, const std::string& path) {
  constexpr std::size_t kMostNames = 100;
  std::vector<Finding> findings;
  std::size_t more = 0;
  pickle::Id last = pickle::kNone;
  for (const pickle::Id id : pickle.globals()) {
    const std::string name = full_name(pickle.global(id));
    if (is_expected(name)) continue;
    if (findings.size() == kMostNames) {
      ++more;
      last = id;
      continue;
    }
    const std::string_view danger = danger_of(name);
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
