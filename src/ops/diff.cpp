#include <poise/diff.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <unordered_map>

#include <oneapi/tbb/parallel_for.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "io/meter.hpp"
#include "io/same_bytes.hpp"
#include "model/metadata.hpp"
#include "tensor/dense.hpp"

namespace poise {
namespace {

constexpr std::size_t kChunkElements = 1 << 18;

// As ==, but NaN is the same as NaN.
template <typename Number>
bool same_number(Number a, Number b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

// The same for values.
bool same_value(const Value& a, const Value& b) {
  if (a == b) return true;
  if (const auto* x = a.get_if<double>(), *y = b.get_if<double>(); x != nullptr && y != nullptr) return same_number(*x, *y);
  if (const auto* x = a.get_if<Value::Array>(), *y = b.get_if<Value::Array>(); x != nullptr && y != nullptr) return std::ranges::equal(*x, *y, same_value);
  const auto* x = a.get_if<Attributes>();
  const auto* y = b.get_if<Attributes>();
  if (x == nullptr || y == nullptr) return false;
  const auto same_entry = [](const Attributes::Entry& one, const Attributes::Entry& other) {
    return one.first == other.first && same_value(one.second, other.second);
  };
  return std::equal(x->begin(), x->end(), y->begin(), y->end(), same_entry);
}

// JSON makes null of infinities, and text of bytes.
std::string text_of(const Value& value) {
  if (const auto* number = value.get_if<double>(); number != nullptr && !std::isfinite(*number)) return fmt::format("{}", *number);
  return (value.get_if<Value::Bytes>() != nullptr ? "bytes " : "") + to_json(value);
}

void compare_maps(const std::string& prefix, const Attributes& a, const Attributes& b, std::vector<FieldDifference>& out) {
  const auto values_of = [](const Attributes& map) {
    std::unordered_map<std::string_view, const Value*> values;
    for (const auto& [key, value] : map) values.emplace(key, &value);
    return values;
  };
  const auto in_a = values_of(a);
  const auto in_b = values_of(b);
  for (const auto& [key, value] : a) {
    const auto other = in_b.find(key);
    if (other == in_b.end()) {
      out.push_back({prefix + key, text_of(value), "-"});
    } else if (!same_value(*other->second, value)) {
      out.push_back({prefix + key, text_of(value), text_of(*other->second)});
    }
  }
  for (const auto& [key, value] : b) {
    if (!in_a.contains(key)) out.push_back({prefix + key, "-", text_of(value)});
  }
}

void compare_config(const Model& a, const Model& b, std::vector<FieldDifference>& out) {
  const auto map = [](const Model& model) { return model.config ? config_to_attributes(*model.config, model.card.model_type) : Attributes(); };
  compare_maps("config.", map(a), map(b), out);
}

void compare_vocabulary(const Model& a, const Model& b, std::vector<FieldDifference>& out) {
  if (!a.vocabulary || !b.vocabulary) {
    if (a.vocabulary.has_value() != b.vocabulary.has_value()) {
      const auto size = [](const Model& model) { return model.vocabulary ? fmt::format("{} tokens", model.vocabulary->size()) : "-"; };
      out.push_back({"vocabulary", size(a), size(b)});
    }
    return;
  }
  const Vocabulary& left = *a.vocabulary;
  const Vocabulary& right = *b.vocabulary;
  const auto number = [&](std::string_view field, std::int64_t x, std::int64_t y) {
    if (x != y) out.push_back({fmt::format("vocabulary.{}", field), std::to_string(x), std::to_string(y)});
  };
  number("size", static_cast<std::int64_t>(left.size()), static_cast<std::int64_t>(right.size()));
  number("bos_id", left.bos_id, right.bos_id);
  number("eos_id", left.eos_id, right.eos_id);
  number("pad_id", left.pad_id, right.pad_id);
  number("unk_id", left.unk_id, right.unk_id);
  number("max_length", left.max_length, right.max_length);
  const auto text = [&](std::string_view field, std::string_view x, std::string_view y) {
    if (x != y) out.push_back({fmt::format("vocabulary.{}", field), std::string(x), std::string(y)});
  };
  text("kind", kind_name(left.kind), kind_name(right.kind));
  text("normalizer", left.normalizer, right.normalizer);
  number("add_dummy_prefix", left.add_dummy_prefix ? 1 : 0, right.add_dummy_prefix ? 1 : 0);
  number("remove_extra_whitespaces", left.remove_extra_whitespaces ? 1 : 0, right.remove_extra_whitespaces ? 1 : 0);
  if (left.merges != right.merges)
    out.push_back({"vocabulary.merges", fmt::format("{} merges", left.merges.size()), fmt::format("{}, not all the same", right.merges.size())});
  std::size_t different = 0;
  for (std::size_t id = 0; id < std::min(left.size(), right.size()); ++id) {
    if (left.text(id) != right.text(id) || !same_number(left.score(id), right.score(id)) || left.type(id) != right.type(id)) ++different;
  }
  if (different > 0) out.push_back({"vocabulary.tokens", fmt::format("{} tokens differ", different), "in text, score or type"});
}

std::string describe(const Tensor& tensor) {
  std::vector<const Part*> parts;
  for (const Part& part : tensor.parts) parts.push_back(&part);
  std::ranges::sort(parts, {}, &Part::role);  // formats have orders of their own
  std::string types;
  for (const Part* part : parts)
    types += fmt::format("{}{}", types.empty() ? "" : "+", part->dtype == DType::unknown ? part->dtype_name : to_string(part->dtype));
  const std::string_view layout = tensor.layout == Layout::dense   ? ""
                                  : tensor.layout == Layout::other ? std::string_view(tensor.layout_name)
                                                                   : to_string(tensor.layout);
  return fmt::format("{}{}{} {}", layout, layout.empty() ? "" : " ", types, to_string(tensor.shape));
}

// Differences of two runs of float32, chunk by chunk.
class ValueComparison {
 public:
  void add(std::span<const float> a, std::span<const float> b) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (same_number(a[i], b[i])) continue;
      ++result_.different;
      const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
      // NaN against a number, or infinities of two signs, are as far apart as can be.
      result_.max_absolute = std::isnan(difference) ? INFINITY : std::max(result_.max_absolute, difference);
      squares_ += std::isnan(difference) ? INFINITY : difference * difference;
    }
    elements_ += a.size();
  }
  TensorDifference::Values result() const {
    TensorDifference::Values values = result_;
    if (elements_ > 0) values.rms = std::sqrt(squares_ / static_cast<double>(elements_));
    return values;
  }

