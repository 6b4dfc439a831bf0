// A hostile corpus as a table: a rule, the file that breaks it and nothing else, and the error that must come of it.
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
inline constexpr std::string_view kAnywhere = "*";       // after several readings; none is the intended one
inline constexpr std::string_view kEndOfFile = "(end)";  // it points past the last byte

struct Case {
  std::string_view rule;
  ByteFile (*file)();
  ErrorKind kind;
  std::string_view at;     // the field at which the error points, or "field + 8": that many bytes into it
  std::string_view names;  // in the message: the field, as the format calls it, and what is wrong
};

// Opens each file from memory under `name`, whose extension selects the format.
void expect_refused(std::string_view name, std::span<const Case> cases);

// Faults that opening does not see: verify() must report them, as an error unless `warning`.
struct VerifyCase {
  std::string_view rule;
  ByteFile (*file)();
  std::string_view at;
  std::string_view names;
  bool warning = false;
};
void expect_faults(std::string_view name, std::span<const VerifyCase> cases);

// Opens it, verifies it, and expects no error and no warning: a corpus is worth what the file is that it breaks.
void expect_sound(std::string_view name, const ByteFile& file);

// Every cut is refused as invalid_file.
void expect_cuts_refused(std::string_view name, const ByteFile& file);

// Every flipped bit is refused, or shows: in a warning, in a field that diff() names, or in a part's bytes. In the
// fields of `data`, which no rule is about, it gives the same tensors with one byte that differs: what a digest is for.
// In the fields of `ignored` nothing of a flip is to be seen.
void expect_flips_show(std::string_view name, const ByteFile& file, std::span<const std::string_view> data,
                       std::span<const std::string_view> ignored = {});

// Opening the file, and reading every part of what opens, ends in an Error of a kind that files have, or in a model.
void expect_harmless(std::string_view name, const std::string& file);

// verify() reports files that cannot be opened to run: an invalid file as an error, and what Poise does not run at
// least as a warning. Models without a configuration or tensors, and those of families that Poise does not know, are
// not for running. Returns whether it runs.
bool expect_run_and_verify_agree(const std::filesystem::path& path);

// A directory of a Mistral of four tokens that runs, without its tokenizer: config.json and weights.
void put_small_model(const std::filesystem::path& directory);

// A format's file that its tables break: small, sound, with something in it. formats/conformance_test.cpp asks every
// registered format for one, and reads, writes, cuts and flips it. One of these for each format, in the file of its
// tables:
//
//   const HostileTable kTable("alt", [] { return whole().bytes(); });
struct HostileTable {
  HostileTable(std::string_view format, std::string (*sound_file)());
  // Of a format of directories: one of the project's own, below its root.
  HostileTable(std::string_view format, std::filesystem::path sound_directory);

  std::string (*file)() = nullptr;
  std::filesystem::path directory;
};
// By the format's name.
const std::map<std::string_view, HostileTable>& hostile_tables();

}  // namespace poise::hostile
