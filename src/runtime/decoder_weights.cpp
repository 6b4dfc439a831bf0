#include "runtime/decoder.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "family/check.hpp"
#include "family/families.hpp"
#include "kernels/activation.hpp"
#include "runtime/parallel.hpp"

namespace poise {
namespace {

std::vector<float> copy_range(const std::vector<float>& numbers, const IndexRange& range) {
  return {numbers.begin() + static_cast<std::ptrdiff_t>(range.first),
          numbers.begin() + static_cast<std::ptrdiff_t>(range.last)};
}

// Returns `step` if it divides `numbers`, else 1. Ranks' shares of the numbers begin and end at multiples of the
// result. A matrix that cannot be cut at such a place becomes float32.
std::size_t choose_share_step(std::size_t numbers, std::size_t step) { return numbers % step == 0 ? step : 1; }

// Describes the outputs of one part, such as q or gate: their number, and this rank's share of them. One matrix may
// make several parts, one after the other.
struct FusedPart {
  std::size_t width;
  IndexRange share;
};

// Returns the numbers by which a norm multiplies. For rms_plus_one these are the tensor's numbers plus 1; a GGUF file
// stores the sums.
std::vector<float> load_norm(const Tensor& tensor, NormKind kind) {
  if (kind != NormKind::rms_plus_one) return load_vector(tensor);
  const Part* const data = tensor.part("data");
  const StoredAs* const stored = data == nullptr ? nullptr : find_change(*data->blob, StoredAs::Change::one_added);
  if (stored != nullptr) return load_vector(make_dense(tensor.name, tensor.shape, DType::f32, stored->blob));
  std::vector<float> numbers = load_vector(tensor);
  for (float& number : numbers) number += 1;
  return numbers;
}

// Loads a rank's share of the modules of a plan.
class Loader {
 public:
  Loader(const Model& model, const DecoderPlan& plan, const Ranks& ranks)
      : model_(model),
        family_(find_family_or_llama(model)),
        plan_(plan),
        ranks_(ranks),
        share_(ranks.find_heads(plan.heads, plan.kv_heads)) {}

  const Tensor& get_tensor(const std::string& name) const {
    const Tensor* tensor = find_weight(model_, family_, name);
    if (tensor == nullptr) throw Error(ErrorKind::internal, fmt::format("tensor {} is missing", name));
    return *tensor;
  }

  Orientation orientation() const { return plan_.transposed ? Orientation::in_out : Orientation::out_in; }

  Norm load_module_norm(const std::string& prefix, std::string_view module) const {
    if (module.empty()) return {};
    Norm norm = {plan_.norm_kind, plan_.epsilon,
                 load_norm(get_tensor(fmt::format("{}{}.weight", prefix, module)), plan_.norm_kind)};
    if (norm.kind == NormKind::layer) norm.bias = load_vector(get_tensor(fmt::format("{}{}.bias", prefix, module)));
    return norm;
  }

  Projection load_projection(const std::string& prefix, const Linear& linear, Orientation orientation,
                             const MatrixShare& part = {}) const {
    Projection result = {load_matrix(get_tensor(make_weight_name(prefix, linear)), orientation, part)};
    // If the results are summed over ranks, only the first rank adds the bias.
    if (!linear.bias || (part.side == MatrixShare::Side::inputs && ranks_.rank() > 0)) return result;
    result.bias = load_vector(get_tensor(fmt::format("{}{}.bias", prefix, linear.module)));
    if (part.side == MatrixShare::Side::outputs) result.bias = copy_range(result.bias, part.range);
    return result;
  }

  // Returns the projections that make the parts. Each module makes one part, or one module makes all of them, one after
  // the other; ranks cut such a module into one projection for each part.
  std::vector<Projection> load_projections(const std::string& prefix, const std::vector<Linear>& linears,
                                           const std::vector<FusedPart>& parts) const {
    std::vector<Projection> result;
    if (!ranks_.splits_matrices()) {
      for (const Linear& linear : linears) result.push_back(load_projection(prefix, linear, orientation()));
      return result;
    }
    const bool fused = linears.size() < parts.size();
    std::size_t begin = 0;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const MatrixShare part = {MatrixShare::Side::outputs,
                                {begin + parts[p].share.first, begin + parts[p].share.last}};
      result.push_back(load_projection(prefix, linears[fused ? 0 : p], orientation(), part));
      if (fused) begin += parts[p].width;
    }
    return result;
  }

  Projection load_summed_projection(const std::string& prefix, const Linear& linear, const IndexRange& inputs) const {
    if (!ranks_.splits_matrices()) return load_projection(prefix, linear, orientation());
    return load_projection(prefix, linear, orientation(), {MatrixShare::Side::inputs, inputs});
  }

  std::vector<Projection> load_qkv(const std::string& prefix) const {
    const FusedPart keys = {plan_.kv_heads * plan_.head_size, find_head_numbers(share_.kv_heads)};
    return load_projections(prefix, plan_.qkv,
                            {{plan_.heads * plan_.head_size, find_head_numbers(share_.heads)}, keys, keys});
  }

