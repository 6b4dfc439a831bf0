#include <poise/verify.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <typeindex>

#include <oneapi/tbb/parallel_for.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "family/check.hpp"
#include "formats/format.hpp"
#include "io/meter.hpp"
#include "numeric/scan.hpp"
#include "ops/verify_affine.hpp"
#include "pack/part_digest.hpp"
#include "pack/pump.hpp"
#include "pack/sha256_lanes.hpp"
#include "views/check_parts.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

bool is_about_the_file(const Error& error) { return error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported; }

// A part may also lie in a file that is not here.
bool is_about_the_part(const Error& error) { return is_about_the_file(error) || error.kind() == ErrorKind::not_found; }

Finding fault_from(const Error& error, std::string_view where = {}) {
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
    if (!part_.digest || part_.digest->algorithm != DigestAlgorithm::sha256 || digested_blob(part_.blob, *part_.digest) != part_.blob) return std::nullopt;
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

  std::vector<Finding> take() { return std::move(faults_); }
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
    hasher_ = make_hasher(part_.digest->algorithm);
    const BlobPtr digested = digested_blob(part_.blob, *part_.digest);
    decoded_digest_ = digested == part_.blob;  // not of a compressed form
    if (!decoded_digest_) stream_chunks(*digested, [&](std::span<const std::byte> bytes) { hasher_->update(bytes); });
  }

  void compare(std::string digits) {
    checked_digest_ = true;
    const std::string digest = digest_text(part_.digest->algorithm, std::move(digits));
    if (same_digest(digest, part_.digest->text)) return;
    faults_.push_back(
        {Severity::error, fmt::format("{}: {}", where_, wrong_digest(digest, *part_.digest)), place_of(part_, 0).path, place_of(part_, 0).offset});
  }

  void hash_and_look_at(std::span<const std::byte> bytes) {
    if (hasher_ && decoded_digest_) hasher_->update(bytes);
    look_at(bytes);
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
    const Severity severity = part_.dtype == DType::boolean ? Severity::error : Severity::warning;  // floats may be infinite, or NaN
    faults_.push_back({severity, fmt::format("{}: element {} is {}", where_, byte / bytes_each, bad_value_name(part_.dtype)), place.path, place.offset});
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
  std::vector<Finding> faults_;
};

// What the parts of a tensor must be to each other: sparse indices inside the shape, codes and scales that make numbers.
// `known` is wrong with the parts: what cannot be read is said there already.
std::vector<Finding> check_layout(const Tensor& tensor, const std::vector<Finding>& known) {
  std::vector<Finding> faults;
  try {
    if (tensor.layout == Layout::affine) check_affine(tensor, faults);
    const bool is_known = std::ranges::none_of(tensor.parts, [](const Part& part) { return part.role != "values" && part.dtype == DType::unknown; });
    if (is_sparse(tensor) && is_known) {
      validate_sparse(tensor, sparse_rules(tensor));
    } else {
      check_parts(tensor);
    }
  } catch (const Error& error) {
    if (!is_about_the_part(error)) throw;
    const bool is_known = std::ranges::any_of(
        known, [&](const Finding& fault) { return fault.path == error.path() && fault.offset == error.offset() && fault.message.ends_with(error.message()); });
    if (is_known) return faults;
    Finding& fault = faults.emplace_back(fault_from(error));
    if (!fault.path.empty() || tensor.parts.empty()) return faults;
    const Place place = place_of(tensor.parts.front(), 0);
    fault.path = place.path;
    fault.offset = place.offset;
  }
  return faults;
}

std::type_index kind_of(const Blob& blob) { return typeid(blob); }

// All that the outcome of a part's check depends on. Many tensors may share one blob, which may hold far more than it takes.
struct CheckedBytes {
  // Requires: the part has a location.
  CheckedBytes(const Tensor& tensor, const Part& part)
      : kind(kind_of(*part.blob)),
        size(part.blob->size()),
        dtype(part.dtype),
        digest(part.digest ? part.digest->text : std::string()),
        over_stored(part.digest && part.digest->over_stored),
        nibble(has_unused_nibble(tensor, part)) {
    const Location at = part.blob->location().value();
    source = at.source.get();
    offset = at.offset;
    length = at.length;
    encoding = at.encoding;
  }
  friend auto operator<=>(const CheckedBytes&, const CheckedBytes&) = default;

