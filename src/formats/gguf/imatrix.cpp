#include "formats/importance_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/imatrix.hpp>

#include "bytes/byte_reader.hpp"
#include "bytes/utf8.hpp"
#include "family/families.hpp"
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
constexpr std::string_view kChunkSize = "imatrix.chunk_size";
// As float32, all numbers may take at most this multiple of the file's size: a small file could ask for much memory,
// because tensors may share bytes or be codes.
constexpr std::uint64_t kMostTimes = 4;

std::vector<float> read_floats(const Tensor& tensor, const std::string& path) {
  if (!has_float_elements(tensor))
    throw Error(ErrorKind::invalid_file, fmt::format("imatrix: {}: expected floating-point numbers", tensor.name),
                path);
  const std::vector<std::byte> bytes = read_all(*make_dense_blob(tensor, DType::f32));
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(numbers)).begin());
  return numbers;
}

void require_weight(std::string_view name, double weight, const std::string& path) {
  if (std::isfinite(weight) && weight >= 0) return;
  throw Error(ErrorKind::invalid_file,
              fmt::format("imatrix: {}: expected finite weights of 0 or more, found {}", name, weight), path);
}

void add_entry(Imatrix& to, std::string name, std::vector<double> sums, std::vector<double> counts,
               const std::string& path) {
  for (const double sum : sums) require_weight(name, sum, path);
  for (const double count : counts) require_weight(fmt::format("{}{}", name, kCounts), count, path);
  to.entries.emplace(std::move(name), ImatrixEntry{std::move(sums), std::move(counts)});
}

Imatrix read_gguf_imatrix(const std::filesystem::path& path) {
  const Model model = open(path);
  std::uint64_t left = kMostTimes * Source::open(path, IoMode::map)->size() / sizeof(float);
  const auto read_doubles = [&](const Tensor& tensor) {
    const std::uint64_t count = *element_count(tensor.shape);
    if (count > left) {
      throw Error(
          ErrorKind::invalid_file,
          fmt::format("imatrix: {}: the weights take more than {} times the size of the file", tensor.name, kMostTimes),
          path.string());
    }
    left -= count;
    const std::vector<float> numbers = read_floats(tensor, path.string());
    return std::vector<double>(numbers.begin(), numbers.end());
  };
  Imatrix imatrix;
  for (const Tensor& tensor : model.tensors()) {
    if (!tensor.name.ends_with(kSums)) continue;
    std::string name(tensor.name.substr(0, tensor.name.size() - kSums.size()));
    const Tensor* counts = model.find(name + std::string(kCounts));
    if (counts == nullptr)
      throw Error(ErrorKind::invalid_file, fmt::format("imatrix: tensor {}{} is missing", name, kCounts),
                  path.string());
    std::vector<double> sums = read_doubles(tensor);
    std::vector<double> numbers = read_doubles(*counts);
    if (numbers.empty() || sums.size() % numbers.size() != 0) {
      throw Error(ErrorKind::invalid_file,
                  fmt::format("imatrix: {}: expected a multiple of the {} counts, found {} sums", name, numbers.size(),
                              sums.size()),
                  path.string());
    }
    add_entry(imatrix, std::move(name), std::move(sums), std::move(numbers), path.string());
  }
  if (const auto* list = model.attributes.get_if<Value::Array>(kDatasets)) {
    for (const Value& dataset : *list) {
      if (const auto* text = dataset.get_if<std::string>()) imatrix.datasets.push_back(*text);
    }
  }
  if (const auto* size = model.attributes.get_if<std::uint64_t>(kChunkSize); size != nullptr && *size > 0)
    imatrix.chunk_size = *size;
  if (const auto* count = model.attributes.get_if<std::uint64_t>(kChunks)) imatrix.stated_chunks = *count;
  return imatrix;
}

