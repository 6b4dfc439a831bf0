// The stages in which a file's format is found: magic first, then the kind of its container and its members' names.
// Files that are not models are rejected last.
#include <array>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/format.hpp"
#include "formats/input.hpp"
#include "support/directories.hpp"
#include "support/zip_file.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

bool begins_with(const Input& input, std::string_view magic) {
  const auto bytes = read_first_bytes(input, magic.size());
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == magic;
}

bool has_arrays(const MemberNames& names) {
  return std::ranges::any_of(names, [](const std::string& name) { return name.ends_with(".npy"); });
}

bool has_nothing(const MemberNames&) { return false; }

Format row(std::string_view name) {
  Format format{};
  format.info.name = name;
  return format;
}

const Format kGguf = [] {
  Format format = row("gguf");
  format.sniff = [](const Input& input) { return begins_with(input, "GGUF"); };
  return format;
}();
const Format kZipLike = [] {  // by magic, although it is a zip archive
  Format format = row("zip-like");
  format.sniff = [](const Input& input) { return begins_with(input, "PK\x03\x04magic"); };
  return format;
}();
const Format kArrays = [] {
  Format format = row("arrays");
  format.container = ContainerKind::directory;
  format.holds = has_arrays;
  return format;
}();
const Format kZipOfNothing = [] {
  Format format = row("zip of nothing");
  format.container = ContainerKind::zip;
  format.holds = has_nothing;
  return format;
}();
const Format kAnyZip = [] {
  Format format = row("any zip");
  format.container = ContainerKind::zip;
  return format;
}();
const Format kAnyDirectory = [] {
  Format format = row("any directory");
  format.container = ContainerKind::directory;
  return format;
}();

Input memory(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {"memory", Source::from_memory({bytes.begin(), bytes.end()}, "memory")};
}

std::string_view found(const Input& input, std::initializer_list<const Format*> among) {
  const Format* format = recognise_format(input, std::span(among.begin(), among.size()));
  return format == nullptr ? "none" : format->info.name;
}

// Makes the header of a tar file from before POSIX, which only its checksum identifies. `number`: the format of the
// checksum.
std::string tar_header(std::string_view number) {
  std::string header(512, '\0');
  header.replace(0, 5, "a.bin");
  header.replace(124, 11, "00000000001");
  header.replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char byte : header) sum += static_cast<unsigned char>(byte);
  header.replace(148, 8, 8, '\0');
  const std::string checksum = fmt::format(fmt::runtime(number), sum);
  return header.replace(148, checksum.size(), checksum);
}

class Directory {
 public:
  explicit Directory(std::initializer_list<const char*> files) {
    for (const char* file : files) support::put(directory_ / file, "x");
  }

  Input input() const { return {directory_.path(), nullptr}; }

 private:
  support::TemporaryDirectory directory_;
};

TEST(Recognise, MagicComesBeforeTheContainer) {
  EXPECT_EQ(found(memory("GGUF and more"), {&kAnyZip, &kGguf}), "gguf");
  EXPECT_EQ(found(memory("PK\x03\x04magic"), {&kAnyZip, &kZipLike}), "zip-like");
  EXPECT_EQ(found(memory("PK\x03\x04other"), {&kAnyZip, &kZipLike}), "any zip");
  EXPECT_EQ(found(memory("PK"), {&kAnyZip, &kZipLike}), "none");
}

TEST(Recognise, MembersDistinguishFormatsOfOneContainer) {
  const Directory arrays({"a.npy", "b.txt"});
  const Directory other({"b.txt"});
  EXPECT_EQ(found(arrays.input(), {&kGguf, &kArrays, &kAnyDirectory}), "arrays");
  EXPECT_EQ(found(other.input(), {&kGguf, &kArrays, &kAnyDirectory}), "any directory");
  EXPECT_EQ(found(other.input(), {&kGguf, &kArrays, &kAnyZip}), "none");
}

TEST(Recognise, ArchivesOfDirectories) {
  Format format = kAnyDirectory;
  format.holds_in_archive = [](const MemberNames& names) { return names == MemberNames{"a/b"}; };
  const std::string zip = support::zip_file({{"a/b", "x"}}).bytes();
  EXPECT_EQ(found(memory(zip), {&kZipOfNothing, &format}), "any directory");
  EXPECT_EQ(found(memory(zip), {&kAnyZip, &format}), "any zip");
  EXPECT_EQ(found(memory(zip), {&format, &kAnyZip}), "any zip");
  EXPECT_EQ(found(memory(support::zip_file({{"a", "x"}}).bytes()), {&format}), "none");
}

TEST(Recognise, ContainersThatCannotBeReadHaveNoMembers) {
  EXPECT_EQ(found(memory("PK\x03\x04other"), {&kZipOfNothing}), "none");
}

TEST(Recognise, ContainersAreKnownByTheirFirstBytes) {
  EXPECT_EQ(find_container_kind(memory("PK\x03\x04")), ContainerKind::zip);
  EXPECT_EQ(find_container_kind(memory("PK\x05\x06")), ContainerKind::zip);
  EXPECT_EQ(find_container_kind(memory("")), std::nullopt);
  const Directory directory({"b", "a"});
  EXPECT_EQ(find_container_kind(directory.input()), ContainerKind::directory);
  EXPECT_THAT(list_member_names(directory.input(), ContainerKind::directory), ElementsAre("a", "b"));
}

TEST(Recognise, OtherFilesAreNamedLast) {
  const auto error_about = [](std::string_view text) {
    try {
      refuse_non_model(memory(text));
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("nothing");
  };
  EXPECT_THAT(error_about(support::zip_file({{"a", "x"}}).bytes()), HasSubstr("this is a zip archive"));
  for (const char* number : {"{:06o}", "0o{:05o}", "\t+{:05o}"})  // as int(text, 8) of Python takes them
    EXPECT_THAT(error_about(tar_header(number)), HasSubstr("this is a tar archive; unpack it first")) << number;
  EXPECT_THAT(error_about(std::string(257, 'x') + "ustar" + std::string(250, 'x')), HasSubstr("this is a tar archive"));
  EXPECT_EQ(error_about(tar_header("1{:05o}")), "nothing");
  EXPECT_THAT(error_about("PK\x03\x04"), HasSubstr("zip: end of the directory"));
  EXPECT_THAT(error_about("\x1f\x8b"), HasSubstr("gzip archive"));
  EXPECT_EQ(error_about("a model, for all that is known"), "nothing");
  EXPECT_THROW(open(Source::from_memory(std::vector<std::byte>(4), "x.safetensors")), Error);
}

}  // namespace
}  // namespace poise
