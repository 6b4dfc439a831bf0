// Name: a short text that seldom changes, in half the space of a std::string: names of tensors and parts.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace poise {

// A text that owns its bytes, with a zero byte after them. It converts to std::string_view and std::string; assignment
// replaces the whole text. A large model has a hundred thousand, so names that every model has ("data", "scales", ...)
// allocate nothing.
class Name : public std::string_view {
 public:
  Name() noexcept;
  Name(std::string_view text);
  Name(const std::string& text) : Name(std::string_view(text)) {}
  Name(const char* text) : Name(std::string_view(text)) {}
  Name(const Name& other) : Name(other.view()) {}
  Name(Name&& other) noexcept : Name() { swap(other); }
  Name& operator=(Name other) noexcept {
    swap(other);
    return *this;
  }
  ~Name();

  operator std::string() const { return std::string(view()); }
  std::string_view view() const { return *this; }
  const char* c_str() const { return data(); }

  void swap(Name& other) noexcept { std::string_view::swap(other); }
  void remove_prefix(size_type) = delete;
  void remove_suffix(size_type) = delete;

  friend std::string operator+(const Name& left, std::string_view right) { return std::string(left).append(right); }
  friend std::string operator+(std::string_view left, const Name& right) { return std::string(left).append(right); }
};

}  // namespace poise
