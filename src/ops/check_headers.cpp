#include "ops/check_headers.hpp"

#include <optional>
#include <string>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/check.hpp"

namespace poise {

std::vector<Finding> check_headers(const Model& model, const std::filesystem::path& path, bool runs) {
  std::vector<Finding> findings;
  const auto add = [&](Severity severity, std::string message) {
    findings.push_back({severity, std::move(message), path.string(), std::nullopt});
  };
  for (Finding& finding : consistency_findings(model)) {
    if (finding.path.empty()) finding.path = path.string();
    findings.push_back(std::move(finding));
  }
  const auto refusal = runs && findings.empty() ? run_refusal(model) : std::nullopt;
  if (!refusal) return findings;
  if (refusal->kind() == ErrorKind::invalid_file) {
    add(Severity::error, refusal->message());
  } else {
    add(Severity::warning, fmt::format("Poise cannot run the model: {}", refusal->message()));
  }
  return findings;
}

}  // namespace poise
