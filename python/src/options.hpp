// Converts the keyword arguments of the Python package's functions, given as a dict, to the library's option structs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include <poise/format.hpp>

#include "bytes/utf8.hpp"
#include "face.hpp"

namespace poise::python {

// Converts an argument other than None. Messages contain its name.
class Given {
 public:
  Given(std::string_view name, py::object value) : name_(name), value_(std::move(value)) {}

  // Converts the argument to T. Throws TypeError: "align is [1], expected EXPECTED".
  template <typename T>
  T read(std::string_view expected) const {
    try {
      return value_.cast<T>();
    } catch (const py::cast_error&) {
      throw py::type_error(make_message(expected));
    }
  }
  std::string read_text() const { return read<std::string>("text"); }
  // Throws bad_argument: "align is 3, expected EXPECTED".
  [[noreturn]] void refuse(std::string_view expected) const { python::refuse(make_message(expected)); }
  // Reads one of a few names. Throws bad_argument for others.
  template <typename Choice>
  Choice read_choice(const std::vector<std::pair<std::string_view, Choice>>& choices) const {
    const std::string word = to_lower_ascii(read_text());
    std::vector<std::string_view> names;
    for (const auto& [name, choice] : choices) {
      if (name == word) return choice;
      names.push_back(name);
    }
    refuse(fmt::format("one of {}", fmt::join(names, ", ")));
  }
  // Reads an integer, or text such as "64KiB". Throws bad_argument for 0, a negative int and other text, and TypeError
  // for all else.
  std::uint64_t read_size() const;
  // Reads an integer. Throws TypeError for other objects, and bad_argument for one below `least` or beyond 64 bits.
  std::uint64_t read_whole(std::uint64_t least = 0) const { return parse_whole<std::uint64_t>(name_, value_, least); }
  std::vector<std::string> read_patterns() const {
    return read<std::vector<std::string>>("a pattern or a list of them");
  }
  std::vector<std::filesystem::path> read_paths() const;
  py::dict read_dict(std::string_view expected) const {
    if (!py::isinstance<py::dict>(value_)) throw py::type_error(make_message(expected));
    return value_;
  }
  bool is_dict() const { return py::isinstance<py::dict>(value_); }
  bool read_truth() const { return parse_truth(name_, value_); }
  std::filesystem::path read_path() const { return parse_path(value_); }
  IoMode read_io() const { return read_choice<IoMode>({{"map", IoMode::map}, {"read", IoMode::read}}); }

 private:
  std::string make_message(std::string_view expected) const {
    return fmt::format("{} is {}, expected {}", name_, make_short_repr(value_), expected);
  }

  std::string_view name_;
  py::object value_;
};

// Sets a field of the options from the Python keyword `name`.
template <typename Options>
struct Option {
  std::string_view name;
  void (*set)(const Given& given, Options& to);
};

// Converts a dict of keywords in the order of the rows, because some rows use what earlier ones have set (group_size
// uses quantize). Ignores None, and keywords without a row.
template <typename Options>
Options parse_options(const py::dict& given, std::span<const Option<Options>> known) {
  Options to;
  for (const Option<Options>& option : known) {
    const py::str name(option.name.data(), option.name.size());
    if (!given.contains(name)) continue;
    py::object value = given[name];
    if (!value.is_none()) option.set(Given(option.name, std::move(value)), to);
  }
  return to;
}

// Converts the keywords compress, digest, align, shard_size, dialect and overwrite.
WriteOptions parse_write_options(const py::dict& given);

}  // namespace poise::python
