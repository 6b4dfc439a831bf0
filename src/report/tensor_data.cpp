#include "report/tensor_data.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include <fmt/format.h>

#include "bytes/number_text.hpp"
#include "bytes/short_text.hpp"
#include "report/packed.hpp"
#include "syntax/json_writer.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

constexpr std::size_t kMostListed = 20000;
constexpr std::size_t kMostCells = 1'000'000;  // the most cells, of a byte each, before they are deflated
constexpr std::array<std::size_t, 5> kSides = {64, 48, 32, 24, 16};
constexpr std::size_t kMostHistograms = 2000;
constexpr std::size_t kLongestName = 400;

bool is_matrix(const Tensor& tensor) { return tensor.shape.size() >= 2 && !is_sparse(tensor) && tensor.elements() > 1; }

}  // namespace

PageTensors::PageTensors(const Model& model) {
  std::vector<const Tensor*> ordered;
  for (const Tensor& tensor : model.tensors()) ordered.push_back(&tensor);
  std::ranges::stable_sort(ordered, std::ranges::greater(), &Tensor::size_bytes);
  if (ordered.size() > kMostListed) ordered.resize(kMostListed);
  std::vector<const Tensor*> with_map;
  for (const Tensor* tensor : ordered) {
    if (is_matrix(*tensor)) with_map.push_back(tensor);
  }
  matrices_ = with_map.size();
  side_ = *std::ranges::find_if(
      kSides, [&](std::size_t side) { return side == kSides.back() || with_map.size() * side * side <= kMostCells; });
  if (with_map.size() > kMostCells / (side_ * side_)) with_map.resize(kMostCells / (side_ * side_));
  maps_ = with_map.size();
  for (const Tensor* tensor : with_map) sides_.emplace(tensor, side_);
  for (const Tensor* tensor : ordered) sides_.try_emplace(tensor, 0);
  for (const Tensor& tensor : model.tensors()) {
    if (is_listed(tensor)) listed_.push_back(&tensor);
  }
}

std::size_t PageTensors::find_side(const Tensor& tensor) const {
  const auto found = sides_.find(&tensor);
  return found == sides_.end() ? 0 : found->second;
}

Value shorten_number(double number) {
  if (!std::isfinite(number)) return {};
  const auto short_number = parse_number_text<double>(fmt::format("{:.5g}", number));
  return short_number.value_or(number);
}

TensorColumns::TensorColumns(const std::vector<PartHash>& hashes) {
  for (const PartHash& hash : hashes) hashes_[hash.tensor].push_back(&hash);
}

Value TensorColumns::add_map(const HeatMap& map, double unit) {
  if (map.rms.empty()) return {};
  // Codes are logarithmic: 20 steps double the rms, so a step is 3.5 %, and 128 is `unit`. 0 is a cell of zeros, and
  // 255 a cell with a number that is not finite.
  constexpr double kSteps = 20;
  const std::uint64_t place = maps_.size();
  for (const double cell : map.rms) {
    double code = 0;
    if (std::isnan(cell)) {
      code = 255;
    } else if (cell > 0) {
      const double ratio = unit > 0 && std::isfinite(cell) ? std::log2(cell / unit) : 100;
      code = std::clamp(std::round(128 + kSteps * ratio), 1.0, 254.0);
    }
    maps_ += static_cast<char>(static_cast<unsigned char>(code));
  }
  return Value::Array{place, map.rows, map.columns};
}

void TensorColumns::add(const Tensor& tensor, const TensorFacts& facts) {
  const TensorStatistics& numbers = facts.statistics;
  const auto add_to = [&](const char* column, Value value) { lists_[column].push_back(std::move(value)); };
  const auto [type, is_new] = types_.try_emplace(shorten(numbers.type, kLongestName), types_.size());
  if (is_new) lists_["types"].push_back(type->first);
  add_to("name", shorten(tensor.name, kLongestName));
  const std::string_view file_name = tensor.name_in_file();
  add_to("file_name", file_name == tensor.name ? Value() : Value(shorten(file_name, kLongestName)));
  add_to("shape", Value::Array(tensor.shape.begin(), tensor.shape.end()));
  add_to("type", type->second);
  add_to("bytes", tensor.size_bytes());
  add_to("elements", numbers.elements);
  add_to("problem", numbers.problem.empty() ? Value() : Value(shorten(numbers.problem, kLongestName)));
  add_to("min", shorten_number(numbers.min));
  add_to("max", shorten_number(numbers.max));
  add_to("mean", shorten_number(numbers.mean));
  add_to("std", shorten_number(numbers.deviation));
  add_to("rms", shorten_number(numbers.rms));
  add_to("zeros", numbers.zeros);
  add_to("nan", numbers.nans);
  add_to("inf", numbers.infinities);
  add_to("outliers", numbers.outliers);
  Value channel;
  if (numbers.largest_channel)
    channel = Value::Array{numbers.largest_channel->index, shorten_number(numbers.largest_channel->rms)};
  add_to("channel", std::move(channel));
  const FineHistogram& histogram = facts.details.histogram;
  Value counts;
  if (!histogram.counts.empty() && lists_["histogram"].size() < kMostHistograms) {
    counts = Value::Array{shorten_number(histogram.low), shorten_number(histogram.high),
                          Value::Array(histogram.counts.begin(), histogram.counts.end())};
  }
  add_to("histogram", std::move(counts));
  add_to("map", add_map(facts.details.map, numbers.rms));
  Value::Array digests;
  if (const auto found = hashes_.find(tensor.name); found != hashes_.end()) {
    for (const PartHash* hash : found->second) digests.push_back(Value::Array{hash->role, hash->sha256});
  }
  add_to("sha256", std::move(digests));
}

std::string TensorColumns::release_json() {
  JsonWriter out;
  out.begin_object();
  for (auto& [name, list] : lists_) out.write_member(name, Value(std::move(list)));
  out.end_object();
  return out.release();
}

namespace {

std::uint64_t count_characters(std::string_view text) {
  return static_cast<std::uint64_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string make_tokens_json(const Vocabulary& vocabulary, std::size_t count) {
  JsonWriter out;
  out.begin_object();
  out.write_key("texts");
  out.begin_array();
  std::string types;
  std::vector<Attributes::Entry> lengths;
  for (std::size_t id = 0; id < count; ++id) {
    const std::string_view text = vocabulary.text(id);
    out.write_value(shorten(text, kLongestName));
    if (text.size() > kLongestName) lengths.emplace_back(std::to_string(id), count_characters(text));
    types += static_cast<char>('0' + static_cast<int>(vocabulary.type(id)));
  }
  out.end_array();
  out.write_member("types", types);
  out.write_member("lengths", Value(Attributes::from_unique(std::move(lengths))));
  out.end_object();
  return out.release();
}

}  // namespace

std::string pack_vocabulary(const Vocabulary& vocabulary, std::size_t most, std::size_t& kept) {
  kept = vocabulary.size();
  std::string packed = deflate_bytes(make_tokens_json(vocabulary, kept));
  // The size is about proportional to the number of tokens.
  while (packed.size() > most && kept > 0) {
    const double share = 0.95 * static_cast<double>(most) / static_cast<double>(packed.size());
    kept = std::min(kept - 1, static_cast<std::size_t>(share * static_cast<double>(kept)));
    packed = deflate_bytes(make_tokens_json(vocabulary, kept));
  }
  return packed;
}

}  // namespace poise