 private:
  TensorDifference::Values result_;
  double squares_ = 0;
  std::uint64_t elements_ = 0;
};

template <typename Advance>
TensorDifference::Values compare_numbers(const Tensor& a, const Tensor& b, Advance&& advance) {
  const BlobPtr left = dense_blob(a, DType::f32);
  const BlobPtr right = dense_blob(b, DType::f32);
  std::array<std::vector<float>, 2> chunks = {std::vector<float>(kChunkElements), std::vector<float>(kChunkElements)};
  ValueComparison comparison;
  for (std::uint64_t done = 0; done < a.elements();) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(kChunkElements, a.elements() - done));
    left->read(done * sizeof(float), std::as_writable_bytes(std::span(chunks[0]).first(count)));
    right->read(done * sizeof(float), std::as_writable_bytes(std::span(chunks[1]).first(count)));
    comparison.add(std::span<const float>(chunks[0]).first(count), std::span<const float>(chunks[1]).first(count));
    advance(count * sizeof(float));
    done += count;
  }
  return comparison.result();
}

bool same_parts(const Tensor& a, const Tensor& b) {
  if (a.parts.size() != b.parts.size()) return false;
  return std::ranges::all_of(a.parts, [&](const Part& part) {
    const Part* other = b.part(part.role);
    return other != nullptr && other->dtype == part.dtype && same_bytes(*part.blob, *other->blob);
  });
}

// Do equal bytes stand for equal numbers?
bool same_scheme(const Tensor& a, const Tensor& b) {
  if (a.layout == Layout::affine) return a.affine->get() == b.affine->get();
  return a.layout != Layout::quantized_group || a.attributes == b.attributes;
}

// What differs between two tensors of the same name; nothing when they are equal. Equal bytes need no look at numbers.
template <typename Advance>
std::optional<TensorDifference> compare(const Tensor& a, const Tensor& b, Advance&& advance) {
  TensorDifference difference{a.name, describe(a), describe(b), std::nullopt};
  const bool same_kind = difference.a == difference.b;
  const bool have_numbers = a.shape == b.shape && has_float_elements(a) && has_float_elements(b);
  if (same_kind && (!have_numbers || same_scheme(a, b)) && same_parts(a, b)) {
    advance(a.elements() * sizeof(float));
    return std::nullopt;
  }
  if (!have_numbers) return difference;
  try {
    difference.values = compare_numbers(a, b, advance);
  } catch (const Error& error) {  // numbers of float64 may be too large
    if (error.kind() != ErrorKind::unsupported) throw;
    return difference;
  }
  // Numbers are compared as float32, which hides small differences of float64.
  const bool exact = element_type(a) != DType::f64;
  if (same_kind && exact && difference.values->different == 0) return std::nullopt;
  return difference;
}

std::uint64_t bytes_to_compare(const Model& model) {
  std::uint64_t sum = 0;
  for (const Tensor& tensor : model.tensors()) sum += tensor.elements() * sizeof(float);
  return sum;
}

void compare_tensors(const Model& a, const Model& b, const Progress& progress, DiffReport& report) {
  std::set<std::string> names;
  for (const Tensor& tensor : a.tensors()) names.insert(tensor.name);
  for (const Tensor& tensor : b.tensors()) names.insert(tensor.name);
  const std::vector<std::string> ordered(names.begin(), names.end());
  std::vector<std::optional<TensorDifference>> found(ordered.size());
  Meter meter(progress, bytes_to_compare(a));
  oneapi::tbb::parallel_for(std::size_t{0}, ordered.size(), [&](std::size_t i) {
    const Tensor* left = a.find(ordered[i]);
    const Tensor* right = b.find(ordered[i]);
    if (left == nullptr || right == nullptr) {
      found[i] = TensorDifference{ordered[i], left == nullptr ? "-" : describe(*left), right == nullptr ? "-" : describe(*right), std::nullopt};
      return;
    }
    found[i] = compare(*left, *right, [&](std::uint64_t bytes) { meter.advance(bytes, ordered[i]); });
  });
  for (const std::string& name : ordered) {
    const Tensor* left = a.find(name);
    const Tensor* right = b.find(name);
    if (left != nullptr && right != nullptr) compare_maps(fmt::format("tensors.{}.", name), left->attributes, right->attributes, report.fields);
  }
  for (auto& difference : found) {
    if (difference) {
      report.tensors.push_back(std::move(*difference));
    } else {
      ++report.equal_tensors;
    }
  }
}

}  // namespace

DiffReport diff(const Model& a, const Model& b, const Progress& progress) {
  DiffReport report;
  compare_maps("card.", card_to_attributes(a.card), card_to_attributes(b.card), report.fields);
  compare_config(a, b, report.fields);
  compare_vocabulary(a, b, report.fields);
  compare_maps("attributes.", a.attributes, b.attributes, report.fields);
  compare_tensors(a, b, progress, report);
  return report;
}

}  // namespace poise
