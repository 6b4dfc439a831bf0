#include "support/bytes.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <sstream>

namespace poise::support {

std::string hex(std::string_view digits) {
  std::string result;
  std::istringstream lines{std::string(digits)};
  for (std::string line; std::getline(lines, line);) {
    std::string pair;
    for (const char c : line.substr(0, line.find('|'))) {
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0) continue;
      pair += c;
      if (pair.size() < 2) continue;
      result += static_cast<char>(std::stoi(pair, nullptr, 16));
      pair.clear();
    }
  }
  return result;
}

std::string le(std::uint64_t value, std::size_t bytes) {
  std::string result(bytes, '\0');
  for (std::size_t i = 0; i < std::min(bytes, sizeof(value)); ++i)
    result[i] = static_cast<char>(value >> (8 * i) & 0xff);
  return result;
}

std::string padded(std::string file, std::size_t alignment) {
  file.resize((file.size() + alignment - 1) / alignment * alignment);
  return file;
}

std::vector<std::byte> to_bytes(std::string_view file) {
  std::vector<std::byte> result(file.size());
  if (!file.empty()) std::memcpy(result.data(), file.data(), file.size());
  return result;
}

std::string to_string(const std::vector<std::byte>& file) {
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

SourcePtr source(std::string_view file, std::string name) {
  return Source::from_memory(to_bytes(file), std::move(name));
}

}  // namespace poise::support
