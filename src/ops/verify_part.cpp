#include "ops/verify_part.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "codec/affine.hpp"
#include "codec/block_type.hpp"
#include "io/extents.hpp"
#include "numeric/scan.hpp"

namespace poise {

bool is_about_the_file(const Error& error) {
  return error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported;
}

bool is_about_the_part(const Error& error) { return is_about_the_file(error) || error.kind() == ErrorKind::not_found; }

Finding make_finding(const Error& error, std::string_view where) {
  return {Severity::error, where.empty() ? error.message() : fmt::format("{}: {}", where, error.message()),
          error.path(), error.offset()};
}

std::uint64_t get_size_or_zero(const Blob& blob) {
  try {
    return blob.size();
  } catch (const Error& error) {
    if (!is_about_the_part(error)) throw;
    return 0;
  }
}

Visit PartCheck::make_visit(const Tensor& tensor, const Part& part, PartOutcome& outcome, Advance advance,
                            bool wants_sha256) {
  auto check = std::make_unique<PartCheck>(tensor, part, outcome, std::move(advance));
  const bool sha256 = wants_sha256 || (check->claim_ && check->claim_->needs_sha256());
  return {part.blob, sha256, std::move(check)};
}

PartCheck::PartCheck(const Tensor& tensor, const Part& part, PartOutcome& outcome, Advance advance)
    : tensor_(tensor),
      part_(part),
      outcome_(outcome),
      advance_(std::move(advance)),
      checks_(make_value_checks(get_value_rules(tensor, part))) {
  if (!part.digest || part.digest->algorithm == DigestAlgorithm::none) return;
  if (is_computable(part.digest->algorithm)) {
    claim_.emplace(part.blob, *part.digest);
  } else {
    report(Severity::warning,
           fmt::format("the digest {} is of a kind that Poise cannot compute; it was not checked", part.digest->text));
  }
}

void PartCheck::update(std::span<const std::byte> bytes) {
  if (claim_) claim_->update(bytes);
  for (const auto& check : checks_) check->update(position_, bytes);
  position_ += bytes.size();
  advance_(bytes.size());
}

void PartCheck::end(std::string sha256) {
  report_values(true);
  outcome_.sha256 = sha256;
  if (!claim_) return;
  if (const auto problem = claim_->find_mismatch(std::move(sha256))) report(Severity::error, *problem);
  outcome_.checked_digest = true;
}

void PartCheck::fail(const Error& error) {
  if (!is_about_the_part(error)) throw Error(error);
  report_values(false);
  outcome_.findings.push_back(make_finding(error, describe_place()));
}

std::string PartCheck::describe_place() const { return fmt::format("tensor {}: {}", tensor_.name, part_.role); }

void PartCheck::report(Severity severity, std::string_view problem, std::optional<std::uint64_t> byte) {
  Place place = byte ? find_place(*part_.blob, *byte) : find_place(*part_.blob);
  outcome_.findings.push_back(
      {severity, fmt::format("{}: {}", describe_place(), problem), std::move(place.path), place.offset});
}

void PartCheck::report_values(bool complete) {
  std::vector<BadValue> bad;
  for (const auto& check : checks_) check->report(complete, bad);
  checks_.clear();  // if end() throws later, fail() must not report the faults again
  for (const BadValue& value : bad) report(value.severity, value.problem, value.byte);
}

namespace {

// Counts the bad elements of a part, and keeps the index of the first.
class BadElements {
 public:
  explicit BadElements(DType dtype) : dtype_(dtype) {}

  // `begin` is the index of the first of these elements in the part.
  void update(std::uint64_t begin, std::span<const std::byte> elements) {
    const BadValues bad = find_bad_values(dtype_, elements);
    if (bad.count > 0 && count_ == 0) first_ = begin + bad.first;
    count_ += bad.count;
  }

  // Adds one bad value for all bad elements, if there are any. `find_place` returns the byte at which an element
  // begins.
  template <typename PlaceOf>
  void report(const PlaceOf& find_place, std::vector<BadValue>& bad) const {
    if (count_ == 0) return;
    const std::string more = count_ > 1 ? fmt::format(", and {} more are", count_ - 1) : "";
    const Severity severity =
        dtype_ == DType::boolean ? Severity::error : Severity::warning;  // every format allows infinities and NaN
    bad.push_back({severity, describe_bad_element(dtype_, first_) + more, find_place(first_)});
  }

