// A hostile corpus as a table: a rule, a file that breaks this rule alone, and the error that has to follow.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include <poise/error.hpp>

#include "support/byte_file.hpp"

namespace poise::hostile {

using support::ByteFile;
using support::le;

inline constexpr std::string_view kNowhere = "-";        // the error has no offset
inline constexpr std::string_view kAnywhere = "*";       // the error may be at any of several places
inline constexpr std::string_view kEndOfFile = "(end)";  // the error is past the last byte

struct Case {
  std::string_view rule;
  ByteFile (*file)();
  ErrorKind kind;
  std::string_view at;     // the field at which the error points, or "field + 8": that many bytes into it
  std::string_view names;  // in the message: the field, as the format calls it, and what is wrong
};

// Opens each file from memory under `name`, whose extension selects the format.
void expect_refused(std::string_view name, std::span<const Case> cases);

// Describes a fault that opening does not see: verify() has to report it, as an error unless `warning`.
struct VerifyCase {
  std::string_view rule;
  ByteFile (*file)();
  std::string_view at;
  std::string_view names;
  bool warning = false;
};
void expect_faults(std::string_view name, std::span<const VerifyCase> cases);

// Opens and verifies a file, and expects no error and no warning: a table is of use only if it breaks a sound file.
void expect_sound(std::string_view name, const ByteFile& file);

// Expects that every cut of the file is refused as invalid_file.
void expect_cuts_refused(std::string_view name, const ByteFile& file);

// Expects that a file with a flipped bit is refused, or differs: by a warning, a field that diff() names, or a part's
// bytes. In the fields of `data`, which no rule covers, one byte of the tensors differs, as digests would show. In the
// fields of `ignored` no difference shows.
void expect_flips_show(std::string_view name, const ByteFile& file, std::span<const std::string_view> data,
                       std::span<const std::string_view> ignored = {});

// Opens the file and reads every part. Expects an Error of a kind that files cause, or a model.
void expect_harmless(std::string_view name, const std::string& file);

// Expects that verify() reports a file that cannot be opened to run: an invalid file as an error, one that Poise does
// not run at least as a warning. Accepts models without a configuration or tensors, and those of families that Poise
// does not know. Returns true if the model runs.
bool expect_run_and_verify_agree(const std::filesystem::path& path);

// Writes a directory of a small Mistral that runs, without a tokenizer: config.json and weights for four tokens.
void put_small_model(const std::filesystem::path& directory);

// Registers the small, sound file of a format that its tables break. formats/conformance_test.cpp requires one of every
// registered format, and reads, writes, cuts and flips it. The file of a format's tables defines it:
//
//   const HostileTable kTable("alt", [] { return whole().bytes(); });
struct HostileTable {
  HostileTable(std::string_view format, std::string (*sound_file)());
  // Takes a directory below the project's root, for a format of directories.
  HostileTable(std::string_view format, std::filesystem::path sound_directory);

  std::string (*file)() = nullptr;
  std::filesystem::path directory;
};
// Returns the tables by the formats' names.
const std::map<std::string_view, HostileTable>& hostile_tables();

}  // namespace poise::hostile
