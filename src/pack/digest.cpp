#include "pack/digest.hpp"

#include <openssl/evp.h>
#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // XXH3 with the widest vectors of this processor
#endif

#include <array>
#include <new>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise {
namespace {

// SHA-256 and SHA-1.
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
  [[noreturn]] static void fail() { throw std::bad_alloc(); }  // there is no other failure
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

std::string sha256_hex(std::span<const std::byte> bytes) {
  OpenSslDigest hasher(EVP_sha256());
  hasher.update(bytes);
  return hasher.finish();
}

std::uint64_t xxh3_64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

}  // namespace poise
