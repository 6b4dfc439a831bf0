#include "support/hostile_cases.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <poise/diff.hpp>
#include <poise/format.hpp>
#include <poise/verify.hpp>
#include <poise/weights.hpp>

#include "family/families.hpp"
#include "runtime/random_model.hpp"
#include "support/directories.hpp"

namespace poise::hostile {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> place(const ByteFile& file, std::string_view at) {
  if (at == kNowhere) return std::nullopt;
  if (at == kEndOfFile) return file.bytes().size();
  const std::size_t plus = at.find(" + ");
  if (plus == std::string_view::npos) return file.offset(at);
  return file.offset(at.substr(0, plus)) + std::stoull(std::string(at.substr(plus + 3)));
}

std::string described(std::optional<std::uint64_t> offset) {
  return offset ? fmt::format("0x{:x}", *offset) : "nowhere";
}

SourcePtr in_memory(const std::string& file, std::string_view name) { return support::source(file, std::string(name)); }

// Returns the bytes of all parts, tensor after tensor.
std::vector<std::byte> all_data(const Model& model) {
  std::vector<std::byte> bytes;
  for (const Tensor& tensor : model.tensors()) {
    for (const Part& part : tensor.parts) {
      const auto more = read_all(*part.blob);
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
  }
  return bytes;
}

std::size_t differences(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  if (a.size() != b.size()) return SIZE_MAX;
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] != b[i] ? 1 : 0;
  return count;
}

// Opens the file; std::nullopt if it is refused with an error about files.
std::optional<Model> open_unless_refused(const std::string& file, std::string_view name) {
  try {
    return open(in_memory(file, name));
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported) << error.what();
    return std::nullopt;
  }
}

// Returns all_data(); std::nullopt if a part cannot be decoded.
std::optional<std::vector<std::byte>> data_unless_refused(const Model& model) {
  try {
    return all_data(model);
  } catch (const Error& error) {
    EXPECT_TRUE(error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported) << error.what();
    return std::nullopt;
  }
}

// Describes a model's parts without their bytes.
std::string listing(const Model& model) {
  std::string text = model.origin.format;
  for (const Tensor& tensor : model.tensors()) {
    text += fmt::format("\n{} {} {} {} {}", tensor.name, to_string(tensor.shape), to_string(tensor.layout),
                        tensor.layout.name(), to_json(tensor.attributes));
    if (tensor.layout.affine() != nullptr)
      text += fmt::format(" {} {} {}", tensor.layout.affine()->get().delta, tensor.layout.affine()->get().min,
                          tensor.layout.affine()->get().max);
    for (const Part& part : tensor.parts) {
      const auto at = part.blob->stored();
      text += fmt::format(" {} {} {} {} {}", part.role, part.type_name(), at ? at->offset : 0, at ? at->encoding : "",
                          part.digest ? part.digest->text : "");
    }
  }
  return text;
}

// Writes a file to the corpus for tests of other languages: POISE_HOSTILE_CORPUS names a directory that gets every file
// of the tables, as NUMBER-NAME.
void add_to_corpus(std::string_view name, const std::string& bytes) {
  const char* const directory = std::getenv("POISE_HOSTILE_CORPUS");
  if (directory == nullptr) return;
  static int number = 0;
  std::ofstream(fs::path(directory) / fmt::format("{}-{}", number++, name), std::ios::binary) << bytes;
}

class TemporaryFile {
 public:
  TemporaryFile(std::string_view name, const std::string& bytes)
      : directory_(fs::temp_directory_path() / fmt::format("poise_hostile_{}", ::getpid())) {
    fs::create_directory(directory_);
    path_ = directory_ / name;
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { fs::remove_all(directory_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path directory_;
  fs::path path_;
};

}  // namespace

bool expect_run_and_verify_agree(const fs::path& path) {
  ErrorKind kind;
  std::string message;
  try {
    const Model model = open(path);
    const std::string& type = model.card.model_type;
    if (!model.config || model.size() == 0 || (!type.empty() && find_family(type) == nullptr)) return false;
    try {
      (void)load_weights(model);
      return true;
    } catch (const Error& error) {
      kind = error.kind();
      message = error.what();
    }
  } catch (const Error& error) {
    kind = error.kind();
    message = error.what();
  }
  try {
    const VerifyReport report = verify(path);
    EXPECT_TRUE(kind == ErrorKind::invalid_file ? report.errors() > 0 : !report.faults.empty())
        << path << " does not run, and verify does not report it: " << message;
  } catch (const Error& error) {  // a file that is missing, or cannot be read
    EXPECT_EQ(error.kind(), kind) << message;
  }
  return false;
}

void put_small_model(const fs::path& directory) {
  Config config;
  config.hidden_size = 4;
  config.intermediate_size = 2;
  config.max_position_embeddings = 8;
  config.num_attention_heads = config.num_key_value_heads = config.num_hidden_layers = 1;
  config.head_dim = 4;
  config.vocab_size = 4;
  config.tie_word_embeddings = true;
  save(make_model(config, random_weights(config)), directory / "model.safetensors");
  support::put(directory / "config.json",
               R"({"model_type": "mistral", "hidden_size": 4, "intermediate_size": 2, "max_position_embeddings": 8,
                   "num_attention_heads": 1, "num_key_value_heads": 1, "num_hidden_layers": 1, "head_dim": 4,
                   "vocab_size": 4, "tie_word_embeddings": true})");
}

void expect_refused(std::string_view name, std::span<const Case> cases) {
  for (const Case& rule : cases) {
    SCOPED_TRACE(rule.rule);
    const ByteFile file = rule.file();
    add_to_corpus(name, file.bytes());
    expect_run_and_verify_agree(TemporaryFile(name, file.bytes()).path());
    try {
      open(in_memory(file.bytes(), name));
      ADD_FAILURE() << "it was opened";
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.kind()), to_string(rule.kind)) << error.what();
      const auto offset = rule.at == kAnywhere ? error.offset() : place(file, rule.at);
      EXPECT_EQ(described(error.offset()), described(offset)) << error.what();
      EXPECT_THAT(error.message(), testing::HasSubstr(std::string(rule.names)));
      EXPECT_THAT(error.path(), testing::StartsWith(std::string(name)));
    }
  }
}

