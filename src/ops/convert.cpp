#include <poise/convert.hpp>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include <poise/delta.hpp>
#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "formats/format.hpp"
#include "io/file_descriptor.hpp"
#include "io/sink.hpp"
#include "io/streams.hpp"
#include "model/same_headers.hpp"
#include "ops/budget/budget.hpp"
#include "ops/conversion.hpp"
#include "ops/digest_check.hpp"
#include "ops/lora.hpp"
#include "ops/ranked_output.hpp"
#include "ops/ranks.hpp"
#include "ops/shared_bytes.hpp"
#include "ops/transform/revision.hpp"
#include "tokenizer/files/files.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double measure_seconds(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void check_vocab_and_merges(const ConvertOptions& options) {
  if (options.vocab.empty() == options.merges.empty()) return;
  const bool merges = options.vocab.empty();
  throw Error(ErrorKind::bad_argument,
              fmt::format("{} is given without {}", merges ? "merges" : "vocab", merges ? "vocab" : "merges"));
}

// Returns files that the output must not replace.
std::vector<fs::path> list_inputs(const Model& model, const ConvertOptions& options) {
  std::vector<fs::path> files = model.origin.files;
  if (!options.vocab.empty()) files.insert(files.end(), {options.vocab, options.merges});
  if (!options.imatrix.empty()) files.push_back(options.imatrix);
  return files;
}

void replace_vocabulary(Model& model, const ConvertOptions& options) {
  if (options.vocab.empty()) return;
  if (model.vocabulary || has_gguf_tokenizer(model.attributes)) {
    model.warnings.push_back(
        {Severity::warning, fmt::format("{} replaces the model's vocabulary", options.vocab.string()), {}, {}});
  }
  // Attributes that describe the old vocabulary would mix with the new one.
  std::vector<Attributes::Entry> others;
  std::ranges::copy_if(model.attributes, std::back_inserter(others),
                       [](const Attributes::Entry& entry) { return !is_gguf_tokenizer_key(entry.first); });
  model.attributes = Attributes::from_unique(std::move(others));
  model.vocabulary = read_byte_pair_vocabulary(*Source::open(options.vocab, IoMode::read),
                                               *Source::open(options.merges, IoMode::read));
}

// Returns the sentences about changes of the whole model.
std::vector<std::string> list_changes(const RevisedModel& input, const ConvertOptions& options,
                                      const Transformed& made) {
  std::vector<std::string> changes = input.changes;
  if (options.budget && !made.budget) changes.emplace_back("all types stay, because the output fits the budget");
  return changes;
}

// Throws io if the file system has no room for the bytes that will certainly be written. Holes, and bytes that may be
// shared with the input, do not count. The error ends with `remedy`.
void require_room(const Model& model, const PreparedFile& file, const fs::path& output, std::string_view remedy) {
  const auto room = measure_free_space(output);
  if (!room) return;
  const auto needs_room = [&](const Tensor& tensor) {
    return !room->shares_copies ||
           std::ranges::any_of(tensor.parts, [](const Part& part) { return !part.blob->raw_range(); });
  };
  std::uint64_t most = 0;
  for (const Tensor& tensor : model.tensors()) most = saturating_add(most, tensor.size_bytes());
  if (most <= room->bytes) return;
  const FilePlan plan = file.plan();
  if (!plan.bytes || !plan.exact) return;
  std::uint64_t needed = 0;
  for (std::size_t i = 0; i < plan.tensor_bytes.size(); ++i) {
    if (needs_room(model.tensors()[i])) needed = saturating_add(needed, plan.tensor_bytes[i]);
  }
  if (needed <= room->bytes) return;
  throw Error(ErrorKind::io,
              fmt::format("the tensors need {} bytes, but the file system has {}{}", needed, room->bytes, remedy),
              output.string());
}

bool has_digests(const Tensor& tensor) {
  return std::ranges::any_of(tensor.parts, [](const Part& part) { return bool(part.digest); });
}

std::vector<const Model*> list_opened(const ConversionInput& input) {
  std::vector<const Model*> models;
  for (const std::shared_ptr<const Model>& model : input.opened) models.push_back(&*model);
  return models;
}

