#include "pack/same_bytes.hpp"

#include <algorithm>
#include <cstring>

#include "pack/digest.hpp"

namespace poise {
namespace {

constexpr std::size_t kBeginningBytes = 64 << 10;
constexpr std::size_t kComparedBytes = 1 << 20;

bool made_from_the_same(const Blob& a, const Blob& b) {
  const auto x = a.stored();
  return x && x == b.stored();
}

}  // namespace

bool same_bytes(const Blob& a, const Blob& b) {
  if (a.size() != b.size()) return false;
  if (&a == &b || made_from_the_same(a, b)) return true;
  const auto x = a.map();
  const auto y = b.map();
  if (x && y) return x->empty() || std::memcmp(x->data(), y->data(), x->size()) == 0;
  std::vector<std::byte> left(static_cast<std::size_t>(std::min<std::uint64_t>(kComparedBytes, a.size())));
  std::vector<std::byte> right(left.size());
  const auto from_a = a.stream();
  const auto from_b = b.stream();
  for (std::uint64_t done = 0; done < a.size(); done += left.size()) {
    left.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left.size(), a.size() - done)));
    right.resize(left.size());
    if (from_a->read(left) != from_b->read(right) || left != right) return false;
  }
  return true;
}

std::uint64_t hash_of_beginning(const Blob& blob) {
  std::vector<std::byte> beginning(static_cast<std::size_t>(std::min<std::uint64_t>(kBeginningBytes, blob.size())));
  blob.stream()->read(beginning);
  return xxh3_64(beginning);
}

}  // namespace poise
