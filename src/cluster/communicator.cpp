#include "cluster/communicator.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace poise {

void Communicator::sum(std::span<float> numbers) {
  if (size_ == 1) return;
  parts_.resize(size_ * numbers.size());
  gather(numbers, std::vector(size_, numbers.size()), parts_);
  std::copy_n(parts_.begin(), numbers.size(), numbers.begin());
  for (std::size_t rank = 1; rank < size_; ++rank) {
    const float* const part = parts_.data() + rank * numbers.size();
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += part[i];
  }
}

std::vector<std::string> Communicator::gather(std::string_view own) {
  std::vector<std::uint64_t> lengths(size_);
  const std::uint64_t length = own.size();
  exchange(std::as_bytes(std::span(&length, 1)), std::vector(size_, sizeof length),
           std::as_writable_bytes(std::span(lengths)));
  const std::vector<std::size_t> sizes(lengths.begin(), lengths.end());
  std::string all(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}), '\0');
  exchange(std::as_bytes(std::span(own)), sizes, std::as_writable_bytes(std::span(all)));
  std::vector<std::string> texts;
  for (std::size_t begin = 0; const std::size_t size : sizes) {
    texts.push_back(all.substr(begin, size));
    begin += size;
  }
  return texts;
}

void Communicator::gather(std::span<const float> own, std::span<const std::size_t> sizes, std::span<float> all) {
  std::vector<std::size_t> bytes(sizes.begin(), sizes.end());
  for (std::size_t& size : bytes) size *= sizeof(float);
  exchange(std::as_bytes(own), bytes, std::as_writable_bytes(all));
}

}  // namespace poise
