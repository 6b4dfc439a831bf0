// Distributed checkpoints of PyTorch with broken bytes. formats/pytorch/distributed_checkpoints.py breaks every rule of
// their pickles and files once.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include <poise/blob.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>

#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/hostile_cases.hpp"

namespace poise::hostile {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSound = "tests/formats/pytorch/distributed";

const HostileTable kTable("dcp", kSound);

// Opens the checkpoint with one file replaced, and reads all tensors if it opens. Expects no other errors
// than those for faulty, unsupported and missing files.
void expect_harmless_with(const fs::path& directory, const std::string& name, const std::string& bytes) {
  support::put(directory / name, bytes);
  try {
    const Model model = open(directory);
    for (const Tensor& tensor : model.tensors()) (void)read_all(*tensor.require("data").blob);
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported ||
                error.kind() == ErrorKind::not_found)
        << error.what();
  }
}

TEST(HostileDcp, BrokenFilesAreRefusedOrHarmless) {
  const support::TemporaryDirectory scratch;
  const fs::path sound = source_directory() / kSound;
  const fs::path directory = scratch.path() / "dcp";
  for (const char* name : {".metadata", "__0_0.distcp", "__1_0.distcp"}) {
    fs::copy(sound, directory, fs::copy_options::overwrite_existing);
    const std::string whole = support::contents(sound / name);
    ASSERT_FALSE(whole.empty());
    for (std::size_t at = 0; at < whole.size(); at += 3) {
      SCOPED_TRACE(at);
      expect_harmless_with(directory, name, whole.substr(0, at));
      std::string flipped = whole;
      flipped[at] = static_cast<char>(static_cast<unsigned char>(flipped[at]) ^ 1U << at % 8);
      expect_harmless_with(directory, name, flipped);
    }
  }
}

}  // namespace
}  // namespace poise::hostile