 private:
  DType dtype_;
  std::uint64_t count_ = 0;
  std::uint64_t first_ = 0;
};

class Elements final : public ValueCheck {
 public:
  explicit Elements(DType dtype) : bits_(info(dtype).bits), bad_(dtype) {}

  void update(std::uint64_t position, std::span<const std::byte> bytes) override {
    bad_.update(position * 8 / bits_, bytes);
  }
  void report(bool, std::vector<BadValue>& bad) const override {
    bad_.report([&](std::uint64_t element) { return element * bits_ / 8; }, bad);
  }

 private:
  std::uint64_t bits_;  // the bits of an element
  BadElements bad_;
};

class LastByte final : public ValueCheck {
 public:
  explicit LastByte(ValueRules::LastHalf half) : half_(half) {}

  void update(std::uint64_t position, std::span<const std::byte> bytes) override {
    if (bytes.empty()) return;
    byte_ = bytes.back();
    place_ = position + bytes.size() - 1;
  }

  void report(bool complete, std::vector<BadValue>& bad) const override {
    if (!complete) return;
    if (auto problem = find_last_byte_fault(half_, byte_))
      bad.push_back({Severity::error, *std::move(problem), place_});
  }

 private:
  ValueRules::LastHalf half_;
  std::byte byte_ = {};
  std::uint64_t place_ = 0;
};

class ByteCodes final : public ValueCheck {
 public:
  explicit ByteCodes(const CodeFormat& format) : format_(format) {}

  void update(std::uint64_t position, std::span<const std::byte> bytes) override {
    if (first_) return;
    if (const auto bad = find_bad_code(format_, bytes)) first_ = BadCode{position + bad->element, bad->byte};
  }

  void report(bool, std::vector<BadValue>& bad) const override {
    if (first_) bad.push_back({Severity::error, to_string(*first_, 0), first_->element});
  }

 private:
  CodeFormat format_;
  std::optional<BadCode> first_;
};

// Decodes blocks, and reports numbers that are not finite: those of blocks whose scale is infinite or NaN.
class BlockNumbers final : public ValueCheck {
 public:
  explicit BlockNumbers(const BlockType& type) : type_(type), numbers_(kAtOnce * type.elements) {}

  void update(std::uint64_t, std::span<const std::byte> bytes) override {
    if (!begun_.empty()) {
      const std::size_t missing = std::min(type_.bytes - begun_.size(), bytes.size());
      begun_.insert(begun_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(missing));
      bytes = bytes.subspan(missing);
      if (begun_.size() < type_.bytes) return;
      check_blocks(begun_.data(), 1);
      begun_.clear();
    }
    const std::size_t whole = bytes.size() / type_.bytes;
    for (std::size_t i = 0; i < whole; i += kAtOnce)
      check_blocks(bytes.data() + i * type_.bytes, std::min(kAtOnce, whole - i));
    bytes = bytes.subspan(whole * type_.bytes);
    begun_.assign(bytes.begin(), bytes.end());
  }

  void report(bool, std::vector<BadValue>& bad) const override {
    bad_.report([&](std::uint64_t element) { return element / type_.elements * type_.bytes; }, bad);
  }

 private:
  static constexpr std::size_t kAtOnce = 16;  // blocks whose decoded numbers fit the L1 cache

  void check_blocks(const std::byte* blocks, std::size_t count) {
    type_.decode(blocks, count, numbers_.data());
    const std::size_t elements = count * type_.elements;
    bad_.update(seen_, std::as_bytes(std::span(numbers_).first(elements)));
    seen_ += elements;
  }

  const BlockType& type_;
  std::vector<float> numbers_;
  std::vector<std::byte> begun_;  // the beginning of a block that continues in the next bytes
  std::uint64_t seen_ = 0;        // the number of elements seen so far
  BadElements bad_{DType::f32};
};

}  // namespace

std::vector<std::unique_ptr<ValueCheck>> make_value_checks(const ValueRules& rules) {
  std::vector<std::unique_ptr<ValueCheck>> checks;
  if (rules.dtype != DType::unknown) checks.push_back(std::make_unique<Elements>(rules.dtype));
  if (rules.last_half != ValueRules::LastHalf::used) checks.push_back(std::make_unique<LastByte>(rules.last_half));
  if (rules.blocks != nullptr) checks.push_back(std::make_unique<BlockNumbers>(*rules.blocks));
  if (const auto format = get_code_format(rules.codes)) checks.push_back(std::make_unique<ByteCodes>(*format));
  return checks;
}

}  // namespace poise
