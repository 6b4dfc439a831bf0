// Operations on whole files: convert, save, plan, verify, hash, diff, edit. Options come as a dict, whose keys Python's
// functions name; reports go as dicts.
#include <fmt/format.h>

#include <poise/convert.hpp>
#include <poise/diff.hpp>
#include <poise/edit.hpp>
#include <poise/format.hpp>
#include <poise/hash.hpp>
#include <poise/verify.hpp>

#include "long_call.hpp"
#include "ops/block_recipe.hpp"

namespace poise::python {
namespace {

namespace fs = std::filesystem;
using Owner = std::shared_ptr<OpenModel>;

// The value of an option that is given and not None.
template <typename T, typename Take>
void take(const py::dict& options, const char* key, Take&& use) {
  const auto value = py::reinterpret_borrow<py::object>(PyDict_GetItemString(options.ptr(), key));
  if (!value || value.is_none()) return;
  try {
    use(value.cast<T>());
  } catch (const py::cast_error&) {
    throw py::type_error(fmt::format("{}={} is of no type that makes sense", key, utf8(py::repr(value))));
  }
}

StoredType stored_type(const std::string& name) {
  if (const auto type = stored_type_from_name(name)) return *type;
  refuse(fmt::format("\"{}\" is no type that tensors can be stored as", name));
}

void set_quantization(const std::string& name, ConvertOptions& to) {
  if (is_block_recipe(name)) {
    to.recipe = name;
  } else {
    to.quantize = stored_type(name);
  }
}

DigestAlgorithm digest_from(std::string_view name) {
  if (name == "none") return DigestAlgorithm::none;
  if (name == "sha256") return DigestAlgorithm::sha256;
  if (name == "xxh3") return DigestAlgorithm::xxh3;
  if (name == "crc32c") return DigestAlgorithm::crc32c;
  refuse(fmt::format("digest is \"{}\", expected sha256, xxh3, crc32c or none", name));
}

IoMode io_from(std::string_view io) {
  if (io == "map") return IoMode::map;
  if (io == "read") return IoMode::read;
  refuse(fmt::format("io is \"{}\", expected map or read", io));
}

Layout sparse_from(std::string_view name) {
  if (name == "csr") return Layout::sparse_csr;
  if (name == "coo") return Layout::sparse_coo;
  refuse(fmt::format("sparse is \"{}\", expected csr or coo", name));
}

void set_card(const py::dict& fields, Card& card) {
  for (const auto& [key, value] : fields) {
    const std::string name = utf8(key);
    std::string* const field = name == "model_type"      ? &card.model_type
                               : name == "base_model"    ? &card.base_model
                               : name == "author"        ? &card.author
                               : name == "created_at"    ? &card.created_at
                               : name == "last_modified" ? &card.last_modified
                               : name == "license"       ? &card.license
                               : name == "uuid"          ? &card.uuid
                                                         : nullptr;
    if (field == nullptr) refuse(fmt::format("a card has no field {}", name));
    *field = utf8(value);
  }
}

ConvertOptions options_from(const py::dict& given) {
  ConvertOptions to;
  take<std::string>(given, "format", [&](const auto& name) { to.format = name; });
  take<std::string>(given, "dtype", [&](const auto& name) { to.dtype = dtype_from(name); });
  take<std::string>(given, "quantize", [&](const auto& name) { set_quantization(name, to); });
  take<std::string>(given, "sparse", [&](const auto& name) { to.sparse = sparse_from(name); });
  take<double>(given, "min_sparsity", [&](double part) { to.min_sparsity = part; });
  take<py::dict>(given, "keep", [&](const py::dict& patterns) {
    for (const auto& [pattern, type] : patterns) to.keep.push_back({utf8(pattern), stored_type(utf8(type))});
  });
  take<std::vector<std::string>>(given, "only", [&](const auto& patterns) { to.only = patterns; });
  take<std::vector<std::string>>(given, "skip", [&](const auto& patterns) { to.skip = patterns; });
  take<py::dict>(given, "card", [&](const py::dict& fields) { set_card(fields, to.card); });
  take<py::object>(given, "imatrix", [&](const py::object& path) { to.imatrix = path_from(path); });
  take<py::object>(given, "vocab", [&](const py::object& path) { to.vocab = path_from(path); });
  take<py::object>(given, "merges", [&](const py::object& path) { to.merges = path_from(path); });
  take<bool>(given, "verify", [&](bool verify) { to.verify = verify; });
  take<std::string>(given, "io", [&](const auto& name) { to.read.io = io_from(name); });
  take<bool>(given, "overwrite", [&](bool overwrite) { to.write.overwrite = overwrite; });
  take<std::string>(given, "dialect", [&](const auto& name) { to.write.dialect = name; });
  take<int>(given, "zstd_level", [&](int level) { to.write.zstd_level = level; });
  take<std::string>(given, "digest", [&](const auto& name) { to.write.digest = digest_from(name); });
  take<std::uint64_t>(given, "align", [&](std::uint64_t bytes) { to.write.align = bytes; });
  take<std::uint64_t>(given, "shard_size", [&](std::uint64_t bytes) { to.write.shard_size = bytes; });
  return to;
}

py::list texts(const std::vector<std::string>& lines) {
  py::list result;
  for (const std::string& line : lines) result.append(text(line));
  return result;
}

py::list findings(const std::vector<Finding>& all) {
  py::list result;
  for (const Finding& finding : all) result.append(to_python(finding));
  return result;
}

py::dict to_python(const ConvertReport& report) {
  using namespace py::literals;
  py::list casts;
  for (const auto& cast : report.casts) {
    casts.append(py::dict("source"_a = text(to_string(cast.from)), "target"_a = text(to_string(cast.to)),
                          "values"_a = cast.values, "to_zero"_a = cast.to_zero, "to_subnormal"_a = cast.to_subnormal,
                          "worst_error"_a = cast.worst_error));
  }
  py::list quantized;
  for (const auto& one : report.quantized) {
    quantized.append(py::dict("tensor"_a = text(one.tensor), "type"_a = text(to_string(one.type)),
                              "bytes_in"_a = one.bytes_in, "bytes_out"_a = one.bytes_out, "worst"_a = one.error.worst,
                              "rms"_a = one.error.rms(), "signal_to_noise_db"_a = one.error.signal_to_noise_db()));
  }
  py::list outputs;
  for (const std::filesystem::path& path : report.outputs) outputs.append(text(path.string()));
  return py::dict("format"_a = text(report.format), "outputs"_a = outputs, "tensors"_a = report.tensors,
                  "skipped"_a = report.skipped, "bytes_in"_a = report.bytes_in, "bytes_out"_a = report.bytes_out,
                  "bytes_padding"_a = report.bytes_padding, "seconds"_a = report.seconds,
                  "warnings"_a = findings(report.warnings), "losses"_a = texts(report.losses), "casts"_a = casts,
                  "quantized"_a = quantized);
}

py::dict to_python(const Plan& plan) {
  using namespace py::literals;
  py::list tensors;
  for (const PlannedTensor& tensor : plan.tensors) {
    py::tuple shape(tensor.shape.size());
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) shape[i] = py::int_(tensor.shape[i]);
    tensors.append(py::dict("name"_a = text(tensor.name), "shape"_a = shape, "source"_a = text(tensor.from),
                            "target"_a = text(tensor.to), "bytes_in"_a = tensor.bytes_in,
                            "bytes_out"_a = optional_number(tensor.bytes_out)));
  }
  return py::dict("format"_a = text(plan.format), "tensors"_a = tensors, "skipped"_a = texts(plan.skipped),
                  "warnings"_a = findings(plan.warnings), "losses"_a = texts(plan.losses),
                  "bytes_out"_a = optional_number(plan.bytes_out), "exact"_a = plan.exact);
}

// The format of an output: the named one, or that of its extension.
std::string format_of(const fs::path& output, const ConvertOptions& options) {
  if (!options.format.empty()) return options.format;
  if (const auto format = format_from_extension(output)) return std::string(*format);
  throw Error(
      ErrorKind::bad_argument,
      fmt::format("the extension \"{}\" is that of no format; format=... names one", output.extension().string()),
      output.string());
}

py::dict convert_file(const py::object& from, const py::object& to, const py::dict& given, const py::object& progress) {
  const fs::path input = path_from(from);
  const fs::path output = path_from(to);
  ConvertOptions options = options_from(given);
  LongCall call(progress);
  options.write.progress = call.progress();
  return to_python(call.run([&] { return convert(input, output, options); }));
}

py::dict save_model(const Owner& owner, const py::object& to, const py::dict& given, const py::object& progress) {
  const fs::path output = path_from(to);
  const auto model = owner->use();
  ConvertOptions options = options_from(given);
  const std::string format = format_of(output, options);
  options.format.clear();
  LongCall call(progress);
  options.write.progress = call.progress();
  return to_python(call.run([&] { return write(plan(*model, format, options), output); }));
}

py::dict plan_file(const py::object& from, const py::object& to, const py::dict& given) {
  const fs::path input = path_from(from);
  const fs::path output = path_from(to);
  const ConvertOptions options = options_from(given);
  const Plan made = [&] {
    const Released released;
    return plan(input, output, options);
  }();
  return to_python(made);
}

py::dict plan_model(const Owner& owner, const py::object& to, const py::dict& given) {
  const fs::path output = path_from(to);
  const auto model = owner->use();
  ConvertOptions options = options_from(given);
  const std::string format = format_of(output, options);
  options.format.clear();
  const Plan made = [&] {
    const Released released;
    return plan(*model, format, options);
  }();
  return to_python(made);
}

py::dict verify_file(const py::object& given, const std::string& io, const py::object& progress) {
  using namespace py::literals;
  const fs::path path = path_from(given);
  LongCall call(progress);
  const Progress watched = call.progress();
  const ReadOptions options{.io = io_from(io)};
  const VerifyReport report = call.run([&] { return verify(path, options, watched); });
  return py::dict("format"_a = text(report.format), "tensors"_a = report.tensors, "bytes"_a = report.bytes,
                  "digests"_a = report.digests, "findings"_a = findings(report.faults));
}

py::dict hash_model(const Owner& owner, const py::object& progress) {
  using namespace py::literals;
  const auto model = owner->use();
  LongCall call(progress);
  const Progress watched = call.progress();
  const ModelHash result = call.run([&] { return hash(*model, watched); });
  py::dict parts;
  for (const PartHash& part : result.parts)
    parts[py::make_tuple(text(part.tensor), text(part.role))] = text(part.sha256);
  return py::dict("parts"_a = parts, "model"_a = text(result.model),
                  "content"_a = result.content.empty() ? py::object(py::none()) : text(result.content));
}

py::dict diff_models(const Owner& a, const Owner& b, bool verify, const py::object& progress) {
  using namespace py::literals;
  const auto left = a->use();
  const auto right = b->use();
  LongCall call(progress);
  const Progress watched = call.progress();
  const DiffReport report = call.run([&] { return diff(*left, *right, watched, verify); });
  py::list fields;
  for (const FieldDifference& field : report.fields)
    fields.append(py::dict("field"_a = text(field.field), "a"_a = text(field.a), "b"_a = text(field.b)));
  py::list tensors;
  for (const TensorDifference& tensor : report.tensors) {
    py::dict entry("name"_a = text(tensor.name), "a"_a = text(tensor.a), "b"_a = text(tensor.b));
    if (tensor.values) {
      entry["different"] = tensor.values->different;
      entry["max_absolute"] = tensor.values->max_absolute;
      entry["rms"] = tensor.values->rms;
    }
    tensors.append(entry);
  }
  return py::dict("fields"_a = fields, "tensors"_a = tensors, "equal_tensors"_a = report.equal_tensors);
}

py::dict edit_file(const py::object& given, const py::dict& set, const std::vector<std::string>& erase, bool force) {
  using namespace py::literals;
  const fs::path path = path_from(given);
  AttributeChanges changes{.set = {}, .erase = erase, .force = force};
  for (const auto& [key, value] : set) changes.set.emplace_back(utf8(key), utf8(value));
  const EditReport report = [&] {
    const Released released;
    return edit(path, changes);
  }();
  const char* way = report.way == EditReport::Way::appended   ? "appended"
                    : report.way == EditReport::Way::in_place ? "in place"
                                                              : "rewritten";
  return py::dict("way"_a = way, "bytes"_a = report.bytes);
}

py::list all_formats() {
  using namespace py::literals;
  py::list result;
  for (const FormatInfo& format : formats()) {
    result.append(py::dict("name"_a = text(format.name), "description"_a = text(format.description),
                           "extension"_a = text(format.extension), "readable"_a = format.readable,
                           "writable"_a = format.writable));
  }
  return result;
}

}  // namespace

void declare_operations(py::module_& module) {
  module.def("convert", &convert_file);
  module.def("save", &save_model, py::arg("model").none(false), py::arg("to"), py::arg("options"), py::arg("progress"));
  module.def("plan_file", &plan_file);
  module.def("plan_model", &plan_model, py::arg("model").none(false), py::arg("to"), py::arg("options"));
  module.def("verify", &verify_file);
  module.def("hash", &hash_model, py::arg("model").none(false), py::arg("progress"));
  module.def("diff", &diff_models, py::arg("a").none(false), py::arg("b").none(false), py::arg("verify"),
             py::arg("progress"));
  module.def("edit", &edit_file);
  module.def("formats", &all_formats);
}

}  // namespace poise::python
