#include "runtime/computed_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/values.hpp>

namespace poise {
namespace {

constexpr std::string_view kAttribute = "poise.session";
constexpr std::uint64_t kVersion = 1;

std::string layer_name(std::size_t layer, std::string_view what) { return fmt::format("layers.{}.{}", layer, what); }

// Throws for numbers that are not finite.
void require_finite(std::string_view name, std::span<const float> numbers, ErrorKind kind) {
  const auto bad = std::ranges::find_if(numbers, [](float number) { return !std::isfinite(number); });
  if (bad != numbers.end())
    throw Error(kind, fmt::format("{}: number {} is {}, expected a finite one", name, bad - numbers.begin(), *bad));
}

// Keys or values of a layer from a position on, as rows of floats.
class CachedRows final : public Blob {
 public:
  using Copy = void (KvCache::*)(std::size_t layer, std::size_t position, float* out) const;

  CachedRows(const KvCache& cache, std::size_t layer, std::size_t first, std::size_t last, Copy copy)
      : cache_(cache), layer_(layer), first_(first), last_(last), copy_(copy) {}

  std::uint64_t size() const override { return (last_ - first_) * row_bytes(); }
  std::uint64_t grain() const override { return row_bytes(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    std::vector<float> row(cache_.width());
    while (!out.empty()) {
      const std::size_t position = first_ + offset / row_bytes();
      (cache_.*copy_)(layer_, position, row.data());
      require_finite(fmt::format("layer {}, position {}", layer_, position), row, ErrorKind::unsupported);
      const std::size_t skipped = offset % row_bytes();
      const std::size_t count = std::min(out.size(), row_bytes() - skipped);
      std::memcpy(out.data(), std::as_bytes(std::span(row)).data() + skipped, count);
      out = out.subspan(count);
      offset += count;
    }
  }

 private:
  std::size_t row_bytes() const { return cache_.width() * sizeof(float); }

  const KvCache& cache_;
  std::size_t layer_;
  std::size_t first_;
  std::size_t last_;
  Copy copy_;
};

template <typename Number>
BlobPtr copied(const std::vector<Number>& numbers, const char* name) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return make_memory_blob({bytes.begin(), bytes.end()}, name);
}

// Reads a text, and says what is wrong with it.
class Reader {
 public:
  Reader(const Model& model, const Transformer& transformer, std::size_t context, ComputedText& text)
      : model_(model), transformer_(transformer), context_(context), text_(text) {}

  void read(const std::string& fingerprint) {
    const Value* value = model_.attributes.find(kAttribute);
    const Attributes* about = value == nullptr ? nullptr : value->get_if<Attributes>();
    if (about == nullptr) fail("it is not a session: it has no attribute poise.session");
    if (const std::uint64_t version = number(*about, "version"); version != kVersion) {
      throw Error(ErrorKind::unsupported, fmt::format("it is a session of version {}, expected {}", version, kVersion),
                  path());
    }
    const Value* model = about->find("model");
    if (model == nullptr || *model != Value(fingerprint)) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("the session is of another model: its fingerprint is {}, that of this one {}",
                              model == nullptr ? "missing" : to_json(*model), fingerprint),
                  path());
    }
    read_tokens();
    const std::uint64_t position = number(*about, "position");
    if (position > text_.tokens.size())
      fail(fmt::format("position: {} tokens are computed, of {}", position, text_.tokens.size()));
    text_.sequence.position = static_cast<std::size_t>(position);
    if (about->find("pending") != nullptr) {
      text_.pending = token("pending", number(*about, "pending"));
    }
    if (model_.find("logits") != nullptr) read_logits();
    if (position > 0) read_layers();
    if (model_.size() != read_) fail(fmt::format("it has {} tensors, expected {}", model_.size(), read_));
  }

 private:
  std::string path() const { return model_.origin.path.string(); }
  [[noreturn]] void fail(const std::string& problem) const { throw Error(ErrorKind::invalid_file, problem, path()); }

  std::uint64_t number(const Attributes& about, std::string_view key) const {
    const Value* value = about.find(key);
    const std::uint64_t* found = value == nullptr ? nullptr : value->get_if<std::uint64_t>();
    if (found != nullptr) return *found;
    if (const auto* other = value == nullptr ? nullptr : value->get_if<std::int64_t>(); other != nullptr && *other >= 0)
      return static_cast<std::uint64_t>(*other);
    fail(fmt::format("poise.session: {}: expected a whole number, found {}", key,
                     value == nullptr ? "nothing" : to_json(*value)));
  }

  // A dense tensor of this type and rank.
  const Tensor& tensor(const std::string& name, DType dtype, std::size_t rank) {
    const Tensor* found = model_.find(name);
    if (found == nullptr) fail(fmt::format("tensor {} is missing", name));
    const bool is_right = found->layout == Layout::dense && found->parts.size() == 1 &&
                          found->parts[0].dtype == dtype && found->shape.size() == rank;
    if (!is_right) {
      fail(fmt::format("tensor {}: expected a dense {} tensor of rank {}, found {} {} {}", name, to_string(dtype), rank,
                       found->layout.name(), found->parts[0].shown_type(), to_string(found->shape)));
    }
    ++read_;
    return *found;
  }

  TokenId token(std::string_view what, std::uint64_t id) const {
    if (id >= transformer_.vocabulary_size())
      fail(fmt::format("{}: token {}, the model has {} tokens", what, id, transformer_.vocabulary_size()));
    return static_cast<TokenId>(id);
  }

