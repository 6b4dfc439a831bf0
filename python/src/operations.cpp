// Gives Python the operations on files and models: convert, save, plan, verify, hash, stats, report, diff, edit,
// quantize. Most take the keyword arguments of the package's function as a dict, and return a report as a dict.
#include <algorithm>
#include <array>
#include <iterator>

#include <poise/convert.hpp>
#include <poise/diff.hpp>
#include <poise/divergence.hpp>
#include <poise/edit.hpp>
#include <poise/format.hpp>
#include <poise/hash.hpp>
#include <poise/report.hpp>
#include <poise/statistics.hpp>
#include <poise/values.hpp>
#include <poise/verify.hpp>

#include "formats/format.hpp"
#include "long_call.hpp"
#include "memory.hpp"
#include "ops/check_headers.hpp"
#include "ops/conversion.hpp"
#include "ops/option_words.hpp"
#include "options.hpp"

namespace poise::python {
namespace {

namespace fs = std::filesystem;
using Owner = std::shared_ptr<OpenModel>;

void set_group_size(const Given& given, std::optional<StoredType>& type) {
  if (!type || !type->grouped()) refuse("group_size: only \"group4\" and \"group8\" have groups");
  type->groups.size = given.read<std::uint64_t>("an integer");
  if (!is_group_size(type->groups)) given.refuse(format_group_sizes(type->groups));
}

SizeBudget& require_budget(std::string_view option, ConvertOptions& to) {
  if (!to.budget) refuse(fmt::format("{}: only quantize=\"auto\" chooses types that fit it", option));
  return *to.budget;
}

void add_kept_types(const Given& given, ConvertOptions& to) {
  for (const auto& [pattern, type] : given.read_dict("a dict of patterns to types")) {
    const auto kept = parse_kept_type(encode_utf8(type));
    if (!kept)
      refuse(fmt::format("keep: \"{}\" is {}, expected {}", encode_utf8(pattern), make_short_repr(type),
                         format_kept_types()));
    to.keep.push_back({encode_utf8(pattern), *kept});
  }
}

// Adds an adapter, given as a path, or adapters, given as a dict of paths to scales.
void add_lora(const Given& given, ConvertOptions& to) {
  if (!given.is_dict()) return to.lora.push_back({given.read_path(), 1});
  for (const auto& [path, scale] : given.read_dict("a path or a dict of paths to scales")) {
    const std::string name = fmt::format("lora: the scale of {}", make_short_repr(path));
    const Given adapter_scale(name, py::reinterpret_borrow<py::object>(scale));
    to.lora.push_back({parse_path(py::reinterpret_borrow<py::object>(path)), adapter_scale.read<double>("a number")});
  }
}

// Adds renames, given as a dict of patterns to names, in the order of the dict.
void add_renames(const Given& given, ConvertOptions& to) {
  for (const auto& [pattern, name] : given.read_dict("a dict of patterns to names"))
    to.rename.push_back({encode_utf8(pattern), encode_utf8(name)});
}

void add_settings(const Given& given, ConvertOptions& to) {
  const py::dict settings = given.read_dict("a dict of keys to values");
  for (const auto& [key, value] : parse_attributes(settings)) to.set.emplace_back(key, value);
}

void set_bits_per_weight(const Given& given, ConvertOptions& to) {
  require_budget("bpw", to).bits_per_weight = given.read<double>("a number of bits");
}

void set_card_fields(const Given& given, ConvertOptions& to) {
  set_card(given.read_dict("a dict of fields to text"), to.card);
}

// Has the keywords of ConvertOptions in poise/_types.py, except those of parse_write_options().
constexpr std::array kOptions = std::to_array<Option<ConvertOptions>>({
    {"format", [](const Given& given, ConvertOptions& to) { to.format = given.read_text(); }},
    {"dtype",
     [](const Given& given, ConvertOptions& to) {
       to.dtype = given.read_choice<DType>({{"f32", DType::f32}, {"f16", DType::f16}, {"bf16", DType::bf16}});
     }},
    {"quantize",
     [](const Given& given, ConvertOptions& to) {
       if (!set_quantization(to, given.read_text())) given.refuse(format_quantization_choices());
     }},
    {"group_size", [](const Given& given, ConvertOptions& to) { set_group_size(given, to.quantize); }},
    {"size", [](const Given& given, ConvertOptions& to) { require_budget("size", to).bytes = given.read_size(); }},
    {"bpw", &set_bits_per_weight},
    {"text",
     [](const Given& given, ConvertOptions& to) {
       SizeBudget& budget = require_budget("text", to);
       budget.divergence = measure_on_text_file(given.read_path());
     }},
    {"imatrix", [](const Given& given, ConvertOptions& to) { to.imatrix = given.read_path(); }},
    {"delta", [](const Given& given, ConvertOptions& to) { to.delta = given.read_path(); }},
    {"lora", add_lora},
    {"strip_prefix", [](const Given& given, ConvertOptions& to) { to.strip_prefix = given.read_text(); }},
    {"rename", &add_renames},
    {"add_prefix", [](const Given& given, ConvertOptions& to) { to.add_prefix = given.read_text(); }},
    {"layers", [](const Given& given, ConvertOptions& to) { to.layers = given.read_text(); }},
    {"vocab_size",
     [](const Given& given, ConvertOptions& to) { to.vocab_size = given.read<std::uint64_t>("a number of tokens"); }},
    {"drop_rows", [](const Given& given, ConvertOptions& to) { to.drop_rows = given.read_truth(); }},
    {"set", &add_settings},
    {"keep", &add_kept_types},
    {"only", [](const Given& given, ConvertOptions& to) { to.only = given.read_patterns(); }},
    {"skip", [](const Given& given, ConvertOptions& to) { to.skip = given.read_patterns(); }},
    {"sparse",
     [](const Given& given,
        ConvertOptions&
            to) { to.sparse = given.read_choice<Layout>({{"csr", Layout::sparse_csr}, {"coo", Layout::sparse_coo}}); }},
    {"min_sparsity", [](const Given& given, ConvertOptions& to) { to.min_sparsity = given.read<double>("a number"); }},
    {"card", &set_card_fields},
    {"vocab", [](const Given& given, ConvertOptions& to) { to.vocab = given.read_path(); }},
    {"merges", [](const Given& given, ConvertOptions& to) { to.merges = given.read_path(); }},
    {"verify", [](const Given& given, ConvertOptions& to) { to.verify = given.read_truth(); }},
    {"strict", [](const Given& given, ConvertOptions& to) { to.strict = given.read_truth(); }},
    {"io", [](const Given& given, ConvertOptions& to) { to.read.io = given.read_io(); }},
});

constexpr std::array kStatisticsOptions = std::to_array<Option<StatisticsOptions>>({
    {"only", [](const Given& given, StatisticsOptions& to) { to.only = given.read_patterns(); }},
    {"skip", [](const Given& given, StatisticsOptions& to) { to.skip = given.read_patterns(); }},
});

constexpr std::array kDiffOptions = std::to_array<Option<DiffOptions>>({
    {"only", [](const Given& given, DiffOptions& to) { to.only = given.read_patterns(); }},
    {"skip", [](const Given& given, DiffOptions& to) { to.skip = given.read_patterns(); }},
    {"tolerance", [](const Given& given, DiffOptions& to) { to.tolerance = given.read<double>("a number"); }},
    {"values", [](const Given& given, DiffOptions& to) { to.values = given.read_truth(); }},
    {"verify", [](const Given& given, DiffOptions& to) { to.verify = given.read_truth(); }},
});

ConvertOptions parse_options(const py::dict& given) {
  auto options = parse_options<ConvertOptions>(given, kOptions);
  options.write = parse_write_options(given);
  return options;
}

py::dict make_report_dict(const ConvertReport& report) {
  using namespace py::literals;
  py::list casts;
  for (const auto& cast : report.casts) {
    casts.append(py::dict("source"_a = make_text(to_string(cast.from)), "target"_a = make_text(to_string(cast.to)),
                          "values"_a = cast.values, "to_zero"_a = cast.to_zero, "to_subnormal"_a = cast.to_subnormal,
                          "not_finite"_a = cast.not_finite, "worst_error"_a = cast.worst_error));
  }
  py::list quantized;
  for (const auto& tensor : report.quantized) {
    quantized.append(py::dict("tensor"_a = make_text(tensor.tensor), "type"_a = make_text(to_string(tensor.type)),
                              "bytes_in"_a = tensor.bytes_in, "bytes_out"_a = tensor.bytes_out,
                              "worst"_a = tensor.error.worst, "rms"_a = tensor.error.rms(),
                              "signal_to_noise_db"_a = tensor.error.signal_to_noise_db()));
  }
  py::list outputs;
  for (const std::filesystem::path& path : report.outputs) outputs.append(make_text(path.string()));
  return py::dict("format"_a = make_text(report.format), "outputs"_a = outputs, "tensors"_a = report.tensors,
                  "skipped"_a = report.skipped, "bytes_in"_a = report.bytes_in, "bytes_out"_a = report.bytes_out,
                  "bytes_padding"_a = report.bytes_padding, "seconds"_a = report.seconds,
                  "warnings"_a = to_python(report.warnings), "losses"_a = to_python(report.losses),
                  "changes"_a = to_python(report.changes), "casts"_a = casts, "quantized"_a = quantized);
}

py::dict make_plan_dict(const Plan& plan) {
  using namespace py::literals;
  py::list tensors;
  for (const PlannedTensor& tensor : plan.tensors) {
    tensors.append(py::dict("name"_a = make_text(tensor.name), "shape"_a = to_tuple(tensor.shape),
                            "source"_a = make_text(tensor.from), "target"_a = make_text(tensor.to),
                            "bytes_in"_a = tensor.bytes_in, "bytes_out"_a = make_optional_number(tensor.bytes_out)));
  }
  return py::dict("format"_a = make_text(plan.format), "tensors"_a = tensors, "skipped"_a = to_python(plan.skipped),
                  "warnings"_a = to_python(plan.warnings), "losses"_a = to_python(plan.losses),
                  "changes"_a = to_python(plan.changes), "bytes_out"_a = make_optional_number(plan.bytes_out),
                  "exact"_a = plan.exact);
}

// Returns the name of the format `named`; if `named` is empty, of the format that the name of the output implies.
std::string find_output_format_name(const fs::path& output, const std::string& named) {
  return std::string((named.empty() ? find_output_format(output) : find_format_by_name(named)).info.name);
}

// Adds a warning about faults that verify() will find in the model's configuration, vocabulary and shapes.
void warn_about_headers(const Model& model, std::vector<Finding>& warnings) {
  std::size_t errors = 0;
  std::string first;
  for (const Finding& finding : check_headers(model, {})) {
    if (finding.severity == Severity::error && errors++ == 0) first = finding.message;
  }
  if (errors == 0) return;
  const std::string more = errors == 1 ? "" : fmt::format(" (and {} more)", errors - 1);
  warnings.push_back({Severity::warning,
                      fmt::format("verify() will report faults in this model: {}{}", first, more),
                      {},
                      std::nullopt});
}

py::dict convert_file(const py::object& from, const py::object& to, const py::dict& given, const py::object& progress) {
  const fs::path input = parse_path(from);
  const fs::path output = parse_path(to);
  ConvertOptions options = parse_options(given);
  LongCall call(progress);
  options.write.progress = call.make_progress();
  return make_report_dict(call.run([&] { return convert(input, output, options); }));
}

py::dict save_model(const Owner& owner, const py::object& to, const py::dict& given, const py::object& progress) {
  const fs::path output = parse_path(to);
  const auto model = owner->require_model();
  ConvertOptions options = parse_options(given);
  const std::string format = find_output_format_name(output, options.format);
  options.format.clear();
  LongCall call(progress);
  options.write.progress = call.make_progress();
  return make_report_dict(call.run([&] {
    std::vector<Finding> of_headers;
    warn_about_headers(*model, of_headers);
    if (options.strict) refuse_warnings(of_headers);
    ConvertReport report = write(plan(*model, format, options), output);
    std::ranges::copy(of_headers, std::back_inserter(report.warnings));
    return report;
  }));
}

py::dict plan_file(const py::object& from, const py::object& to, const py::dict& given) {
  const fs::path input = parse_path(from);
  const fs::path output = parse_path(to);
  const ConvertOptions options = parse_options(given);
  const Plan made = [&] {
    const Released released;
    return plan(input, output, options);
  }();
  return make_plan_dict(made);
}

py::dict plan_model(const Owner& owner, const py::object& to, const py::dict& given) {
  const fs::path output = parse_path(to);
  const auto model = owner->require_model();
  ConvertOptions options = parse_options(given);
  const std::string format = find_output_format_name(output, options.format);
  options.format.clear();
  const Plan made = [&] {
    const Released released;
    Plan plan_of = plan(*model, format, options);
    warn_about_headers(*model, plan_of.warnings);
    if (options.strict) refuse_warnings(plan_of.warnings);
    return plan_of;
  }();
  return make_plan_dict(made);
}

py::dict verify_file(const py::object& given, const py::object& io, const py::object& progress) {
  using namespace py::literals;
  const fs::path path = parse_path(given);
  LongCall call(progress);
  const Progress watched = call.make_progress();
  const ReadOptions options{.io = Given("io", io).read_io()};
  const VerifyReport report = call.run([&] { return verify(path, options, watched); });
  return py::dict("format"_a = make_text(report.format), "tensors"_a = report.tensors, "bytes"_a = report.bytes,
                  "digests"_a = report.digests + report.file_digests, "checksums"_a = report.checksums,
                  "findings"_a = to_python(report.faults));
}

py::dict hash_model(const Owner& owner, const py::object& progress) {
  using namespace py::literals;
  const auto model = owner->require_model();
  LongCall call(progress);
  const Progress watched = call.make_progress();
  const ModelHash result = call.run([&] { return hash(*model, watched); });
  py::dict parts;
  for (const PartHash& part : result.parts)
    parts[py::make_tuple(make_text(part.tensor), make_text(part.role))] = make_text(part.sha256);
  return py::dict("parts"_a = parts, "model"_a = make_text(result.model),
                  "content"_a = result.content.empty() ? py::object(py::none()) : make_text(result.content));
}

py::list compute_model_statistics(const Owner& owner, const py::dict& given, const py::object& progress) {
  using namespace py::literals;
  auto options = parse_options<StatisticsOptions>(given, kStatisticsOptions);
  const auto model = owner->require_model();
  LongCall call(progress);
  options.progress = call.make_progress();
  const ModelStatistics found = call.run([&] { return compute_statistics(*model, options); });
  py::list tensors;
  for (const TensorStatistics& tensor : found.tensors) {
    py::dict entry("name"_a = make_text(tensor.name), "shape"_a = to_tuple(tensor.shape),
                   "type"_a = make_text(tensor.type), "elements"_a = tensor.elements,
                   "problem"_a = make_text(tensor.problem), "min"_a = tensor.min, "max"_a = tensor.max,
                   "mean"_a = tensor.mean, "std"_a = tensor.deviation, "rms"_a = tensor.rms, "zeros"_a = tensor.zeros,
                   "subnormals"_a = tensor.subnormals, "nans"_a = tensor.nans, "infinities"_a = tensor.infinities,
                   "outliers"_a = tensor.outliers, "largest_channel"_a = py::none(), "histogram"_a = py::none());
    if (tensor.largest_channel)
      entry["largest_channel"] = py::make_tuple(tensor.largest_channel->index, tensor.largest_channel->rms);
    if (tensor.histogram) {
      const Histogram& histogram = *tensor.histogram;
      entry["histogram"] = py::make_tuple(histogram.low, histogram.high, py::tuple(py::cast(histogram.counts)));
    }
    tensors.append(entry);
  }
  return tensors;
}

std::uint64_t write_model_report(const py::object& given, const py::object& given_page, const py::object& against,
                                 const py::object& overwrite, const py::object& io, const py::object& progress) {
  const fs::path path = parse_path(given);
  const fs::path page = parse_path(given_page);
  ReportOptions options;
  if (!against.is_none()) options.against = parse_path(against);
  options.overwrite = parse_truth("overwrite", overwrite);
  options.read.io = Given("io", io).read_io();
  LongCall call(progress);
  options.progress = call.make_progress();
  return call.run([&] { return write_report(path, page, options); });
}

py::dict diff_models(const Owner& a, const Owner& b, const py::dict& given, const py::object& progress) {
  using namespace py::literals;
  auto options = parse_options<DiffOptions>(given, kDiffOptions);
  const auto left = a->require_model();
  const auto right = b->require_model();
  LongCall call(progress);
  options.progress = call.make_progress();
  const DiffReport report = call.run([&] { return diff(*left, *right, options); });
  py::list fields;
  for (const FieldDifference& field : report.fields)
    fields.append(py::dict("field"_a = make_text(field.field), "a"_a = make_text(field.a), "b"_a = make_text(field.b)));
  py::list tensors;
  for (const TensorDifference& tensor : report.tensors) {
    py::dict entry("name"_a = make_text(tensor.name), "a"_a = make_text(tensor.a), "b"_a = make_text(tensor.b));
    if (tensor.values) {
      entry["different"] = tensor.values->different;
      entry["max_absolute"] = tensor.values->max_absolute;
      entry["rms"] = tensor.values->rms;
      entry["max_relative"] = tensor.values->max_relative;
      entry["signal_to_noise_db"] = tensor.values->signal_to_noise_db;
    }
    tensors.append(entry);
  }
  return py::dict("fields"_a = fields, "tensors"_a = tensors, "equal_tensors"_a = report.equal_tensors,
                  "equal_as_numbers"_a = report.equal_as_numbers, "within_tolerance"_a = report.within_tolerance,
                  "warnings"_a = to_python(report.warnings));
}

py::dict edit_file(const py::object& given, const py::dict& set, const std::vector<std::string>& erase,
                   const py::object& force, const py::object& dry_run) {
  using namespace py::literals;
  const fs::path path = parse_path(given);
  AttributeChanges changes{
      .set = {}, .erase = erase, .force = parse_truth("force", force), .dry_run = parse_truth("dry_run", dry_run)};
  for (const auto& [key, value] : parse_attributes(set)) changes.set.emplace_back(key, value);
  const EditReport report = [&] {
    const Released released;
    return edit(path, changes);
  }();
  const char* way = report.way == EditReport::Way::appended   ? "appended"
                    : report.way == EditReport::Way::in_place ? "in place"
                                                              : "rewritten";
  return py::dict("way"_a = way, "bytes"_a = report.bytes, "added"_a = to_python(report.added));
}

// Quantizes the first tensor of a model, and returns a model with the result alone.
Owner quantize_tensor(const Owner& owner, const py::object& type, const py::object& group_size) {
  const std::string name = encode_utf8(type);
  const auto model = owner->require_model();
  ConvertOptions options;
  if (!set_quantization(options, name) || !options.quantize)
    refuse(fmt::format("type is \"{}\", expected {}", name, format_code_types()));
  if (!group_size.is_none()) set_group_size(Given("group_size", group_size), options.quantize);
  LongCall call;
  const Progress watched = call.make_progress();
  return call.run([&] {
    Model made;
    made.add(quantized(model->tensors().front(), *options.quantize, watched));
    return std::make_shared<OpenModel>(std::move(made));
  });
}

// Returns a model with one tensor of ggml's blocks.
Owner make_model_of_blocks(const py::object& data, const py::object& given, const py::tuple& dims) {
  const std::string type = to_lower_ascii(encode_utf8(given));
  const BlobPtr blocks = borrow_buffer(data);
  Shape shape;
  for (const py::handle dim : dims) shape.push_back(parse_whole<std::uint64_t>("a number of shape", dim));
  const Released released;
  Model made;
  made.add(make_block_tensor("", shape, type, read_all(*blocks)));
  return std::make_shared<OpenModel>(std::move(made));
}

py::list list_all_formats() {
  using namespace py::literals;
  py::list result;
  for (const FormatInfo& format : formats()) {
    result.append(py::dict("name"_a = make_text(format.name), "description"_a = make_text(format.description),
                           "extension"_a = make_text(format.extension), "readable"_a = format.readable,
                           "writable"_a = format.writable));
  }
  return result;
}

}  // namespace

void declare_operations(py::module_& module) {
  module.def("output_format", [](const py::object& path, const std::optional<std::string>& named) {
    return make_text(find_output_format_name(parse_path(path), named.value_or("")));
  });
  module.def("convert", &convert_file);
  module.def("save", &save_model, py::arg("model").none(false), py::arg("to"), py::arg("options"), py::arg("progress"));
  module.def("plan_file", &plan_file);
  module.def("plan_model", &plan_model, py::arg("model").none(false), py::arg("to"), py::arg("options"));
  module.def("verify", &verify_file);
  module.def("hash", &hash_model, py::arg("model").none(false), py::arg("progress"));
  module.def("stats", &compute_model_statistics, py::arg("model").none(false), py::arg("options"), py::arg("progress"));
  module.def("report", &write_model_report, py::arg("path"), py::arg("page"), py::arg("against"), py::arg("overwrite"),
             py::arg("io"), py::arg("progress"));
  module.def("diff", &diff_models, py::arg("a").none(false), py::arg("b").none(false), py::arg("options"),
             py::arg("progress"));
  module.def("edit", &edit_file);
  module.def("formats", &list_all_formats);
  module.def("format_from_extension", [](const std::string& path) -> py::object {
    const auto found = format_from_extension(path);
    return found ? py::object(make_text(*found)) : py::none();
  });
  module.def("quantize", &quantize_tensor, py::arg("model").none(false), py::arg("type"), py::arg("group_size"));
  module.def("from_blocks", &make_model_of_blocks, py::arg("data"), py::arg("type"), py::arg("shape"));
}

}  // namespace poise::python
