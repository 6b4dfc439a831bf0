// Part digests: the text in which files write them, and the hasher each one needs.
//
//   sha256:<64 hexadecimal digits>    crc32c:0x<8 digits>    xxh3:<16 digits>
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <poise/blob.hpp>
#include <poise/digest.hpp>

#include "pack/digest.hpp"

namespace poise {

// "sha256", "crc32c", "xxh3"; empty for none and unknown.
std::string_view digest_name(DigestAlgorithm algorithm);

// The algorithm that a digest's text begins with; `unknown` for others.
DigestAlgorithm digest_algorithm(std::string_view text);

// Not none, and not unknown.
bool is_computable(DigestAlgorithm algorithm);

// The bytes that the digest of a part with this blob is of: the blob, or what is stored of it.
BlobPtr digested_blob(const BlobPtr& blob, const Digest& digest);

// "the digest is xxh3:..., the file says xxh3:..."
std::string wrong_digest(std::string_view found, const Digest& claimed);

// Null for `none`. Throws internal for `unknown`.
std::unique_ptr<Hasher> make_hasher(DigestAlgorithm algorithm);

// The text for the digits that a hasher of that algorithm found, as Poise writes it.
std::string digest_text(DigestAlgorithm algorithm, std::string digits);

// Do two texts name the same digest? The case of the digits does not matter.
bool same_digest(std::string_view a, std::string_view b);

}  // namespace poise
