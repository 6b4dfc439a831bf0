#include <poise/verify.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <typeindex>

#include <oneapi/tbb/parallel_for.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/format.hpp"
#include "io/meter.hpp"
#include "io/pump.hpp"
#include "io/sha256_lanes.hpp"
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

// Two elements a byte: behind an odd number of them the last high nibble is zero.
bool has_unused_nibble(const Tensor& tensor, const Part& part) {
  if (tensor.layout != Layout::dense || part.dtype == DType::unknown || info(part.dtype).bits != 4 || tensor.elements() % 2 == 0) return false;
  return part.blob->size() == tensor.elements() / 2 + 1;
}

class PartCheck {
 public:
  PartCheck(const Tensor& tensor, const Part& part) : tensor_(tensor), part_(part), where_(fmt::format("tensor {}: {}", tensor.name, part.role)) {}

  // The bytes of a part whose digest is best computed side by side with others': whoever does that calls look_at() for all of them,
  // and then end().
  std::optional<std::span<const std::byte>> side_by_side(const HashOrder::Item& item) const {
    if (!part_.digest || part_.digest->algorithm != DigestAlgorithm::sha256 || !digest_is_of_decoded()) return std::nullopt;
    try {
      return item.side_by_side(*part_.blob);
    } catch (const Error&) {  // run() meets it again
      return std::nullopt;
    }
  }

  void look_at(std::span<const std::byte> bytes) {
    const BadValues bad = find_bad_values(part_.dtype, bytes);
    if (bad.count > 0 && bad_values_ == 0) report_value(bad.first);
    bad_values_ += bad.count;
    position_ += bytes.size();
    if (!bytes.empty()) last_byte_ = bytes.back();
  }

  void end(std::string digits) {
    check_unused_nibble();
    compare(std::move(digits));
    count_bad_values();
  }

  template <typename Advance>
  void run(Advance&& advance) {
    try {
      begin_digest();
      stream_chunks(*part_.blob, [&](std::span<const std::byte> bytes) {
        hash_and_look_at(bytes);
        advance(bytes);
      });
      check_unused_nibble();
      if (hasher_) compare(hasher_->finish());
    } catch (const Error& error) {
      if (!is_about_the_part(error)) throw;
      faults_.push_back(fault_from(error, where_));
    }
    count_bad_values();
  }

  std::vector<Fault> take() { return std::move(faults_); }
  bool checked_digest() const { return checked_digest_; }

 private:
  // Not of a compressed form.
  bool digest_is_of_decoded() const {
    if (!part_.digest->over_stored) return true;
    const auto at = part_.blob->location();
    return at && at->encoding == "raw";
  }

  void begin_digest() {
    if (!part_.digest || part_.digest->algorithm == DigestAlgorithm::none) return;
    if (part_.digest->algorithm == DigestAlgorithm::unknown) {
      faults_.push_back({Severity::warning,
                         fmt::format("{}: the digest {} is of no kind that Poise can compute; it was not checked", where_, part_.digest->text),
                         place_of(part_, 0).path, place_of(part_, 0).offset});
      return;
    }
    hasher_ = make_hasher(part_.digest->algorithm);
    decoded_digest_ = digest_is_of_decoded();
    if (decoded_digest_) return;
    const auto at = part_.blob->location();
    if (!at) return;
    const BlobPtr stored = make_source_blob(at->source, at->offset, at->length);
    stream_chunks(*stored, [&](std::span<const std::byte> bytes) { hasher_->update(bytes); });
  }

  void compare(std::string digits) {
    checked_digest_ = true;
    const std::string digest = digest_text(part_.digest->algorithm, std::move(digits));
    if (same_digest(digest, part_.digest->text)) return;
    faults_.push_back({Severity::error, fmt::format("{}: the digest is {}, the file says {}", where_, digest, part_.digest->text), place_of(part_, 0).path,
                       place_of(part_, 0).offset});
  }

  // A piece at a time, so that the second look at it finds it in the nearest cache.
  void hash_and_look_at(std::span<const std::byte> bytes) {
    constexpr std::size_t kPiece = 16 << 10;
    while (!bytes.empty()) {
      const auto piece = bytes.first(std::min(kPiece, bytes.size()));
      if (hasher_ && decoded_digest_) hasher_->update(piece);
      look_at(piece);
      bytes = bytes.subspan(piece.size());
    }
  }

  void count_bad_values() {
    if (bad_values_ > 1) faults_[bad_value_].message += fmt::format(", and {} more are", bad_values_ - 1);
  }

  void check_unused_nibble() {
    if (!has_unused_nibble(tensor_, part_) || std::to_integer<unsigned>(last_byte_) < 16) return;
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
  std::unique_ptr<Hasher> hasher_;
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
    // Where something is wrong with a part, that may be why, and is said already.
    if (std::ranges::find(faults, Severity::error, &Fault::severity) == faults.end()) faults.push_back(fault_from(error));
  }
}

std::type_index kind_of(const Blob& blob) { return typeid(blob); }

