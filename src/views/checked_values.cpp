#include "views/computed_blob.hpp"

#include <optional>

#include "codec/affine.hpp"
#include "io/extents.hpp"
#include "numeric/scan.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

bool needs_checks(const ValueRules& rules) {
  return rules.dtype == DType::boolean || rules.last_half != ValueRules::LastHalf::used ||
         rules.codes != ValueRules::ByteCodes::any;
}

class CheckedValues final : public Blob {
 public:
  CheckedValues(const Tensor& tensor, const Part& part, const ValueRules& rules)
      : where_(fmt::format("tensor {}: {}", tensor.name, part.role)), blob_(part.blob), rules_(rules) {}

  std::uint64_t size() const override { return blob_->size(); }
  bool seekable() const override { return blob_->seekable(); }
  std::uint64_t grain() const override { return blob_->grain(); }
  bool decodable() const override { return blob_->decodable(); }
  std::optional<Stored> stored() const override { return blob_->stored(); }
  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override { return blob_->stored_byte(offset); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    blob_->read(offset, out);
    check_values(offset, out);
  }

  std::unique_ptr<BlobStream> stream() const override { return std::make_unique<Stream>(*this); }

 private:
  class Stream final : public BlobStream {
   public:
    explicit Stream(const CheckedValues& values) : values_(values), stream_(values.blob_->stream()) {}
    std::size_t read(std::span<std::byte> out) override {
      const std::size_t count = stream_->read(out);
      values_.check_values(position_, out.first(count));
      position_ += count;
      return count;
    }
    std::size_t best_read() const override { return stream_->best_read(); }

   private:
    const CheckedValues& values_;
    std::unique_ptr<BlobStream> stream_;
    std::uint64_t position_ = 0;
  };

  // Throws an error for an invalid value. Every value that is checked takes one byte.
  void check_values(std::uint64_t offset, std::span<const std::byte> bytes) const {
    if (bytes.empty()) return;
    if (rules_.dtype == DType::boolean) {
      if (const BadValues bad = find_bad_values(rules_.dtype, bytes); bad.count > 0)
        fail(describe_bad_element(rules_.dtype, offset + bad.first), offset + bad.first);
    }
    if (const auto format = get_code_format(rules_.codes)) {
      if (const auto bad = find_bad_code(*format, bytes)) fail(to_string(*bad, offset), offset + bad->element);
    }
    const std::uint64_t end = offset + bytes.size();
    if (end != size()) return;
    if (const auto problem = find_last_byte_fault(rules_.last_half, bytes.back())) fail(*problem, end - 1);
  }

  [[noreturn]] void fail(const std::string& problem, std::uint64_t byte) const {
    const Place place = find_place(*blob_, byte);
    throw Error(ErrorKind::invalid_file, fmt::format("{}: {}", where_, problem), place.path, place.offset);
  }

  std::string where_;
  BlobPtr blob_;
  ValueRules rules_;
};

}  // namespace

bool needs_value_checks(const Tensor& tensor) {
  return std::ranges::any_of(tensor.parts,
                             [&](const Part& part) { return needs_checks(get_value_rules(tensor, part)); });
}

Tensor add_value_checks(const Tensor& tensor) {
  Tensor checked = tensor;
  for (std::size_t i = 0; i < tensor.parts.size(); ++i) {
    const Part& part = tensor.parts[i];
    if (const ValueRules rules = get_value_rules(tensor, part); needs_checks(rules))
      checked.parts[i].blob = std::make_shared<CheckedValues>(tensor, part, rules);
  }
  return checked;
}

}  // namespace poise
