#include "tensor/group_scheme.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "tensor/part_types.hpp"

namespace poise {
namespace {

using Zeros = GroupScheme::Zeros;

constexpr std::string_view kCodes = "packed_weight";  // version 2 calls this part data

[[noreturn]] void fail(const Tensor& tensor, GroupWords words, std::string_view what, std::string_view problem) {
  const bool codes = words == GroupWords::zt2 && what == kCodes;
  throw Error(ErrorKind::invalid_file, fmt::format("tensor {}: {}: {}", tensor.name, codes ? "data" : what, problem));
}

class SchemeReader {
 public:
  SchemeReader(const Tensor& tensor, GroupWords words) : tensor_(tensor) { scheme_.words = words; }

  GroupScheme read() {
    if (tensor_.shape.empty()) fail("shape", "expected one dimension or more, found none");
    scheme_.bits = static_cast<unsigned>(read_number("bits", 8));
    if (scheme_.bits == 0) fail("bits", "expected 1 to 8, found 0");
    scheme_.group_size = read_number("group_size", UINT64_MAX);
    scheme_.axis = read_axis();
    if (scheme_.words == GroupWords::zt2) {
      read_version_2(read_map("packing"));
    } else {
      read_version_1();
    }
    resolve_group_size();
    return scheme_;
  }

 private:
  [[noreturn]] void fail(std::string_view what, std::string_view problem) const {
    poise::fail(tensor_, scheme_.words, what, problem);
  }

  // Returns the attribute `key` of `map`. Messages have `in` before the key: "" for an attribute of the tensor,
  // "packing: " for a key of its packing.
  template <typename T>
  const T& require_value(const Attributes& map, std::string_view in, std::string_view key,
                         std::string_view expected) const {
    const auto* found = map.get_if<T>(key);
    if (found == nullptr)
      fail(fmt::format("{}{}", in, key),
           fmt::format("expected {}, found {}", expected, format_found_value(map.find(key))));
    return *found;
  }

  std::uint64_t read_number(const Attributes& map, std::string_view in, std::string_view key,
                            std::uint64_t limit) const {
    const auto found = require_value<std::uint64_t>(map, in, key, "an unsigned integer");
    if (found > limit)
      fail(fmt::format("{}{}", in, key), fmt::format("{} is too large, at most {} is possible", found, limit));
    return found;
  }
  std::uint64_t read_number(std::string_view key, std::uint64_t limit) const {
    return read_number(tensor_.attributes, "", key, limit);
  }

  const std::string& read_text(const Attributes& map, std::string_view in, std::string_view key) const {
    return require_value<std::string>(map, in, key, "text");
  }

  const Attributes& read_map(std::string_view key) const {
    return require_value<Attributes>(tensor_.attributes, "", key, "a map");
  }

  std::size_t read_axis() const {
    const std::uint64_t last = tensor_.shape.size() - 1;
    return tensor_.attributes.find("axis") == nullptr ? last : read_number("axis", last);
  }

  unsigned count_word_bits() const { return info(scheme_.word).bits; }

  // Reads a packing such as "8_per_i32". In version 1, each group has a scale and perhaps a plain zero point.
  void read_version_1() {
    const auto* spelling = tensor_.attributes.get_if<std::string>("packing");
    if (spelling == nullptr || !read_packing(*spelling)) {
      fail("packing", fmt::format("expected text such as 8_per_i32, found {}",
                                  format_found_value(tensor_.attributes.find("packing"))));
    }
    if (scheme_.per_word > count_word_bits() / scheme_.bits) {
      fail("packing", fmt::format("{} codes of {} bits do not fit into {}", scheme_.per_word, scheme_.bits,
                                  to_string(scheme_.word)));
    }
    if (scheme_.group_size == 0) fail("group_size", "expected 1 or more, found 0");
    scheme_.zeros = tensor_.part("zeros") == nullptr ? Zeros::none : Zeros::plain;
    scheme_.packing_axis = scheme_.axis;
    if (const std::uint64_t along = tensor_.shape[scheme_.axis]; along % scheme_.per_word != 0) {
      fail("packing", fmt::format("the {} codes along axis {} do not fill whole words of {}", along, scheme_.axis,
                                  scheme_.per_word));
    }
  }

  bool read_packing(std::string_view spelling) {
    constexpr std::string_view kMiddle = "_per_";
    const auto middle = spelling.find(kMiddle);
    if (middle == std::string_view::npos) return false;
    const auto [stop, error] = std::from_chars(spelling.data(), spelling.data() + middle, scheme_.per_word);
    scheme_.word = dtype_from_name(spelling.substr(middle + kMiddle.size())).value_or(DType::unknown);
    return error == std::errc() && stop == spelling.data() + middle && scheme_.per_word > 0 && is_integer(scheme_.word);
  }

