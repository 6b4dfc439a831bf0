#include "pack/crc32c.hpp"

#include <array>

#include <fmt/format.h>

#include "bytes/little_endian.hpp"

namespace poise {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

// kTables[k][b]: the checksum of byte b followed by k zero bytes, for looking up eight bytes at once.
constexpr auto kTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = value >> 1U ^ (value & 1U ? kPolynomial : 0U);
    tables[0][byte] = value;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[k][byte] = tables[k - 1][byte] >> 8U ^ tables[0][tables[k - 1][byte] & 0xffU];
  }
  return tables;
}();

std::uint32_t update_by_table(std::uint32_t state, std::span<const std::byte> bytes) {
  while (bytes.size() >= 8) {
    const std::uint64_t word = load_le<std::uint64_t>(bytes.data()) ^ state;
    state = 0;
    for (std::size_t i = 0; i < 8; ++i) state ^= kTables[7 - i][word >> (8 * i) & 0xffU];
    bytes = bytes.subspan(8);
  }
  for (const std::byte byte : bytes)
    state = state >> 8U ^ kTables[0][(state ^ static_cast<std::uint32_t>(byte)) & 0xffU];
  return state;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t update_by_instruction(std::uint32_t state,
                                                                      std::span<const std::byte> bytes) {
  std::uint64_t wide = state;
  while (bytes.size() >= 8) {
    wide = __builtin_ia32_crc32di(wide, load_le<std::uint64_t>(bytes.data()));
    bytes = bytes.subspan(8);
  }
  auto narrow = static_cast<std::uint32_t>(wide);
  for (const std::byte byte : bytes) narrow = __builtin_ia32_crc32qi(narrow, static_cast<unsigned char>(byte));
  return narrow;
}

std::uint32_t update(std::uint32_t state, std::span<const std::byte> bytes) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  return has_instruction ? update_by_instruction(state, bytes) : update_by_table(state, bytes);
}
#else
std::uint32_t update(std::uint32_t state, std::span<const std::byte> bytes) { return update_by_table(state, bytes); }
#endif

class Crc32c final : public Hasher {
 public:
  void update(std::span<const std::byte> bytes) override { value_ = crc32c(bytes, value_); }
  std::string finish() override { return fmt::format("{:08x}", value_); }

 private:
  std::uint32_t value_ = 0;
};

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) { return ~update(~before, bytes); }

std::unique_ptr<Hasher> make_crc32c() { return std::make_unique<Crc32c>(); }

}  // namespace poise
