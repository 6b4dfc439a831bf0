// Runs a fuzz target without libFuzzer, once for every given file and every file below a given directory. A finding
// ends the program; the last file that it printed has the finding.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::size_t runs = 0;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void replay(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::printf("%s\n", path.c_str());
  std::fflush(stdout);
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  ++runs;
}

void replay_all(const fs::path& path) {
  if (!fs::is_directory(path)) return replay(path);
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) replay(entry.path());
  }
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) replay_all(arguments[i]);
  std::printf("%zu files\n", runs);
  return runs > 0 ? 0 : 1;
}