  void read_tokens() {
    const Tensor& from = tensor("tokens", DType::i32, 1);
    if (from.elements() > context_) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("the session has {} tokens, which do not fit the context of {} positions",
                              from.elements(), context_),
                  path());
    }
    std::vector<std::int32_t> ids(static_cast<std::size_t>(from.elements()));
    from.parts[0].blob->read(0, std::as_writable_bytes(std::span(ids)));
    // A negative number becomes a large one.
    for (std::size_t i = 0; i < ids.size(); ++i)
      text_.tokens.push_back(token(fmt::format("tokens: number {}", i), static_cast<std::uint64_t>(ids[i])));
  }

  void read_logits() {
    const Tensor& from = tensor("logits", DType::f32, 1);
    if (from.elements() != transformer_.vocabulary_size())
      fail(fmt::format("logits: {} scores, expected {}", from.elements(), transformer_.vocabulary_size()));
    if (text_.sequence.position == 0 || text_.sequence.position != text_.tokens.size())
      fail("logits: there are scores, but the last token is not computed");
    text_.logits.resize(transformer_.vocabulary_size());
    read_numbers("logits", from, 0, text_.logits);
  }

  void read_layers() {
    KvCache& cache = text_.sequence.cache;
    const std::size_t position = text_.sequence.position;
    std::vector<const Tensor*> keys;
    std::vector<const Tensor*> values;
    for (std::size_t layer = 0; layer < cache.layers(); ++layer) {
      keys.push_back(&rows(layer_name(layer, "keys")));
      values.push_back(&rows(layer_name(layer, "values")));
      if (keys.back()->shape != values.back()->shape) {
        fail(fmt::format("layer {}: keys {}, values {}", layer, to_string(keys.back()->shape),
                         to_string(values.back()->shape)));
      }
      cache.resume(layer, position - static_cast<std::size_t>(keys.back()->shape[0]), position);
    }
    // Before memory is reserved: tensors justify it.
    if (!transformer_.truncate(position, text_.sequence))
      fail(fmt::format("keys and values that {} tokens need are missing", position));
    cache.reserve(position);
    std::vector<float> key(cache.width());
    std::vector<float> value(cache.width());
    for (std::size_t layer = 0; layer < cache.layers(); ++layer) {
      const auto count = static_cast<std::size_t>(keys[layer]->shape[0]);
      for (std::size_t row = 0; row < count; ++row) {
        read_numbers(keys[layer]->name, *keys[layer], row, key);
        read_numbers(values[layer]->name, *values[layer], row, value);
        cache.put(layer, position - count + row, key.data(), value.data());
      }
    }
    text_.sequence.is_long = transformer_.is_long(text_.tokens.size());
  }

  const Tensor& rows(const std::string& name) {
    const Tensor& from = tensor(name, DType::f32, 2);
    if (from.shape[0] > text_.sequence.position || from.shape[1] != text_.sequence.cache.width()) {
      fail(fmt::format("tensor {}: shape {}, expected at most {} rows of {}", name, to_string(from.shape),
                       text_.sequence.position, text_.sequence.cache.width()));
    }
    return from;
  }

  // A row of a tensor, or all of it.
  void read_numbers(std::string_view name, const Tensor& from, std::size_t row, std::vector<float>& out) const {
    const auto bytes = std::as_writable_bytes(std::span(out));
    from.parts[0].blob->read(row * bytes.size(), bytes);
    try {
      require_finite(name, out, ErrorKind::invalid_file);
    } catch (const Error& error) {
      fail(error.message());
    }
  }

  const Model& model_;
  const Transformer& transformer_;
  std::size_t context_;
  ComputedText& text_;
  std::size_t read_ = 0;  // tensors
};

}  // namespace

Model to_model(const ComputedText& text, const std::string& fingerprint) {
  const KvCache& cache = text.sequence.cache;
  const std::size_t position = text.sequence.position;
  Model model;
  Attributes about = {{"version", kVersion}, {"model", fingerprint}, {"position", std::uint64_t{position}}};
  if (text.pending) about.set("pending", static_cast<std::uint64_t>(*text.pending));
  model.attributes.set(std::string(kAttribute), about);
  model.add(make_dense("tokens", {text.tokens.size()}, DType::i32, copied(text.tokens, "tokens")));
  if (!text.logits.empty()) {
    require_finite("the scores", text.logits, ErrorKind::unsupported);
    model.add(make_dense("logits", {text.logits.size()}, DType::f32, copied(text.logits, "logits")));
  }
  for (std::size_t layer = 0; position > 0 && layer < cache.layers(); ++layer) {
    const std::size_t first = std::min(cache.oldest(layer), position);
    for (const auto& [what, copy] :
         {std::pair{"keys", &KvCache::copy_key}, std::pair{"values", &KvCache::copy_value}}) {
      model.add(make_dense(layer_name(layer, what), {position - first, cache.width()}, DType::f32,
                           std::make_shared<CachedRows>(cache, layer, first, position, copy)));
    }
  }
  return model;
}

void from_model(const Model& model, const std::string& fingerprint, const Transformer& transformer, std::size_t context,
                ComputedText& text) {
  Reader(model, transformer, context, text).read(fingerprint);
}

}  // namespace poise
