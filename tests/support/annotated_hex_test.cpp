#include "support/annotated_hex.hpp"
#include "support/directories.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace poise::support {

std::vector<std::byte> read_annotated_hex(const std::string& name) {
  std::ifstream file(source_directory() / "tests" / name);
  if (!file) throw std::runtime_error("cannot open " + name);
  std::vector<std::byte> bytes;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    const auto bar = line.find('|');
    const auto end = line.find('|', bar + 1);
    if (end == std::string::npos || std::stoul(line.substr(0, bar), nullptr, 16) != bytes.size())
      throw std::runtime_error(name + ": " + line);
    std::istringstream digits(line.substr(bar + 1, end - bar - 1));
    for (std::string pair; digits >> pair;) bytes.push_back(static_cast<std::byte>(std::stoul(pair, nullptr, 16)));
  }
  return bytes;
}

namespace {

TEST(AnnotatedHex, EveryByteOfTheGoldenFilesIsThere) {
  EXPECT_EQ(read_annotated_hex("formats/alt/v1.hex").size(), 1028U);
  EXPECT_EQ(read_annotated_hex("formats/alt/v2.hex").size() % 32, 8U);
}

}  // namespace
}  // namespace poise::support