  std::type_index kind;  // what decodes them, if anything does
  const Source* source;
  std::uint64_t offset;
  std::uint64_t length;
  std::string encoding;
  std::uint64_t size;
  DType dtype;
  std::string digest;
  bool over_stored;
  bool nibble;
};

// All that the outcome of a sparse tensor's check depends on: its values are no part of it.
struct CheckedIndices {
  // Requires: all parts have a location.
  explicit CheckedIndices(const Tensor& tensor) : layout(tensor.layout), rules(sparse_rules(tensor)), shape(tensor.shape) {
    for (const Part& part : tensor.parts) {
      roles.push_back(part.role);
      sizes.emplace_back(part.dtype, part.blob->size());
      if (part.role != "values") indices.emplace_back(tensor, part);
    }
  }
  friend auto operator<=>(const CheckedIndices&, const CheckedIndices&) = default;

  Layout layout;
  SparseRules rules;
  Shape shape;
  std::vector<std::string> roles;
  std::vector<std::pair<DType, std::uint64_t>> sizes;
  std::vector<CheckedBytes> indices;
};

// Those of which each outcome depends on the same: calls use(index, index of the first of them).
template <typename Key, typename Use>
void find_same(std::vector<std::pair<Key, std::size_t>> keys, const Use& use) {
  std::ranges::sort(keys);
  for (std::size_t first = 0, i = 1; i < keys.size(); ++i) {
    if (keys[i].first == keys[first].first) {
      use(keys[i].second, keys[first].second);
    } else {
      first = i;
    }
  }
}

// The fault that tells that something is wrong elsewhere, too; nothing where nothing is.
std::optional<Finding> see_there(const std::vector<Finding>& faults, std::string message) {
  const auto worst = std::ranges::max_element(faults, {}, [](const Finding& one) { return one.severity == Severity::error; });
  if (worst == faults.end()) return std::nullopt;
  return Finding{worst->severity, std::move(message), worst->path, worst->offset};
}

