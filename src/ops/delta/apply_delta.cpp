#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/delta.hpp>
#include <poise/error.hpp>
#include <poise/hash.hpp>

#include "bytes/checked.hpp"
#include "formats/metadata.hpp"
#include "formats/spellings.hpp"
#include "ops/delta/delta_parts.hpp"

namespace poise {
namespace {

class DeltaApplication {
 public:
  DeltaApplication(const Model& base, const Model& delta)
      : base_(base), delta_(delta), header_(require_header()), result_(base.header()) {}

  Model apply() {
    std::map<std::string_view, Tensor> tensors;
    for (const Tensor& tensor : base_.tensors()) tensors.emplace(tensor.name, tensor);
    remove_tensors(tensors);
    for (const Tensor& tensor : delta_.tensors()) {
      if (tensor.layout.name() != kDeltaLayout) {
        tensors.insert_or_assign(tensor.name, tensor);
        continue;
      }
      const auto found = tensors.find(tensor.name);
      if (found == tensors.end())
        fail(fmt::format("tensor {}: the delta changes it, but the base has no such tensor", tensor.name));
      change_parts(found->second, tensor);
    }
    add_ordered(std::move(tensors));
    change_header();
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorKind::invalid_file, problem, delta_.origin.path.string());
  }

  const Attributes& require_header() const {
    const auto* const header = delta_.attributes.get_if<Attributes>(kDeltaKey);
    if (header == nullptr)
      fail(fmt::format("this is not a delta: a delta has the attribute {}, which poise delta writes", kDeltaKey));
    const auto* const version = header->get_if<std::uint64_t>("version");
    if (version == nullptr || *version != 1)
      throw Error(ErrorKind::unsupported,
                  fmt::format("{}.version: expected 1, found {}", kDeltaKey,
                              version == nullptr ? "no number" : fmt::format("{}", *version)),
                  delta_.origin.path.string());
    return *header;
  }

  // Returns the header's value of that key; null if there is none. `expected` describes T in the error for another
  // type.
  template <typename T>
  const T* find_field(std::string_view key, std::string_view expected) const {
    const Value* const value = header_.find(key);
    if (value == nullptr) return nullptr;
    const T* const found = value->get_if<T>();
    if (found == nullptr)
      fail(fmt::format("{}.{}: expected {}, found {}", kDeltaKey, key, expected, describe_value_type(*value)));
    return found;
  }

  void remove_tensors(std::map<std::string_view, Tensor>& tensors) const {
    const auto* const names = find_field<Value::Array>("removed", "a list of names");
    if (names == nullptr) return;
    for (const Value& value : *names) {
      const auto* const name = value.get_if<std::string>();
      if (name == nullptr || tensors.erase(*name) == 0)
        fail(fmt::format("{}.removed: expected names of the base's tensors, found {}", kDeltaKey,
                         name == nullptr ? describe_value_type(value) : *name));
    }
  }

  // Replaces the bytes of the parts that the delta changes.
  void change_parts(Tensor& tensor, const Tensor& change) const {
    if (change.shape != tensor.shape)
      fail(fmt::format("tensor {}: the delta has the shape {}, and the base {}", tensor.name, to_string(change.shape),
                       to_string(tensor.shape)));
    for (const Part& stored : change.parts) {
      const auto part = std::ranges::find(tensor.parts, stored.role, &Part::role);
      if (part == tensor.parts.end())
        fail(fmt::format("tensor {}: the delta changes the part {}, but the base has no such part", tensor.name,
                         stored.role));
      const std::string where = fmt::format("tensor {}: {}", tensor.name, stored.role);
      try {
        part->blob = apply_delta_blob(where, part->blob, stored.blob, read_form(change, stored, where));
      } catch (const Error& error) {
        if (!error.path().empty()) throw;
        fail(error.message());
      }
      part->digest.reset();
    }
  }

  DeltaForm read_form(const Tensor& change, const Part& stored, const std::string& where) const {
    if (stored.dtype != DType::u8) fail(fmt::format("{}: expected u8, found {}", where, stored.type_name()));
    const auto* const forms = change.attributes.get_if<Attributes>("parts");
    const auto* const described = forms == nullptr ? nullptr : forms->get_if<Attributes>(stored.role);
    if (described == nullptr) fail(fmt::format("{}: the attribute parts does not describe it", where));
    const auto* const form = described->get_if<std::string>("form");
    const auto* const word = described->get_if<std::uint64_t>("word");
    const auto* const shuffled = described->get_if<bool>("shuffled");
    if (form == nullptr || (*form != "sparse" && *form != "xor"))
      fail(fmt::format("{}: form: expected sparse or xor, found {}", where, form == nullptr ? "no text" : *form));
    if (word == nullptr || !is_delta_word(*word))
      fail(fmt::format("{}: word: expected 1, 2, 4, 8 or 16, found {}", where,
                       word == nullptr ? "no number" : fmt::format("{}", *word)));
    return {.is_sparse = *form == "sparse",
            .is_shuffled = shuffled != nullptr && *shuffled,
            .word = static_cast<std::size_t>(*word)};
  }

