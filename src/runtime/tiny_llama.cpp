// The Tiny Llama architecture (docs/formats/tiny-llama.md). With x [tokens, D] = embedding + position, for each layer:
//
//   x += output(attention(query(n), key(n), value(n)))   with n = layer_norm(x, norm1)
//   x += linear2(gelu(linear1(m) + bias)) + bias         with m = layer_norm(x, norm2)
//
// and in the end logits = output_projection(x). Weights are [in, out]: y = x W.
#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>

#include <poise/error.hpp>

#include "kernels/activation.hpp"
#include "kernels/attention.hpp"
#include "kernels/norm.hpp"
#include "model/tiny_llama.hpp"
#include "runtime/attention.hpp"
#include "runtime/kv_cache.hpp"
#include "runtime/matrix.hpp"
#include "runtime/transformer.hpp"
#include "tensor/dense.hpp"

namespace poise {
namespace {

BlobPtr float_elements(const Tensor& tensor) {
  if (has_float_elements(tensor)) return dense_blob(tensor, DType::f32);
  throw Error(ErrorKind::unsupported, fmt::format("tensor {} cannot be used as a weight: its elements are no floating-point numbers", tensor.name));
}

// A weight [in, out] in float32: the mapped bytes themselves where they are that, else a copy.
class InOutMatrix {
 public:
  explicit InOutMatrix(const Tensor& tensor) : in_(tensor.shape[0]), out_(tensor.shape[1]), blob_(float_elements(tensor)) {
    const auto mapped = blob_->map();
    if (mapped && reinterpret_cast<std::uintptr_t>(mapped->data()) % alignof(float) == 0) {
      weights_ = reinterpret_cast<const float*>(mapped->data());
      return;
    }
    copy_.resize(in_ * out_);
    blob_->read(0, std::as_writable_bytes(std::span(copy_)));
    weights_ = copy_.data();
  }
  InOutMatrix(const InOutMatrix&) = delete;
  InOutMatrix& operator=(const InOutMatrix&) = delete;

  std::size_t out() const { return out_; }
  const float* row(std::size_t index) const { return weights_ + index * out_; }

  // y [tokens, out] = x [tokens, in] W + bias
  void multiply(const float* x, std::size_t tokens, const float* bias, float* y) const {
    constexpr std::size_t kProductsPerTask = 65536;
    constexpr std::size_t kColumns = 64;  // a multiple of every vector
    const std::size_t grain = std::max(kColumns, kProductsPerTask / std::max<std::size_t>(1, in_ * tokens) / kColumns * kColumns);
    tbb::parallel_for(tbb::blocked_range<std::size_t>(0, (out_ + grain - 1) / grain), [&](const tbb::blocked_range<std::size_t>& range) {
      const std::size_t begin = range.begin() * grain;
      const std::size_t count = std::min(out_, range.end() * grain) - begin;
      for (std::size_t t = 0; t < tokens; ++t) {
        float* to = y + t * out_ + begin;
        if (bias == nullptr) {
          std::fill_n(to, count, 0.0F);
        } else {
          std::copy_n(bias + begin, count, to);
        }
        add_weighted_rows({x + t * in_, in_, 1}, {weights_ + begin, out_, in_}, count, to);
      }
    });
  }

 private:
  std::size_t in_;
  std::size_t out_;
  BlobPtr blob_;
  std::vector<float> copy_;
  const float* weights_;
};

struct Norm {
  std::vector<float> weight;
  std::vector<float> bias;

  void apply(const float* x, std::size_t tokens, float* out) const { layer_norm(x, tokens, weight, bias, kTinyLlamaNormEps, out); }
};

const Tensor& require_tensor(const Model& model, const std::string& name) {
  const Tensor* tensor = model.find(name);
  if (tensor == nullptr) throw Error(ErrorKind::internal, fmt::format("tensor {} is missing", name));
  return *tensor;
}

struct Layer {
  Layer(const Model& model, std::int64_t index)
      : query(tensor(model, index, "attention.query.weight")),
        key(tensor(model, index, "attention.key.weight")),
        value(tensor(model, index, "attention.value.weight")),
        output(tensor(model, index, "attention.output.weight")),
        linear1(tensor(model, index, "ffn.linear1.weight")),
        linear2(tensor(model, index, "ffn.linear2.weight")),
        bias1(load_vector(tensor(model, index, "ffn.linear1.bias"))),
        bias2(load_vector(tensor(model, index, "ffn.linear2.bias"))),
        norm1{load_vector(tensor(model, index, "norm1.weight")), load_vector(tensor(model, index, "norm1.bias"))},
        norm2{load_vector(tensor(model, index, "norm2.weight")), load_vector(tensor(model, index, "norm2.bias"))} {}

