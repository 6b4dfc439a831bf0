#include <poise/verify.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>

#include <oneapi/tbb/parallel_for.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/format.hpp"
#include "io/meter.hpp"
#include "io/pump.hpp"
#include "model/check.hpp"
#include "ops/verify_affine.hpp"
#include "tensor/part_digest.hpp"
#include "tensor/scan.hpp"
#include "tensor/sparse.hpp"

namespace poise {
namespace {

using Severity = Fault::Severity;

bool is_about_the_file(const Error& error) { return error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported; }

// A part may also lie in a file that is not here.
bool is_about_the_part(const Error& error) { return is_about_the_file(error) || error.kind() == ErrorKind::not_found; }

Fault fault_from(const Error& error, std::string_view where = {}) {
  return {Severity::error, where.empty() ? error.message() : fmt::format("{}: {}", where, error.message()), error.path(), error.offset()};
}

// Where element bytes stand in a file, for parts that are stored as they are.
struct Place {
  std::string path;
  std::optional<std::uint64_t> offset;
};

Place place_of(const Part& part, std::uint64_t byte) {
  const auto at = part.blob->location();
  if (!at) return {};
  if (at->encoding != "raw") return {at->source->name(), at->offset};
  return {at->source->name(), at->offset + byte};
}

// A digest that is being computed to be compared with what the file claims.
class DigestCheck {
 public:
  explicit DigestCheck(const Digest& digest) : digest_(digest), hasher_(make_hasher(digest.algorithm)) {}

  void update(std::span<const std::byte> bytes) { hasher_->update(bytes); }

  // The stored bytes of a part, for digests over those.
  void update_from(const Location& at) {
    const BlobPtr stored = make_source_blob(at.source, at.offset, at.length);
    stream_chunks(*stored, [&](std::span<const std::byte> bytes) { update(bytes); });
  }

  // Nothing when it is as it should be.
  std::optional<std::string> finish() {
    const std::string found = digest_text(digest_.algorithm, *hasher_);
    if (same_digest(found, digest_.text)) return std::nullopt;
    return fmt::format("the digest is {}, the file says {}", found, digest_.text);
  }

 private:
  const Digest& digest_;
  std::unique_ptr<Hasher> hasher_;
};

class PartCheck {
 public:
  PartCheck(const Tensor& tensor, const Part& part) : tensor_(tensor), part_(part), where_(fmt::format("tensor {}: {}", tensor.name, part.role)) {}

  template <typename Advance>
  void run(Advance&& advance) {
    try {
      begin_digest();
      stream_chunks(*part_.blob, [&](std::span<const std::byte> bytes) {
        look_at_all(bytes);
        advance(bytes.size());
      });
      check_unused_nibble();
      end_digest();
    } catch (const Error& error) {
      if (!is_about_the_part(error)) throw;
      faults_.push_back(fault_from(error, where_));
    }
    if (bad_values_ > 1) faults_[bad_value_].message += fmt::format(", and {} more are", bad_values_ - 1);
  }

  std::vector<Fault> take() { return std::move(faults_); }
  bool checked_digest() const { return checked_digest_; }

 private:
  void begin_digest() {
    if (!part_.digest || part_.digest->algorithm == DigestAlgorithm::none) return;
    if (part_.digest->algorithm == DigestAlgorithm::unknown) {
      faults_.push_back({Severity::warning,
                         fmt::format("{}: the digest {} is of no kind that Poise can compute; it was not checked", where_, part_.digest->text),
                         place_of(part_, 0).path, place_of(part_, 0).offset});
      return;
    }
    digest_.emplace(*part_.digest);
    const auto at = part_.blob->location();
    decoded_digest_ = !part_.digest->over_stored || (at && at->encoding == "raw");
    if (!decoded_digest_ && at) digest_->update_from(*at);
  }

  void end_digest() {
    if (!digest_) return;
    checked_digest_ = true;
    if (const auto fault = digest_->finish())
      faults_.push_back({Severity::error, fmt::format("{}: {}", where_, *fault), place_of(part_, 0).path, place_of(part_, 0).offset});
  }

  // A piece at a time, so that the second look at it finds it in the nearest cache.
  void look_at_all(std::span<const std::byte> bytes) {
    constexpr std::size_t kPiece = 16 << 10;
    for (; bytes.size() > kPiece; bytes = bytes.subspan(kPiece)) look_at(bytes.first(kPiece));
    look_at(bytes);
  }

  void look_at(std::span<const std::byte> bytes) {
    if (digest_ && decoded_digest_) digest_->update(bytes);
    const BadValues bad = find_bad_values(part_.dtype, bytes);
    if (bad.count > 0 && bad_values_ == 0) report_value(bad.first);
    bad_values_ += bad.count;
    position_ += bytes.size();
    if (!bytes.empty()) last_byte_ = bytes.back();
  }

