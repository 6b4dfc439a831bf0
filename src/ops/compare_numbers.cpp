#include "ops/compare_numbers.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bytes/little_endian.hpp"
#include "numeric/integers.hpp"
#include "views/dense.hpp"
#include "views/sparse.hpp"

namespace poise {
namespace {

constexpr std::size_t kChunkElements = 1 << 18;

enum class NumberKind : std::uint8_t { none, real, complex };

NumberKind find_number_kind(const Tensor& tensor) {
  if (has_float_elements(tensor)) return NumberKind::real;
  if (tensor.layout != Layout::dense && !is_sparse(tensor)) return NumberKind::none;
  const DType dtype = find_element_type(tensor);
  if (dtype == DType::unknown) return NumberKind::none;
  if (info(dtype).kind == DTypeKind::complex) return NumberKind::complex;
  return is_integer(dtype) || dtype == DType::boolean ? NumberKind::real : NumberKind::none;
}

// Holds elements in row-major order, each of one or two numbers.
struct Run {
  BlobPtr blob;
  DType number = DType::unknown;  // f32, f64 or an integer type
  unsigned numbers = 1;           // the numbers in an element

  std::size_t count_element_bytes() const { return std::size_t{info(number).bits / 8} * numbers; }
};

// Requires: find_number_kind() is not NumberKind::none.
Run make_run(const Tensor& tensor) {
  const DType dtype = find_element_type(tensor);
  if (has_float_elements(tensor) && dtype != DType::f64) return {make_dense_blob(tensor, DType::f32), DType::f32};
  Run run{make_dense_tensor(tensor).require("data").blob, dtype};
  if (dtype == DType::boolean) run.number = DType::u8;
  if (dtype == DType::complex64) run = {run.blob, DType::f32, 2};
  if (dtype == DType::complex128) run = {run.blob, DType::f64, 2};
  return run;
}

template <typename Use>
decltype(auto) visit_number(DType dtype, Use&& use) {
  if (dtype == DType::f32) return use(float{});
  if (dtype == DType::f64) return use(double{});
  return visit_integer(dtype, std::forward<Use>(use));
}

template <typename Integer>
std::uint64_t compute_magnitude(Integer value) {
  const auto bits = static_cast<std::uint64_t>(value);
  return std::cmp_less(value, 0) ? 0 - bits : bits;
}

// Returns the distance of an integer, which is 0 only if the numbers are equal. Subtracts the upper and the lower half
// of 64-bit integers one after the other, because float64 holds each of them.
template <typename Integer>
double compute_distance_from_integer(double number, Integer integer) {
  Integer low = integer;
  if constexpr (sizeof(Integer) == 8) {
    low = integer % (Integer{1} << 32U);
    number -= static_cast<double>(integer - low);
  }
  return std::abs(number - static_cast<double>(low));
}

// Returns |a - b|.
template <typename A, typename B>
double compute_distance(A a, B b) {
  if constexpr (std::is_floating_point_v<A> && std::is_floating_point_v<B>) {
    return std::abs(static_cast<double>(a) - static_cast<double>(b));
  } else if constexpr (std::is_floating_point_v<A>) {
    return compute_distance_from_integer(static_cast<double>(a), b);
  } else if constexpr (std::is_floating_point_v<B>) {
    return compute_distance_from_integer(static_cast<double>(b), a);
  } else {
    const bool like_signs = std::cmp_less(a, 0) == std::cmp_less(b, 0);
    if (!like_signs) return static_cast<double>(compute_magnitude(a)) + static_cast<double>(compute_magnitude(b));
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    return static_cast<double>(std::cmp_less(a, b) ? y - x : x - y);
  }
}

template <typename A, typename B>
bool is_same(A a, B b) {
  if constexpr (std::is_floating_point_v<A> && std::is_floating_point_v<B>) {
    return a == b || (std::isnan(a) && std::isnan(b));
  } else if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    return std::cmp_equal(a, b);
  } else {
    return compute_distance(a, b) == 0;
  }
}

// Sums up squares. Squares of float64 numbers are divided by the largest square, so that they neither overflow nor
// underflow.
class Squares {
 public:
  explicit Squares(bool of_doubles) : of_doubles_(of_doubles), largest_(of_doubles ? 0 : 1) {}

  // Adds the square of a number. Requires: it is finite and not negative.
  void add(double number) {
    if (!of_doubles_) {
      sum_ += number * number;
      return;
    }
    if (number == 0) return;
    if (number > largest_) {
      const double ratio = largest_ / number;
      sum_ = sum_ * ratio * ratio + 1;
      largest_ = number;
    } else {
      const double ratio = number / largest_;
      sum_ += ratio * ratio;
    }
  }

  double compute_root_mean(std::uint64_t count) const {
    return count == 0 ? 0 : largest_ * std::sqrt(sum_ / static_cast<double>(count));
  }
  // Returns 10 log10 of the sum of squares; minus infinity for zeros.
  double compute_decibels() const { return 20 * std::log10(largest_) + 10 * std::log10(sum_); }