  void add_ordered(std::map<std::string_view, Tensor> tensors) {
    std::vector<Tensor*> sorted;
    for (auto& [name, tensor] : tensors) sorted.push_back(&tensor);
    result_.reserve(sorted.size());
    const auto* const order = find_field<Value::Array>("order", "a list of numbers");
    if (order == nullptr) {
      for (Tensor* tensor : sorted) result_.add(std::move(*tensor));
      return;
    }
    if (order->size() != sorted.size())
      fail(fmt::format("{}.order: expected {} numbers, found {}", kDeltaKey, sorted.size(), order->size()));
    for (const Value& value : *order) {
      const auto* const index = value.get_if<std::uint64_t>();
      if (index == nullptr || *index >= sorted.size() || sorted[static_cast<std::size_t>(*index)] == nullptr)
        fail(fmt::format("{}.order: expected each number below {} once", kDeltaKey, sorted.size()));
      result_.add(std::move(*std::exchange(sorted[static_cast<std::size_t>(*index)], nullptr)));
    }
  }

  void change_header() {
    if (const auto* const list = find_field<Value::Array>("attributes", "a list of pairs")) {
      Attributes attributes;
      for (const Value& value : *list) {
        const auto* const pair = value.get_if<Value::Array>();
        const auto* const key = pair == nullptr || pair->size() != 2 ? nullptr : (*pair)[0].get_if<std::string>();
        if (key == nullptr) fail(fmt::format("{}.attributes: expected pairs of a name and a value", kDeltaKey));
        attributes.set(*key, (*pair)[1]);
      }
      result_.attributes = std::move(attributes);
    }
    if (const auto* const types = find_field<Attributes>("attribute_types", "a map")) {
      result_.origin.attribute_types.clear();
      for (const auto& [key, type] : *types) {
        const auto* const text = type.get_if<std::string>();
        if (text == nullptr) fail(fmt::format("{}.attribute_types: expected texts", kDeltaKey));
        result_.origin.attribute_types.emplace(key, *text);
      }
    }
    change_metadata();
    std::ranges::copy(delta_.origin.files, std::back_inserter(result_.origin.files));
    result_.origin.size = saturating_add(result_.origin.size, delta_.origin.size);
    for (Finding finding : delta_.warnings) {
      if (finding.path.empty()) finding.path = delta_.origin.path.string();
      result_.warnings.push_back(std::move(finding));
    }
  }

  void change_metadata() {
    const auto* const texts = find_field<Attributes>("metadata", "a map");
    if (texts == nullptr) return;
    Model parsed;
    parsed.origin.path = delta_.origin.path;
    for (const auto& [key, value] : *texts) {
      if (value.get_if<std::string>() != nullptr) parsed.attributes.set(key, value);
    }
    parse_text_attributes(parsed);
    if (texts->find("poise.card") != nullptr) result_.card = std::move(parsed.card);
    if (texts->find("poise.config") != nullptr) {
      result_.config = std::move(parsed.config);
      result_.config_json = std::move(parsed.config_json);
    }
    if (texts->find("poise.vocabulary") != nullptr) result_.vocabulary = std::move(parsed.vocabulary);
  }

  const Model& base_;
  const Model& delta_;
  const Attributes& header_;
  Model result_;
};

}  // namespace

Attributes summarize_delta(const Model& delta) {
  const auto* const header = delta.attributes.get_if<Attributes>(kDeltaKey);
  if (header == nullptr) return {};
  Attributes summary;
  for (const std::string_view key : {"base", "version"}) {
    if (const Value* value = header->find(key)) summary.set(std::string(key), *value);
  }
  std::uint64_t changed = 0;
  for (const Tensor& tensor : delta.tensors()) changed += tensor.layout.name() == kDeltaLayout ? 1 : 0;
  summary.set("changed", changed);
  summary.set("whole", delta.size() - changed);
  const auto* const removed = header->get_if<Value::Array>("removed");
  summary.set("removed", removed == nullptr ? std::uint64_t{0} : std::uint64_t{removed->size()});
  return summary;
}

bool is_delta(const Model& model) { return model.attributes.get_if<Attributes>(kDeltaKey) != nullptr; }

Model apply_delta(const Model& base, const Model& delta) { return DeltaApplication(base, delta).apply(); }

void require_base(const Model& base, const Model& delta, const Progress& progress) {
  const auto* const header = delta.attributes.get_if<Attributes>(kDeltaKey);
  const auto* const expected = header == nullptr ? nullptr : header->get_if<std::string>("base");
  if (expected == nullptr)
    throw Error(ErrorKind::invalid_file, fmt::format("{}.base: expected the hash of the base", kDeltaKey),
                delta.origin.path.string());
  const std::string found = hash(base, progress).model;
  if (found == *expected) return;
  throw Error(ErrorKind::bad_argument,
              fmt::format("this is not the base of the delta {}: expected the hash {}, found {}",
                          delta.origin.path.string(), *expected, found),
              base.origin.path.string());
}

}  // namespace poise
