#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <poise/delta.hpp>
#include <poise/error.hpp>
#include <poise/hash.hpp>

#include "bytes/checked.hpp"
#include "formats/format.hpp"
#include "formats/metadata.hpp"
#include "io/meter.hpp"
#include "io/sink.hpp"
#include "ops/compare_numbers.hpp"
#include "ops/delta/delta_parts.hpp"
#include "ops/destination.hpp"
#include "ops/digest_check.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "zt";
constexpr int kUsualLevel = 3;

// Counts the bytes of a file that is not written.
class CountedOutput final : public SavedOutput {
 public:
  Sink& main() override { return sink_; }
  Sink& open_main(const std::string&) override { return sink_; }
  Sink& open_sibling(const std::string&) override { return siblings_; }
  std::string name() const override { return "delta.zt"; }
  std::uint64_t bytes() const override { return sink_.position() + siblings_.position(); }
  std::uint64_t padding() const override { return sink_.padding() + siblings_.padding(); }
  std::vector<fs::path> paths() const override { return {}; }
  void commit() override {}

 private:
  CountingSink sink_;
  CountingSink siblings_;
};

bool have_same_layout(const Tensor& a, const Tensor& b) {
  if (a.layout.name() != b.layout.name() || a.layout.is_ascending() != b.layout.is_ascending()) return false;
  const AffineSource* const left = a.layout.affine();
  const AffineSource* const right = b.layout.affine();
  if (left == nullptr || right == nullptr) return left == right;
  return left->get() == right->get() && left->ranged() == right->ranged();
}

// Returns true if the tensors differ at most in the bytes of their parts.
bool have_same_form(const Tensor& a, const Tensor& b) {
  const auto have_same_type = [](const Part& part, const Part& other) {
    return part.role == other.role && part.dtype == other.dtype && part.type_name() == other.type_name() &&
           part.blob->size() == other.blob->size();
  };
  return a.shape == b.shape && have_same_layout(a, b) && is_same_value(Value(a.attributes), Value(b.attributes)) &&
         std::ranges::equal(a.parts, b.parts, have_same_type);
}

// Returns the attributes as a list of [key, value], which keeps their order in CBOR.
Value list_attributes(const Attributes& attributes) {
  Value::Array list;
  for (const auto& [key, value] : attributes) list.emplace_back(Value::Array{Value(key), value});
  return Value(std::move(list));
}

class DeltaMaker {
 public:
  DeltaMaker(const fs::path& base, const fs::path& tuned, const DeltaOptions& options)
      : options_(options), base_(open(base, options.read)), tuned_(open(tuned, options.read)) {
    for (const Model* model : {&base_, &tuned_}) {
      if (is_delta(*model))
        throw Error(ErrorKind::bad_argument, "this is a delta already; expected two models",
                    model->origin.path.string());
    }
    std::optional<int>& level = options_.write.zstd_level;
    level = level == 0 ? std::nullopt : std::optional(level.value_or(kUsualLevel));
    if (!options_.write.align) options_.write.align = kLeastAlign;
  }

  DeltaReport make(Destination destination) {
    const Format& format = find_format_by_name(kFormat);
    if (const auto named = format_from_extension(destination.path()); named.value_or(kFormat) != kFormat)
      throw Error(ErrorKind::bad_argument,
                  fmt::format("a delta is a {0} file, not {1}; expected a name that ends in .{0}", kFormat, *named),
                  destination.path().string());
    std::vector<fs::path> inputs = base_.origin.files;
    std::ranges::copy(tuned_.origin.files, std::back_inserter(inputs));
    destination.require_possible(format, options_.write.overwrite, inputs, options_.dry_run);
    report_.bytes_in = saturating_add(base_.origin.size, tuned_.origin.size);
    report_.base = hash(base_, options_.write.progress).model;
    pair_parts();
    add_tensors();
    add_header();
    const PreparedFile file = prepare_file(delta_, format, options_.write);
    if (!file.losses.empty())
      throw Error(ErrorKind::unsupported, fmt::format("a delta cannot hold the model: {}", file.losses.front()),
                  tuned_.origin.path.string());
    CountedOutput counted;
    SavedOutput& output =
        options_.dry_run ? counted : destination.open(format, options_.write.overwrite, std::move(inputs));
    DigestCheck check({&tuned_}, [](const Tensor&) { return true; });
    report_.bytes_out = check.run_checked(options_.write.progress, [&](const Progress& progress) {
      file.write(output, progress);
      return output.bytes();
    });
    output.commit();
    if (!options_.dry_run) report_.output = destination.path();
    return std::move(report_);
  }

 private:
  static constexpr std::uint64_t kLeastAlign = 4096;

  void pair_parts() {
    std::uint64_t bytes = 0;
    for (const Tensor& tensor : tuned_.tensors()) {
      const Tensor* const own = base_.find(tensor.name);
      if (own == nullptr || !have_same_form(*own, tensor)) continue;
      for (std::size_t i = 0; i < tensor.parts.size(); ++i) {
        const Part& part = tensor.parts[i];
        pairs_.push_back({tensor.name, own->parts[i].blob, part.blob, choose_delta_word(part)});
        bytes = saturating_add(bytes, part.blob->size());
      }
    }
    Meter meter(options_.write.progress, bytes);
    changes_ = compare_parts(pairs_, meter);
  }

