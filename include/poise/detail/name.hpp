// Name: a short text that seldom changes, in half the room of a std::string: what tensors and their parts are called.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace poise {

// A text that owns its bytes, with a zero byte after them. It reads as a std::string_view, and as a std::string where
// one is asked for; a text changes only as a whole. A large model has a hundred thousand, so those that every model has
// ("data", "scales", ...) take no memory of their own.
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