// All that the outcome of a part's check depends on. Many tensors may share one blob, which may hold far more than it takes.
struct CheckedBytes {
  CheckedBytes(const Tensor& tensor, const Part& part)
      : kind(kind_of(*part.blob)),
        size(part.blob->size()),
        dtype(part.dtype),
        digest(part.digest ? part.digest->text : std::string()),
        over_stored(part.digest && part.digest->over_stored),
        nibble(has_unused_nibble(tensor, part)) {
    const auto at = part.blob->location();
    if (!at) return;
    source = at->source.get();
    offset = at->offset;
    length = at->length;
    encoding = at->encoding;
  }
  friend auto operator<=>(const CheckedBytes&, const CheckedBytes&) = default;

  std::type_index kind;            // what decodes them, if anything does
  const Source* source = nullptr;  // null: they may be anywhere
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::string encoding;
  std::uint64_t size;
  DType dtype;
  std::string digest;
  bool over_stored;
  bool nibble;
};

// Checks every part of a model, those that share their bytes once.
class ValueCheck {
 public:
  ValueCheck(const Model& model, const Progress& progress) {
    for (const Tensor& tensor : model.tensors()) {
      for (const Part& part : tensor.parts) all_.push_back({&tensor, &part});
    }
    find_shared();
    std::vector<std::uint64_t> sizes;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (all_[i].same_as) continue;
      own_.push_back(i);
      bytes_ += sizes.emplace_back(all_[i].part->blob->size());
    }
    order_.emplace(sizes);
    meter_.emplace(progress, bytes_);
  }

  void run(VerifyReport& report) {
    sha256_on_all_threads(*order_, [this](const HashOrder::Item& turn) { return begin(turn); });
    oneapi::tbb::parallel_for(std::size_t{0}, all_.size(), [this](std::size_t i) {
      if (all_[i].same_as) take_over(all_[i]);
    });
    for (Item& item : all_) {
      if (item.checked_digest) ++report.digests;
      std::ranges::move(item.faults, std::back_inserter(report.faults));
    }
    report.bytes = bytes_;
  }

 private:
  struct Item {
    const Tensor* tensor;
    const Part* part;
    std::optional<std::size_t> same_as = {};  // an earlier one
    bool checked_digest = false;
    std::size_t own_faults = 0;  // of faults, the first: those of the part's bytes
    std::vector<Fault> faults = {};
  };

  void find_shared() {
    std::vector<std::pair<CheckedBytes, std::size_t>> bytes;
    bytes.reserve(all_.size());
    for (std::size_t i = 0; i < all_.size(); ++i) bytes.emplace_back(CheckedBytes(*all_[i].tensor, *all_[i].part), i);
    std::ranges::sort(bytes);
    for (std::size_t first = 0, i = 1; i < bytes.size(); ++i) {
      if (bytes[i].first.source == nullptr || bytes[i].first != bytes[first].first) {
        first = i;
      } else {
        all_[bytes[i].second].same_as = bytes[first].second;
      }
    }
  }

  // Checks a part, or gives it to be hashed side by side with others.
  std::optional<Sha256Message> begin(const HashOrder::Item& turn) {
    Item& item = all_[own_[turn.index]];
    const auto check = std::make_shared<PartCheck>(*item.tensor, *item.part);
    const auto advance = [this, &item](std::span<const std::byte> bytes) { meter_->advance(bytes.size(), item.tensor->name); };
    if (const auto bytes = check->side_by_side(turn)) {
      const auto look = [check, advance](std::span<const std::byte> piece) {
        check->look_at(piece);
        advance(piece);
      };
      const auto done = [check, &item](std::string digits) {
        check->end(std::move(digits));
        finish(item, *check);
      };
      return Sha256Message{*bytes, look, done};
    }
    check->run(advance);
    finish(item, *check);
    return std::nullopt;
  }

  static void finish(Item& item, PartCheck& check) {
    item.faults = check.take();
    item.own_faults = item.faults.size();
    item.checked_digest = check.checked_digest();
    check_whole_tensor(item);
  }

  static void check_whole_tensor(Item& item) {
    if (&item.tensor->parts.back() == item.part) check_layout(*item.tensor, item.faults);
  }

  void take_over(Item& item) const {
    const Item& other = all_[*item.same_as];
    item.checked_digest = other.checked_digest;
    const auto found = std::span(other.faults).first(other.own_faults);
    if (const auto fault = std::ranges::max_element(found, {}, [](const Fault& one) { return one.severity == Severity::error; }); fault != found.end()) {
      item.faults.push_back({fault->severity,
                             fmt::format("tensor {}: {}: these are the bytes of tensor {}: {}: see there", item.tensor->name, item.part->role,
                                         other.tensor->name, other.part->role),
                             fault->path, fault->offset});
    }
    check_whole_tensor(item);
  }

  std::vector<Item> all_;
  std::vector<std::size_t> own_;  // of all, those that share no bytes with an earlier one
  std::uint64_t bytes_ = 0;
  std::optional<HashOrder> order_;
  std::optional<Meter> meter_;
};

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
    ValueCheck(model, progress).run(report);
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