  void add_tensors() {
    std::size_t next = 0;  // an index in pairs_
    for (const Tensor& tensor : tuned_.tensors()) {
      const Tensor* const own = base_.find(tensor.name);
      if (own == nullptr || !have_same_form(*own, tensor)) {
        add_whole_tensor(tensor);
      } else {
        add_changed_tensor(tensor, next);
        next += tensor.parts.size();
      }
    }
    for (const Tensor& tensor : base_.tensors()) {
      if (tuned_.find(tensor.name) == nullptr) report_.removed.push_back(tensor.name);
    }
  }

  void add_whole_tensor(const Tensor& tensor) {
    const bool has_narrow_indices =
        (tensor.layout == Layout::sparse_csr || tensor.layout == Layout::sparse_coo) &&
        std::ranges::any_of(tensor.parts, [](const Part& part) {
          return part.role != "values" && part.dtype != DType::u64 && part.dtype != DType::u32;
        });
    if (has_narrow_indices)
      throw Error(ErrorKind::unsupported,
                  fmt::format("tensor {}: a delta would store it whole, but zTensor 2 has only indices of u32 and u64",
                              tensor.name),
                  tuned_.origin.path.string());
    report_.changed.push_back({tensor.name, "whole", tensor.elements(), tensor.elements(), tensor.size_bytes()});
    delta_.add(tensor);
  }

  // Adds the changed parts of a tensor. `first` is the index of its first part in pairs_.
  void add_changed_tensor(const Tensor& tensor, std::size_t first) {
    Tensor stored{tensor.name, tensor.shape, TensorLayout::other(std::string(kDeltaLayout)), {}, {}};
    DeltaTensor row;
    row.name = tensor.name;
    row.elements = tensor.elements();
    Attributes forms;
    for (std::size_t i = 0; i < tensor.parts.size(); ++i) {
      const PartPair& pair = pairs_[first + i];
      const PartChange& change = changes_[first + i];
      if (change.changed == 0) continue;
      const std::string form = change.form.is_sparse ? "sparse" : "xor";
      if (row.form.empty()) row.form = form;
      row.changed += change.changed;
      Attributes described{{"form", form}, {"word", std::uint64_t{change.form.word}}};
      if (!change.form.is_sparse) described.set("shuffled", change.form.is_shuffled);
      forms.set(tensor.parts[i].role, std::move(described));
      stored.parts.push_back({.role = tensor.parts[i].role, .dtype = DType::u8, .blob = make_delta_blob(pair, change)});
      row.bytes += stored.parts.back().blob->size();
    }
    if (stored.parts.empty()) {
      ++report_.equal;
      return;
    }
    stored.attributes.set("parts", std::move(forms));
    report_.changed.push_back(std::move(row));
    delta_.add(std::move(stored));
  }

  // Stores the hash of the base, and the differences outside of the tensors.
  void add_header() {
    Attributes header{{"version", std::uint64_t{1}}, {"base", report_.base}};
    if (!report_.removed.empty()) {
      Value::Array names;
      for (const std::string& name : report_.removed) names.emplace_back(name);
      header.set("removed", std::move(names));
    }
    add_order(header);
    add_metadata(header);
    if (!is_same_value(list_attributes(base_.attributes), list_attributes(tuned_.attributes))) {
      header.set("attributes", list_attributes(tuned_.attributes));
      report_.fields.emplace_back("attributes");
    }
    if (base_.origin.attribute_types != tuned_.origin.attribute_types) {
      Attributes types;
      for (const auto& [key, type] : tuned_.origin.attribute_types) types.set(key, type);
      header.set("attribute_types", std::move(types));
    }
    delta_.attributes.set(std::string(kDeltaKey), std::move(header));
  }

  // Stores the order of the tensors, unless they are sorted by name: their indices in the sorted list of names.
  void add_order(Attributes& header) const {
    std::vector<std::string_view> names;
    for (const Tensor& tensor : tuned_.tensors()) names.push_back(tensor.name);
    if (std::ranges::is_sorted(names)) return;
    std::vector<std::string_view> sorted = names;
    std::ranges::sort(sorted);
    Value::Array order;
    for (const std::string_view name : names)
      order.emplace_back(static_cast<std::uint64_t>(std::ranges::lower_bound(sorted, name) - sorted.begin()));
    header.set("order", std::move(order));
  }

  // Stores changes of card, configuration and vocabulary, as the texts of zTensor's attributes. Null means that the
  // tuned model lacks the field.
  void add_metadata(Attributes& header) {
    const Attributes before = make_metadata_attributes(base_);
    const Attributes after = make_metadata_attributes(tuned_);
    Attributes texts;
    for (const std::string field : {"card", "config", "vocabulary"}) {
      const std::string key = "poise." + field;
      const std::string* const old_text = before.get_if<std::string>(key);
      const std::string* const new_text = after.get_if<std::string>(key);
      const bool is_same = old_text == nullptr || new_text == nullptr ? old_text == new_text : *old_text == *new_text;
      if (is_same) continue;
      texts.set(key, new_text == nullptr ? Value() : Value(*new_text));
      report_.fields.push_back(field);
    }
    if (!texts.empty()) header.set("metadata", std::move(texts));
  }

  DeltaOptions options_;
  Model base_;
  Model tuned_;
  Model delta_;
  DeltaReport report_;
  std::vector<PartPair> pairs_;
  std::vector<PartChange> changes_;
};

}  // namespace

DeltaReport make_delta(const fs::path& base, const fs::path& tuned, Destination destination,
                       const DeltaOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  DeltaReport report = DeltaMaker(base, tuned, options).make(std::move(destination));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

DeltaReport make_delta(const fs::path& base, const fs::path& tuned, const fs::path& output,
                       const DeltaOptions& options) {
  return make_delta(base, tuned, Destination(output), options);
}

}  // namespace poise