 private:
  bool of_doubles_;
  double largest_;
  double sum_ = 0;
};

// Computes TensorDifference::Values from pairs of elements, one pair at a time.
class Differences {
 public:
  Differences(double tolerance, const Run& a, const Run& b)
      : tolerance_(tolerance),
        signal_(a.number == DType::f64 || b.number == DType::f64),
        noise_(a.number == DType::f64 || b.number == DType::f64) {}

  // Adds an element that is equal in both tensors. `magnitude` is its absolute value.
  void add(double magnitude) {
    if (std::isfinite(magnitude)) {
      signal_.add(magnitude);
    } else {
      is_finite_ = false;
    }
  }

  // Adds two elements that differ. `magnitude` is that of the first tensor's element, `distance` is |a - b|.
  void add(double magnitude, double distance) {
    add(magnitude);
    // NaN and a number count as infinitely far apart, as infinities of opposite sign are.
    if (std::isnan(distance)) distance = INFINITY;
    if (!(distance <= tolerance_)) ++result_.different;
    result_.max_absolute = std::max(result_.max_absolute, distance);
    if (distance == 0) return;
    if (std::isinf(distance)) {
      result_.max_relative = INFINITY;
      is_finite_ = false;
      return;
    }
    if (magnitude != 0) result_.max_relative = std::max(result_.max_relative, distance / magnitude);
    noise_.add(distance);
  }

  TensorDifference::Values make_result(std::uint64_t elements) const {
    TensorDifference::Values values = result_;
    values.rms = std::isfinite(values.max_absolute) ? noise_.compute_root_mean(elements) : values.max_absolute;
    values.signal_to_noise_db = values.max_absolute == 0 ? INFINITY
                                : is_finite_             ? signal_.compute_decibels() - noise_.compute_decibels()
                                                         : NAN;
    return values;
  }

 private:
  TensorDifference::Values result_;
  double tolerance_;
  Squares signal_;
  Squares noise_;
  bool is_finite_ = true;
};

template <typename Number>
double measure_magnitude(Number number) {
  if constexpr (std::is_floating_point_v<Number>) {
    return std::abs(static_cast<double>(number));
  } else {
    return static_cast<double>(compute_magnitude(number));
  }
}

template <typename A, typename B>
void compare_elements(const std::byte* a, const std::byte* b, std::size_t elements, unsigned numbers,
                      Differences& differences) {
  for (std::size_t i = 0; i < elements; ++i, a += numbers * sizeof(A), b += numbers * sizeof(B)) {
    const A x = load_le<A>(a);
    const B y = load_le<B>(b);
    if (numbers == 1) {
      is_same(x, y) ? differences.add(measure_magnitude(x))
                    : differences.add(measure_magnitude(x), compute_distance(x, y));
      continue;
    }
    const A imaginary_x = load_le<A>(a + sizeof(A));
    const B imaginary_y = load_le<B>(b + sizeof(B));
    const double size = std::hypot(measure_magnitude(x), measure_magnitude(imaginary_x));
    if (is_same(x, y) && is_same(imaginary_x, imaginary_y)) {
      differences.add(size);
      continue;
    }
    differences.add(size,
                    std::hypot(is_same(x, y) ? 0 : compute_distance(x, y),
                               is_same(imaginary_x, imaginary_y) ? 0 : compute_distance(imaginary_x, imaginary_y)));
  }
}

using CompareElements = void (*)(const std::byte*, const std::byte*, std::size_t, unsigned, Differences&);

CompareElements choose_comparison(DType a, DType b) {
  return visit_number(a, [&](auto x) {
    return visit_number(b, [&](auto y) -> CompareElements { return compare_elements<decltype(x), decltype(y)>; });
  });
}

// Returns the bytes as floats. The bytes of a vector are aligned for any type.
std::span<const float> view_floats(const std::vector<std::byte>& bytes, std::size_t count) {
  return {reinterpret_cast<const float*>(bytes.data()), count};
}

TensorDifference::Values compare_runs(const Run& left, const Run& right, std::uint64_t elements, double tolerance,
                                      const std::function<void(std::uint64_t)>& advance, const SeeFloats& see) {
  const CompareElements compare = choose_comparison(left.number, right.number);
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(kChunkElements, elements));
  std::vector<std::byte> a(most * left.count_element_bytes());
  std::vector<std::byte> b(most * right.count_element_bytes());
  Differences differences(tolerance, left, right);
  for (std::uint64_t done = 0; done < elements;) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(most, elements - done));
    left.blob->read(done * left.count_element_bytes(), std::span(a).first(count * left.count_element_bytes()));
    right.blob->read(done * right.count_element_bytes(), std::span(b).first(count * right.count_element_bytes()));
    compare(a.data(), b.data(), count, left.numbers, differences);
    if (see && left.number == DType::f32 && right.number == DType::f32 && left.numbers == 1)
      see(done, view_floats(a, count), view_floats(b, count));
    advance(count);
    done += count;
  }
  return differences.make_result(elements);
}

