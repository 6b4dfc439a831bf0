#include <poise/diff.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include <oneapi/tbb/parallel_for.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "family/config_json.hpp"
#include "formats/format.hpp"
#include "io/meter.hpp"
#include "ops/compare_numbers.hpp"
#include "ops/digest_check.hpp"
#include "ops/ranks.hpp"
#include "ops/shared_bytes.hpp"
#include "pack/pump.hpp"
#include "patterns/glob.hpp"
#include "syntax/json_writer.hpp"
#include "tokenizer/files/files.hpp"
#include "tokenizer/kinds.hpp"
#include "tokenizer/tokens/token_types.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

// Returns a value as text. JSON alone would turn infinities and NaN into null, and would write bytes like a string.
std::string format_field(const Value& value) {
  if (const auto* number = value.get_if<double>(); number != nullptr && !std::isfinite(*number))
    return std::isnan(*number) ? "nan" : fmt::format("{}", *number);
  return (value.get_if<Value::Bytes>() != nullptr ? "bytes " : "") + format_python_json(value);
}

void compare_maps(const std::string& prefix, const Attributes& a, const Attributes& b,
                  std::vector<FieldDifference>& out) {
  const auto map_values = [](const Attributes& map) {
    std::unordered_map<std::string_view, const Value*> values;
    for (const auto& [key, value] : map) values.emplace(key, &value);
    return values;
  };
  const auto in_a = map_values(a);
  const auto in_b = map_values(b);
  for (const auto& [key, value] : a) {
    const auto other = in_b.find(key);
    if (other == in_b.end()) {
      out.push_back({prefix + key, format_field(value), "-"});
    } else if (!is_same_value(*other->second, value)) {
      out.push_back({prefix + key, format_field(value), format_field(*other->second)});
    }
  }
  for (const auto& [key, value] : b) {
    if (!in_a.contains(key)) out.push_back({prefix + key, "-", format_field(value)});
  }
}

void compare_config(const Model& a, const Model& b, std::vector<FieldDifference>& out) {
  compare_maps("config.", make_canonical_config(a), make_canonical_config(b), out);
}

void compare_vocabulary(const Model& a, const Model& b, std::vector<FieldDifference>& out) {
  if (!a.vocabulary || !b.vocabulary) {
    if (a.vocabulary.has_value() != b.vocabulary.has_value()) {
      const auto describe_size = [](const Model& model) {
        return model.vocabulary ? fmt::format("{} tokens", model.vocabulary->size()) : "-";
      };
      out.push_back({"vocabulary", describe_size(a), describe_size(b)});
    }
    return;
  }
  const Vocabulary& left = *a.vocabulary;
  const Vocabulary& right = *b.vocabulary;
  const auto compare_number = [&](std::string_view field, std::int64_t x, std::int64_t y) {
    if (x != y) out.push_back({fmt::format("vocabulary.{}", field), std::to_string(x), std::to_string(y)});
  };
  compare_number("size", static_cast<std::int64_t>(left.size()), static_cast<std::int64_t>(right.size()));
  compare_number("bos_id", left.bos_id, right.bos_id);
  compare_number("eos_id", left.eos_id, right.eos_id);
  compare_number("pad_id", left.pad_id, right.pad_id);
  compare_number("unk_id", left.unk_id, right.unk_id);
  compare_number("max_length", left.max_length, right.max_length);
  const auto compare_text = [&](std::string_view field, std::string_view x, std::string_view y) {
    if (x != y) out.push_back({fmt::format("vocabulary.{}", field), std::string(x), std::string(y)});
  };
  compare_text("kind", get_kind_name(left.kind), get_kind_name(right.kind));
  compare_text("normalizer", left.normalizer, right.normalizer);
  compare_number("add_dummy_prefix", left.add_dummy_prefix ? 1 : 0, right.add_dummy_prefix ? 1 : 0);
  compare_number("remove_extra_whitespaces", left.remove_extra_whitespaces ? 1 : 0,
                 right.remove_extra_whitespaces ? 1 : 0);
  if (left.merges != right.merges)
    out.push_back({"vocabulary.merges", fmt::format("{} merges", left.merges.size()),
                   fmt::format("{} merges, which differ", right.merges.size())});
  if (left.pipeline != right.pipeline) compare_maps("vocabulary.pipeline.", left.pipeline, right.pipeline, out);
  if (left.tokenizer_config != right.tokenizer_config)
    compare_maps("vocabulary.tokenizer_config.", find_config_besides_tokens(left), find_config_besides_tokens(right),
                 out);
  if (left.files != right.files) compare_maps("vocabulary.files.", left.files, right.files, out);
  if (left.chat_template != right.chat_template) {
    const auto format_value = [](const Value& value) { return value == Value() ? std::string("-") : to_json(value); };
    out.push_back({"vocabulary.chat_template", format_value(left.chat_template), format_value(right.chat_template)});
  }
  std::size_t different = 0;
  for (std::size_t id = 0; id < std::min(left.size(), right.size()); ++id) {
    if (left.text(id) != right.text(id) || !is_same_number(left.score(id), right.score(id)) ||
        choose_token_type_by_id(left, id) != choose_token_type_by_id(right, id))
      ++different;
  }
  if (different > 0)
    out.push_back({"vocabulary.tokens", fmt::format("{} of {} differ in text, score or type", different, left.size()),
                   fmt::format("{} of {}", different, right.size())});
}