  // Two elements a byte: behind an odd number of them the last high nibble is zero.
  void check_unused_nibble() {
    if (tensor_.layout != Layout::dense || part_.dtype == DType::unknown || info(part_.dtype).bits != 4 || tensor_.elements() % 2 == 0) return;
    if (part_.blob->size() != tensor_.elements() / 2 + 1 || std::to_integer<unsigned>(last_byte_) < 16) return;
    const Place place = place_of(part_, position_ - 1);
    faults_.push_back({Severity::error, fmt::format("{}: the unused half of the last byte is not zero", where_), place.path, place.offset});
  }

  void report_value(std::uint64_t index) {
    const unsigned bytes_each = info(part_.dtype).bits / 8;
    const std::uint64_t byte = position_ + index * bytes_each;
    const Place place = place_of(part_, byte);
    bad_value_ = faults_.size();
    faults_.push_back({Severity::error, fmt::format("{}: element {} is {}", where_, byte / bytes_each, bad_value_name(part_.dtype)), place.path, place.offset});
  }

  const Tensor& tensor_;
  const Part& part_;
  std::string where_;
  std::uint64_t position_ = 0;
  std::uint64_t bad_values_ = 0;  // elements
  std::size_t bad_value_ = 0;     // the fault that tells of the first
  std::byte last_byte_{0};
  std::optional<DigestCheck> digest_;
  bool decoded_digest_ = false;  // over the bytes that are looked at
  bool checked_digest_ = false;
  std::vector<Fault> faults_;
};

// What the parts of a tensor must be to each other: sparse indices inside the shape, codes and scales that make numbers.
void check_layout(const Tensor& tensor, std::vector<Fault>& faults) {
  try {
    if (tensor.layout == Layout::affine) check_affine(tensor, faults);
    if (tensor.layout == Layout::sparse_csr || tensor.layout == Layout::sparse_coo) validate_sparse(tensor, sparse_rules(tensor));
  } catch (const Error& error) {
    if (!is_about_the_part(error)) throw;
    if (faults.empty()) faults.push_back(fault_from(error));  // else a part could not be read, which is said already
  }
}

void check_values(const Model& model, const Progress& progress, VerifyReport& report) {
  std::vector<std::pair<const Tensor*, const Part*>> parts;
  for (const Tensor& tensor : model.tensors()) {
    for (const Part& part : tensor.parts) {
      parts.emplace_back(&tensor, &part);
      report.bytes += part.blob->size();
    }
  }
  Meter meter(progress, report.bytes);
  std::mutex meter_mutex;
  std::vector<std::vector<Fault>> faults(parts.size());
  std::atomic<std::size_t> digests = 0;
  oneapi::tbb::parallel_for(std::size_t{0}, parts.size(), [&](std::size_t i) {
    PartCheck check(*parts[i].first, *parts[i].second);
    check.run([&](std::uint64_t bytes) {
      const std::lock_guard lock(meter_mutex);
      meter.advance(bytes, parts[i].first->name);
    });
    faults[i] = check.take();
    const Tensor& tensor = *parts[i].first;
    if (&tensor.parts.back() == parts[i].second) check_layout(tensor, faults[i]);
    if (check.checked_digest()) ++digests;
  });
  report.digests = digests;
  for (std::vector<Fault>& found : faults) std::ranges::move(found, std::back_inserter(report.faults));
}

}  // namespace

std::size_t VerifyReport::errors() const { return static_cast<std::size_t>(std::ranges::count(faults, Severity::error, &Fault::severity)); }

std::size_t VerifyReport::warnings() const { return faults.size() - errors(); }

VerifyReport verify(const std::filesystem::path& path, const ReadOptions& options, const Progress& progress) {
  VerifyReport report;
  try {
    const auto [format, input, model] = open_with_format(path, options);
    report.format = model.origin.format;
    report.tensors = model.size();
    for (const Warning& warning : model.warnings) report.faults.push_back({Severity::warning, warning.message, warning.path, warning.offset});
    for (const std::string& fault : check_consistency(model)) report.faults.push_back({Severity::error, fault, path.string(), std::nullopt});
    check_values(model, progress, report);
    if (format->audit != nullptr) {
      for (const Finding& finding : format->audit(input, model)) {
        report.faults.push_back({finding.is_error ? Severity::error : Severity::warning, finding.message, finding.path, finding.offset});
      }
    }
  } catch (const Error& error) {
    if (!is_about_the_file(error)) throw;
    report.faults.push_back(fault_from(error));
  }
  return report;
}

}  // namespace poise
