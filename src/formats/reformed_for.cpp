#include "formats/reformed_for.hpp"

#include <algorithm>
#include <utility>

#include "family/families.hpp"
#include "schemes/scheme.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

// A model that takes several changes.
class Reforming {
 public:
  explicit Reforming(const Model& model) : model_(model) {}

  const Model& now() const { return result_ ? result_->model : model_; }

  void change(Reformed next) {
    if (result_) {
      std::ranges::move(result_->replaced, std::back_inserter(next.replaced));
      std::ranges::move(result_->losses, std::back_inserter(next.losses));
    }
    result_ = std::move(next);
  }

  // Tensors that are not in the next model are replaced.
  void change(Model next) {
    std::vector<std::string> replaced;
    for (const Tensor& tensor : now().tensors()) {
      if (next.find(tensor.name) == nullptr) replaced.emplace_back(tensor.name);
    }
    change(Reformed{std::move(next), std::move(replaced), {}});
  }

  void drop_quantization() {
    if (reversible_scheme(now().config_json) == nullptr) return;
    if (!result_) {
      result_ = Reformed{Model(model_.header()), {}, {}};
      for (const Tensor& tensor : model_.tensors()) result_->model.add(tensor);
    }
    if (auto loss = poise::drop_quantization(result_->model.config_json)) result_->losses.push_back(*std::move(loss));
  }

  std::optional<Reformed> result() && { return std::move(result_); }

 private:
  const Model& model_;
  std::optional<Reformed> result_;
};

}  // namespace

std::optional<Reformed> reformed_for(const Format& format, const Model& model, bool numbers) {
  const bool has_parts = format.weights != WeightReader::llama_cpp && !numbers;
  Reforming reforming(model);
  if (!has_parts) {
    if (auto next = with_folded_parts(model)) reforming.change(*std::move(next));
    if (auto next = with_scaled_fp8(reforming.now())) reforming.change(*std::move(next));
  }
  if (auto next = reformed(reforming.now(), format.weights, numbers)) reforming.change(*std::move(next));
  if (has_parts) {
    const auto stays = [&](const Tensor& tensor) { return holds_layout(format, layout_type(tensor.layout)); };
    if (auto next = with_parts(reforming.now(), stays)) reforming.change(*std::move(next));
  } else {
    reforming.drop_quantization();
  }
  return std::move(reforming).result();
}

}  // namespace poise