// Returns the same text for types that mean the same. Versions of zTensor spell a type that Poise does not know in two
// ways.
std::string find_type_meaning(const Tensor& tensor, const Part& part) {
  const LayoutType& layout = find_layout_type(tensor.layout);
  if (layout.type_meaning != nullptr) {
    if (auto meaning = layout.type_meaning(part)) return std::move(*meaning);
  }
  if (part.dtype == DType::unknown) return std::string(name_unknown_type(part.type_name()));
  return std::string(part.shown_type());
}

// Returns the parts in the order of their roles, because formats order parts differently.
std::vector<const Part*> list_by_role(const Tensor& tensor) {
  std::vector<const Part*> parts;
  for (const Part& part : tensor.parts) parts.push_back(&part);
  std::ranges::sort(parts, {}, &Part::role);
  return parts;
}

// Returns a text such as "quantized_group f16+i32 [8, 64]": layout, types of the parts, which `type_of` spells, and
// shape.
template <typename TypeOf>
std::string describe_kind(const Tensor& tensor, TypeOf&& type_of) {
  std::string types;
  for (const Part* part : list_by_role(tensor))
    types += fmt::format("{}{}", types.empty() ? "" : "+", type_of(tensor, *part));
  const std::string_view layout = tensor.layout == Layout::dense ? "" : tensor.layout.name();
  return fmt::format("{}{}{} {}", layout, layout.empty() ? "" : " ", types, to_string(tensor.shape));
}

// Returns true if layout, types of the parts and shape are equal, however the files spell the types.
bool have_same_kind(const Tensor& a, const Tensor& b) {
  return describe_kind(a, find_type_meaning) == describe_kind(b, find_type_meaning);
}

// Describes a tensor for the report: "q4_k [256, 512]".
std::string describe_tensor(const Tensor& tensor) {
  return fmt::format("{} {}", describe_stored_type(tensor), to_string(tensor.shape));
}

// Describes both tensors, with the types of their parts if only these differ.
std::pair<std::string, std::string> describe_both(const Tensor& a, const Tensor& b) {
  std::pair<std::string, std::string> texts(describe_tensor(a), describe_tensor(b));
  if (texts.first != texts.second || have_same_kind(a, b)) return texts;
  const auto format_type = [](const Tensor&, const Part& part) { return std::string(part.shown_type()); };
  return {describe_kind(a, format_type), describe_kind(b, format_type)};
}

// Returns true if all parts are equal. Ignores the part with the role `but`.
bool have_same_parts(const Tensor& a, const Tensor& b, std::string_view but = {}) {
  if (a.parts.size() != b.parts.size()) return false;
  return std::ranges::equal(list_by_role(a), list_by_role(b), [&](const Part* part, const Part* other) {
    if (part->role != other->role) return false;
    return part->role == but ||
           (find_type_meaning(b, *other) == find_type_meaning(a, *part) && have_same_bytes(*part->blob, *other->blob));
  });
}

