#include "runtime/fingerprint.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "pack/digest.hpp"
#include "pack/scan.hpp"

namespace poise {
namespace {

class PartFingerprint final : public Visitor {
 public:
  explicit PartFingerprint(std::string& digits) : digits_(digits) {}
  void see(std::span<const std::byte> bytes) override { hasher_->update(bytes); }
  void end(std::string /*sha256*/) override { digits_ = hasher_->finish(); }

 private:
  std::string& digits_;
  std::unique_ptr<Hasher> hasher_ = make_xxh3();
};

// All of a part but its bytes.
std::string described(const Tensor& tensor, const Part& part) {
  std::string text =
      fmt::format("{}/{} {} {} {} {}", std::string_view(tensor.name), std::string_view(part.role),
                  to_string(tensor.shape), tensor.layout.name(), part.type_name(), to_json(tensor.attributes));
  if (const AffineSource* affine = tensor.layout.affine())
    text += fmt::format(" {} {} {}", affine->get().delta, affine->get().min, affine->get().max);
  return text;
}

}  // namespace

std::string fingerprint(const std::vector<Tensor>& tensors, const Attributes& config) {
  std::vector<std::pair<const Tensor*, const Part*>> parts;
  std::vector<std::uint64_t> sizes;
  for (const Tensor& tensor : tensors) {
    for (const Part& part : tensor.parts) {
      parts.emplace_back(&tensor, &part);
      sizes.push_back(part.blob->size());
    }
  }
  std::vector<std::string> digits(parts.size());
  Scan scan(sizes, [&](std::size_t i) {
    return Visit{parts[i].second->blob, false, std::make_unique<PartFingerprint>(digits[i])};
  });
  scan.start();
  scan.finish();
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < parts.size(); ++i)
    lines.push_back(fmt::format("{} {}\n", described(*parts[i].first, *parts[i].second), digits[i]));
  std::ranges::sort(lines);
  const auto hasher = make_xxh3();
  const auto take = [&](const std::string& line) { hasher->update(std::as_bytes(std::span(line))); };
  std::ranges::for_each(lines, take);
  take(to_json(config));
  return "xxh3:" + hasher->finish();
}

}  // namespace poise