  // Reads the attributes of version 2. Refuses 3, 5 and 6 bits, which version 2 allows, because no word consists of
  // whole codes of these sizes.
  void read_version_2(const Attributes& packing) {
    if (scheme_.bits != 2 && scheme_.bits != 4 && scheme_.bits != 8)
      fail("bits", fmt::format("expected 2, 4 or 8, found {}", scheme_.bits));
    (void)read_number("axis", UINT64_MAX);  // version 2 requires it
    const std::string& word = read_text(packing, "packing: ", "word");
    const auto dtype = dtype_from_name(word);
    if (!dtype || info(*dtype).kind != DTypeKind::unsigned_integer)
      fail("packing: word", fmt::format("expected u8, u16, u32 or u64, found \"{}\"", word));
    scheme_.word = *dtype;
    scheme_.per_word = static_cast<unsigned>(read_number(packing, "packing: ", "per_word", 64));
    if (scheme_.per_word * scheme_.bits != count_word_bits()) {
      fail("packing: per_word", fmt::format("expected {} codes of {} bits in {}, found {}",
                                            count_word_bits() / scheme_.bits, scheme_.bits, word, scheme_.per_word));
    }
    const std::string& order = read_text(packing, "packing: ", "order");
    if (order != "lsb_first" && order != "msb_first")
      fail("packing: order", fmt::format("expected lsb_first or msb_first, found \"{}\"", order));
    scheme_.high_bits_first = order == "msb_first";
    scheme_.packing_axis = tensor_.shape.size() - 1;
    read_scale_form(read_text(tensor_.attributes, "", "scale_form"));
    read_zero_point(read_map("zero_point"));
  }

  void read_scale_form(const std::string& form) {
    if (form == "e8m0_exponent") {
      scheme_.power_of_two = true;
    } else if (form != "f32_factors" && form != "f16_factors") {
      fail("scale_form", fmt::format("expected f32_factors, f16_factors or e8m0_exponent, found \"{}\"", form));
    }
  }

  void read_zero_point(const Attributes& zero_point) {
    const std::string& form = read_text(zero_point, "zero_point: ", "form");
    if (form == "none") {
      scheme_.zeros = Zeros::none;
    } else if (form == "implied") {
      scheme_.zeros = Zeros::fixed;
      scheme_.zero = read_fixed_zero(zero_point.find("value"));
    } else if (form == "tensor") {
      const std::string& packing = read_text(zero_point, "zero_point: ", "packing");
      if (packing != "same_as_data" && packing != "plain")
        fail("zero_point: packing", fmt::format("expected same_as_data or plain, found \"{}\"", packing));
      scheme_.zeros = packing == "plain" ? Zeros::plain : Zeros::packed;
    } else {
      fail("zero_point: form", fmt::format("expected none, implied or tensor, found \"{}\"", form));
    }
  }

  std::int64_t read_fixed_zero(const Value* value) const {
    if (value != nullptr) {
      if (const auto* number = value->get_if<std::uint64_t>(); number != nullptr && *number <= INT64_MAX)
        return static_cast<std::int64_t>(*number);
      if (const auto* number = value->get_if<std::int64_t>()) return *number;
    }
    fail("zero_point: value", fmt::format("expected an integer, found {}", format_found_value(value)));
  }

  void resolve_group_size() {
    const std::uint64_t along = tensor_.shape[scheme_.axis];
    if (scheme_.group_size != 0 && along % scheme_.group_size != 0) {
      fail("group_size",
           fmt::format("{} does not divide the {} codes along axis {}", scheme_.group_size, along, scheme_.axis));
    }
    if (scheme_.group_size != 0) return;
    // For group_size 0, the text of the profile asks for one scale per index along the axis, but its formula for one
    // per code. The size of the scales decides.
    const Part* scales = tensor_.part("scales");
    if (scales == nullptr) fail("scales", "the part is missing");
    const bool one_per_code =
        scales->dtype != DType::unknown && packed_bytes(scales->dtype, along) != scales->blob->size();
    scheme_.group_size = one_per_code ? 1 : 0;
  }

  const Tensor& tensor_;
  GroupScheme scheme_;
};

class PartsCheck {
 public:
  explicit PartsCheck(const Tensor& tensor)
      : tensor_(tensor), scheme_(*get_group_scheme(tensor.layout)), codes_(tensor.elements()) {
    groups_ = scheme_.group_size == 0 ? tensor.shape[scheme_.axis] : codes_ / scheme_.group_size;
  }

