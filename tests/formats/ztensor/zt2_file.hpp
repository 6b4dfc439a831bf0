// Makes zTensor 2 files from blobs at their offsets, a manifest and a footer. A test can break each part.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/bytes.hpp"
#include "support/cbor_notation.hpp"

namespace poise::support {

using Entries = std::vector<std::pair<std::string, std::string>>;

// Encodes a map whose keys are in the order of their encodings.
std::string sorted(Entries entries);

struct File2 {
  std::string header = hex("89 5a 54 32 0d 0a 1a 0a");
  std::map<std::uint64_t, std::string> blobs;  // by offset
  std::string manifest;
  std::uint64_t manifest_offset = 65536;
  std::optional<std::uint64_t> offset;  // fields of the footer, if a test wants wrong ones
  std::optional<std::uint64_t> length;
  std::optional<std::uint64_t> hash;
  std::uint32_t version = 2;
  std::uint32_t reserved = 0;
  std::string footer_magic = header;

  std::string bytes() const;
};

// Encodes a part with its blob, and more fields.
std::string part(std::string_view dtype, std::uint64_t offset, std::uint64_t length, Entries more = {});
// Encodes an object with a layout and parts, and more fields.
std::string object(const std::vector<std::uint64_t>& shape, std::string_view layout, const Entries& parts,
                   Entries more = {});
// Encodes {"objects": objects}, and more fields of the root.
std::string manifest(const Entries& objects, Entries more = {});

// Returns XXH3-64 as the format writes it, computed by the xxHash library.
std::uint64_t xxh3_number(std::string_view bytes);
std::string xxh3_digest(std::string_view bytes);

}  // namespace poise::support
