#include "ops/check_headers.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/tokenizer.hpp>

#include "family/check.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "tokenizer/pipeline/steps.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

// Collects the reasons why a model cannot run: errors if the file is wrong, warnings if Poise lacks something.
class RunCheck {
 public:
  RunCheck(const Model& model, std::string path) : model_(model), path_(std::move(path)) {}

  std::vector<Finding> collect_findings(bool runs) {
    for (Finding& finding : find_inconsistencies(model_)) {
      if (finding.path.empty()) finding.path = path_;
      findings_.push_back(std::move(finding));
    }
    if (findings_.empty()) check_tokenizer();  // a vocabulary that contradicts the model is reported once
    const std::string& type = model_.card.model_type;
    const bool is_known = model_.config && (type.empty() || find_family(type) != nullptr);
    if (runs && findings_.empty() && is_known) check_computation();
    return std::move(findings_);
  }

 private:
  void add(Severity severity, std::string message) {
    findings_.push_back({severity, std::move(message), path_, std::nullopt});
  }
  void report_cannot_run(std::string_view reason) {
    add(Severity::warning, fmt::format("Poise cannot run the model: {}", reason));
  }
  void add(const Error& error) {
    if (error.kind() == ErrorKind::invalid_file) return add(Severity::error, error.message());
    if (error.kind() != ErrorKind::unsupported) throw error;
    report_cannot_run(error.message());
  }

  void check_tokenizer() {
    try {
      auto vocabulary = make_vocabulary(model_);
      if (!vocabulary || vocabulary->size() == 0) return;
      const std::size_t rows = count_embedded_tokens(model_).value_or(vocabulary->size());
      (void)Tokenizer(keep_first_tokens(*std::move(vocabulary), rows));
    } catch (const Error& error) {
      add(error);
    }
  }

  void check_computation() {
    if (const auto refusal = find_run_refusal(model_)) return add(*refusal);
    if (model_.size() == 0) return;
    const Family& family = find_family_or_llama(model_);
    check_weights(family);
    check_rope_divisors(family.plan(make_config_view(model_)));
  }

  // Adds a warning for each tensor of the family whose elements the computation cannot use: integers, for example.
  void check_weights(const Family& family) {
    for (const Tensor& tensor : model_.tensors()) {
      const std::string name = find_table_name(family, tensor.name);
      if (name != family.output && !family.tensors.has(name)) continue;
      if (has_float_elements(tensor)) continue;
      report_cannot_run(
          fmt::format("tensor {} has elements of {}, expected floating-point numbers, or codes with a scale",
                      tensor.name, tensor.parts.front().shown_type()));
    }
  }

  void check_rope_divisors(const DecoderPlan& plan) {
    const Tensor* divisors = plan.rope_divisors.empty() ? nullptr : model_.find(plan.rope_divisors);
    if (divisors == nullptr || plan.ropes.empty()) return;
    for (const RopePlan& rope : plan.ropes) {
      if (rope.frequencies.size() == divisors->elements()) continue;
      return add(Severity::error, fmt::format("tensor {} has {} numbers, expected {}", divisors->name,
                                              divisors->elements(), rope.frequencies.size()));
    }
    if (!has_float_elements(*divisors)) return;
    std::vector<float> numbers(static_cast<std::size_t>(divisors->elements()));
    make_dense_blob(*divisors, DType::f32)->read(0, std::as_writable_bytes(std::span(numbers)));
    if (!std::ranges::all_of(numbers, [](float number) { return number > 0; }))
      add(Severity::error,
          fmt::format("tensor {}: expected positive numbers, found 0, a negative number or NaN", divisors->name));
  }

  const Model& model_;
  std::string path_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check_headers(const Model& model, const std::filesystem::path& path, bool runs) {
  return RunCheck(model, path.string()).collect_findings(runs);
}

}  // namespace poise
