#include "cluster/communicator.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace poise {

void Communicator::sum(std::span<float> numbers) {
  if (size_ == 1) return;
  // One exchange is best for few numbers, such as those of one token: each rank receives the numbers of every rank. For
  // more numbers, each rank adds up one slice, and sends its sums to all ranks. Two exchanges then bring a rank 2 * n
  // numbers, not size * n.
  constexpr std::size_t kMostOfOneExchange = 32768;
  if (size_ == 2 || numbers.size() <= kMostOfOneExchange) {
    parts_.resize(size_ * numbers.size());
    gather(numbers, std::vector(size_, numbers.size()), parts_);
    return add_parts(numbers);
  }
  std::vector<std::size_t> slices;
  for (std::size_t rank = 0; rank < size_; ++rank)
    slices.push_back(numbers.size() * (rank + 1) / size_ - numbers.size() * rank / size_);
  parts_.resize(size_ * slices[rank_]);
  exchange_slices(numbers, slices, parts_);
  std::vector<float> sums(slices[rank_]);
  add_parts(sums);
  gather(sums, slices, numbers);
}

void Communicator::add_parts(std::span<float> sums) const {
  std::copy_n(parts_.begin(), sums.size(), sums.begin());
  for (std::size_t rank = 1; rank < size_; ++rank) {
    const float* const part = parts_.data() + rank * sums.size();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += part[i];
  }
}

std::vector<std::string> Communicator::gather(std::string_view own) {
  std::vector<std::uint64_t> lengths(size_);
  const std::uint64_t length = own.size();
  gather_bytes(std::as_bytes(std::span(&length, 1)), std::vector(size_, sizeof length),
               std::as_writable_bytes(std::span(lengths)));
  const std::vector<std::size_t> sizes(lengths.begin(), lengths.end());
  std::string all(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}), '\0');
  gather_bytes(std::as_bytes(std::span(own)), sizes, std::as_writable_bytes(std::span(all)));
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
  gather_bytes(std::as_bytes(own), bytes, std::as_writable_bytes(all));
}

std::vector<std::size_t> assign_to_ranks(std::span<const std::uint64_t> sizes, std::size_t ranks) {
  double all = 0;
  for (const std::uint64_t size : sizes) all += static_cast<double>(size);
  std::vector<std::size_t> dealt;
  double before = 0;
  for (const std::uint64_t bytes : sizes) {
    const auto size = static_cast<double>(bytes);
    const double place = all > 0 ? (before + size / 2) / all : 0;
    dealt.push_back(std::min(static_cast<std::size_t>(place * static_cast<double>(ranks)), ranks - 1));
    before += size;
  }
  return dealt;
}

}  // namespace poise
