// The layout is that of numpy.array2string() in NumPy 1.24 (numpy/core/arrayprint.py).
#include "cli/numpy_text.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "numeric/float_formats.hpp"
#include "numeric/integers.hpp"

namespace poise::cli {
namespace {

constexpr std::uint64_t kThreshold = 1000;  // larger arrays are summarized
constexpr std::uint64_t kEdge = 3;          // numbers at each end of a dimension in a summary
constexpr std::size_t kLineColumns = 75;
constexpr int kPrecision = 8;
constexpr std::size_t kMostPrinted = 1 << 20;

struct Number {
  double value = 0;
  DType dtype = DType::f64;  // decides how many digits identify the number
};

// Returns the number in scientific form, with the fewest digits that identify it in its type.
std::string format_shortest(const Number& number) {
  const int most = number.dtype == DType::f16 ? 5 : 17;
  for (int digits = 0; digits < most; ++digits) {
    const std::string text = fmt::format("{:.{}e}", number.value, digits);
    const double back = parse_double(text).value();
    if (number.dtype == DType::f16 ? encode_f16(back) == encode_f16(number.value) : back == number.value) return text;
  }
  return fmt::format("{:.{}e}", number.value, most);
}

// Holds how many digits follow the first one, without zeros at the end, and the decimal exponent.
struct Digits {
  int count = 0;
  int exponent = 0;
};
Digits find_digits(const Number& number) {
  std::string text = number.dtype == DType::f32 ? fmt::format("{}", static_cast<float>(std::abs(number.value)))
                                                : format_shortest({std::abs(number.value), number.dtype});
  int exponent = 0;
  if (const auto e = text.find('e'); e != std::string::npos) {
    exponent = parse_number_text<int>(text[e + 1] == '+' ? text.substr(e + 2) : text.substr(e + 1)).value();
    text.resize(e);
  }
  const auto point = std::min(text.find('.'), text.size());
  std::string digits = text.substr(0, point) + (point < text.size() ? text.substr(point + 1) : "");
  exponent += static_cast<int>(point) - 1;
  const auto first = digits.find_first_not_of('0');
  if (first == std::string::npos) return {};
  exponent -= static_cast<int>(first);
  const auto last = digits.find_last_not_of('0');
  return {static_cast<int>(last - first), exponent};
}

// Returns a number without exponent, such as "1.5" or "2.": with the fewest digits that identify it, and at most 8
// after the point.
std::string format_positional(const Number& number) {
  if (number.value == 0) return std::signbit(number.value) ? "-0." : "0.";
  const Digits digits = find_digits(number);
  const int places = std::clamp(digits.count - digits.exponent, 0, kPrecision);
  std::string text = fmt::format("{:.{}f}", number.value, places);
  if (text.find('.') == std::string::npos) return text + '.';
  while (text.ends_with('0')) text.pop_back();
  return text;
}

std::string format_scientific(const Number& number, std::size_t places, std::size_t exponent_digits) {
  const std::string text = fmt::format("{:.{}e}", number.value, places);
  const auto e = text.find('e');
  return fmt::format("{}{}{}{:0>{}}", text.substr(0, e), places == 0 ? "." : "", text.substr(e, 2), text.substr(e + 2),
                     exponent_digits);
}

// Raises the counts to those that the number needs in scientific form: with the fewest digits that identify it, at most
// 8 after the point, and without zeros at the end.
void count_scientific_digits(const Number& number, std::size_t& places, std::size_t& exponent_digits) {
  const std::string text = fmt::format("{:.{}e}", number.value, std::min(find_digits(number).count, kPrecision));
  const auto e = text.find('e');
  const auto point = std::min(text.find('.'), e);
  const auto last = text.find_last_not_of('0', e - 1);
  if (last > point && last != std::string::npos) places = std::max(places, last - point);
  exponent_digits = std::max(exponent_digits, text.size() - e - 2);
}

// Divides in the type of the numbers, as NumPy does.
double divide(double a, double b, DType dtype) {
  if (dtype == DType::f16) return static_cast<double>(decode_float(dtype, encode_f16(a / b)));
  if (dtype == DType::f32) return static_cast<double>(static_cast<float>(a) / static_cast<float>(b));
  return a / b;
}

// Formats all printed numbers in the same form, and pads them to the width of the widest.
std::vector<std::string> format_floats(const std::vector<Number>& numbers) {
  double largest = 0;
  double smallest = HUGE_VAL;
  for (const Number& number : numbers) {
    if (!std::isfinite(number.value) || number.value == 0) continue;
    largest = std::max(largest, std::abs(number.value));
    smallest = std::min(smallest, std::abs(number.value));
  }
  const bool is_scientific =
      largest > 0 && (largest >= 1e8 || smallest < 0.0001 || divide(largest, smallest, numbers.front().dtype) > 1000);
  std::size_t places = 0;
  std::size_t exponent_digits = 2;
  if (is_scientific) {
    for (const Number& number : numbers) {
      if (std::isfinite(number.value)) count_scientific_digits(number, places, exponent_digits);
    }
  }
  std::vector<std::string> texts;
  std::size_t left = 0;
  std::size_t right = 0;
  for (const Number& number : numbers) {
    std::string& text = texts.emplace_back();
    if (!std::isfinite(number.value)) continue;
    text = is_scientific ? format_scientific(number, places, exponent_digits) : format_positional(number);
    const auto point = text.find('.');
    left = std::max(left, point);
    right = std::max(right, text.size() - point - 1);
  }
  std::size_t width = left + 1 + right;
  const bool has_finite = left > 0;
  const auto format_special = [](double value) { return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf"; };
  if (!has_finite) width = 0;
  for (const Number& number : numbers) {
    if (!std::isfinite(number.value)) width = std::max(width, std::string_view(format_special(number.value)).size());
  }
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::string& text = texts[i];
    if (text.empty()) {
      text = fmt::format("{:>{}}", format_special(numbers[i].value), width);
    } else {
      text.append(right - (text.size() - text.find('.') - 1), ' ');
      text = fmt::format("{:>{}}", text, width);
    }
  }
  return texts;
}

// Formats the number of an array without dimensions, as NumPy does: with the fewest digits that identify it. Zeros fill
// the places up to the point.
std::string format_scalar(const Number& number) {
  if (!std::isfinite(number.value)) return fmt::format("{}", number.value);
  const Digits digits = find_digits(number);
  const double size = std::abs(number.value);
  if (size != 0 && (size < 1e-4 || size >= 1e16)) return fmt::format("{:.{}e}", number.value, digits.count);
  if (digits.exponent > digits.count) {
    std::string text = fmt::format("{:.{}e}", number.value, digits.count);
    text.resize(text.find('e'));
    std::erase(text, '.');
    return text.append(static_cast<std::size_t>(digits.exponent - digits.count), '0') + ".0";
  }
  return fmt::format("{:.{}f}", number.value, std::max(digits.count - digits.exponent, 1));
}

// Puts formatted numbers into NumPy's brackets and lines.
class Printer {
 public:
  Printer(const Shape& shape, bool is_summarized, std::vector<std::string> words)
      : shape_(shape), is_summarized_(is_summarized), words_(std::move(words)) {}

