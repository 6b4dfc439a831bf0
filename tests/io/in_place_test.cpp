#include "io/in_place.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <poise/error.hpp>

#include "support/directories.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

class InPlaceTest : public ::testing::Test {
 protected:
  InPlaceTest() { std::ofstream(path(), std::ios::binary) << "0123456789"; }

  fs::path path() const { return directory_ / "file"; }
  std::string content() const {
    std::ifstream file(path(), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool is_alone() const { return std::distance(fs::directory_iterator(path().parent_path()), fs::directory_iterator()) == 1; }
  static std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

 private:
  support::TemporaryDirectory directory_;
};

TEST_F(InPlaceTest, ReplacesTheBytesAndLeavesNothingBeside) {
  replace_in_place(path(), 3, bytes("abc"));
  EXPECT_EQ(content(), "012abc6789");
  EXPECT_TRUE(is_alone());
  EXPECT_FALSE(is_half_replaced(path()));
}

TEST_F(InPlaceTest, AFileThatCannotBeWrittenIsWhatItWas) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(replace_in_place(path(), 3, bytes("abc")), Error);
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(content(), "0123456789");
  EXPECT_TRUE(is_alone());
}

TEST_F(InPlaceTest, WithoutAnUndoFileNothingIsBroughtBack) {
  bring_back(path());
  EXPECT_EQ(content(), "0123456789");
  EXPECT_FALSE(is_half_replaced(path()));
  EXPECT_FALSE(is_half_replaced(path().parent_path() / std::string(250, 'n')));
}

}  // namespace
}  // namespace poise
