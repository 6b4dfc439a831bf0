#include <poise/convert.hpp>

#include <chrono>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/sink.hpp"
#include "ops/digest_check.hpp"
#include "ops/part_errors.hpp"
#include "ops/transform.hpp"
#include "tokenizer/byte_pair_vocabulary.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

const Format& target_format(const fs::path& output, const ConvertOptions& options) {
  if (!options.format.empty()) return format_by_name(options.format);
  const auto name = format_from_extension(output);
  if (!name) {
    throw Error(ErrorKind::bad_argument, fmt::format("the extension \"{}\" stands for no format", output.extension().string()), output.string())
        .with({.kind = Remedy::Kind::format});
  }
  return format_by_name(*name);
}

// All of a conversion that looks at the input's bytes.
ConvertReport write_transformed(const Model& model, const Format& format, FileOutput& file, const ConvertOptions& options) {
  const Transformed transformed = transform(model, format, options);
  std::optional<DigestCheck> check;
  if (options.verify) check.emplace(std::vector<const Model*>{&model}, [&](const Tensor& tensor) { return transformed.model.find(tensor.name) != nullptr; });
  const auto write = [&](const Progress& progress) {
    WriteOptions watched = options.write;
    watched.progress = progress;
    write_model(transformed.model, format, file, watched);
    return file.bytes();
  };
  ConvertReport report;
  report.bytes_out = check ? check->around(options.write.progress, write) : write(options.write.progress);
  report.bytes_padding = file.padding();
  file.commit();
  report.format = format.info.name;
  report.tensors = transformed.model.size();
  report.skipped = transformed.skipped;
  report.bytes_in = transformed.model.origin.size;
  report.warnings = transformed.model.warnings;
  if (const auto unchecked = check ? check->unchecked() : std::nullopt) report.warnings.push_back(*unchecked);
  report.losses = losses_of(transformed.model, format, options.write);
  for (const auto& [types, cast] : transformed.casts) {
    const CastStats stats = cast->total();
    if (stats.values == 0) continue;  // nobody asked for the elements: metadata alone, or codes that are float32 already
    report.casts.push_back({types.first, types.second, stats.values, stats.to_zero, stats.to_subnormal, stats.worst_error});
  }
  for (const QuantizedTensor& tensor : transformed.quantized) {
    report.quantized.push_back({tensor.name, tensor.type, tensor.bytes_in, tensor.bytes_out, tensor.report->total()});
  }
  return report;
}

}  // namespace

ConvertReport convert(const fs::path& input, const fs::path& output, const ConvertOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Format& format = target_format(output, options);
  if (options.vocab.empty() != options.merges.empty()) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("{} is given without {}", options.vocab.empty() ? "merges" : "vocab", options.vocab.empty() ? "vocab" : "merges"));
  }
  Model model = open(input, options.read);
  std::vector<fs::path> inputs = model.origin.files;
  if (!options.vocab.empty()) {
    model.vocabulary = read_byte_pair_vocabulary(*Source::open(options.vocab, IoMode::read), *Source::open(options.merges, IoMode::read));
    inputs.insert(inputs.end(), {options.vocab, options.merges});
  }
  FileOutput file(output, options.write.overwrite, std::move(inputs));  // refuses an existing output before any work is done
  ConvertReport report = naming_parts({&model}, [&] { return write_transformed(model, format, file, options); });
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace poise