// Reads a file in the older format. Its values are mean squares of columns, multiplied by the number of calls. A call
// is a chunk, whose size the file does not state, so Poise assumes the default of Imatrix::chunk_size.
Imatrix read_older_imatrix(const std::filesystem::path& path) {
  const SourcePtr source = Source::open(path, IoMode::map);
  ByteReader in(*source, "imatrix");
  const auto read_length = [&](std::string_view field, std::uint64_t least_bytes) {
    const std::uint64_t at = in.position();
    const std::int32_t found = in.read_i32(field);
    if (found < 0 || static_cast<std::uint64_t>(found) > in.remaining() / least_bytes)
      in.fail(field, fmt::format("{} do not fit the {} bytes that are left", found, in.remaining()), at);
    return static_cast<std::uint64_t>(found);
  };
  Imatrix imatrix;
  const auto chunk = static_cast<double>(imatrix.chunk_size);
  const std::uint64_t entries = read_length("entries", 12);
  for (std::uint64_t i = 0; i < entries; ++i) {
    const auto scope = in.open_scope("entry", static_cast<std::int64_t>(i));
    std::string name(in.read_text(read_length("name length", 1), "name"));
    const std::int32_t calls = std::max(1, in.read_i32("calls"));
    std::vector<double> sums(static_cast<std::size_t>(read_length("values", sizeof(float))));
    for (double& sum : sums) {
      const auto value = static_cast<double>(in.read_f32("value"));
      require_weight(name, value, path.string());
      sum = chunk * value;
    }
    add_entry(imatrix, std::move(name), std::move(sums), {chunk * calls}, path.string());
  }
  const std::int32_t chunks = in.remaining() > 0 ? in.read_i32("chunks") : 0;
  if (chunks > 0) imatrix.stated_chunks = static_cast<std::uint64_t>(chunks);
  if (in.remaining() > 0) {
    if (const std::string_view dataset = in.read_text(read_length("data set's length", 1), "data set");
        !dataset.empty())
      imatrix.datasets.emplace_back(dataset);
  }
  return imatrix;
}

// Returns llama.cpp's name of a tensor. For a multimodal model, the name is from the architecture of its text model.
// Returns std::nullopt if llama.cpp has no name.
std::optional<gguf::TensorName> find_llama_cpp_name(std::string_view tensor, std::string_view model_type) {
  const Family* family = find_family(model_type);
  const bool is_multimodal = family != nullptr && !family->text_type.empty();
  const gguf::Architecture* architecture =
      gguf::find_family_architecture(is_multimodal ? family->text_type : model_type);
  if (architecture == nullptr) return std::nullopt;
  return gguf::find_gguf_name(*architecture, is_multimodal ? find_table_name(*family, tensor) : std::string(tensor));
}

}  // namespace

Imatrix read_imatrix(const std::filesystem::path& path) {
  const auto start = read_first_bytes({path, Source::open(path, IoMode::map)}, gguf::kMagic.size());
  const bool is_gguf = std::ranges::equal(start, std::as_bytes(std::span(gguf::kMagic)));
  Imatrix imatrix = is_gguf ? read_gguf_imatrix(path) : read_older_imatrix(path);
  if (imatrix.entries.empty())
    throw Error(ErrorKind::invalid_file, "imatrix: the file contains no weights", path.string());
  return imatrix;
}

ImportanceMatrix::ImportanceMatrix(const std::filesystem::path& path) : path_(path.string()) {
  const Imatrix imatrix = read_imatrix(path);
  for (const auto& [name, entry] : imatrix.entries) {
    // All columns of a matrix that was never used get the same weight.
    const std::size_t columns = std::max<std::size_t>(1, entry.sums.size() / entry.counts.size());
    std::vector<float> weights(entry.sums.size());
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double count = entry.counts[i / columns];
      weights[i] = count > 0 ? static_cast<float>(entry.sums[i] / count) : 1.0F;
      require_weight(name, static_cast<double>(weights[i]), path_);
    }
    weights_.emplace(name, std::make_shared<const std::vector<float>>(std::move(weights)));
  }
  provenance_.set("quantize.imatrix.file", path.filename().string());
  if (!imatrix.datasets.empty() && is_utf8(imatrix.datasets.front()))
    provenance_.set("quantize.imatrix.dataset", imatrix.datasets.front());
  provenance_.set("quantize.imatrix.entries_count", std::uint64_t{weights_.size()});
  if (imatrix.stated_chunks > 0) provenance_.set("quantize.imatrix.chunks_count", imatrix.stated_chunks);
}

std::optional<ImportancePlace> find_importance_place(std::string_view tensor, std::string_view model_type) {
  const auto known = find_llama_cpp_name(tensor, model_type);
  if (!known) return std::nullopt;
  return ImportancePlace{known->name, static_cast<std::size_t>(known->expert.value_or(0))};
}

std::shared_ptr<const std::vector<float>> ImportanceMatrix::find_weights(std::string_view tensor,
                                                                         std::string_view model_type,
                                                                         std::size_t columns,
                                                                         std::size_t matrices) const {
  const auto known = find_llama_cpp_name(tensor, model_type);
  const auto found = weights_.find(known ? std::string_view(known->name) : tensor);
  if (found == weights_.end()) return nullptr;
  const auto& all = found->second;
  // Each stacked expert has its own weights.
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
