// Checks the digest and the values of a tensor's part for verify(), while a scan reads its bytes once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/error.hpp>
#include <poise/finding.hpp>
#include <poise/tensor.hpp>

#include "pack/part_digest.hpp"
#include "pack/scan.hpp"
#include "views/layout_type.hpp"

namespace poise {

// Describes one or more faulty values of a part.
struct BadValue {
  Severity severity = Severity::error;
  std::string problem;     // "element 7 is not finite"
  std::uint64_t byte = 0;  // the position, in decoded bytes of the part
};

// Checks the values of one part. Sees the part's decoded bytes once, and collects faults.
class ValueCheck {
 public:
  virtual ~ValueCheck() = default;
  // Checks bytes [position, position + bytes.size()) of the part: whole elements, but perhaps parts of blocks. The
  // calls come in order, without gaps.
  virtual void update(std::uint64_t position, std::span<const std::byte> bytes) = 0;
  // Adds the faults. `complete` is true if the check has seen the whole part.
  virtual void report(bool complete, std::vector<BadValue>& bad) const = 0;
};

// Returns checks of these rules: booleans are 0 or 1; floating-point values and the scales of blocks are finite
// (infinities and NaN are only warnings); an unused half of the last byte is zero; codes fit four bits. Omits checks
// that do not apply.
std::vector<std::unique_ptr<ValueCheck>> make_value_checks(const ValueRules& rules);

// Each function returns true for errors that verify() reports as findings: invalid_file and unsupported.
// is_about_the_part() also returns true for not_found, because a part's file may be missing.
bool is_about_the_file(const Error& error);
bool is_about_the_part(const Error& error);

// Returns the error as a finding; `where` goes before its message.
Finding make_finding(const Error& error, std::string_view where = {});

// Returns the number of a blob's decoded bytes; 0 if it cannot be decoded, which reading it reports.
std::uint64_t get_size_or_zero(const Blob& blob);

struct PartOutcome {
  bool checked_digest = false;
  std::string sha256 = {};  // the hash of the decoded bytes; empty if it was not computed
  std::vector<Finding> findings;
};

class PartCheck final : public Visitor {
 public:
  using Advance = std::function<void(std::uint64_t bytes)>;

  // Fills in `outcome` while a scan reads the part, and calls `advance` after every piece. Requires: tensor, part and
  // outcome outlive this.
  PartCheck(const Tensor& tensor, const Part& part, PartOutcome& outcome, Advance advance);

  // Returns the visit for a scan. If `wants_sha256` is true, the outcome has the part's SHA-256.
  static Visit make_visit(const Tensor& tensor, const Part& part, PartOutcome& outcome, Advance advance,
                          bool wants_sha256 = false);

  void update(std::span<const std::byte> bytes) override;
  void end(std::string sha256) override;
  void fail(const Error& error) override;

 private:
  std::string describe_place() const;  // "tensor a: data"
  void report(Severity severity, std::string_view problem, std::optional<std::uint64_t> byte = std::nullopt);
  void report_values(bool complete);

  const Tensor& tensor_;
  const Part& part_;
  PartOutcome& outcome_;
  Advance advance_;
  std::uint64_t position_ = 0;
  std::optional<DigestClaim> claim_;
  std::vector<std::unique_ptr<ValueCheck>> checks_;
};

}  // namespace poise
