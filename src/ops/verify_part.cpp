#include "ops/verify_part.hpp"

#include <utility>

#include <fmt/format.h>

namespace poise {

bool is_about_the_file(const Error& error) {
  return error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported;
}

bool is_about_the_part(const Error& error) { return is_about_the_file(error) || error.kind() == ErrorKind::not_found; }

Finding finding_from(const Error& error, std::string_view where) {
  return {Severity::error, where.empty() ? error.message() : fmt::format("{}: {}", where, error.message()),
          error.path(), error.offset()};
}

Place place_of(const Part& part, std::optional<std::uint64_t> byte) {
  if (byte && *byte < part.blob->size()) {
    if (const auto at = part.blob->stored_byte(*byte)) return {at->source->name(), at->offset};
  }
  const auto at = part.blob->stored();
  if (!at) return {};
  return {at->source->name(), at->offset};
}

Visit PartCheck::visit(const Tensor& tensor, const Part& part, PartOutcome& outcome, Advance advance) {
  auto check = std::make_unique<PartCheck>(tensor, part, outcome, std::move(advance));
  const bool sha256 = check->claim_ && check->claim_->needs_sha256();
  return {part.blob, sha256, std::move(check)};
}

PartCheck::PartCheck(const Tensor& tensor, const Part& part, PartOutcome& outcome, Advance advance)
    : tensor_(tensor),
      part_(part),
      outcome_(outcome),
      advance_(std::move(advance)),
      checks_(make_value_checks(value_rules(tensor, part))) {
  if (!part.digest || part.digest->algorithm == DigestAlgorithm::none) return;
  if (is_computable(part.digest->algorithm)) {
    claim_.emplace(part.blob, *part.digest);
  } else {
    tell(Severity::warning,
         fmt::format("the digest {} is of no kind that Poise can compute; it was not checked", part.digest->text));
  }
}

void PartCheck::see(std::span<const std::byte> bytes) {
  if (claim_) claim_->see(bytes);
  for (const auto& check : checks_) check->see(position_, bytes);
  position_ += bytes.size();
  advance_(bytes.size());
}

void PartCheck::end(std::string sha256) {
  report_values(true);
  if (!claim_) return;
  if (const auto problem = claim_->wrong(std::move(sha256))) tell(Severity::error, *problem);
  outcome_.checked_digest = true;
}

void PartCheck::fail(const Error& error) {
  if (!is_about_the_part(error)) throw Error(error);
  report_values(false);
  outcome_.findings.push_back(finding_from(error, where()));
}

std::string PartCheck::where() const { return fmt::format("tensor {}: {}", tensor_.name, part_.role); }

void PartCheck::tell(Severity severity, std::string_view problem, std::optional<std::uint64_t> byte) {
  Place place = place_of(part_, byte);
  outcome_.findings.push_back({severity, fmt::format("{}: {}", where(), problem), std::move(place.path), place.offset});
}

void PartCheck::report_values(bool complete) {
  std::vector<BadValue> bad;
  for (const auto& check : checks_) check->tell(complete, bad);
  checks_.clear();  // reported once
  for (const BadValue& value : bad) tell(value.severity, value.problem, value.byte);
}

}  // namespace poise