// Returns a check of the input's digests. The check covers the tensors that the output uses: those that the output
// contains, perhaps under new names (`revised` has these), and those from which other tensors were made. If `verify` is
// false, the check covers none. Requires: `input` outlives the check.
DigestCheck make_digest_check(const ConversionInput& input, bool verify, const RevisedModel& revised,
                              const Transformed& made, const PreparedFile& file, const Communicator* ranks) {
  std::unordered_set<std::string_view> replaced;
  if (made.converted) replaced.insert(made.converted->replaced.begin(), made.converted->replaced.end());
  std::optional<bool> has_tensors;  // false for a file with metadata alone; computed only if there are digests
  const bool has_file_digests = std::ranges::any_of(
      input.opened, [](const std::shared_ptr<const Model>& model) { return !model->origin.file_digests.empty(); });
  const auto is_written = [&](const Tensor& tensor) {
    if (!has_file_digests && !has_digests(tensor)) return false;
    if (input.is_used) {
      if (!input.is_used(tensor)) return false;
    } else {
      const std::string_view name = revised.find_name(tensor.name);
      if (made.model.find(name) == nullptr && !replaced.contains(name)) return false;
    }
    if (!has_tensors) has_tensors = !file.plan().tensor_bytes.empty();
    return *has_tensors;
  };
  return DigestCheck(verify ? list_opened(input) : std::vector<const Model*>(), is_written, ranks);
}

// Returns the output that a conversion writes at `place`. If `ranks` is not null, all ranks write it.
std::unique_ptr<SavedOutput> make_output(const Format& target, const fs::path& place, const ConvertOptions& options,
                                         const std::vector<fs::path>& inputs, const PreparedFile& file,
                                         Communicator* ranks) {
  if (ranks == nullptr) return make_saved_output(target, place, options.write.overwrite, inputs);
  auto own = ranks->rank() == 0 ? make_saved_output(target, place, options.write.overwrite, inputs) : nullptr;
  std::uint64_t bytes = 0;
  for (const std::uint64_t tensor : file.plan().tensor_bytes) bytes = saturating_add(bytes, tensor);
  return std::make_unique<RankedOutput>(std::move(own), bytes, *ranks);
}

// Returns the size of the model's files, or of its tensors if it was made in memory.
std::uint64_t count_bytes(const Model& model) {
  if (model.origin.size > 0) return model.origin.size;
  std::uint64_t sum = 0;
  for (const Tensor& tensor : model.tensors()) sum = saturating_add(sum, tensor.size_bytes());
  return sum;
}

std::vector<std::string> list_losses(const Transformed& made, const PreparedFile& file) {
  std::vector<std::string> losses = made.converted ? made.converted->losses : std::vector<std::string>();
  std::ranges::copy(file.losses, std::back_inserter(losses));
  return losses;
}

// Counts codes that only the output turns into numbers.
void count_decoded(const PreparedFile& file, Transformed& made) {
  for (const std::string& name : file.decoded_tensors) {
    const Tensor& tensor = *made.model.find(name);
    ++made.decoded.tensors;
    made.decoded.bytes_in = saturating_add(made.decoded.bytes_in, tensor.size_bytes());
    made.decoded.bytes_out =
        saturating_add(made.decoded.bytes_out,
                       checked_mul(element_count(tensor.shape).value_or(0), sizeof(float)).value_or(UINT64_MAX));
  }
}

// Returns the description of a conversion. `input` is the model that was transformed.
Plan describe_conversion(const RevisedModel& input, const ConvertOptions& options, const Transformed& made,
                         const PreparedFile& file, const fs::path& output) {
  const FilePlan written = file.plan();
  Plan plan;
  plan.skipped = input.left_out;
  std::ranges::copy(made.skipped, std::back_inserter(plan.skipped));
  plan.changes = list_changes(input, options, made);
  plan.warnings = made.model.warnings;
  plan.losses = list_losses(made, file);
  if (made.perhaps_sparse.empty()) plan.bytes_out = written.bytes;
  plan.exact = written.exact;
  plan.decoded = made.decoded;
  plan.merged = made.merged;
  plan.budget = made.budget;
  plan.output = output;
  if (!output.empty() && file.main_name) plan.output.replace_filename(file.main_name(output.filename().string()));
  plan.tensors.reserve(written.tensor_bytes.size());
  const std::unordered_set<std::string_view> decoded(file.decoded_tensors.begin(), file.decoded_tensors.end());
  const Model& before = made.converted ? made.converted->model : *input.model;
  for (std::size_t i = 0; i < written.tensor_bytes.size(); ++i) {
    const Tensor& to = made.model.tensors()[i];
    const Tensor& from = *before.find(to.name);
    plan.tensors.push_back({to.name, to.shape, describe_stored_type(from),
                            decoded.contains(to.name) ? std::string(to_string(DType::f32)) : describe_stored_type(to),
                            from.size_bytes(), std::nullopt});
    if (!made.perhaps_sparse.contains(to.name)) plan.tensors.back().bytes_out = written.tensor_bytes[i];
  }
  return plan;
}

ConvertReport make_report(const RevisedModel& input, const ConvertOptions& options, const Transformed& made,
                          const PreparedFile& file, SavedOutput& output) {
  ConvertReport report;
  report.bytes_padding = output.padding();
  report.outputs = output.paths();
  report.tensors = made.model.size();
  report.skipped = input.left_out.size() + made.skipped.size();
  report.changes = list_changes(input, options, made);
  report.bytes_in = count_bytes(*input.model);
  report.warnings = made.model.warnings;
  report.losses = list_losses(made, file);
  report.decoded = made.decoded;
  report.merged = made.merged;
  report.budget = made.budget;
  return report;
}

