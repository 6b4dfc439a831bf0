// Tests streams. tests/commands/convert.txt tests models in pipes.
#include "io/streams.hpp"

#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "io/file_descriptor.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Sets TMPDIR until the end of a test.
class TemporaryDirectoryVariable {
 public:
  explicit TemporaryDirectoryVariable(const std::string& value) {
    if (const char* const old = std::getenv(kName)) old_ = old;
    ::setenv(kName, value.c_str(), 1);
  }
  TemporaryDirectoryVariable(const TemporaryDirectoryVariable&) = delete;
  TemporaryDirectoryVariable& operator=(const TemporaryDirectoryVariable&) = delete;
  ~TemporaryDirectoryVariable() { old_.empty() ? ::unsetenv(kName) : ::setenv(kName, old_.c_str(), 1); }

 private:
  static constexpr const char* kName = "TMPDIR";
  std::string old_;
};

TEST(Streams, AreCopiedToTheTemporaryDirectory) {
  const support::TemporaryDirectory directory;
  const TemporaryDirectoryVariable variable(directory.path().string());
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor out(ends[0]);
  {
    const FileDescriptor in(ends[1]);
    ASSERT_EQ(::write(in.get(), "text", 4), 4);
  }
  EXPECT_EQ(read_stream(out.get(), "pipe")->size(), 4U);
}

TEST(Streams, ErrorsOfTheTemporaryDirectoryNameItsVariable) {
  const support::TemporaryDirectory directory;
  const std::string absent = directory / "absent";
  const TemporaryDirectoryVariable variable(absent);
  int ends[2] = {};
  ASSERT_EQ(::pipe(ends), 0);
  const FileDescriptor out(ends[0]);
  const FileDescriptor in(ends[1]);
  for (const Error& error : {support::error_of([&] { read_stream(out.get(), "pipe"); }),
                             support::error_of([&] { StreamOutput(in.get(), "pipe"); })}) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_THAT(error.what(), AllOf(HasSubstr(absent), HasSubstr("No such file or directory; set TMPDIR")));
  }
}

TEST(Streams, AnEmptyTemporaryDirectoryIsNone) {
  const TemporaryDirectoryVariable variable("");
  EXPECT_EQ(find_temporary_directory(), "/tmp");
}

}  // namespace
}  // namespace poise
