// Checks what every registered format has to provide. A new row in registry.cpp fails, with a list of what is missing,
// until the format is tested and documented. CONTRIBUTING.md has the list.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <poise/diff.hpp>
#include <poise/format.hpp>

#include "formats/format.hpp"
#include "formats/input.hpp"
#include "io/lookalikes.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "support/hostile_cases.hpp"
#include "support/model_files.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

class Conformance : public testing::TestWithParam<const Format*> {
 protected:
  const Format& format() const { return *GetParam(); }
  std::string name() const { return std::string(format().info.name); }
  std::string file_name() const { return "file" + std::string(format().info.extension); }
  bool is_a_directory() const { return format().info.extension.empty(); }
  std::string in_code_font() const { return "`" + name() + "`"; }

  // Returns the sound file of the format's hostile table; empty if there is none.
  std::string sound_file() const {
    const auto table = hostile::hostile_tables().find(name());
    return table == hostile::hostile_tables().end() || table->second.file == nullptr ? std::string()
                                                                                     : table->second.file();
  }

  Input sound_input() const {
    if (!is_a_directory()) return {file_name(), support::source(sound_file(), file_name())};
    return {source_directory() / hostile::hostile_tables().at(name()).directory, nullptr};
  }

  Model sound_model() const { return format().read(sound_input(), {}); }

  void expect_directory_is_read(const Model& model) const;

  bool has_table() const { return hostile::hostile_tables().contains(name()); }
};

TEST_P(Conformance, HasAPage) {
  std::size_t pages = 0;
  for (const auto& entry : fs::directory_iterator(source_directory() / "docs/formats")) {
    const std::string text = support::contents(entry.path());
    const std::string head = text.substr(0, text.find("\n## "));  // which has the format's name
    if (head.find(in_code_font()) != std::string::npos) ++pages;
  }
  EXPECT_EQ(pages, 1U) << "one page of docs/formats/ has to say the format name " << in_code_font()
                       << " before its first section";
}

TEST_P(Conformance, HasARowInTheReadme) {
  const std::string row = fmt::format("| {} | {} | {} |", in_code_font(), format().read != nullptr ? "yes" : "",
                                      format().prepare != nullptr ? "yes" : "");
  std::string squeezed = row;
  for (auto at = squeezed.find("|  |"); at != std::string::npos; at = squeezed.find("|  |"))
    squeezed.replace(at, 4, "| |");
  const auto lines = lines_of(source_directory() / "README.md");
  EXPECT_EQ(
      std::ranges::count_if(lines, [&](const std::string& line) { return line.find(squeezed) != std::string::npos; }),
      1)
      << "the table of formats in README.md needs a row with: " << squeezed;
}

TEST_P(Conformance, HasAHostileTable) {
  ASSERT_TRUE(has_table()) << "a file tests/hostile/" << name()
                           << "_test.cpp has to break every rule of the format once, and to begin with\n"
                           << "  const HostileTable kTable(\"" << name() << "\", [] { return whole().bytes(); });";
  if (is_a_directory()) {
    EXPECT_TRUE(fs::is_directory(sound_input().path));
  } else {
    EXPECT_FALSE(sound_file().empty());
  }
  EXPECT_GT(sound_model().size(), 0U) << "the sound file of the hostile table has no tensors";
}

// fuzz/format.cpp fuzzes formats of files from seeds; fuzz_seeds fails for a format without one.
TEST_P(Conformance, HasAFuzzTarget) {
  const fs::path own = source_directory() / "fuzz" / (name() + ".cpp");
  EXPECT_TRUE(!is_a_directory() || fs::exists(own))
      << "a format of directories needs a fuzz target of its own: fuzz/" << name() << ".cpp";
}

TEST_P(Conformance, HasAnExtensionThatFindsIt) {
  if (is_a_directory()) return;
  ASSERT_TRUE(format().info.extension.starts_with('.')) << format().info.extension;
  if (format().prepare == nullptr) return;
  const auto found = format_from_extension(file_name());
  ASSERT_TRUE(found);
  EXPECT_EQ(find_format_by_name(*found).info.extension, format().info.extension);
}

TEST_P(Conformance, HasAName) {
  EXPECT_FALSE(name().empty());
  EXPECT_FALSE(format().info.description.empty());
  EXPECT_EQ(&find_format_by_name(name()), &format()) << "another format has the same name";
  EXPECT_TRUE(format().read != nullptr || format().prepare != nullptr);
}

TEST_P(Conformance, IsRecognisedByItsContent) {
  ASSERT_TRUE(has_table());
  EXPECT_EQ(recognise_format(sound_input(), list_all_formats()), &format());
  if (format().prepare == nullptr || is_a_directory()) return;
  // The name of the file does not matter.
  const auto file = support::written(sound_model(), format());
  EXPECT_EQ(recognise_format({"download", Source::from_memory(file, "download")}, list_all_formats()), &format());
}

// Files that people mistake for a format's get their own error instead of its reader's, and valid files never do.
TEST_P(Conformance, NamesFilesThatPeopleMistakeForIts) {
  if (is_a_directory() || format().read == nullptr) return;
  EXPECT_NO_THROW(refuse_non_model(sound_input()));
  const auto reported = [&](std::string_view text) {
    return support::error_of([&] { open(support::source(text, file_name())); }).message();
  };
  EXPECT_EQ(reported(""), "the file is empty");
  for (const Lookalike& lookalike : list_lookalikes()) {
    const std::string start = std::string(lookalike.start) + std::string(64, ' ');
    EXPECT_EQ(reported(start), lookalike.message);
  }
}