// Applies a delta. If it does not fit the base, the cause may be another base: its hash shows this.
Model apply_to_base(const Model& base, const Model& delta, const Progress& progress) {
  try {
    return apply_delta(base, delta);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::invalid_file && is_delta(delta)) require_base(base, delta, progress);
    throw;
  }
}

// Opens a delta and applies it. The check of the base reads all of it, so only the delta's digests remain to be
// checked.
ConversionInput open_with_delta(const std::shared_ptr<const Model>& base, const ConvertOptions& options) {
  const auto delta = std::make_shared<const Model>(open(options.delta, options.read));
  const auto tuned = std::make_shared<const Model>(apply_to_base(*base, *delta, options.write.progress));
  return {.merged = merge_adapters(tuned, options.lora),
          .opened = {base, delta},
          .is_used = [delta](const Tensor& tensor) { return delta->find(tensor.name) == &tensor; },
          .check = [base, delta](const Progress& progress) { require_base(*base, *delta, progress); }};
}

// Opens the input, unless a model is given. Applies a delta, then adapters: all other changes apply to the result.
ConversionInput open_conversion(const Model* model, const fs::path& input, const ConvertOptions& options) {
  check_vocab_and_merges(options);
  const auto opened = model == nullptr ? std::make_shared<const Model>(open(input, options.read))
                                       : std::shared_ptr<const Model>(std::shared_ptr<const Model>(), model);
  if (!options.delta.empty()) return open_with_delta(opened, options);
  return {.merged = merge_adapters(opened, options.lora), .opened = {opened}};
}

}  // namespace

Plan plan_conversion(ConversionInput input, const fs::path& output, const Format& target, const ConvertOptions& options,
                     bool describes, Communicator* ranks) {
  // Refuse an output that would replace the input, or anything else without permission.
  const std::vector<fs::path> inputs = list_inputs(*input.merged.model, options);
  const std::string replaces =
      output.empty() ? "" : require_possible_output(target, output, options.write.overwrite, inputs);
  // Change names, layers, vocabulary and keys.
  const RevisedModel revised = revise_model(std::move(input.merged), target, options);
  // With a budget, measure what matrices lose and choose their types.
  auto budgeted = choose_types(
      *revised.model, target, options, revised.types,
      [&](Transformed& made) {
        replace_vocabulary(made.model, options);
        return prepare_file(made.model, target, options.write).plan();
      },
      ranks);
  // Store the weights in the convention of the target's readers, then take each tensor through the steps of
  // ops/transform: select, choose a type, cast or quantize, fit the target's layouts. The results are lazy.
  const auto made = std::make_shared<Transformed>(
      transform(*revised.model, target, options, &revised.types, budgeted ? &budgeted->types : nullptr));
  if (budgeted) made->budget = std::move(budgeted->choice);
  replace_vocabulary(made->model, options);
  if (options.strict) refuse_warnings(made->model.warnings);
  const auto losses = std::make_shared<const MeasuredLosses>(*made);
  // Prepare the output: the target's writer refuses what the file cannot hold.
  const auto file = std::make_shared<PreparedFile>(prepare_file(made->model, target, options.write));
  count_decoded(*file, *made);
  Plan plan = describes ? describe_conversion(revised, options, *made, *file, output) : Plan();
  plan.format = target.info.name;
  if (!replaces.empty()) plan.warnings.push_back({Severity::warning, replaces, {}, std::nullopt});
  const auto carry_out = [=, &target](SavedOutput* given, const fs::path& place) {
    if (input.check) input.check(options.write.progress);
    // Make tensors sparse: only their bytes show whether they have enough zeros.
    if (!made->perhaps_sparse.empty()) {
      make_sparse(*made, options);
      *file = prepare_file(made->model, target, options.write);
    }
    // Check that the output fits, so that a full disk is found before hours of work.
    const auto own = given ? nullptr : make_output(target, place, options, inputs, *file, ranks);
    SavedOutput& saved = given ? *given : *own;
    if (ranks == nullptr || ranks->rank() == 0)
      require_room(made->model, *file, place, given ? "; set TMPDIR to another directory" : "");
    // Write, which computes the lazy tensors, and check the input's digests a batch ahead of the writer.
    DigestCheck check = make_digest_check(input, options.verify, revised, *made, *file, ranks);
    const std::uint64_t bytes = check.run_checked(options.write.progress, [&](const Progress& progress) {
      file->write(saved, progress);
      return saved.bytes();
    });
    ConvertReport report = make_report(revised, options, *made, *file, saved);
    report.bytes_out = bytes;
    // Commit: all files appear.
    saved.commit();
    report.format = target.info.name;
    losses->add_to(report, ranks);
    if (const std::string replaced = saved.describe_replacements(); !replaced.empty())
      report.warnings.push_back({Severity::warning, replaced, place.string(), std::nullopt});
    if (const auto unchecked = check.find_unchecked()) report.warnings.push_back(*unchecked);
    return report;
  };
  plan.rest = std::make_shared<Plan::Rest>(Plan::Rest{[=](SavedOutput* given, const fs::path& place) {
    return run_naming_parts(list_opened(input), [&] { return carry_out(given, place); });
  }});
  return plan;
}

