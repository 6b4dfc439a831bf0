#include "ops/verify_affine.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include "codec/affine.hpp"
#include "pack/pump.hpp"

namespace poise {
namespace {

class AffineCheck {
 public:
  AffineCheck(const Tensor& tensor, std::vector<Finding>& faults)
      : tensor_(tensor), data_(tensor.require("data")), affine_(tensor.affine->get()), format_(code_format(data_.dtype, affine_)), faults_(faults) {}

  void run() {
    check_scale();
    check_last_half();
    check_codes();
  }

 private:
  void check_scale() {
    if (!std::isfinite(affine_.delta) || affine_.delta < 0) scale_fault(fmt::format("delta is {}, expected a finite number of at least 0", affine_.delta));
    if (!std::isfinite(affine_.min) || !std::isfinite(affine_.max)) {
      scale_fault(fmt::format("min and max are {} and {}, expected finite numbers", affine_.min, affine_.max));
    }
  }

  void check_last_half() {
    if (!format_.packed || tensor_.elements() % 2 == 0) return;
    const std::uint64_t last = data_.blob->size() - 1;
    std::array<std::byte, 1> byte;
    data_.blob->read(last, byte);
    if ((byte[0] >> 4) == std::byte{0}) return;
    fault(fmt::format("the high half of the last byte holds no code: expected 0, found {}", std::to_integer<int>(byte[0] >> 4)), last);
  }

  void check_codes() {
    if (format_.bits == 8 || format_.packed) return;
    std::uint64_t position = 0;
    bool found = false;
    stream_chunks(*data_.blob, [&](std::span<const std::byte> bytes) {
      const auto bad = found ? std::nullopt : find_bad_code(format_, bytes);
      if (bad) fault(fmt::format("code {} does not fit 4 bits", position + *bad), position + *bad);
      found = found || bad.has_value();
      position += bytes.size();
    });
  }

  void scale_fault(const std::string& problem) {
    fault(problem, 0);
    if (const auto position = tensor_.affine->position()) faults_.back().offset = position;
  }

  void fault(const std::string& problem, std::uint64_t byte) {
    const auto at = data_.blob->location();
    const bool raw = at && at->encoding == "raw";
    faults_.push_back({Severity::error, fmt::format("tensor {}: {}", tensor_.name, problem), at ? at->source->name() : std::string(),
                       at ? std::optional(at->offset + (raw ? byte : 0)) : std::nullopt});
  }

  const Tensor& tensor_;
  const Part& data_;
  Affine affine_;
  CodeFormat format_;
  std::vector<Finding>& faults_;
};

}  // namespace

void check_affine(const Tensor& tensor, std::vector<Finding>& faults) { AffineCheck(tensor, faults).run(); }

}  // namespace poise
