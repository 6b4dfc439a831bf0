#include "runtime/decoder_weights.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "family/families.hpp"
#include "kernels/norm.hpp"

namespace poise {
namespace {

// Loads the modules of a plan.
class Loader {
 public:
  Loader(const Model& model, const DecoderPlan& plan) : model_(model), family_(family_of(model)), plan_(plan) {}

  const Tensor& tensor(const std::string& name) const {
    const Tensor* tensor = find_weight(model_, family_, name);
    if (tensor == nullptr) throw Error(ErrorKind::internal, fmt::format("tensor {} is missing", name));
    return *tensor;
  }

  Orientation orientation() const { return plan_.transposed ? Orientation::in_out : Orientation::out_in; }

  Norm norm(const std::string& prefix, std::string_view module) const {
    if (module.empty()) return {};
    Norm norm = {plan_.norm_kind, plan_.epsilon, load_vector(tensor(fmt::format("{}{}.weight", prefix, module)))};
    if (norm.kind == NormKind::rms_plus_one) {
      for (float& weight : norm.weight) weight += 1;
    }
    if (norm.kind == NormKind::layer) norm.bias = load_vector(tensor(fmt::format("{}{}.bias", prefix, module)));
    return norm;
  }

  Projection projection(const std::string& prefix, const Linear& linear, Orientation orientation) const {
    Projection result = {load_matrix(tensor(fmt::format("{}{}.weight", prefix, linear.module)), orientation)};
    if (linear.bias) result.bias = load_vector(tensor(fmt::format("{}{}.bias", prefix, linear.module)));
    return result;
  }
  Projection projection(const std::string& prefix, const Linear& linear) const {
    return projection(prefix, linear, orientation());
  }

  std::vector<Projection> projections(const std::string& prefix, const std::vector<Linear>& linears) const {
    std::vector<Projection> result;
    for (const Linear& linear : linears) result.push_back(projection(prefix, linear));
    return result;
  }

  FeedForward network(const std::string& prefix, const std::vector<Linear>& in, const Linear& down) const {
    return {projections(prefix, in), projection(prefix, down), plan_.activation, plan_.gated};
  }

  Experts experts(const std::string& prefix, const ExpertsPlan& plan) const {
    Experts experts = {projection(prefix, plan.router, Orientation::out_in), {}, plan.used, plan.normalized};
    if (plan.stored != ExpertsStored::separate) {
      experts.all = stacked(prefix, plan);
      return experts;
    }
    for (std::size_t i = 0; i < plan.count; ++i) {
      experts.all.push_back(network(fmt::format("{}{}.{}.", prefix, plan.list, i),
                                    {{plan.gate, plan.bias}, {plan.up, plan.bias}}, {plan.down, plan.bias}));
    }
    return experts;
  }

  DecoderLayer layer(std::size_t index) const {
    const std::string prefix = fmt::format("{}{}.", plan_.layer_names, index);
    DecoderLayer layer = {.plan = plan_.layers[index],
                          .attention_norm = norm(prefix, plan_.attention_norm),
                          .qkv = projections(prefix, plan_.qkv),
                          .q_norm = norm(prefix, plan_.q_norm),
                          .k_norm = norm(prefix, plan_.k_norm),
                          .sinks = {},
                          .o = projection(prefix, plan_.o),
                          .attention_post_norm = norm(prefix, plan_.attention_post_norm),
                          .mlp_norm = norm(prefix, plan_.mlp_norm),
                          .mlp = {},
                          .experts = {},
                          .mlp_post_norm = norm(prefix, plan_.mlp_post_norm)};
    if (!plan_.sinks.empty()) layer.sinks = load_vector(tensor(prefix + std::string(plan_.sinks)));
    if (layer.plan.experts) {
      layer.experts = experts(prefix, *plan_.experts);
    } else {
      layer.mlp = network(prefix, plan_.mlp, plan_.down);
    }
    return layer;
  }

  // Divisors of the frequencies, if the model has them.
  std::vector<float> rope_divisors() const {
    if (plan_.rope_divisors.empty()) return {};
    const Tensor* tensor = model_.find(plan_.rope_divisors);
    if (tensor == nullptr) return {};
    std::vector<float> divisors = load_vector(*tensor);
    for (const RopePlan& rope : plan_.ropes) {
      if (rope.frequencies.size() != divisors.size()) {
        throw Error(ErrorKind::invalid_file, fmt::format("tensor {} has {} numbers, expected {}", tensor->name,
                                                         divisors.size(), rope.frequencies.size()));
      }
    }
    if (!std::ranges::all_of(divisors, [](float divisor) { return divisor > 0; })) {
      throw Error(ErrorKind::invalid_file, fmt::format("tensor {} has numbers that are not more than 0", tensor->name));
    }
    return divisors;
  }

 private:
  std::vector<FeedForward> stacked(const std::string& prefix, const ExpertsPlan& plan) const {
    const auto of = [&](std::string_view name) { return fmt::format("{}{}.{}", prefix, plan.list, name); };
    const Orientation orientation =
        plan.stored == ExpertsStored::stacked_in_out ? Orientation::in_out : Orientation::out_in;
    auto gate = load_matrices(tensor(of(plan.gate)), orientation);
    auto down = load_matrices(tensor(of(plan.down)), orientation);
    const std::vector<float> gate_bias = load_vector(tensor(of(plan.gate) + "_bias"));
    const std::vector<float> down_bias = load_vector(tensor(of(plan.down) + "_bias"));
    const auto row = [&](const std::vector<float>& all, std::size_t i) {
      const auto width = static_cast<std::ptrdiff_t>(all.size() / plan.count);
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(i) * width;
      return std::vector<float>(begin, begin + width);
    };
    std::vector<FeedForward> experts;
    for (std::size_t i = 0; i < plan.count; ++i) {
      FeedForward& expert = experts.emplace_back();
      expert.in.push_back({std::move(gate[i]), row(gate_bias, i)});
      expert.down = {std::move(down[i]), row(down_bias, i)};
      expert.activation = plan_.activation;
      expert.fused = Fused::by_turns;
    }
    return experts;
  }

  const Model& model_;
  const Family& family_;
  const DecoderPlan& plan_;
};

}  // namespace

void Norm::apply(const float* x, std::size_t rows, float* out) const {
  if (kind == NormKind::layer) return layer_norm(x, rows, weight, bias, epsilon, out);
  rms_norm(x, rows, weight, epsilon, out);
}

DecoderWeights load_decoder(const Model& model, const DecoderPlan& plan) {
  const Loader loader(model, plan);
  DecoderWeights weights;
  weights.embedding = load_matrix(loader.tensor(std::string(plan.embedding)));
  if (!plan.positions.empty()) weights.positions = load_matrix(loader.tensor(std::string(plan.positions)));
  weights.norm = loader.norm("", plan.norm);
  if (!plan.output.empty()) {
    weights.output = load_matrix(loader.tensor(std::string(plan.output)),
                                 plan.output_transposed ? Orientation::in_out : Orientation::out_in);
  }
  weights.rope_divisors = loader.rope_divisors();
  for (std::size_t index = 0; index < plan.layers.size(); ++index) weights.layers.push_back(loader.layer(index));
  return weights;
}

}  // namespace poise