const Format& choose_target_format(const fs::path& output, const ConvertOptions& options) {
  return options.format.empty() ? find_output_format(output) : find_format_by_name(options.format);
}

namespace {

// Returns work(). If only the extension of the output names the target, and another format has this extension, too, an
// error about what the target cannot hold names the other one.
template <typename Work>
auto run_naming_other_format(const Format& target, const fs::path& output, const ConvertOptions& options,
                             const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    const auto other = options.format.empty() ? find_other_output_format(output, target) : std::nullopt;
    if (error.kind() != ErrorKind::unsupported || !other) throw;
    throw Error(error).with({.kind = Remedy::Kind::format, .value = std::string(*other)});
  }
}

}  // namespace

ConvertReport carry_out(const Plan& plan, SavedOutput* given, const fs::path& place, Clock::time_point start) {
  if (!plan.rest || !plan.rest->carry_out)
    throw Error(ErrorKind::bad_argument, "the plan is empty, or has been carried out already: make a new one");
  ConvertReport report = std::exchange(plan.rest->carry_out, nullptr)(given, place);
  report.seconds = measure_seconds(start);
  return report;
}

void refuse_warnings(const std::vector<Finding>& warnings) {
  if (warnings.empty()) return;
  const auto error = std::ranges::find(warnings, Severity::error, &Finding::severity);
  const Finding& first = error == warnings.end() ? warnings.front() : *error;
  const std::size_t more = warnings.size() - 1;
  throw Error(ErrorKind::invalid_file,
              fmt::format("the strict conversion stops at a warning: {}{}", first.message,
                          more == 0   ? std::string()
                          : more == 1 ? " (and 1 more warning)"
                                      : fmt::format(" (and {} more warnings)", more)),
              first.path, first.offset);
}

Plan plan(const Model& model, std::string_view format, const ConvertOptions& changes) {
  if (!changes.format.empty() && changes.format != format)
    throw Error(ErrorKind::bad_argument,
                fmt::format("the plan's format is {}, but the options ask for {}", format, changes.format));
  return plan_conversion(open_conversion(&model, {}, changes), {}, find_format_by_name(format), changes, true);
}

Plan plan(const fs::path& input, const fs::path& output, const ConvertOptions& options) {
  const Format& target = choose_target_format(output, options);
  ConversionInput opened = open_conversion(nullptr, input, options);
  return run_naming_other_format(target, output, options,
                                 [&] { return plan_conversion(std::move(opened), output, target, options, true); });
}

ConvertReport write(const Plan& plan, const fs::path& output) { return carry_out(plan, nullptr, output, Clock::now()); }

ConvertReport write(const Plan& plan, SavedOutput& output) {
  // A stream's file grows in the temporary directory until commit(), so the file must fit there.
  return carry_out(plan, &output, find_temporary_directory() / output.name(), Clock::now());
}

ConvertReport convert(const fs::path& input, const fs::path& output, const ConvertOptions& options) {
  const auto start = Clock::now();
  const Format& target = choose_target_format(output, options);
  ConversionInput opened = open_conversion(nullptr, input, options);
  return run_naming_other_format(target, output, options, [&] {
    return carry_out(plan_conversion(std::move(opened), output, target, options, false), nullptr, output, start);
  });
}

ConvertReport convert(const fs::path& input, const fs::path& output, const ConvertOptions& options,
                      Communicator& ranks) {
  if (ranks.size() == 1) return convert(input, output, options);
  const auto start = Clock::now();
  ConversionInput opened = open_conversion(nullptr, input, options);
  for (const auto& model : opened.opened) require_same_headers(*model, ranks);
  for (const LoraAdapter& adapter : options.lora) require_same_bytes(adapter.path, ranks);
  if (!options.imatrix.empty()) require_same_bytes(options.imatrix, ranks);
  const Format& target = choose_target_format(output, options);
  return run_naming_other_format(target, output, options, [&] {
    return carry_out(plan_conversion(std::move(opened), output, target, options, false, &ranks), nullptr, output,
                     start);
  });
}

}  // namespace poise