// Holds the stored elements of a sparse tensor, in the order of their cells.
class StoredElements {
 public:
  explicit StoredElements(const Tensor& tensor)
      : entries_(read_sparse_entries(tensor)), values_(make_values(tensor)), bytes_(read_all(*values_.blob)) {}

  const Run& values() const { return values_; }
  std::size_t size() const { return entries_.size(); }
  // Returns the i-th element's cell; UINT64_MAX after the last, so that the other tensor's elements come first.
  std::uint64_t get_cell(std::size_t i) const { return i < entries_.size() ? entries_[i].cell : UINT64_MAX; }
  const std::byte* get_bytes(std::size_t i) const {
    return bytes_.data() + entries_[i].place * values_.count_element_bytes();
  }

 private:
  Run make_values(const Tensor& tensor) const {
    const Part& values = tensor.require("values");
    return make_run(make_dense(tensor.name, {entries_.size()}, values.dtype, values.blob));
  }

  std::vector<SparseEntry> entries_;
  Run values_;
  std::vector<std::byte> bytes_;
};

// Compares the stored elements of two sparse tensors. An element that only one of them stores is compared with zero.
TensorDifference::Values compare_stored_elements(const Tensor& a, const Tensor& b, double tolerance,
                                                 const std::function<void(std::uint64_t)>& advance) {
  static constexpr std::array<std::byte, 16> kZero{};
  const StoredElements left(a);
  const StoredElements right(b);
  const CompareElements compare = choose_comparison(left.values().number, right.values().number);
  Differences differences(tolerance, left.values(), right.values());
  for (std::size_t i = 0, j = 0; i < left.size() || j < right.size();) {
    const std::uint64_t cell = std::min(left.get_cell(i), right.get_cell(j));
    const std::byte* x = left.get_cell(i) == cell ? left.get_bytes(i++) : kZero.data();
    const std::byte* y = right.get_cell(j) == cell ? right.get_bytes(j++) : kZero.data();
    compare(x, y, 1, left.values().numbers, differences);
  }
  advance(a.elements());
  return differences.make_result(a.elements());
}

}  // namespace

bool have_like_numbers(const Tensor& a, const Tensor& b) {
  const NumberKind kind = find_number_kind(a);
  return kind != NumberKind::none && kind == find_number_kind(b);
}

TensorDifference::Values compare_numbers(const Tensor& a, const Tensor& b, double tolerance,
                                         const std::function<void(std::uint64_t)>& advance, const SeeFloats& see) {
  if (is_sparse(a) && is_sparse(b)) return compare_stored_elements(a, b, tolerance, advance);
  return compare_runs(make_run(a), make_run(b), a.elements(), tolerance, advance, see);
}

bool is_same_number(float a, float b) { return is_same(a, b); }

namespace {

// Writes a value as unambiguous text: equal texts mean equal values. Sorts maps by key.
class Spelling {
 public:
  explicit Spelling(std::string& out) : out_(out) {}

  void operator()(std::nullptr_t) { out_ += 'n'; }
  void operator()(bool value) { out_ += value ? 't' : 'f'; }
  void operator()(std::int64_t value) { out_ += fmt::format("i{},", value); }
  void operator()(std::uint64_t value) { out_ += fmt::format("i{},", value); }
  void operator()(double value) {
    if (std::isnan(value)) value = std::abs(value);
    out_ += fmt::format("d{},", value == 0 ? 0.0 : value);
  }
  void operator()(const std::string& value) { out_ += fmt::format("s{}:{}", value.size(), value); }
  void operator()(const Value::Bytes& value) {
    out_ += fmt::format("b{}:", value.size());
    for (const std::byte byte : value) out_ += static_cast<char>(byte);
  }
  void operator()(const Value::Array& value) {
    out_ += fmt::format("a{}:", value.size());
    for (const Value& item : value) append_value(item);
  }
  void operator()(const Attributes& value) { append_map(value); }
  void operator()(const Value::Pairs& value) { append_map(value); }

  static std::string format_value(const Value& value) {
    std::string text;
    Spelling(text).append_value(value);
    return text;
  }

 private:
  void append_value(const Value& value) { std::visit(*this, value.storage()); }

  template <typename Map>
  void append_map(const Map& map) {
    std::vector<std::pair<std::string, const Value*>> entries;
    for (const auto& [key, item] : map) entries.emplace_back(format_value(key), &item);
    std::ranges::sort(entries, {}, [](const auto& entry) -> const std::string& { return entry.first; });
    out_ += fmt::format("m{}:", entries.size());
    for (const auto& [key, value] : entries) {
      out_ += key;
      append_value(*value);
    }
  }

  std::string& out_;
};

}  // namespace

bool is_same_value(const Value& a, const Value& b) {
  return a == b || Spelling::format_value(a) == Spelling::format_value(b);
}

}  // namespace poise
