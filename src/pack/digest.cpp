#include "pack/digest.hpp"

#include <array>

#include <fmt/format.h>
#include <libdeflate.h>
#include <openssl/evp.h>
#include <xxhash.h>

#include "bytes/little_endian.hpp"

#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // XXH3 with the widest vectors of this processor
#endif

#include <array>
#include <new>

#include <fmt/format.h>

namespace poise {
namespace {

// Computes SHA-256 and SHA-1.
class OpenSslDigest final : public Hasher {
 public:
  explicit OpenSslDigest(const EVP_MD* kind) : context_(EVP_MD_CTX_new()) {
    if (!context_ || EVP_DigestInit_ex(context_.get(), kind, nullptr) != 1) fail();
  }
  void update(std::span<const std::byte> bytes) override {
    if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1) fail();
  }
  std::string finish() override {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    if (EVP_DigestFinal_ex(context_.get(), digest.data(), &length) != 1) fail();
    std::string text;
    for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
    return text;
  }

 private:
  [[noreturn]] static void fail() { throw std::bad_alloc(); }  // OpenSSL fails here only for lack of memory
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

class Xxh3 final : public Hasher {
 public:
  Xxh3() : state_(XXH3_createState()) {
    if (!state_) throw std::bad_alloc();
    XXH3_64bits_reset(state_.get());
  }
  void update(std::span<const std::byte> bytes) override {
    XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  }
  std::string finish() override { return fmt::format("{:016x}", XXH3_64bits_digest(state_.get())); }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

}  // namespace

std::unique_ptr<Hasher> make_sha256() { return std::make_unique<OpenSslDigest>(EVP_sha256()); }
std::unique_ptr<Hasher> make_xxh3() { return std::make_unique<Xxh3>(); }

std::unique_ptr<Hasher> make_git_sha1(std::uint64_t size) {
  auto hasher = std::make_unique<OpenSslDigest>(EVP_sha1());
  const std::string head = fmt::format("blob {}", size);
  hasher->update(std::as_bytes(std::span(head.c_str(), head.size() + 1)));
  return hasher;
}

std::string compute_sha256(std::span<const std::byte> bytes) {
  OpenSslDigest hasher(EVP_sha256());
  hasher.update(bytes);
  return hasher.finish();
}

std::uint64_t compute_xxh3(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

void Crc32::update(std::span<const std::byte> bytes) {
  if (!bytes.empty()) value_ = libdeflate_crc32(value_, bytes.data(), bytes.size());
}

std::string Crc32::finish() { return fmt::format("{:08x}", value_); }

namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // reflected

// kTables[k][b] is the checksum of byte b followed by k zero bytes: eight tables process eight bytes at once.
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

std::uint32_t update_crc32c(std::uint32_t state, std::span<const std::byte> bytes) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  return has_instruction ? update_by_instruction(state, bytes) : update_by_table(state, bytes);
}
#else
std::uint32_t update_crc32c(std::uint32_t state, std::span<const std::byte> bytes) {
  return update_by_table(state, bytes);
}
#endif

class Crc32c final : public Hasher {
 public:
  void update(std::span<const std::byte> bytes) override { value_ = compute_crc32c(bytes, value_); }
  std::string finish() override { return fmt::format("{:08x}", value_); }

 private:
  std::uint32_t value_ = 0;
};

}  // namespace

std::uint32_t compute_crc32c(std::span<const std::byte> bytes, std::uint32_t before) {
  return ~update_crc32c(~before, bytes);
}

std::unique_ptr<Hasher> make_crc32c() { return std::make_unique<Crc32c>(); }

}  // namespace poise
