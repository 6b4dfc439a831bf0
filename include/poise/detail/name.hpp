// Name: a short text that seldom changes, in half the space of a std::string: names of tensors and parts.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace poise {

// A text that owns its bytes, with a zero byte after them, and reads like a std::string_view. Assignment replaces the
// whole text. A large model has a hundred thousand, so names that every model has ("data", "scales", ...) allocate
// nothing.
class Name {
 public:
  Name() noexcept;
  Name(std::string_view text);
  Name(const std::string& text) : Name(std::string_view(text)) {}
  Name(const char* text) : Name(std::string_view(text)) {}
  Name(const Name& other) : Name(other.text_) {}
  Name(Name&& other) noexcept : Name() { swap(other); }
  Name& operator=(Name other) noexcept {
    swap(other);
    return *this;
  }
  ~Name();

  operator std::string_view() const { return text_; }
  operator std::string() const { return std::string(text_); }
  std::string_view view() const { return text_; }
  const char* c_str() const { return text_.data(); }

  bool empty() const { return text_.empty(); }
  std::size_t size() const { return text_.size(); }
  const char* data() const { return text_.data(); }
  const char* begin() const { return text_.data(); }
  const char* end() const { return text_.data() + text_.size(); }
  bool starts_with(std::string_view text) const { return text_.starts_with(text); }
  bool ends_with(std::string_view text) const { return text_.ends_with(text); }
  std::size_t find(std::string_view text, std::size_t from = 0) const { return text_.find(text, from); }
  std::size_t rfind(std::string_view text) const { return text_.rfind(text); }
  std::string_view substr(std::size_t from, std::size_t count = std::string_view::npos) const {
    return text_.substr(from, count);
  }

  void swap(Name& other) noexcept { text_.swap(other.text_); }

  friend std::string operator+(const Name& left, std::string_view right) { return std::string(left).append(right); }
  friend std::string operator+(std::string_view left, const Name& right) { return std::string(left).append(right); }

  template <std::convertible_to<std::string_view> Text>
  friend bool operator==(const Name& left, const Text& right) {
    return left.text_ == std::string_view(right);
  }
  template <std::convertible_to<std::string_view> Text>
  friend auto operator<=>(const Name& left, const Text& right) {
    return left.text_ <=> std::string_view(right);
  }

 private:
  std::string_view text_;
};

}  // namespace poise