// Returns the layout of both tensors if it and the shapes are equal, and the elements are floating-point; else null.
const LayoutType* find_common_layout(const Tensor& a, const Tensor& b) {
  const LayoutType& type = find_layout_type(a.layout);
  const bool is_common =
      &type == &find_layout_type(b.layout) && a.shape == b.shape && has_float_elements(a) && has_float_elements(b);
  return is_common ? &type : nullptr;
}

// Returns true when equal bytes mean equal elements.
bool have_same_scheme(const Tensor& a, const Tensor& b) {
  const LayoutType* const type = find_common_layout(a, b);
  return type == nullptr || type->same_scheme == nullptr || type->same_scheme(a, b);
}

enum class Equality : std::uint8_t { none, bytes, numbers, tolerance };

// Returns the difference between two tensors of the same name; std::nullopt if they are equal. Sets `equality` to the
// way in which they are equal. Tensors with equal bytes are not compared as numbers.
std::optional<TensorDifference> compare_pair(const Tensor& a, const Tensor& b, const DiffOptions& options,
                                             Equality& equality, const std::function<void(std::uint64_t)>& advance,
                                             const ObserveTensor& observe) {
  const bool have_numbers = a.shape == b.shape && have_like_numbers(a, b);
  const bool is_same_kind = have_same_kind(a, b);
  if (is_same_kind && (!have_numbers || have_same_scheme(a, b)) && have_same_parts(a, b)) {
    advance(a.elements());
    equality = Equality::bytes;
    return std::nullopt;
  }
  std::optional<TensorDifference::Values> values;
  if (have_numbers) values = compare_numbers(a, b, options.tolerance, advance, observe ? observe(a) : SeeFloats());
  const bool same_beside_data = a.layout != Layout::dense || b.layout != Layout::dense || have_same_parts(a, b, "data");
  if ((is_same_kind || options.values) && values && values->different == 0 && same_beside_data) {
    // A layout other than dense can hold the same numbers in several ways, which count as equal bytes here.
    const bool may_vary = is_same_kind && a.layout != Layout::dense;
    equality = values->max_absolute > 0 ? Equality::tolerance : may_vary ? Equality::bytes : Equality::numbers;
    return std::nullopt;
  }
  equality = Equality::none;
  using What = TensorDifference::What;
  auto [in_a, in_b] = describe_both(a, b);
  const What what = a.shape != b.shape ? What::shape : is_same_kind ? What::values : What::type;
  return TensorDifference{a.name, what, std::move(in_a), std::move(in_b), values};
}

// Compares attributes, except those that describe a scheme (LayoutType::same_scheme) that both tensors have.
void compare_attributes(const Tensor& a, const Tensor& b, std::vector<FieldDifference>& out) {
  const LayoutType* const layout = find_common_layout(a, b);
  const bool one_scheme = layout != nullptr && layout->is_scheme_attribute != nullptr && have_same_scheme(a, b);
  const auto list_compared = [&](const Tensor& tensor) {
    if (!one_scheme) return tensor.attributes;
    std::vector<Attributes::Entry> entries;
    for (const auto& entry : tensor.attributes) {
      if (!layout->is_scheme_attribute(entry.first)) entries.push_back(entry);
    }
    return Attributes::from_unique(std::move(entries));
  };
  compare_maps(fmt::format("tensors.{}.", a.name), list_compared(a), list_compared(b), out);
}

std::uint64_t count_compared_bytes(std::uint64_t elements) {
  return checked_mul(elements, sizeof(float)).value_or(UINT64_MAX);
}

// Returns the bytes that a tensor adds to the progress: those of its float32 numbers, or of all parts if it is sparse.
std::uint64_t count_work_bytes(const Tensor& tensor) {
  return is_sparse(tensor) ? tensor.size_bytes() : count_compared_bytes(tensor.elements());
}

