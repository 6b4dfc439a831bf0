#include "formats/importance_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/format.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/utf8.hpp"
#include "formats/gguf/architectures.hpp"
#include "formats/gguf/header.hpp"
#include "formats/input.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

constexpr std::string_view kSums = ".in_sum2";
constexpr std::string_view kCounts = ".counts";
constexpr std::string_view kDatasets = "imatrix.datasets";
constexpr std::string_view kChunks = "imatrix.chunk_count";
constexpr std::uint64_t kMostTimes =
    4;  // limit of the memory, in times the file's size: tensors may share bytes, or be codes

std::vector<float> read_floats(const Tensor& tensor, const std::string& path) {
  if (!has_float_elements(tensor))
    throw Error(ErrorKind::invalid_file, fmt::format("imatrix: {}: expected floating-point numbers", tensor.name),
                path);
  const std::vector<std::byte> bytes = read_all(*make_dense_blob(tensor, DType::f32));
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(numbers)).begin());
  return numbers;
}

}  // namespace

ImportanceMatrix::ImportanceMatrix(const std::filesystem::path& path) : path_(path.string()) {
  const auto start = read_first_bytes({path, Source::open(path, IoMode::map)}, gguf::kMagic.size());
  if (std::ranges::equal(start, std::as_bytes(std::span(gguf::kMagic)))) {
    read_gguf(path);
  } else {
    read_older(path);
  }
  if (weights_.empty()) throw Error(ErrorKind::invalid_file, "imatrix: the file contains no weights", path_);
}

void ImportanceMatrix::set_provenance(std::string_view dataset, std::uint64_t chunks) {
  provenance_.set("quantize.imatrix.file", std::filesystem::path(path_).filename().string());
  if (!dataset.empty() && is_utf8(dataset)) provenance_.set("quantize.imatrix.dataset", std::string(dataset));
  provenance_.set("quantize.imatrix.entries_count", std::uint64_t{weights_.size()});
  if (chunks > 0) provenance_.set("quantize.imatrix.chunks_count", chunks);
}

void ImportanceMatrix::add(std::string name, std::vector<float> weights) {
  for (const float weight : weights) {
    if (!std::isfinite(weight) || weight < 0)
      throw Error(ErrorKind::invalid_file,
                  fmt::format("imatrix: {}: expected finite weights of 0 or more, found {}", name, weight), path_);
  }
  weights_.emplace(std::move(name), std::make_shared<const std::vector<float>>(std::move(weights)));
}

void ImportanceMatrix::read_gguf(const std::filesystem::path& path) {
  const Model model = open(path);
  std::uint64_t left = kMostTimes * Source::open(path, IoMode::map)->size() / sizeof(float);
  const auto read = [&](const Tensor& tensor) {
    const std::uint64_t count = *element_count(tensor.shape);
    if (count > left) {
      throw Error(
          ErrorKind::invalid_file,
          fmt::format("imatrix: {}: the weights take more than {} times the size of the file", tensor.name, kMostTimes),
          path_);
    }
    left -= count;
    return read_floats(tensor, path_);
  };
  for (const Tensor& tensor : model.tensors()) {
    if (!tensor.name.ends_with(kSums)) continue;
    std::string name(tensor.name.substr(0, tensor.name.size() - kSums.size()));
    const Tensor* counts = model.find(name + std::string(kCounts));
    if (counts == nullptr)
      throw Error(ErrorKind::invalid_file, fmt::format("imatrix: tensor {}{} is missing", name, kCounts), path_);
    std::vector<float> sums = read(tensor);
    const std::vector<float> numbers = read(*counts);
    if (numbers.empty() || sums.size() % numbers.size() != 0) {
      throw Error(ErrorKind::invalid_file,
                  fmt::format("imatrix: {}: expected a multiple of the {} counts, found {} sums", name, numbers.size(),
                              sums.size()),
                  path_);
    }
    // All columns of a matrix that was never used weigh the same.
    const std::size_t columns = sums.size() / numbers.size();
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] = numbers[i / columns] > 0 ? sums[i] / numbers[i / columns] : 1.0F;
    add(std::move(name), std::move(sums));
  }
  const auto* list = model.attributes.get_if<Value::Array>(kDatasets);
  const auto* dataset = list == nullptr || list->empty() ? nullptr : list->front().get_if<std::string>();
  const auto* count = model.attributes.get_if<std::uint64_t>(kChunks);
  set_provenance(dataset == nullptr ? std::string_view() : *dataset, count == nullptr ? 0 : *count);
}

void ImportanceMatrix::read_older(const std::filesystem::path& path) {
  const SourcePtr source = Source::open(path, IoMode::map);
  ByteReader in(*source, "imatrix");
  const auto length = [&](std::string_view field, std::uint64_t least_bytes) {
    const std::uint64_t at = in.position();
    const std::int32_t found = in.i32(field);
    if (found < 0 || static_cast<std::uint64_t>(found) > in.remaining() / least_bytes)
      in.fail(field, fmt::format("{} do not fit the {} bytes that are left", found, in.remaining()), at);
    return static_cast<std::uint64_t>(found);
  };
  const std::uint64_t entries = length("entries", 12);
  for (std::uint64_t i = 0; i < entries; ++i) {
    const auto scope = in.open_scope("entry", static_cast<std::int64_t>(i));
    std::string name(in.text(length("name length", 1), "name"));
    const std::int32_t calls = in.i32("calls");
    std::vector<float> weights(static_cast<std::size_t>(length("values", sizeof(float))));
    for (float& weight : weights) weight = calls > 0 ? in.f32("value") / static_cast<float>(calls) : in.f32("value");
    add(std::move(name), std::move(weights));
  }
  const std::int32_t chunks = in.remaining() > 0 ? in.i32("chunks") : 0;
  const std::string_view dataset =
      in.remaining() > 0 ? in.text(length("data set's length", 1), "data set") : std::string_view();
  set_provenance(dataset, chunks > 0 ? static_cast<std::uint64_t>(chunks) : 0);
}

std::shared_ptr<const std::vector<float>> ImportanceMatrix::find_weights(std::string_view tensor,
                                                                         std::string_view model_type,
                                                                         std::size_t columns,
                                                                         std::size_t matrices) const {
  const gguf::Architecture* architecture = gguf::find_family_architecture(model_type);
  const auto known = architecture == nullptr ? std::nullopt : gguf::find_gguf_name(*architecture, tensor);
  const auto found = weights_.find(known ? std::string_view(known->name) : tensor);
  if (found == weights_.end()) return nullptr;
  const auto& all = found->second;
  // Each stacked expert has its own columns.
  if (known && known->expert && columns > 0 && all->size() % columns == 0 && *known->expert < all->size() / columns) {
    const auto first = all->begin() + static_cast<std::ptrdiff_t>(*known->expert * columns);
    return std::make_shared<const std::vector<float>>(first, first + static_cast<std::ptrdiff_t>(columns));
  }
  if (all->size() != columns && (columns == 0 || all->size() % columns != 0 || all->size() / columns != matrices)) {
    throw Error(
        ErrorKind::invalid_file,
        fmt::format("imatrix: {}: expected one weight for each of the {} columns of tensor {}, found {} weights",
                    found->first, columns, tensor, all->size()),
        path_);
  }
  return all;
}

}  // namespace poise