  std::string format_axis(std::size_t axis, const std::string& indent, std::size_t width) {
    if (axis == shape_.size()) return words_[next_++];
    const bool is_cut = is_summarized_ && shape_[axis] > 2 * kEdge;
    const std::uint64_t leading = is_cut ? kEdge : 0;
    const std::uint64_t trailing = is_cut ? kEdge : shape_[axis];
    std::string text;
    if (axis + 1 == shape_.size()) {
      std::string line = indent;
      const auto extend = [&](const std::string& word) {
        if (line.size() + word.size() > width - 1 && line.size() > indent.size()) {
          while (line.ends_with(' ')) line.pop_back();
          text += line + '\n';
          line = indent;
        }
        line += word;
      };
      for (std::uint64_t i = 0; i < leading; ++i, line += ' ') extend(words_[next_++]);
      if (is_cut) {
        extend("...");
        line += ' ';
      }
      for (std::uint64_t i = trailing; i > 1; --i, line += ' ') extend(words_[next_++]);
      extend(words_[next_++]);
      text += line;
    } else {
      const std::string separator(shape_.size() - axis - 1, '\n');
      for (std::uint64_t i = 0; i < leading; ++i)
        text += indent + format_axis(axis + 1, indent + ' ', width - 1) + separator;
      if (is_cut) text += indent + "..." + separator;
      for (std::uint64_t i = trailing; i > 1; --i)
        text += indent + format_axis(axis + 1, indent + ' ', width - 1) + separator;
      text += indent + format_axis(axis + 1, indent + ' ', width - 1);
    }
    return '[' + text.substr(indent.size()) + ']';
  }

