// Makes adapters, deltas and importance matrices, and downloads models.
#include <array>

#include <poise/delta.hpp>
#include <poise/fetch.hpp>
#include <poise/imatrix.hpp>
#include <poise/make_lora.hpp>

#include "api/imatrix_file.hpp"
#include "long_call.hpp"
#include "options.hpp"

namespace poise::python {
namespace {

namespace fs = std::filesystem;
using namespace py::literals;

constexpr std::array kExtractOptions = std::to_array<Option<ExtractLoraOptions>>({
    {"rank", [](const Given& given, ExtractLoraOptions& to) { to.rank = given.read_whole(); }},
    {"only", [](const Given& given, ExtractLoraOptions& to) { to.only = given.read_patterns(); }},
    {"skip", [](const Given& given, ExtractLoraOptions& to) { to.skip = given.read_patterns(); }},
    {"format", [](const Given& given, ExtractLoraOptions& to) { to.format = given.read_text(); }},
    {"verify", [](const Given& given, ExtractLoraOptions& to) { to.verify = given.read_truth(); }},
    {"dry_run", [](const Given& given, ExtractLoraOptions& to) { to.dry_run = given.read_truth(); }},
    {"io", [](const Given& given, ExtractLoraOptions& to) { to.read.io = given.read_io(); }},
});

constexpr std::array kConvertLoraOptions = std::to_array<Option<ConvertLoraOptions>>({
    {"base", [](const Given& given, ConvertLoraOptions& to) { to.base = given.read_path(); }},
    {"format", [](const Given& given, ConvertLoraOptions& to) { to.format = given.read_text(); }},
    {"dry_run", [](const Given& given, ConvertLoraOptions& to) { to.dry_run = given.read_truth(); }},
    {"io", [](const Given& given, ConvertLoraOptions& to) { to.read.io = given.read_io(); }},
});

constexpr std::array kDeltaOptions = std::to_array<Option<DeltaOptions>>({
    {"dry_run", [](const Given& given, DeltaOptions& to) { to.dry_run = given.read_truth(); }},
    {"io", [](const Given& given, DeltaOptions& to) { to.read.io = given.read_io(); }},
});

constexpr std::array kImatrixOptions = std::to_array<Option<ImatrixFileOptions>>({
    {"chunk_size", [](const Given& given, ImatrixFileOptions& to) { to.measure.chunk_size = given.read_whole(); }},
    {"chunks", [](const Given& given, ImatrixFileOptions& to) { to.measure.chunks = given.read_whole(1); }},
    {"process_output", [](const Given& given, ImatrixFileOptions& to) { to.measure.output = given.read_truth(); }},
    {"dataset", [](const Given& given, ImatrixFileOptions& to) { to.measure.dataset = given.read_text(); }},
    {"add", [](const Given& given, ImatrixFileOptions& to) { to.add = given.read_paths(); }},
    {"threads",
     [](const Given& given, ImatrixFileOptions& to) {
       const std::uint64_t threads = given.read_whole();
       if (threads > UINT32_MAX) given.refuse("at most " + std::to_string(UINT32_MAX));
       to.measure.threads = static_cast<unsigned>(threads);
     }},
    {"exact", [](const Given& given, ImatrixFileOptions& to) { to.measure.exact = given.read_truth(); }},
    {"overwrite", [](const Given& given, ImatrixFileOptions& to) { to.overwrite = given.read_truth(); }},
});

constexpr std::array kFetchOptions = std::to_array<Option<FetchOptions>>({
    {"output", [](const Given& given, FetchOptions& to) { to.output = given.read_path(); }},
    {"only", [](const Given& given, FetchOptions& to) { to.only = given.read_patterns(); }},
    {"overwrite", [](const Given& given, FetchOptions& to) { to.overwrite = given.read_truth(); }},
    {"parallel", [](const Given& given, FetchOptions& to) { to.parallel = given.read_whole(); }},
});

py::object make_optional_path(const fs::path& path) {
  return path.empty() ? py::object(py::none()) : make_text(path.string());
}

py::dict extract_adapter(const py::object& base, const py::object& tuned, const py::object& output,
                         const py::dict& given, const py::object& progress) {
  const fs::path from = parse_path(base);
  const fs::path to = parse_path(tuned);
  const fs::path file = parse_path(output);
  auto options = parse_options<ExtractLoraOptions>(given, kExtractOptions);
  options.write = parse_write_options(given);
  LongCall call(progress);
  options.write.progress = call.make_progress();
  const ExtractLoraReport report = call.run([&] { return extract_lora(from, to, file, options); });
  py::list matrices;
  for (const ExtractedMatrix& matrix : report.matrices) {
    matrices.append(py::dict("name"_a = make_text(matrix.name), "shape"_a = to_tuple(matrix.shape),
                             "rank"_a = matrix.rank, "rms"_a = matrix.rms, "captured"_a = matrix.captured));
  }
  return py::dict("format"_a = make_text(report.format), "output"_a = make_optional_path(report.output),
                  "matrices"_a = matrices, "captured"_a = report.captured, "equal"_a = report.equal,
                  "warnings"_a = to_python(report.warnings), "losses"_a = to_python(report.losses),
                  "bytes_out"_a = report.bytes_out, "seconds"_a = report.seconds);
}

py::dict convert_adapter(const py::object& adapter, const py::object& output, const py::dict& given,
                         const py::object& progress) {
  const fs::path from = parse_path(adapter);
  const fs::path to = parse_path(output);
  auto options = parse_options<ConvertLoraOptions>(given, kConvertLoraOptions);
  options.write = parse_write_options(given);
  LongCall call(progress);
  options.write.progress = call.make_progress();
  const ConvertLoraReport report = call.run([&] { return convert_lora(from, to, options); });
  return py::dict("format"_a = make_text(report.format), "output"_a = make_optional_path(report.output),
                  "matrices"_a = report.matrices, "warnings"_a = to_python(report.warnings),
                  "losses"_a = to_python(report.losses), "bytes_out"_a = report.bytes_out);
}

py::dict write_delta(const py::object& base, const py::object& tuned, const py::object& output, const py::dict& given,
                     const py::object& progress) {
  const fs::path from = parse_path(base);
  const fs::path to = parse_path(tuned);
  const fs::path file = parse_path(output);
  auto options = parse_options<DeltaOptions>(given, kDeltaOptions);
  options.write = parse_write_options(given);
  LongCall call(progress);
  options.write.progress = call.make_progress();
  const DeltaReport report = call.run([&] { return make_delta(from, to, file, options); });
  py::list changed;
  for (const DeltaTensor& tensor : report.changed) {
    changed.append(py::dict("name"_a = make_text(tensor.name), "form"_a = make_text(tensor.form),
                            "changed"_a = tensor.changed, "elements"_a = tensor.elements, "bytes"_a = tensor.bytes));
  }
  return py::dict("output"_a = make_optional_path(report.output), "base"_a = make_text(report.base),
                  "equal"_a = report.equal, "changed"_a = changed, "removed"_a = to_python(report.removed),
                  "fields"_a = to_python(report.fields), "bytes_in"_a = report.bytes_in,
                  "bytes_out"_a = report.bytes_out, "seconds"_a = report.seconds);
}

py::dict write_imatrix(const std::shared_ptr<OpenModel>& owner, const py::object& text, const py::object& output,
                       const py::dict& given, const py::object& progress) {
  const auto model = owner ? owner->require_model() : nullptr;
  const std::string words = owner ? encode_utf8(text) : std::string();
  const fs::path file = parse_path(output);
  auto options = parse_options<ImatrixFileOptions>(given, kImatrixOptions);
  LongCall call(progress);
  options.progress = call.make_progress();
  const Imatrix made = call.run([&] { return make_imatrix_file(model.get(), words, file, options); });
  py::dict unused;
  for (const ImatrixGap& gap : find_imatrix_gaps(made)) unused[make_text(gap.entry)] = py::cast(gap.experts);
  return py::dict("entries"_a = made.entries.size(), "chunks"_a = made.count_chunks(), "chunk_size"_a = made.chunk_size,
                  "datasets"_a = to_python(made.datasets), "unused_experts"_a = unused);
}

py::dict fetch_model(const py::object& url, const py::dict& given, const py::object& progress) {
  const std::string name = encode_utf8(url);
  auto options = parse_options<FetchOptions>(given, kFetchOptions);
  LongCall call(progress);
  options.progress = call.make_progress();
  const FetchReport report = call.run([&] { return fetch(name, options); });
  return py::dict("directory"_a = make_text(report.directory.string()), "commit"_a = make_text(report.commit),
                  "files"_a = report.files, "files_kept"_a = report.kept, "bytes"_a = report.bytes,
                  "bytes_kept"_a = report.bytes_kept);
}

}  // namespace

void declare_making(py::module_& module) {
  module.def("extract_lora", &extract_adapter);
  module.def("convert_lora", &convert_adapter);
  module.def("make_delta", &write_delta);
  module.def("measure_imatrix", &write_imatrix);
  module.def("fetch", &fetch_model);
}

}  // namespace poise::python