// Checks every part of a model, and then every tensor; those that share their bytes once.
class ValueCheck {
 public:
  ValueCheck(const Model& model, const Progress& progress) {
    for (const Tensor& tensor : model.tensors()) {
      const std::size_t first = parts_.size();
      for (const Part& part : tensor.parts) parts_.push_back({&tensor, &part});
      tensors_.push_back({&tensor, first, parts_.size()});
    }
    find_shared();
    std::vector<std::uint64_t> sizes;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].same_as) continue;
      own_.push_back(i);
      bytes_ = saturating_add(bytes_, sizes.emplace_back(parts_[i].part->blob->size()));
    }
    order_.emplace(sizes);
    meter_.emplace(progress, bytes_);
  }

  void run(VerifyReport& report) {
    sha256_on_all_threads(*order_, [this](const HashOrder::Item& turn) { return begin(turn); });
    for (PartItem& item : parts_) {
      if (item.same_as) take_over(item);
    }
    oneapi::tbb::parallel_for(std::size_t{0}, tensors_.size(), [this](std::size_t i) {
      if (!tensors_[i].same_as) check(tensors_[i]);
    });
    for (TensorItem& item : tensors_) {
      if (item.same_as) take_over(item);
    }
    tell(report);
  }

 private:
  struct PartItem {
    const Tensor* tensor;
    const Part* part;
    std::optional<std::size_t> same_as = {};  // an earlier one
    bool checked_digest = false;
    std::vector<Finding> faults = {};
  };

  struct TensorItem {
    const Tensor* tensor;
    std::size_t first, last;                  // its parts
    std::optional<std::size_t> same_as = {};  // an earlier one
    std::vector<Finding> faults = {};
  };

  void find_shared() {
    const auto has_place = [](const Part& part) { return part.blob->location().has_value(); };
    std::vector<std::pair<CheckedBytes, std::size_t>> parts;
    parts.reserve(parts_.size());
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (has_place(*parts_[i].part)) parts.emplace_back(CheckedBytes(*parts_[i].tensor, *parts_[i].part), i);
    }
    find_same(std::move(parts), [this](std::size_t i, std::size_t first) { parts_[i].same_as = first; });
    std::vector<std::pair<CheckedIndices, std::size_t>> sparse;
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Tensor& tensor = *tensors_[i].tensor;
      if (is_sparse(tensor) && std::ranges::all_of(tensor.parts, has_place)) sparse.emplace_back(CheckedIndices(tensor), i);
    }
    find_same(std::move(sparse), [this](std::size_t i, std::size_t first) { tensors_[i].same_as = first; });
  }

  // Checks a part, or gives it to be hashed side by side with others.
  std::optional<Sha256Message> begin(const HashOrder::Item& turn) {
    PartItem& item = parts_[own_[turn.index]];
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

  static void finish(PartItem& item, PartCheck& check) {
    item.faults = check.take();
    item.checked_digest = check.checked_digest();
  }

  void take_over(PartItem& item) const {
    const PartItem& other = parts_[*item.same_as];
    item.checked_digest = other.checked_digest;
    auto fault = see_there(other.faults, fmt::format("tensor {}: {}: these are the bytes of tensor {}: {}: see there", item.tensor->name, item.part->role,
                                                     other.tensor->name, other.part->role));
    if (fault) item.faults.push_back(std::move(*fault));
  }

  void check(TensorItem& item) {
    meter_->advance(0, item.tensor->name);  // which may be where somebody cancels
    std::vector<Finding> known;
    for (std::size_t i = item.first; i < item.last; ++i) std::ranges::copy(parts_[parts_[i].same_as.value_or(i)].faults, std::back_inserter(known));
    item.faults = check_layout(*item.tensor, known);
  }

  void take_over(TensorItem& item) const {
    const TensorItem& other = tensors_[*item.same_as];
    auto fault = see_there(other.faults, fmt::format("tensor {}: its indices are those of tensor {}: see there", item.tensor->name, other.tensor->name));
    if (fault) item.faults.push_back(std::move(*fault));
  }

  void tell(VerifyReport& report) {
    report.bytes = bytes_;
    for (TensorItem& item : tensors_) {
      for (std::size_t i = item.first; i < item.last; ++i) {
        if (parts_[i].checked_digest) ++report.digests;
        std::ranges::move(parts_[i].faults, std::back_inserter(report.faults));
      }
      std::ranges::move(item.faults, std::back_inserter(report.faults));
    }
  }

  std::vector<PartItem> parts_;
  std::vector<TensorItem> tensors_;
  std::vector<std::size_t> own_;  // of parts, those that share no bytes with an earlier one
  std::uint64_t bytes_ = 0;
  std::optional<HashOrder> order_;
  std::optional<Meter> meter_;
};

}  // namespace

std::size_t VerifyReport::errors() const { return static_cast<std::size_t>(std::ranges::count(faults, Severity::error, &Finding::severity)); }

std::size_t VerifyReport::warnings() const { return faults.size() - errors(); }

VerifyReport verify(const std::filesystem::path& path, const ReadOptions& options, const Progress& progress) {
  VerifyReport report;
  try {
    const auto [format, input, model] = open_with_format(path, options);
    report.format = model.origin.format;
    report.tensors = model.size();
    report.faults = model.warnings;
    for (const std::string& fault : check_consistency(model)) report.faults.push_back({Severity::error, fault, path.string(), std::nullopt});
    ValueCheck(model, progress).run(report);
    if (format->audit != nullptr) std::ranges::move(format->audit(input, model), std::back_inserter(report.faults));
  } catch (const Error& error) {
    if (!is_about_the_file(error)) throw;
    report.faults.push_back(fault_from(error));
  }
  return report;
}

}  // namespace poise