void expect_faults(std::string_view name, std::span<const VerifyCase> cases) {
  for (const VerifyCase& rule : cases) {
    SCOPED_TRACE(rule.rule);
    const ByteFile file = rule.file();
    add_to_corpus(name, file.bytes());
    const TemporaryFile on_disk(name, file.bytes());
    expect_run_and_verify_agree(on_disk.path());
    const VerifyReport report = verify(on_disk.path());
    // Reading may have reported a warning before an error, too.
    const auto severity = rule.warning ? Severity::warning : Severity::error;
    ASSERT_EQ(std::ranges::count(report.faults, severity, &Finding::severity), 1);
    if (rule.warning) {
      EXPECT_EQ(report.errors(), 0U);
    }
    const Finding& fault = *std::ranges::find(report.faults, severity, &Finding::severity);
    const auto offset = rule.at == kAnywhere ? fault.offset : place(file, rule.at);
    EXPECT_EQ(described(fault.offset), described(offset)) << fault.message;
    EXPECT_THAT(fault.message, testing::HasSubstr(std::string(rule.names)));
    EXPECT_EQ(fault.path, on_disk.path());
  }
}

void expect_sound(std::string_view name, const ByteFile& file) {
  const TemporaryFile on_disk(name, file.bytes());
  const VerifyReport report = verify(on_disk.path());
  for (const Finding& fault : report.faults) ADD_FAILURE() << fault.message << " at " << described(fault.offset);
}

void expect_cuts_refused(std::string_view name, const ByteFile& file) {
  const std::string whole = file.bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    try {
      open(in_memory(whole.substr(0, size), name));
      ADD_FAILURE() << size << " bytes were opened";
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.kind()), to_string(ErrorKind::invalid_file)) << size << ": " << error.what();
    }
  }
}

namespace {

// Returns true if the bit is the sign of a zero: -0 equals 0.
bool is_sign_of_zero(const std::string& file, std::size_t bit) {
  return bit % 8 == 7 && bit >= 31 && file.compare(bit / 8 - 3, 4, std::string(4, '\0')) == 0;
}

}  // namespace

void expect_flips_show(std::string_view name, const ByteFile& file, std::span<const std::string_view> data,
                       std::span<const std::string_view> ignored) {
  const std::string whole = file.bytes();
  const Model original = open(in_memory(whole, name));
  const std::vector<std::byte> original_data = all_data(original);
  const auto lies_in = [&](std::span<const std::string_view> fields, std::size_t byte) {
    return std::ranges::any_of(fields, [&](std::string_view field) {
      return byte >= file.offset(field) && byte < file.offset(field) + file.size(field);
    });
  };
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    SCOPED_TRACE(fmt::format("bit {} of byte {}", bit % 8, bit / 8));
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(static_cast<unsigned char>(flipped[bit / 8]) ^ 1U << bit % 8);
    const auto model = open_unless_refused(flipped, name);
    const auto found = model ? data_unless_refused(*model) : std::nullopt;
    if (lies_in(data, bit / 8)) {
      EXPECT_TRUE(found && differences(*found, original_data) == 1);
    } else if (found) {
      const bool shows = model->warnings.size() != original.warnings.size() || listing(*model) != listing(original) ||
                         *found != original_data || !diff(*model, original).same();
      EXPECT_TRUE(shows || lies_in(ignored, bit / 8) || is_sign_of_zero(whole, bit)) << described(bit / 8);
    }
  }
}

void expect_harmless(std::string_view name, const std::string& file) {
  if (const auto model = open_unless_refused(file, name)) data_unless_refused(*model);
}

namespace {

std::map<std::string_view, HostileTable>& tables() {
  static std::map<std::string_view, HostileTable> all;
  return all;
}

}  // namespace

HostileTable::HostileTable(std::string_view format, std::string (*sound_file)()) : file(sound_file) {
  tables().emplace(format, *this);
}

HostileTable::HostileTable(std::string_view format, fs::path sound_directory) : directory(std::move(sound_directory)) {
  tables().emplace(format, *this);
}

const std::map<std::string_view, HostileTable>& hostile_tables() { return tables(); }

}  // namespace poise::hostile