// Returns the names of both models' tensors that `only` and `skip` select.
std::vector<std::string> select_names(const Model& a, const Model& b, const DiffOptions& options) {
  std::map<std::string, std::set<std::string>> names;  // all names of a tensor, by Poise's name
  for (const Model* model : {&a, &b}) {
    for (const Tensor& tensor : model->tensors()) {
      auto& all = names[tensor.name];
      all.insert(tensor.name);
      all.emplace(tensor.name_in_file());
    }
  }
  const auto matches_any = [](const std::string& pattern, const std::set<std::string>& all) {
    return std::ranges::any_of(all, [&](const std::string& name) { return matches_glob(pattern, name); });
  };
  const auto require_match = [&](std::string_view option, const std::string& pattern) {
    if (std::ranges::none_of(names, [&](const auto& entry) { return matches_any(pattern, entry.second); }))
      throw Error(ErrorKind::bad_argument, fmt::format("{}: the pattern \"{}\" matches no tensor", option, pattern));
  };
  for (const std::string& pattern : options.only) require_match("only", pattern);
  for (const std::string& pattern : options.skip) require_match("skip", pattern);
  std::vector<std::string> selected;
  for (const auto& entry : names) {
    const auto is_match = [&](const std::string& pattern) { return matches_any(pattern, entry.second); };
    const bool is_wanted = options.only.empty() || std::ranges::any_of(options.only, is_match);
    if (is_wanted && std::ranges::none_of(options.skip, is_match)) selected.push_back(entry.first);
  }
  return selected;
}

// Holds the result of one comparison, which ranks send to each other.
struct Compared {
  std::optional<TensorDifference> difference;
  Equality equality = Equality::none;
};

void append_compared(std::string& message, const Compared& compared) {
  append_number(message, static_cast<std::uint64_t>(compared.equality));
  const auto& difference = compared.difference;
  append_number(message, difference ? 1 : 0);
  if (!difference) return;
  append_number(message, static_cast<std::uint64_t>(difference->what));
  for (const std::string* const text : {&difference->name, &difference->a, &difference->b}) append_text(message, *text);
  append_number(message, difference->values ? 1 : 0);
  if (!difference->values) return;
  const TensorDifference::Values& values = *difference->values;
  append_number(message, values.different);
  for (const double number : {values.max_absolute, values.rms, values.max_relative, values.signal_to_noise_db})
    append_number(message, std::bit_cast<std::uint64_t>(number));
}

Compared read_compared(std::string_view& message) {
  Compared compared;
  compared.equality = static_cast<Equality>(read_number(message));
  if (read_number(message) == 0) return compared;
  TensorDifference difference;
  difference.what = static_cast<TensorDifference::What>(read_number(message));
  for (std::string* const text : {&difference.name, &difference.a, &difference.b}) *text = read_text(message);
  if (read_number(message) != 0) {
    TensorDifference::Values values;
    values.different = read_number(message);
    for (double* const number : {&values.max_absolute, &values.rms, &values.max_relative, &values.signal_to_noise_db})
      *number = std::bit_cast<double>(read_number(message));
    difference.values = values;
  }
  compared.difference = std::move(difference);
  return compared;
}

// Sends each rank the results of the others. dealt[i] is the rank that has compared tensor i.
void gather_compared(std::vector<Compared>& found, const std::vector<std::size_t>& dealt, Communicator& ranks) {
  std::string own;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (dealt[i] == ranks.rank()) append_compared(own, found[i]);
  }
  const std::vector<std::string> messages = ranks.gather(own);
  std::vector<std::string_view> left(messages.begin(), messages.end());
  for (std::size_t i = 0; i < found.size(); ++i) found[i] = read_compared(left[dealt[i]]);
}