// Compares each part's bytes, and the properties that every format keeps.
void expect_same_tensors(const Model& expected, const Model& found) {
  ASSERT_EQ(found.size(), expected.size());
  for (const Tensor& tensor : expected.tensors()) {
    SCOPED_TRACE(tensor.name);
    const Tensor* const other = found.find(tensor.name);
    ASSERT_NE(other, nullptr);
    EXPECT_EQ(other->shape, tensor.shape);
    EXPECT_EQ(other->layout, tensor.layout);
    ASSERT_EQ(other->parts.size(), tensor.parts.size());
    for (const Part& part : tensor.parts) {
      EXPECT_EQ(other->require(part.role).dtype, part.dtype);
      EXPECT_EQ(read_all(*other->require(part.role).blob), read_all(*part.blob));
    }
  }
}

void Conformance::expect_directory_is_read(const Model& model) const {
  const support::Files files = support::written_files(model, format());
  for (const auto& [file, bytes] : files)
    EXPECT_EQ(format().explain_refusal({file, "config.json"}), "")
        << "a directory that has been written could not be replaced";
  const support::TemporaryDirectory directory;
  const Model reread = support::read(files, directory.path());
  EXPECT_EQ(reread.origin.format, name());
  expect_same_tensors(model, reread);
  EXPECT_TRUE(!losses_of(model, format(), {}).empty() || diff(model, reread).same());
  EXPECT_EQ(support::written_files(reread, format()), files) << "written again, the files differ";
}

TEST_P(Conformance, ReadsWhatItWrites) {
  ASSERT_TRUE(has_table());
  if (format().prepare == nullptr || format().read == nullptr) return;
  const Model model = sound_model();
  if (is_a_directory()) return expect_directory_is_read(model);
  const auto file = support::written(model, format());
  const Model reread = support::read(file, file_name());
  expect_same_tensors(model, reread);
  EXPECT_TRUE(!losses_of(model, format(), {}).empty() || diff(model, reread).same());
  EXPECT_EQ(support::written(reread, format()), file) << "written again, the file differs";
}

// Cuts and flips only some places of a long file.
constexpr std::size_t kMostPlaces = 600;

TEST_P(Conformance, BrokenFilesAreRefusedOrHarmless) {
  ASSERT_TRUE(has_table());
  if (is_a_directory()) return;  // the tables flip bits of its files
  std::vector<std::string> files = {sound_file()};
  if (format().prepare != nullptr) files.push_back(support::to_string(support::written(sound_model(), format())));
  for (const std::string& whole : files) {
    const std::size_t step = whole.size() / kMostPlaces + 1;
    for (std::size_t at = 0; at < whole.size(); at += step) {
      SCOPED_TRACE(at);
      hostile::expect_harmless(file_name(), whole.substr(0, at));
      std::string flipped = whole;
      flipped[at] = static_cast<char>(static_cast<unsigned char>(flipped[at]) ^ 1U << at / step % 8);
      hostile::expect_harmless(file_name(), flipped);
    }
  }
}

// A layout that only zTensor has is accepted, or refused as unsupported.
TEST_P(Conformance, TakesOrRefusesOtherLayouts) {
  if (format().prepare == nullptr) return;
  Model model;
  Tensor tensor;
  tensor.name = "w";
  tensor.shape = {2};
  tensor.layout = TensorLayout::other("nobody.knows/1");
  tensor.parts.push_back(
      {.role = "codes", .dtype = DType::u8, .blob = make_memory_blob(std::vector<std::byte>(2), "codes")});
  model.add(std::move(tensor));
  try {
    prepare_file(model, format(), {}).plan();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
  }
}

TEST_P(Conformance, RefusesOptionsThatItDoesNotHonour) {
  if (format().prepare == nullptr) {
    EXPECT_EQ(support::error_of([&] { support::written(Model(), format()); }).kind(), ErrorKind::bad_argument);
    return;
  }
  const HonouredOptions& honours = format().options;
  const auto refuses = [&](bool honoured, const char* what, auto&& set) {
    if (honoured) return;
    WriteOptions options;
    set(options);
    const Error error = support::error_of([&] { support::written(sound_model(), format(), options); });
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument) << what << ": " << error.what();
  };
  refuses(honours.dialect, "dialect", [](WriteOptions& options) { options.dialect = "alt.c"; });
  refuses(honours.zstd_level, "zstd_level", [](WriteOptions& options) { options.zstd_level = 1; });
  refuses(honours.digest, "digest", [](WriteOptions& options) { options.digest = DigestAlgorithm::sha256; });
  refuses(honours.align.has_value(), "align", [](WriteOptions& options) { options.align = 4096; });
  refuses(honours.shard_size, "shard_size", [](WriteOptions& options) { options.shard_size = 1 << 20; });
}

INSTANTIATE_TEST_SUITE_P(Formats, Conformance, testing::ValuesIn(list_all_formats().begin(), list_all_formats().end()),
                         [](const auto& format) { return std::string(format.param->info.name); });

}  // namespace
}  // namespace poise
