// Reads flax_model.msgpack: one MessagePack item, nested maps with text keys and arrays. The name of an array is made
// of the keys that lead to it, joined with dots. flax.hpp describes arrays. Source: flax/serialization.py of
// github.com/google/flax.
#include "formats/registry.hpp"

#include <unordered_set>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/flax/flax.hpp"
#include "io/source_range.hpp"
#include "syntax/element_value.hpp"
#include "views/row_order.hpp"

namespace poise::flax {
namespace {

using msgpack::Item;
using msgpack::ItemKind;
using msgpack::Tree;

constexpr std::size_t kMostNameBytes = 4096;
constexpr std::string_view kRootName = "tensor";  // the name of an array that is the whole file
constexpr std::string_view kParameters = "params";

class FileReader {
 public:
  explicit FileReader(const Input& input)
      : source_(input.source), records_(make_unmapped_source(source_)), tree_(*records_, "flax") {
    model_.origin = {input.path, "flax", source_->size(), {input.path}};
  }

  Model read() {
    find_arrays();
    if (holds_[Tree::kRoot] == Holds::no_array)
      tree_.fail("", "expected at least one array, found none: this is not a file of Flax", 0);
    if (const auto parameters = find_parameters()) {
      set_attribute("flax.root", std::string(kParameters), tree_[*parameters].begin);
      is_rooted_ = true;
      walk_map(Tree::kRoot, "", *parameters);
    } else {
      walk(Tree::kRoot, "");
    }
    model_.attributes = Attributes::from_unique(std::move(attributes_));
    return std::move(model_);
  }

 private:
  enum class Holds : char { no_array, arrays, is_array };

  // Finds the items that hold arrays. Goes from the last item to the first, so that the items inside a container come
  // before the container.
  void find_arrays() {
    holds_.resize(tree_.size(), Holds::no_array);
    for (Tree::Index i = tree_.size(); i-- > 0;) {
      const Item& item = tree_[i];
      if (item.kind == ItemKind::extension && item.type == kArray) holds_[i] = Holds::is_array;
      if (item.kind != ItemKind::map && item.kind != ItemKind::array) continue;
      for (Tree::Index j = i + 1; j < tree_.find_after(i); j = tree_.find_after(j)) {
        if (holds_[j] != Holds::no_array) holds_[i] = Holds::arrays;
      }
      if (item.kind == ItemKind::map && tree_.find(i, kChunked)) holds_[i] = Holds::is_array;
    }
  }

  // Returns the map under "params" if it has arrays and no other key of the root does. Names then leave out "params.".
  std::optional<Tree::Index> find_parameters() const {
    if (tree_[Tree::kRoot].kind != ItemKind::map || holds_[Tree::kRoot] != Holds::arrays) return std::nullopt;
    const auto parameters = tree_.find(Tree::kRoot, kParameters);
    if (!parameters || tree_[*parameters].kind != ItemKind::map || holds_[*parameters] != Holds::arrays)
      return std::nullopt;
    for (Tree::Index i = Tree::kRoot + 1; i < tree_.find_after(Tree::kRoot); i = tree_.find_after(i + 1)) {
      if (i + 1 != *parameters && holds_[i + 1] != Holds::no_array) return std::nullopt;
    }
    return parameters;
  }

  std::string join_names(const std::string& prefix, const std::string& name, std::uint64_t at) {
    std::string result = prefix.empty() ? name : prefix + "." + name;
    if (result.size() > kMostNameBytes)
      tree_.fail("", fmt::format("a name has {} bytes, at most {} are read", result.size(), kMostNameBytes), at,
                 ErrorKind::unsupported);
    tree_.require_affordable(tree_.budget().charge_text(result.size()), at);
    return result;
  }

  void walk(Tree::Index i, const std::string& name) {
    const Item& item = tree_[i];
    if (holds_[i] == Holds::is_array) return add_tensor(i, i == Tree::kRoot ? std::string(kRootName) : name);
    if (holds_[i] == Holds::no_array) return set_attribute(name, convert_value(i, name), item.begin);
    if (item.kind == ItemKind::map) return walk_map(i, name, std::nullopt);
    std::size_t number = 0;
    for (Tree::Index j = i + 1; j < tree_.find_after(i); j = tree_.find_after(j))
      walk(j, join_names(name, std::to_string(number++), tree_[j].begin));
  }

  // Walks a map. `unnamed` is the value whose key does not become a part of names.
  void walk_map(Tree::Index map, const std::string& name, std::optional<Tree::Index> unnamed) {
    for (Tree::Index i = map + 1; i < tree_.find_after(map); i = tree_.find_after(i + 1))
      walk(i + 1, unnamed == i + 1 ? name : join_names(name, tree_.read_text(i), tree_[i].begin));
  }

  void set_attribute(const std::string& name, Value value, std::uint64_t at) {
    tree_.require_affordable(tree_.budget().charge_text(name.size()), at);
    if (!names_.insert(name).second) tree_.fail(name, "the name appears twice", at);
    attributes_.emplace_back(name, std::move(value));
  }