// `ranks` is null for a single rank.
void compare_tensors(const Model& a, const Model& b, const std::vector<std::string>& ordered,
                     const DiffOptions& options, const Progress& progress, const ObserveTensor& observe,
                     Communicator* ranks, DiffReport& report) {
  std::vector<Compared> found(ordered.size());
  std::vector<std::uint64_t> work;
  for (const std::string& name : ordered) {
    const Tensor* const tensor = a.find(name);
    work.push_back(tensor == nullptr ? 0 : count_work_bytes(*tensor));
  }
  const std::vector<std::size_t> dealt =
      ranks != nullptr ? assign_to_ranks(work, ranks->size()) : std::vector<std::size_t>(work.size());
  const std::size_t rank = ranks != nullptr ? ranks->rank() : 0;
  std::uint64_t all_work = 0;
  for (std::size_t i = 0; i < work.size(); ++i) all_work = saturating_add(all_work, dealt[i] == rank ? work[i] : 0);
  Meter meter(progress, all_work);
  oneapi::tbb::parallel_for(std::size_t{0}, ordered.size(), [&](std::size_t i) {
    if (dealt[i] != rank) return;
    const Tensor* left = a.find(ordered[i]);
    const Tensor* right = b.find(ordered[i]);
    if (left == nullptr || right == nullptr) {
      const auto describe_if_present = [](const Tensor* tensor) {
        return tensor == nullptr ? "-" : describe_tensor(*tensor);
      };
      const auto what = right == nullptr ? TensorDifference::What::only_in_a : TensorDifference::What::only_in_b;
      found[i].difference =
          TensorDifference{ordered[i], what, describe_if_present(left), describe_if_present(right), std::nullopt};
      return;
    }
    // Sparse tensors count as done at once, because progress in bytes does not follow from progress in elements.
    const bool sparse = is_sparse(*left);
    const auto advance = [&](std::uint64_t elements) {
      meter.advance(sparse ? 0 : count_compared_bytes(elements), ordered[i]);
    };
    found[i].difference = compare_pair(*left, *right, options, found[i].equality, advance, observe);
    if (sparse) meter.advance(count_work_bytes(*left), ordered[i]);
  });
  if (ranks != nullptr) gather_compared(found, dealt, *ranks);
  for (const std::string& name : ordered) {
    const Tensor* left = a.find(name);
    const Tensor* right = b.find(name);
    if (left != nullptr && right != nullptr && !options.values) compare_attributes(*left, *right, report.fields);
  }
  for (Compared& compared : found) {
    if (compared.difference) {
      report.tensors.push_back(std::move(*compared.difference));
      continue;
    }
    ++report.equal_tensors;
    if (compared.equality == Equality::numbers) ++report.equal_as_numbers;
    if (compared.equality == Equality::tolerance) ++report.within_tolerance;
  }
}

DiffReport compare_models(const Model& a, const Model& b, const std::vector<std::string>& names,
                          const DiffOptions& options, const Progress& progress, const ObserveTensor& observe,
                          Communicator* ranks) {
  DiffReport report;
  if (!options.values) {
    compare_maps("card.", card_to_attributes(a.card), card_to_attributes(b.card), report.fields);
    compare_config(a, b, report.fields);
    compare_vocabulary(a, b, report.fields);
    compare_maps("attributes.", a.attributes, b.attributes, report.fields);
  }
  compare_tensors(a, b, names, options, progress, observe, ranks, report);
  return report;
}

DiffReport diff_models(const Model& a, const Model& b, const DiffOptions& options, const ObserveTensor& observe,
                       Communicator* ranks) {
  if (!(options.tolerance >= 0))
    throw Error(ErrorKind::bad_argument, fmt::format("the tolerance is {}, expected 0 or more", options.tolerance));
  const std::vector<std::string> names = select_names(a, b, options);
  return run_naming_parts({&a, &b}, [&] {
    if (!options.verify) return compare_models(a, b, names, options, options.progress, observe, ranks);
    const auto is_compared = [&](const Tensor& tensor) {
      return a.find(tensor.name) != nullptr && b.find(tensor.name) != nullptr &&
             std::ranges::binary_search(names, std::string_view(tensor.name));
    };
    DigestCheck check({&a, &b}, is_compared, ranks);
    DiffReport report = check.run_checked(options.progress, [&](const Progress& watched) {
      return compare_models(a, b, names, options, watched, observe, ranks);
    });
    if (const auto unchecked = check.find_unchecked()) report.warnings.push_back(*unchecked);
    return report;
  });
}

}  // namespace

DiffReport diff(const Model& a, const Model& b, const DiffOptions& options) {
  return diff_models(a, b, options, {}, nullptr);
}

DiffReport diff(const Model& a, const Model& b, const DiffOptions& options, Communicator& ranks) {
  return diff_models(a, b, options, {}, &ranks);
}

DiffReport diff_observed(const Model& a, const Model& b, const DiffOptions& options, const ObserveTensor& observe) {
  return diff_models(a, b, options, observe, nullptr);
}

}  // namespace poise