  InOutMatrix query;
  InOutMatrix key;
  InOutMatrix value;
  InOutMatrix output;
  InOutMatrix linear1;
  InOutMatrix linear2;
  std::vector<float> bias1;
  std::vector<float> bias2;
  Norm norm1;
  Norm norm2;

 private:
  static const Tensor& tensor(const Model& model, std::int64_t index, std::string_view name) {
    return require_tensor(model, fmt::format("{}{}.{}", kTinyLlamaLayers, index, name));
  }
};

class TinyLlama final : public Transformer {
 public:
  TinyLlama(const Model& model, std::size_t context)
      : Transformer(static_cast<std::size_t>(model.config->vocab_size)),
        size_(static_cast<std::size_t>(model.config->hidden_size)),
        heads_(static_cast<std::size_t>(model.config->num_attention_heads)),
        embedding_(require_tensor(model, std::string(kTinyLlamaEmbedding))),
        position_(require_tensor(model, "position_embedding.weight")),
        output_(require_tensor(model, "output_projection.weight")),
        cache_(static_cast<std::size_t>(model.config->num_hidden_layers), size_, context) {
    for (std::int64_t index = 0; index < model.config->num_hidden_layers; ++index) layers_.push_back(std::make_unique<Layer>(model, index));
  }

  void forward(std::span<const TokenId> tokens, std::size_t position) override {
    const std::size_t count = tokens.size();
    prepare(count, position);
    for (std::size_t t = 0; t < count; ++t) {
      const float* token = embedding_.row(static_cast<std::size_t>(tokens[t]));
      const float* place = position_.row(position + t);
      for (std::size_t i = 0; i < size_; ++i) x_[t * size_ + i] = token[i] + place[i];
    }
    for (std::size_t index = 0; index < layers_.size(); ++index) {
      attention(index, count, position);
      feed_forward(*layers_[index], count);
    }
  }

  void logits(std::size_t first, std::size_t count, float* out) override { output_.multiply(x_.data() + first * size_, count, nullptr, out); }

 private:
  void prepare(std::size_t count, std::size_t position) {
    for (std::vector<float>* buffer : {&x_, &normed_, &q_, &k_, &v_, &attended_, &projected_}) buffer->resize(count * size_);
    cache_.reserve(position + count);
  }

  void attention(std::size_t index, std::size_t count, std::size_t position) {
    const Layer& layer = *layers_[index];
    layer.norm1.apply(x_.data(), count, normed_.data());
    layer.query.multiply(normed_.data(), count, nullptr, q_.data());
    layer.key.multiply(normed_.data(), count, nullptr, k_.data());
    layer.value.multiply(normed_.data(), count, nullptr, v_.data());
    for (std::size_t t = 0; t < count; ++t) {
      cache_.put(index, position + t, k_.data() + t * size_, v_.data() + t * size_);
    }
    attend(cache_, index, {heads_, heads_, size_ / heads_}, position, count, q_.data(), attended_.data());
    layer.output.multiply(attended_.data(), count, nullptr, projected_.data());
    add(projected_);
  }

  void feed_forward(const Layer& layer, std::size_t count) {
    layer.norm2.apply(x_.data(), count, normed_.data());
    inner_.resize(count * layer.linear1.out());
    layer.linear1.multiply(normed_.data(), count, layer.bias1.data(), inner_.data());
    gelu(inner_.data(), inner_.size());
    layer.linear2.multiply(inner_.data(), count, layer.bias2.data(), projected_.data());
    add(projected_);
  }

  void add(const std::vector<float>& y) {
    for (std::size_t i = 0; i < x_.size(); ++i) x_[i] += y[i];
  }

  std::size_t size_;
  std::size_t heads_;
  InOutMatrix embedding_;
  InOutMatrix position_;
  InOutMatrix output_;
  std::vector<std::unique_ptr<Layer>> layers_;
  KvCache cache_;

  std::vector<float> x_;  // [tokens, D], as all but inner_ [tokens, F]
  std::vector<float> normed_;
  std::vector<float> q_;
  std::vector<float> k_;
  std::vector<float> v_;
  std::vector<float> attended_;
  std::vector<float> projected_;
  std::vector<float> inner_;
};

}  // namespace

std::unique_ptr<Transformer> make_tiny_llama(const Model& model, std::size_t context) { return std::make_unique<TinyLlama>(model, context); }

}  // namespace poise
