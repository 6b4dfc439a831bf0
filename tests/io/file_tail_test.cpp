#include "io/in_place.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

#include <poise/error.hpp>

namespace poise {
namespace {

namespace fs = std::filesystem;

class FileTailTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = fs::path(testing::TempDir()) / ("poise_tail_" + std::to_string(std::random_device()()));
    std::ofstream(path_, std::ios::binary) << "dataFOOT";
  }
  void TearDown() override { fs::remove(path_); }
  std::string content() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

  fs::path path_;
};

TEST_F(FileTailTest, PutsBytesAndFooterBehindTheOldEnd) {
  FileTail(path_).append(16, bytes("more"), 22, bytes("foot"));
  EXPECT_EQ(content(), std::string("dataFOOT\0\0\0\0\0\0\0\0more\0\0foot", 26));
}

TEST_F(FileTailTest, AFileThatCannotGrowKeepsItsBytes) {
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{20, old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_THROW(FileTail(path_).append(16, bytes("more"), 22, bytes("foot")), Error);
  ::setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(content(), "dataFOOT");
}

TEST_F(FileTailTest, ThrowsForAFileThatCannotBeOpened) { EXPECT_THROW(FileTail(path_ / "no"), Error); }

}  // namespace
}  // namespace poise
