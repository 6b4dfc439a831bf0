#include "formats/ztensor/zt2_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include <xxhash.h>

namespace poise::support {

std::string sorted(Entries entries) {
  std::ranges::stable_sort(entries, {}, &Entries::value_type::first);
  return map(entries);
}

std::string File2::bytes() const {
  std::string file = header;
  for (const auto& [at, blob] : blobs) {
    file.resize(std::max<std::size_t>(file.size(), at + blob.size()));
    file.replace(at, blob.size(), blob);
  }
  if (!manifest.empty()) file.resize(std::max<std::size_t>(file.size(), manifest_offset));
  file += manifest;
  file += u64le(offset.value_or(manifest.empty() ? 0 : manifest_offset)) + u64le(length.value_or(manifest.size())) +
          u64le(hash.value_or(manifest.empty() ? 0 : xxh3_number(manifest))) + u32le(version) + u32le(reserved) +
          footer_magic;
  return file;
}

std::string part(std::string_view dtype, std::uint64_t offset, std::uint64_t length, Entries more) {
  more.emplace_back(text("dtype"), text(dtype));
  more.emplace_back(text("blob"), array({number(offset), number(length)}));
  return sorted(std::move(more));
}

std::string object(const std::vector<std::uint64_t>& shape, std::string_view layout, const Entries& parts,
                   Entries more) {
  std::vector<std::string> dimensions;
  for (const std::uint64_t dimension : shape) dimensions.push_back(number(dimension));
  more.emplace_back(text("shape"), array(dimensions));
  more.emplace_back(text("layout"), text(layout));
  more.emplace_back(text("parts"), sorted(parts));
  return sorted(std::move(more));
}

std::string manifest(const Entries& objects, Entries more) {
  more.emplace_back(text("objects"), sorted(objects));
  return sorted(std::move(more));
}

std::uint64_t xxh3_number(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::string xxh3_digest(std::string_view bytes) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "xxh3:%016llx", static_cast<unsigned long long>(xxh3_number(bytes)));
  return text.data();
}

namespace {

// The output of `xxhsum -H3` for an empty file.
TEST(File2, DigestsAreThoseOfTheTool) { EXPECT_EQ(xxh3_digest(""), "xxh3:2d06800538d394c2"); }

}  // namespace
}  // namespace poise::support
