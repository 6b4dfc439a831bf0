#include "ops/conversion.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/tied_output.hpp"
#include "tokenizer/files/byte_pair_vocabulary.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

void require_both_or_none(const ConvertOptions& options) {
  if (options.vocab.empty() == options.merges.empty()) return;
  const bool merges = options.vocab.empty();
  throw Error(ErrorKind::bad_argument,
              fmt::format("{} is given without {}", merges ? "merges" : "vocab", merges ? "vocab" : "merges"));
}

std::shared_ptr<Plan::Work> begin(const Format& format, const ConvertOptions& options) {
  require_both_or_none(options);
  auto work = std::make_shared<Plan::Work>();
  work->format = &format;
  work->options = options;
  return work;
}

// Merges the adapters.
void set_input(Plan::Work& work, const Model& model) {
  work.read = work.input = &model;
  if (!work.options.lora.empty()) {
    work.input = &work.merged.emplace(merge_adapters(model, work.options.lora)).model;
  } else if (auto resolved = resolve_tied_output(model)) {
    work.input = &work.resolved.emplace(*std::move(resolved));
  }
  work.files = work.input->origin.files;
  if (!work.options.vocab.empty()) work.files.insert(work.files.end(), {work.options.vocab, work.options.merges});
}

void transform_input(Plan::Work& work) {
  const MergedTypes* merged = work.merged ? &work.merged->types : nullptr;
  work.transformed = transform(*work.input, *work.format, work.options, merged);
  const ConvertOptions& options = work.options;
  if (!options.vocab.empty()) {
    Model& model = work.transformed.model;
    if (model.vocabulary) {
      model.warnings.push_back({Severity::warning,
                                fmt::format("{} takes the place of the model's vocabulary", options.vocab.string()),
                                {},
                                {}});
    }
    work.transformed.model.vocabulary = read_byte_pair_vocabulary(*Source::open(options.vocab, IoMode::read),
                                                                  *Source::open(options.merges, IoMode::read));
  }
  work.losses.emplace(work.transformed);
}

// The first warning, errors before others.
void refuse_warnings(const Plan::Work& work) {
  const std::vector<Finding>& warnings = work.transformed.model.warnings;
  if (!work.options.strict || warnings.empty()) return;
  const auto error = std::ranges::find(warnings, Severity::error, &Finding::severity);
  const Finding& first = error == warnings.end() ? warnings.front() : *error;
  const std::size_t more = warnings.size() - 1;
  throw Error(ErrorKind::invalid_file,
              fmt::format("a warning refuses the strict conversion: {}{}", first.message,
                          more == 0   ? std::string()
                          : more == 1 ? " (and 1 more warning)"
                                      : fmt::format(" (and {} more warnings)", more)),
              first.path, first.offset);
}

}  // namespace

std::shared_ptr<Plan::Work> prepare(const Model& model, std::string_view format, const ConvertOptions& options) {
  if (!options.format.empty() && options.format != format) {
    throw Error(ErrorKind::bad_argument, fmt::format("the format is {} and {}", format, options.format));
  }
  auto work = begin(format_by_name(format), options);
  set_input(*work, model);
  transform_input(*work);
  refuse_warnings(*work);
  return work;
}

std::shared_ptr<Plan::Work> prepare(const fs::path& input, const fs::path& output, const ConvertOptions& options) {
  auto work = begin(options.format.empty() ? output_format(output) : format_by_name(options.format), options);
  set_input(*work, work->opened.emplace(open(input, options.read)));
  work->replaces = require_output_possible(*work->format, output, options.write.overwrite, work->files);
  transform_input(*work);
  refuse_warnings(*work);
  return work;
}

}  // namespace poise
