#include "runtime/computed_text.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/values.hpp>

#include "views/dense.hpp"

namespace poise {
namespace {

constexpr std::string_view kAttribute = "poise.session";
constexpr std::uint64_t kVersion = 1;

std::string make_layer_name(std::size_t layer, std::string_view what) {
  return fmt::format("layers.{}.{}", layer, what);
}

void require_finite(std::string_view name, std::span<const float> numbers, ErrorKind kind, const std::string& path) {
  const auto bad = std::ranges::find_if(numbers, [](float number) { return !std::isfinite(number); });
  if (bad != numbers.end())
    throw Error(kind, fmt::format("{}: number {} is {}, expected a finite one", name, bad - numbers.begin(), *bad),
                path);
}

// Describes a tensor with a layer's cache: the codes of keys or values, or their scales, if the cache has scales.
struct CachedPart {
  std::string_view name;
  Cached what;
  bool is_scales;

  DType find_dtype(const KvCache& cache) const { return is_scales ? DType::f32 : cache.type().code; }
  std::size_t count_columns(const KvCache& cache) const { return is_scales ? cache.count_scales() : cache.width(); }
};
constexpr CachedPart kCachedParts[] = {{"keys", Cached::keys, false},
                                       {"keys.scales", Cached::keys, true},
                                       {"values", Cached::values, false},
                                       {"values.scales", Cached::values, true}};

// Holds the keys or values of a position as a cache stores them: codes and scales.
class CachedRow {
 public:
  explicit CachedRow(const KvCache& cache)
      : code_(cache.type().code),
        codes_(cache.width() * cache.type().count_code_bytes()),
        scales_(cache.count_scales()) {}

  std::byte* codes() { return codes_.data(); }
  float* scales() { return scales_.data(); }
  std::span<std::byte> bytes(const CachedPart& part) {
    return part.is_scales ? std::as_writable_bytes(std::span(scales_)) : std::span(codes_);
  }

  void require_finite_part(const CachedPart& part, std::string_view name, ErrorKind kind,
                           const std::string& path) const {
    if (part.is_scales) return require_finite(name, scales_, kind, path);
    if (!is_floating(code_)) return;
    std::vector<float> numbers(codes_.size() * 8 / info(code_).bits);
    widen(code_, codes_.data(), numbers);
    require_finite(name, numbers, kind, path);
  }

 private:
  DType code_;
  std::vector<std::byte> codes_;
  std::vector<float> scales_;
};

// Reads a part of a layer's cache: the rows of positions [first, last).
class CachedRows final : public Blob {
 public:
  CachedRows(const KvCache& cache, std::size_t layer, std::size_t first, std::size_t last, const CachedPart& part)
      : cache_(cache), layer_(layer), first_(first), last_(last), part_(part) {}

  std::uint64_t size() const override { return (last_ - first_) * count_row_bytes(); }
  std::uint64_t grain() const override { return count_row_bytes(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    CachedRow row(cache_);
    read_units(offset, out, count_row_bytes(), 1, [&](std::uint64_t index, std::size_t) {
      const std::size_t position = first_ + index;
      cache_.load(part_.what, layer_, position, row.codes(), row.scales());
      row.require_finite_part(part_, fmt::format("layer {}, position {}", layer_, position), ErrorKind::unsupported,
                              {});
      return row.bytes(part_);
    });
  }

 private:
  std::size_t count_row_bytes() const { return part_.count_columns(cache_) * info(part_.find_dtype(cache_)).bits / 8; }

  const KvCache& cache_;
  std::size_t layer_;
  std::size_t first_;
  std::size_t last_;
  CachedPart part_;
};

template <typename Number>
BlobPtr make_numbers_blob(const std::vector<Number>& numbers, const char* name) {
  const auto bytes = std::as_bytes(std::span(numbers));
  return make_memory_blob({bytes.begin(), bytes.end()}, name);
}

// Reads a text from a model. Throws an error that describes the first fault.
class Reader {
 public:
  Reader(const Model& model, const Transformer& transformer, std::size_t context, ComputedText& text)
      : model_(model), transformer_(transformer), context_(context), text_(text) {}

