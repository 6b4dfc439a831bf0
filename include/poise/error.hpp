// Failures of the library are exceptions of one type, poise::Error. When the system has no memory or no thread left,
// exceptions of the standard library appear, too.
//
// The library never prints, aborts or exits. An Error has the kind of failure, the file and (if known) the byte offset,
// and a message that names the field, the expected value and the value that was found.
//
//   try {
//     const poise::Model model = poise::open("model.alt");
//   } catch (const poise::Error& error) {
//     std::cerr << error.what() << "\n";
//   }
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace poise {

// Names the kind of a failure.
enum class ErrorKind {
  invalid_file,  // the bytes of a file break a rule of its format
  unsupported,   // the file is fine, but this operation cannot be done with it
  not_found,     // a path, tensor or part does not exist
  bad_argument,  // an argument is invalid, or does not fit the other arguments or the files
  io,            // the operating system or a server refused or failed
  cancelled,     // a progress callback or a stop token asked to stop
  internal,      // a bug in Poise
};

// Returns "invalid_file", "unsupported", ...
std::string_view to_string(ErrorKind kind);

// Describes a change to the call that may avoid the error. Messages do not mention it, because each program has its own
// words for the options.
struct Remedy {
  enum class Kind : std::uint8_t {
    overwrite,   // WriteOptions::overwrite
    format,      // write the format `value`; if that is empty, a format that the user names
    dtype,       // ConvertOptions::dtype: `value`, such as "f32"
    keep,        // ConvertOptions::keep: `value` for `tensor`
    skip,        // ConvertOptions::skip: `tensor`
    only,        // ConvertOptions::only: one of the tensors, such as `tensor`
    model_type,  // Card::model_type: `value`
    convert,     // convert() the file to the format `value`, and use that
    force,       // AttributeChanges::force
    lora,        // ConvertOptions::lora: convert the base model with the adapter `value`
  };
  Kind kind = Kind::overwrite;
  std::string value = {};
  std::string tensor = {};

  friend bool operator==(const Remedy&, const Remedy&) = default;
};

class Error : public std::runtime_error {
 public:
  // Makes an error whose what() is "path: message (at 0x1f4)", without unknown parts.
  Error(ErrorKind kind, std::string message, std::string path = {}, std::optional<std::uint64_t> offset = {});

  ErrorKind kind() const { return kind_; }
  const std::string& message() const { return message_; }
  const std::string& path() const { return path_; }
  std::optional<std::uint64_t> offset() const { return offset_; }

  // Returns remedies, the best first. Often there are none.
  const std::vector<Remedy>& remedies() const { return remedies_; }
  // Returns the same error with one more remedy.
  Error with(Remedy remedy) &&;

 private:
  ErrorKind kind_;
  std::string message_;
  std::string path_;
  std::optional<std::uint64_t> offset_;
  std::vector<Remedy> remedies_;
};

}  // namespace poise