  // Loads the columns of `o` for this rank's heads into the layer. If they begin or end within a block of the matrix,
  // loads the whole block; the inputs from other heads are zeros.
  void load_o_projection(const std::string& prefix, DecoderLayer& layer) const {
    const Tensor& weight = get_tensor(make_weight_name(prefix, plan_.o));
    IndexRange inputs = find_head_numbers(share_.heads);
    if (inputs.size() > 0) {
      const std::size_t all = plan_.heads * plan_.head_size;
      const std::size_t step =
          choose_share_step(all, find_share_step(weight, orientation(), MatrixShare::Side::inputs));
      inputs = {inputs.first / step * step, std::min(ceil_div(inputs.last, step) * step, all)};
    }
    layer.o = load_summed_projection(prefix, plan_.o, inputs);
    layer.o_skipped = share_.heads.first * plan_.head_size - inputs.first;
  }

  // Returns the norm of each head, or this rank's share of the norm over all heads.
  Norm load_head_norm(const std::string& prefix, std::string_view module, const IndexRange& heads) const {
    Norm result = load_module_norm(prefix, module);
    if (!ranks_.splits_matrices() || result.weight.size() <= plan_.head_size) return result;
    if (result.kind == NormKind::layer) {
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}{} subtracts the mean over all heads, which ranks do not share: use one process, or "
                              "--split layers",
                              prefix, module));
    }
    result.whole = result.weight.size();
    result.weight = copy_range(result.weight, find_head_numbers(heads));
    return result;
  }

  FeedForward load_feed_forward(const std::string& prefix, const std::vector<Linear>& in, const Linear& down) const {
    const Tensor& weight = get_tensor(make_weight_name(prefix, down));
    const std::size_t inner = weight.shape[plan_.transposed ? 0 : 1];
    std::vector<const Tensor*> in_weights;
    for (const Linear& linear : in) in_weights.push_back(&get_tensor(make_weight_name(prefix, linear)));
    const IndexRange share = find_inner_share(inner, in_weights, weight);
    std::vector<FusedPart> parts(plan_.gated ? 2 : 1, {inner, share});
    return {load_projections(prefix, in, parts), load_summed_projection(prefix, down, share), plan_.activation,
            plan_.gated};
  }

  Experts load_experts(const std::string& prefix, const ExpertsPlan& plan) const {
    Experts experts = {load_projection(prefix, plan.router, Orientation::out_in), {}, plan.used, plan.normalized};
    if (plan.stored != ExpertsStored::separate) {
      experts.all = load_stacked_experts(prefix, plan);
      return experts;
    }
    const Loader whole(model_, plan_, {});
    const IndexRange share = ranks_.find_share(plan.count);
    experts.all.resize(plan.count);
    for (std::size_t i = share.first; i < share.last; ++i) {
      experts.all[i] = whole.load_feed_forward(fmt::format("{}{}.{}.", prefix, plan.list, i),
                                               {{plan.gate, plan.bias}, {plan.up, plan.bias}}, {plan.down, plan.bias});
    }
    return experts;
  }

  DecoderLayer load_layer(std::size_t index) const {
    DecoderLayer layer;
    layer.plan = plan_.layers[index];
    if (const IndexRange own = ranks_.find_layers(plan_.layers.size()); index < own.first || index >= own.last)
      return layer;
    const std::string prefix = fmt::format("{}{}.", plan_.layer_names, index);
    layer.attention_norm = load_module_norm(prefix, plan_.attention_norm);
    layer.qkv = load_qkv(prefix);
    layer.q_norm = load_head_norm(prefix, plan_.q_norm, share_.heads);
    layer.k_norm = load_head_norm(prefix, plan_.k_norm, share_.kv_heads);
    load_o_projection(prefix, layer);
    layer.attention_post_norm = load_module_norm(prefix, plan_.attention_post_norm);
    layer.mlp_norm = load_module_norm(prefix, plan_.mlp_norm);
    layer.mlp_post_norm = load_module_norm(prefix, plan_.mlp_post_norm);
    if (!plan_.sinks.empty())
      layer.sinks = copy_range(load_vector(get_tensor(prefix + std::string(plan_.sinks))), share_.heads);
    if (layer.plan.experts) {
      layer.experts = load_experts(prefix, *plan_.experts);
    } else {
      layer.mlp = load_feed_forward(prefix, plan_.mlp, plan_.down);
    }
    return layer;
  }

  // Loads the output matrix, or this rank's share of it, and sets the number of scores. An embedding that is also the
  // output matrix is loaded again only as a share.
  void load_output(DecoderWeights& weights) const {
    const bool is_tied = plan_.output.empty();
    weights.vocabulary = weights.embedding->rows();
    if (!is_tied && lacks_output_matrix(model_)) return;
    if (is_tied && !ranks_.splits_matrices()) return;
    const Tensor& output = get_tensor(std::string(is_tied ? plan_.embedding : plan_.output));
    const Orientation orientation = !is_tied && plan_.output_transposed ? Orientation::in_out : Orientation::out_in;
    weights.vocabulary = output.shape[orientation == Orientation::in_out ? 1 : 0];
    if (!ranks_.splits_matrices()) {
      weights.output = load_matrix(output, orientation);
      return;
    }
    weights.output_step =
        choose_share_step(weights.vocabulary, find_share_step(output, orientation, MatrixShare::Side::outputs));
    const IndexRange share = ranks_.find_share(weights.vocabulary / weights.output_step);
    weights.output = load_matrix(
        output, orientation,
        {MatrixShare::Side::outputs, {share.first * weights.output_step, share.last * weights.output_step}});
  }

  // Returns the divisors of RoPE's frequencies, or an empty vector if the model has none.
  std::vector<float> load_rope_divisors() const {
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
      throw Error(ErrorKind::invalid_file,
                  fmt::format("tensor {}: expected positive numbers, found 0, a negative number or NaN", tensor->name));
    }
    return divisors;
  }

 private:
  static std::string make_weight_name(const std::string& prefix, const Linear& linear) {
    return fmt::format("{}{}.weight", prefix, linear.module);
  }

  IndexRange find_head_numbers(const IndexRange& heads) const {
    return {heads.first * plan_.head_size, heads.last * plan_.head_size};
  }

  // Returns this rank's share of the network's inner numbers. The share begins and ends where the rows or columns of
  // all these matrices can be cut, if their common step divides `inner` (choose_share_step()).
  IndexRange find_inner_share(std::size_t inner, const std::vector<const Tensor*>& in, const Tensor& down) const {
    if (!ranks_.splits_matrices()) return {0, inner};
    std::size_t step = find_share_step(down, orientation(), MatrixShare::Side::inputs);
    for (const Tensor* const tensor : in)
      step = std::lcm(step, find_share_step(*tensor, orientation(), MatrixShare::Side::outputs));
    step = choose_share_step(inner, step);
    const IndexRange share = ranks_.find_share(inner / step);
    return {share.first * step, share.last * step};
  }

  std::vector<FeedForward> load_stacked_experts(const std::string& prefix, const ExpertsPlan& plan) const {
    const auto make_list_name = [&](std::string_view name) { return fmt::format("{}{}.{}", prefix, plan.list, name); };
    const Orientation orientation =
        plan.stored == ExpertsStored::stacked_in_out ? Orientation::in_out : Orientation::out_in;
    const Tensor& gate_weight = get_tensor(make_list_name(plan.gate));
    const Tensor& down_weight = get_tensor(make_list_name(plan.down));
    if (down_weight.shape.size() != 3)
      refuse_weight(down_weight,
                    fmt::format("its shape is {}, expected several matrices", to_string(down_weight.shape)));
    const IndexRange share = ranks_.find_share(plan.count);
    auto gate = load_matrices(gate_weight, orientation, share);
    auto down = load_matrices(down_weight, orientation, share);
    const std::vector<float> gate_bias = load_vector(get_tensor(make_list_name(plan.gate) + "_bias"));
    const std::vector<float> down_bias = load_vector(get_tensor(make_list_name(plan.down) + "_bias"));
    const auto copy_expert_bias = [&](const std::vector<float>& all, std::size_t i) {
      const std::size_t size = all.size() / plan.count;
      return copy_range(all, {i * size, (i + 1) * size});
    };
    std::vector<FeedForward> experts(plan.count);
    for (std::size_t i = share.first; i < share.last; ++i) {
      FeedForward& expert = experts[i];
      expert.in.push_back({std::move(gate[i - share.first]), copy_expert_bias(gate_bias, i)});
      expert.down = {std::move(down[i - share.first]), copy_expert_bias(down_bias, i)};
      expert.activation = plan_.activation;
      expert.fused = Fused::by_turns;
    }
    return experts;
  }

  const Model& model_;
  const Family& family_;
  const DecoderPlan& plan_;
  Ranks ranks_;
  HeadShare share_;
};

}  // namespace

void Norm::apply(const float* x, std::size_t rows, float* out) const {
  const std::size_t size = weight.size();
  run_in_parallel(rows, std::max<std::size_t>(1, kLeastNumbers / size), [&](std::size_t first, std::size_t last) {
    const std::size_t at = first * size;
    if (kind == NormKind::layer) return compute_layer_norm(x + at, last - first, weight, bias, epsilon, out + at);
    compute_rms_norm(x + at, last - first, weight, epsilon, out + at);
  });
}

DecoderWeights load_decoder(const Model& model, const DecoderPlan& plan, const Ranks& ranks) {
  const Loader loader(model, plan, ranks);
  DecoderWeights weights;
  weights.embedding = load_matrix(loader.get_tensor(std::string(plan.embedding)));
  if (!plan.positions.empty()) weights.positions = load_matrix(loader.get_tensor(std::string(plan.positions)));
  weights.norm = loader.load_module_norm("", plan.norm);
  loader.load_output(weights);
  weights.rope_divisors = loader.load_rope_divisors();
  for (std::size_t index = 0; index < plan.layers.size(); ++index) weights.layers.push_back(loader.load_layer(index));
  return weights;
}

}  // namespace poise