  void read(const std::string& fingerprint) {
    const Attributes* about = model_.attributes.get_if<Attributes>(kAttribute);
    if (about == nullptr) fail("it is not a session: it has no attribute poise.session");
    if (const std::uint64_t version = read_whole_number(*about, "version"); version != kVersion) {
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
    require_same_cache_type(*about);
    read_tokens();
    const std::uint64_t position = read_whole_number(*about, "position");
    if (position > text_.tokens.size())
      fail(fmt::format("position: {} is more than the {} tokens of the session", position, text_.tokens.size()));
    text_.sequence.position = static_cast<std::size_t>(position);
    if (about->find("pending") != nullptr) {
      text_.pending = require_known_token("pending", read_whole_number(*about, "pending"));
    }
    if (model_.find("logits") != nullptr) read_logits();
    if (position > 0) read_layers();
    if (model_.size() != read_) fail(fmt::format("it has {} tensors, expected {}", model_.size(), read_));
  }

 private:
  std::string path() const { return model_.origin.path.string(); }
  [[noreturn]] void fail(const std::string& problem) const { throw Error(ErrorKind::invalid_file, problem, path()); }

  std::uint64_t read_whole_number(const Attributes& about, std::string_view key) const {
    if (const auto* found = about.get_if<std::uint64_t>(key)) return *found;
    if (const auto* found = about.get_if<std::int64_t>(key); found != nullptr && *found >= 0)
      return static_cast<std::uint64_t>(*found);
    const Value* value = about.find(key);
    fail(fmt::format("poise.session: {}: expected a whole number, found {}", key,
                     value == nullptr ? "nothing" : to_json(*value)));
  }

  // Throws bad_argument if the session has another type of cache. Old files lack the key; their caches are f32.
  void require_same_cache_type(const Attributes& about) const {
    const Value* value = about.find("cache");
    const std::string_view wanted = text_.sequence.cache.type().name;
    const Value stored = value == nullptr ? Value("f32") : *value;
    if (stored == Value(wanted)) return;
    throw Error(ErrorKind::bad_argument,
                fmt::format("the saved session has a cache of {}, and this session one of \"{}\": begin a session with "
                            "the cache type of the file",
                            to_json(stored), wanted),
                path());
  }

  // Returns the dense tensor with this name. Throws invalid_file if it is missing, or has another type or rank.
  const Tensor& require_dense(const std::string& name, DType dtype, std::size_t rank) {
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

  TokenId require_known_token(std::string_view what, std::uint64_t id) const {
    if (id >= transformer_.vocabulary_size())
      fail(fmt::format("{}: token {}, the model has {} tokens", what, id, transformer_.vocabulary_size()));
    return static_cast<TokenId>(id);
  }

  void read_tokens() {
    const Tensor& from = require_dense("tokens", DType::i32, 1);
    if (from.elements() > context_) {
      throw Error(ErrorKind::bad_argument,
                  fmt::format("the session has {} tokens, which do not fit the context of {} tokens", from.elements(),
                              context_),
                  path());
    }
    std::vector<std::int32_t> ids(static_cast<std::size_t>(from.elements()));
    from.parts[0].blob->read(0, std::as_writable_bytes(std::span(ids)));
    // A negative number becomes a large one, which require_known_token() rejects.
    for (std::size_t i = 0; i < ids.size(); ++i)
      text_.tokens.push_back(
          require_known_token(fmt::format("tokens: number {}", i), static_cast<std::uint64_t>(ids[i])));
  }

  void read_logits() {
    const Tensor& from = require_dense("logits", DType::f32, 1);
    if (from.elements() != transformer_.vocabulary_size())
      fail(fmt::format("logits: {} scores, expected {}", from.elements(), transformer_.vocabulary_size()));
    if (text_.sequence.position == 0 || text_.sequence.position != text_.tokens.size())
      fail("logits: there are scores, but the last token is not computed");
    text_.logits.resize(transformer_.vocabulary_size());
    from.parts[0].blob->read(0, std::as_writable_bytes(std::span(text_.logits)));
    require_finite("logits", text_.logits, ErrorKind::invalid_file, path());
  }

  void read_layers() {
    KvCache& cache = text_.sequence.cache;
    const std::size_t position = text_.sequence.position;
    std::vector<std::vector<const Tensor*>> layers;  // the tensors of each layer; null: no scales
    for (std::size_t layer = 0; layer < cache.layers(); ++layer) {
      std::vector<const Tensor*>& parts = layers.emplace_back();
      for (const CachedPart& part : kCachedParts) {
        parts.push_back(part.count_columns(cache) == 0 ? nullptr
                                                       : &require_rows(make_layer_name(layer, part.name), part));
        if (parts.back() == nullptr || parts.back()->shape[0] == parts.front()->shape[0]) continue;
        fail(fmt::format("layer {}: keys has {} positions, and {} has {}", layer, parts.front()->shape[0], part.name,
                         parts.back()->shape[0]));
      }
      cache.set_positions(layer, position - static_cast<std::size_t>(parts.front()->shape[0]), position);
    }
    // This check comes before memory is reserved, so that a small file cannot demand much memory.
    if (!transformer_.truncate(position, text_.sequence))
      fail(fmt::format("keys and values that {} tokens need are missing", position));
    cache.reserve(position);
    CachedRow row(cache);
    for (std::size_t layer = 0; layer < cache.layers(); ++layer) {
      const auto count = static_cast<std::size_t>(layers[layer].front()->shape[0]);
      for (const Cached what : {Cached::keys, Cached::values}) {
        for (std::size_t i = 0; i < count; ++i) {
          read_row(layers[layer], what, i, row);
          cache.store(what, layer, position - count + i, row.codes(), row.scales());
        }
      }
    }
    text_.sequence.is_long = transformer_.is_long(text_.tokens.size());
  }

  void read_row(std::span<const Tensor* const> parts, Cached what, std::size_t index, CachedRow& row) const {
    for (std::size_t p = 0; p < std::size(kCachedParts); ++p) {
      const CachedPart& part = kCachedParts[p];
      if (part.what != what || parts[p] == nullptr) continue;
      const std::span<std::byte> bytes = row.bytes(part);
      parts[p]->parts[0].blob->read(index * bytes.size(), bytes);
      row.require_finite_part(part, parts[p]->name, ErrorKind::invalid_file, path());
    }
  }

  const Tensor& require_rows(const std::string& name, const CachedPart& part) {
    const KvCache& cache = text_.sequence.cache;
    const Tensor& from = require_dense(name, part.find_dtype(cache), 2);
    if (from.shape[0] > text_.sequence.position || from.shape[1] != part.count_columns(cache)) {
      fail(fmt::format("tensor {}: shape {}, expected at most {} rows of {}", name, to_string(from.shape),
                       text_.sequence.position, part.count_columns(cache)));
    }
    return from;
  }

  const Model& model_;
  const Transformer& transformer_;
  std::size_t context_;
  ComputedText& text_;
  std::size_t read_ = 0;  // the number of tensors that have been read
};

}  // namespace

bool is_session(const Model& model) { return model.attributes.find(kAttribute) != nullptr; }

Model make_session_model(const ComputedText& text, const std::string& fingerprint) {
  const KvCache& cache = text.sequence.cache;
  // A sequence may be ahead of its text if a draft guessed tokens.
  const std::size_t position = std::min(text.sequence.position, text.tokens.size());
  Model model;
  Attributes about = {{"version", kVersion},
                      {"model", fingerprint},
                      {"position", std::uint64_t{position}},
                      {"cache", std::string(cache.type().name)}};
  if (text.pending) about.set("pending", static_cast<std::uint64_t>(*text.pending));
  model.attributes.set(std::string(kAttribute), about);
  model.add(make_dense("tokens", {text.tokens.size()}, DType::i32, make_numbers_blob(text.tokens, "tokens")));
  if (!text.logits.empty()) {
    require_finite("the scores", text.logits, ErrorKind::unsupported, {});
    model.add(make_dense("logits", {text.logits.size()}, DType::f32, make_numbers_blob(text.logits, "logits")));
  }
  for (std::size_t layer = 0; position > 0 && layer < cache.layers(); ++layer) {
    const std::size_t first = std::min(cache.find_oldest_position(layer), position);
    for (const CachedPart& part : kCachedParts) {
      const std::size_t columns = part.count_columns(cache);
      if (columns == 0) continue;
      model.add(make_dense(make_layer_name(layer, part.name), {position - first, columns}, part.find_dtype(cache),
                           std::make_shared<CachedRows>(cache, layer, first, position, part)));
    }
  }
  return model;
}

void read_session_model(const Model& model, const std::string& fingerprint, const Transformer& transformer,
                        std::size_t context, ComputedText& text) {
  Reader(model, transformer, context, text).read(fingerprint);
}

}  // namespace poise