 private:
  const Shape& shape_;
  bool is_summarized_;
  std::vector<std::string> words_;
  std::size_t next_ = 0;
};

// Calls use() with the indices of each printed element, in order.
void visit_printed(const Shape& shape, bool is_summarized, std::vector<std::uint64_t>& indices,
                   FunctionRef<void(std::span<const std::uint64_t>)> use) {
  const std::size_t axis = indices.size();
  if (axis == shape.size()) return use(indices);
  for (std::uint64_t i = 0; i < shape[axis]; ++i) {
    if (is_summarized && shape[axis] > 2 * kEdge && i == kEdge) i = shape[axis] - kEdge;
    indices.push_back(i);
    visit_printed(shape, is_summarized, indices, use);
    indices.pop_back();
  }
}

Number read_float(DType dtype, const std::byte* bytes) {
  if (dtype == DType::f64) return {load_le<double>(bytes), dtype};
  if (dtype == DType::f32) return {static_cast<double>(load_le<float>(bytes)), dtype};
  return {static_cast<double>(decode_float(dtype, load_le<std::uint16_t>(bytes))),
          dtype == DType::f16 ? DType::f16 : DType::f32};
}

}  // namespace

std::string format_array(const Shape& shape, DType dtype,
                         FunctionRef<std::vector<std::byte>(std::span<const std::uint64_t> indices)> read) {
  const std::uint64_t count = element_count(shape).value_or(UINT64_MAX);
  if (count == 0) return "[]";
  const bool is_summarized = count > kThreshold;
  std::uint64_t printed = 1;
  for (const std::uint64_t length : shape) {
    printed *= is_summarized && length > 2 * kEdge ? 2 * kEdge : length;
    if (printed > kMostPrinted)
      throw Error(ErrorKind::unsupported,
                  fmt::format("shape {}: more than {} numbers would be printed; a slice prints fewer",
                              poise::to_string(shape), kMostPrinted));
  }
  std::vector<Number> numbers;
  std::vector<std::string> words;
  std::vector<std::uint64_t> indices;
  visit_printed(shape, is_summarized, indices, [&](std::span<const std::uint64_t> at) {
    const std::vector<std::byte> bytes = read(at);
    if (is_floating(dtype)) {
      numbers.push_back(read_float(dtype, bytes.data()));
    } else if (dtype == DType::boolean) {
      words.emplace_back(bytes[0] == std::byte{0} ? "False" : shape.empty() ? "True" : " True");
    } else {
      words.push_back(
          visit_integer(dtype, [&](auto zero) { return fmt::format("{}", load_le<decltype(zero)>(bytes.data())); }));
    }
  });
  if (is_floating(dtype)) {
    words = shape.empty() ? std::vector{format_scalar(numbers[0])} : format_floats(numbers);
  }
  std::size_t widest = 0;
  for (const std::string& word : words) widest = std::max(widest, word.size());
  for (std::string& word : words) word = fmt::format("{:>{}}", word, widest);
  return Printer(shape, is_summarized, std::move(words)).format_axis(0, " ", kLineColumns);
}

}  // namespace poise::cli