  void run() const {
    const bool has_zeros = scheme_.zeros == Zeros::plain || scheme_.zeros == Zeros::packed;
    for (const Part& part : tensor_.parts) {
      if (part.role != kCodes && part.role != "scales" && !(has_zeros && part.role == "zeros"))
        fail(part.role, "the scheme has no such part");
    }
    check_words(kCodes, codes_);
    const Part& scales = require("scales");
    if (scheme_.power_of_two ? scales.dtype != DType::f8_e8m0 : !is_floating(scales.dtype)) {
      fail("scales", fmt::format("expected {}, found {}", scheme_.power_of_two ? "f8_e8m0" : "a floating-point type",
                                 scales.type_name()));
    }
    check_elements(scales, groups_);
    if (scheme_.zeros == Zeros::packed) check_words("zeros", groups_);
    if (scheme_.zeros == Zeros::plain) {
      const Part& zeros = require("zeros");
      if (!is_floating(zeros.dtype) && !is_integer(zeros.dtype))
        fail("zeros", fmt::format("expected a number type, found {}", zeros.type_name()));
      check_elements(zeros, groups_);
    }
  }

 private:
  [[noreturn]] void fail(std::string_view what, std::string_view problem) const {
    poise::fail(tensor_, scheme_.words, what, problem);
  }
  unsigned count_word_bits() const { return info(scheme_.word).bits; }

  const Part& require(std::string_view role) const {
    const Part* part = tensor_.part(role);
    if (part == nullptr) fail(role, "the part is missing");
    return *part;
  }

  void check_words(std::string_view role, std::uint64_t codes) const {
    const Part& part = require(role);
    if (!is_integer(part.dtype) || info(part.dtype).bits != count_word_bits()) {
      fail(role, fmt::format("expected words of {} bits, found {}", count_word_bits(), part.type_name()));
    }
    if (codes % scheme_.per_word != 0)
      fail(role, fmt::format("{} codes do not fill whole words of {}", codes, scheme_.per_word));
    check_elements(part, codes / scheme_.per_word);
  }

  void check_elements(const Part& part, std::uint64_t elements) const {
    const auto bytes = packed_bytes(part.dtype, elements);
    if (bytes != part.blob->size())
      fail(part.role,
           fmt::format("expected {} elements of {}, found {} bytes", elements, part.type_name(), part.blob->size()));
  }

  const Tensor& tensor_;
  const GroupScheme& scheme_;
  std::uint64_t codes_;
  std::uint64_t groups_;  // the number of scales
};

// Sets fields that do not change any number to fixed values, so that operator== ignores them.
void clear_unused_fields(GroupScheme& scheme) {
  scheme.words = GroupWords::zt1;
  scheme.word = DType::unknown;  // the parts give its width; its sign has no meaning
  if (scheme.zeros != Zeros::fixed) scheme.zero = 0;
  if (scheme.zeros == Zeros::fixed && scheme.zero == 0) scheme.zeros = Zeros::none;
  if (scheme.per_word == 1) {
    scheme.packing_axis = 0;
    scheme.high_bits_first = false;
  }
}

}  // namespace

bool have_same_meaning(GroupScheme a, GroupScheme b) {
  clear_unused_fields(a);
  clear_unused_fields(b);
  return a == b;
}

bool is_group_scheme_attribute(std::string_view attribute) {
  constexpr std::array<std::string_view, 6> kKeys = {"bits",    "group_size", "axis",
                                                     "packing", "scale_form", "zero_point"};
  return std::ranges::find(kKeys, attribute) != kKeys.end();
}

TensorLayout make_group_layout(std::optional<GroupScheme> scheme) {
  return TensorLayout::with_scheme(to_string(Layout::quantized_group), scheme ? std::any(*scheme) : std::any(),
                                   Layout::quantized_group);
}

const GroupScheme* get_group_scheme(const TensorLayout& layout) {
  return layout == Layout::quantized_group ? layout.scheme<GroupScheme>() : nullptr;
}

GroupScheme read_group_scheme(const Tensor& tensor, GroupWords words) { return SchemeReader(tensor, words).read(); }

void check_group_parts(const Tensor& tensor) { PartsCheck(tensor).run(); }

std::optional<std::uint64_t> find_group_part_bytes(const Tensor& tensor, const Part& part) {
  const GroupScheme* const scheme = get_group_scheme(tensor.layout);
  if (scheme == nullptr || part.dtype == DType::unknown) return std::nullopt;
  const std::uint64_t codes = tensor.elements();
  const std::uint64_t groups = scheme->group_size == 0 ? tensor.shape[scheme->axis] : codes / scheme->group_size;
  if (part.role == kCodes) return packed_bytes(part.dtype, codes / scheme->per_word);
  if (part.role == "scales") return packed_bytes(part.dtype, groups);
  if (part.role != "zeros") return std::nullopt;
  return packed_bytes(part.dtype, scheme->zeros == GroupScheme::Zeros::packed ? groups / scheme->per_word : groups);
}

}  // namespace poise