  Value convert_value(Tree::Index i, const std::string& name) {
    return tree_.read_value(i, [&](const Item& item) -> Value {
      if (item.type == kComplex) return read_complex(item, name);
      if (item.type == kScalar) return read_scalar(item, name);
      const std::vector<std::byte> bytes = read_all(*make_source_blob(source_, item.content, item.argument));
      return Attributes{{"extension", std::int64_t{item.type}}, {"bytes", Value::Bytes(bytes)}};
    });
  }

  Value read_complex(const Item& item, const std::string& name) {
    msgpack::Reader in(*records_, make_context(name), item.content, item.content + item.argument);
    const Item pair = in.read_head();
    const bool is_pair = pair.kind == ItemKind::array && pair.argument == 2;
    Value::Array parts;
    for (int i = 0; is_pair && i < 2; ++i) {
      const Item part = in.read_head();
      if (part.kind == ItemKind::real) parts.emplace_back(std::bit_cast<double>(part.argument));
    }
    if (parts.size() != 2 || in.remaining() > 0) in.fail("complex number", "expected two real numbers", item.begin);
    return parts;
  }

  Value read_scalar(const Item& item, const std::string& name) {
    const FlaxArray array = read_array(*records_, make_context(name), item);
    const auto dtype = array.dtype();
    std::array<std::byte, 16> element;
    if (dtype && array.shape.empty() && array.bytes <= element.size()) {
      const auto bytes = std::span(element).first(array.bytes);
      source_->read(array.begin, bytes);
      if (auto value = read_element(*dtype, bytes)) return *std::move(value);
    }
    tree_.fail(name, fmt::format("a scalar of {} with the shape {} is not read", array.type, to_string(array.shape)),
               item.begin, ErrorKind::unsupported);
  }

  static std::string make_context(const std::string& name) { return name.empty() ? "flax" : "flax: " + name; }

  void add_tensor(Tree::Index i, const std::string& name) {
    if (tree_[i].kind == ItemKind::map) {
      const ChunkedArray chunked = read_chunked(tree_, i, *records_, name);
      std::vector<BlobPtr> blobs;
      for (const FlaxArray& chunk : chunked.chunks)
        blobs.push_back(make_source_blob(source_, chunk.begin, chunk.bytes));
      return add_tensor(chunked.array, name, make_joined_blob(std::move(blobs)));
    }
    const FlaxArray array = read_array(*records_, make_context(name), tree_[i]);
    add_tensor(array, name, make_source_blob(source_, array.begin, array.bytes));
  }

  void add_tensor(const FlaxArray& array, const std::string& name, BlobPtr elements) {
    const auto dtype = array.dtype();
    if (!dtype) {
      model_.warnings.push_back({Severity::warning,
                                 fmt::format("{} is left out: {}", name, array.explain_unsupported_type()),
                                 source_->name(), array.at});
      return;
    }
    if (model_.find(name) != nullptr) tree_.fail(name, "the name appears twice", array.at);
    Tensor tensor = make_dense(name, array.shape, *dtype, std::move(elements));
    if (is_rooted_) {
      tree_.require_affordable(tree_.budget().charge_text(kParameters.size() + 1 + name.size()), array.at);
      tensor.file_name = std::make_shared<const std::string>(fmt::format("{}.{}", kParameters, name));
    }
    model_.add(std::move(tensor));
  }

  SourcePtr source_;
  SourcePtr records_;
  Tree tree_;
  Model model_;
  std::vector<Holds> holds_;
  bool is_rooted_ = false;  // the names in the file begin with kParameters
  std::vector<Attributes::Entry> attributes_;
  std::unordered_set<std::string> names_;  // the names of attributes
};

}  // namespace

bool is_flax(const Input& input) {
  constexpr std::size_t kMostItems = 1000;
  if (!input.source) return false;
  const SourcePtr source = make_unmapped_source(input.source);
  try {
    msgpack::Reader in(*source, "flax", 0, source->size());
    if (in.read_head().kind != ItemKind::map) return false;
    if (in.read_head().kind != ItemKind::text) return false;
    for (std::size_t i = 0; i < kMostItems; ++i) {
      const Item item = in.read_head();
      if (item.kind != ItemKind::extension || item.type != kArray) continue;
      msgpack::Reader array(*source, "flax", item.content, item.content + item.argument);
      const Item parts = array.read_head();
      return parts.kind == ItemKind::array && parts.argument == 3;
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io) throw;
  }
  return false;
}

Model read(const Input& input, const ReadOptions&) { return FileReader(input).read(); }

}  // namespace poise::flax

namespace poise {

const Format kFlax = {
    .info = {"flax", "parameters of Flax", ".msgpack"},
    .holds_bf16 = true,
    .sniff = flax::is_flax,
    .read = flax::read,
};

}  // namespace poise
