// Adds up importance matrices of several files, and writes the sums in either format (formats/importance_matrix.hpp).
#include <poise/imatrix.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/format.hpp>

#include "bytes/byte_writer.hpp"
#include "bytes/checked.hpp"
#include "bytes/utf8.hpp"
#include "io/sink.hpp"

namespace poise {
namespace {

// Throws bad_argument unless both entries have the same number of sums and the same number of counts. A single count,
// as in older files, fits any number of counts.
void require_same_sizes(const std::string& name, const ImatrixEntry& a, const ImatrixEntry& b) {
  if (a.sums.size() != b.sums.size()) {
    throw Error(ErrorKind::bad_argument, fmt::format("imatrix: {}: {} sums in one file, and {} in the other: they "
                                                     "belong to different models",
                                                     name, a.sums.size(), b.sums.size()));
  }
  if (a.counts.size() != b.counts.size() && a.counts.size() != 1 && b.counts.size() != 1) {
    throw Error(ErrorKind::bad_argument, fmt::format("imatrix: {}: {} experts in one file, and {} in the other", name,
                                                     a.counts.size(), b.counts.size()));
  }
}

float convert_to_float(const std::string& name, double number) {
  if (number <= static_cast<double>(std::numeric_limits<float>::max())) return static_cast<float>(number);
  throw Error(ErrorKind::unsupported,
              fmt::format("imatrix: {}: a sum of {} does not fit float32, in which files hold it", name, number));
}

BlobPtr make_float_blob(const std::string& name, const std::vector<double>& numbers) {
  ByteWriter bytes;
  for (const double number : numbers) bytes.append_f32(convert_to_float(name, number));
  return make_memory_blob({bytes.bytes().begin(), bytes.bytes().end()}, name);
}

Model make_model(const Imatrix& imatrix) {
  Model model;
  Value::Array datasets;
  for (const std::string& dataset : imatrix.datasets) datasets.emplace_back(dataset);
  model.attributes = {{"general.type", "imatrix"},
                      {"imatrix.datasets", std::move(datasets)},
                      {"imatrix.chunk_count", imatrix.count_chunks()},
                      {"imatrix.chunk_size", imatrix.chunk_size}};
  for (const auto& [name, entry] : imatrix.entries) {
    const std::uint64_t matrices = entry.counts.size();
    model.add(make_dense(name + ".in_sum2", {matrices, entry.sums.size() / entry.counts.size()}, DType::f32,
                         make_float_blob(name, entry.sums)));
    model.add(make_dense(name + ".counts", {matrices, 1}, DType::f32, make_float_blob(name, entry.counts)));
  }
  return model;
}

std::int32_t convert_to_i32(std::string_view field, std::uint64_t number) {
  if (number <= INT32_MAX) return static_cast<std::int32_t>(number);
  throw Error(ErrorKind::unsupported, fmt::format("imatrix: {} {} do not fit the older format", number, field));
}

// Appends an entry in the older format, which has mean squares times calls.
void append_older_entry(ByteWriter& out, const std::string& name, const ImatrixEntry& entry, std::uint64_t chunk_size) {
  const double calls = std::ceil(std::ranges::max(entry.counts) / static_cast<double>(chunk_size));
  const std::size_t columns = std::max<std::size_t>(1, entry.sums.size() / entry.counts.size());
  out.append_i32(convert_to_i32("letters of a name", name.size()));
  out.append_text(name);
  out.append_i32(convert_to_i32("calls", calls < 0x1p63 ? static_cast<std::uint64_t>(calls) : UINT64_MAX));
  out.append_i32(convert_to_i32("values", entry.sums.size()));
  for (std::size_t i = 0; i < entry.sums.size(); ++i) {
    const double count = entry.counts[i / columns];
    out.append_f32(convert_to_float(name, (count > 0 ? entry.sums[i] / count : 1) * calls));
  }
}

ByteWriter make_older_file(const Imatrix& imatrix) {
  const auto has_tokens = [](const auto& named) { return std::ranges::max(named.second.counts) > 0; };
  ByteWriter out;
  out.append_i32(
      convert_to_i32("entries", static_cast<std::uint64_t>(std::ranges::count_if(imatrix.entries, has_tokens))));
  for (const auto& named : imatrix.entries) {
    if (has_tokens(named)) append_older_entry(out, named.first, named.second, imatrix.chunk_size);
  }
  const std::string dataset = imatrix.datasets.empty() ? std::string() : imatrix.datasets.back();
  out.append_i32(convert_to_i32("chunks", imatrix.count_chunks()));
  out.append_i32(convert_to_i32("letters of a data set", dataset.size()));
  out.append_text(dataset);
  return out;
}

}  // namespace

std::uint64_t Imatrix::count_chunks() const {
  double most = 0;
  for (const auto& [name, entry] : entries) {
    for (const double count : entry.counts) most = std::max(most, count);
  }
  const double chunks = std::floor(most / static_cast<double>(std::max<std::uint64_t>(1, chunk_size)));
  return chunks < 0x1p32 ? static_cast<std::uint64_t>(chunks) : UINT32_MAX;
}

void add_imatrix(Imatrix& to, const Imatrix& other) {
  for (const auto& [name, entry] : other.entries) {
    if (const auto found = to.entries.find(name); found != to.entries.end())
      require_same_sizes(name, found->second, entry);
  }
  for (const auto& [name, entry] : other.entries) {
    const auto [found, is_new] = to.entries.try_emplace(name, entry);
    if (is_new) continue;
    ImatrixEntry& sum = found->second;
    for (std::size_t i = 0; i < sum.sums.size(); ++i) sum.sums[i] += entry.sums[i];
    // An older file has a single count, which is the count of each expert.
    if (sum.counts.size() < entry.counts.size()) sum.counts.assign(entry.counts.size(), sum.counts.front());
    for (std::size_t i = 0; i < sum.counts.size(); ++i)
      sum.counts[i] += entry.counts.size() == 1 ? entry.counts.front() : entry.counts[i];
  }
  to.datasets.insert(to.datasets.end(), other.datasets.begin(), other.datasets.end());
}

std::vector<ImatrixGap> find_imatrix_gaps(const Imatrix& imatrix) {
  std::vector<ImatrixGap> gaps;
  for (const auto& [name, entry] : imatrix.entries) {
    ImatrixGap gap = {.entry = name, .experts = {}, .count = entry.counts.size()};
    for (std::size_t i = 0; i < entry.counts.size(); ++i) {
      if (!(entry.counts[i] > 0)) gap.experts.push_back(i);
    }
    if (!gap.experts.empty()) gaps.push_back(std::move(gap));
  }
  return gaps;
}

void save_imatrix(const Imatrix& imatrix, const std::filesystem::path& path, bool overwrite) {
  if (imatrix.entries.empty() || imatrix.chunk_size == 0)
    throw Error(ErrorKind::bad_argument, "imatrix: there are no sums to write", path.string());
  for (const auto& [name, entry] : imatrix.entries) {
    if (entry.counts.empty() || entry.sums.empty() || entry.sums.size() % entry.counts.size() != 0) {
      throw Error(ErrorKind::bad_argument, fmt::format("imatrix: {}: {} sums are not columns of {} matrices", name,
                                                       entry.sums.size(), entry.counts.size()));
    }
  }
  if (to_lower_ascii(path.extension().string()) != ".dat") {
    save(make_model(imatrix), path, "gguf", {.overwrite = overwrite});
    return;
  }
  const ByteWriter bytes = make_older_file(imatrix);
  FileOutput output(path, overwrite);
  output.main().write(bytes.bytes());
  output.commit();
}

}  // namespace poise
