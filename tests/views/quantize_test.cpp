// Expected codes are computed by hand from docs/formats/alt.md, or by the plain formulas next to them.
#include "views/affine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include <poise/error.hpp>

#include "codec/affine.hpp"
#include "support/errors.hpp"
#include "views/computed_blob.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr StoredType kQint8{DType::qint8};
constexpr StoredType kQint4{DType::qint4};
constexpr StoredType kQint8Range{DType::qint8, ScaleRule::range};
constexpr StoredType kQint4Range{DType::qint4, ScaleRule::range};
constexpr StoredType kQint8Mse{DType::qint8, ScaleRule::least_squares};
constexpr StoredType kQint4Mse{DType::qint4, ScaleRule::least_squares};

Tensor matrix(const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return make_dense("w", {1, values.size()}, DType::f32, make_memory_blob(std::move(bytes), "w"));
}

std::vector<int> bytes_of(const Tensor& tensor) {
  std::vector<int> bytes;
  for (const std::byte byte : read_all(*tensor.require("data").blob)) bytes.push_back(std::to_integer<int>(byte));
  return bytes;
}

std::vector<float> decoded(const Tensor& tensor) {
  const auto bytes = read_all(*make_dense_blob(tensor, DType::f32));
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<float> normal_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0F, 0.02F);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

double squared_error(const std::vector<float>& values, double delta, double levels) {
  double sum = 0;
  for (const float value : values) {
    const double x = static_cast<double>(value);
    const double q = std::min(std::max(std::nearbyint(x / delta), -levels), levels);
    sum += (x - q * delta) * (x - q * delta);
  }
  return sum;
}

TEST(Quantize, TheLargestMagnitudeGetsTheLargestCodeAndTiesGoToEven) {
  const Tensor eight = quantize(matrix({127, -127, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F}), kQint8);
  EXPECT_EQ(eight.layout, Layout::affine);
  EXPECT_EQ(eight.layout.affine()->get(), (Affine{1, 0, 0, false}));
  EXPECT_THAT(bytes_of(eight), ElementsAre(127, 0x81, 0, 2, 2, 0, 0xfe));
}

TEST(Quantize, TwoCodesShareAByteTheEvenElementInTheLowHalf) {
  const Tensor four = quantize(matrix({7, -7, 0.5F, 1.5F, -2.5F}), kQint4);
  EXPECT_EQ(four.layout.affine()->get(), (Affine{1, 0, 0, true}));
  EXPECT_TRUE(four.layout.affine()->packed());
  EXPECT_THAT(bytes_of(four), ElementsAre(0x97, 0x20, 0x0e));
  EXPECT_THAT(decoded(four), ElementsAre(7, -7, 0, 2, -2));
}

TEST(Quantize, ARangeRunsFromTheSmallestToTheLargestValue) {
  const Tensor eight = quantize(matrix({-1, 254, 0, 1.5F}), kQint8Range);
  EXPECT_EQ(eight.layout.affine()->get(), (Affine{1, -1, 254, false}));
  EXPECT_THAT(bytes_of(eight), ElementsAre(0, 255, 1, 2));
  EXPECT_THAT(decoded(eight), ElementsAre(-1, 254, 0, 1));
  const Tensor four = quantize(matrix({-8, 22, 0}), kQint4Range);
  EXPECT_EQ(four.layout.affine()->get(), (Affine{2, -8, 22, true}));
  EXPECT_THAT(bytes_of(four), ElementsAre(0xf0, 0x04));
}

TEST(Quantize, ARangeWiderThanTheLargestFloat) {
  const float huge = 3e38F;
  const Tensor tensor = quantize(matrix({-huge, 0, huge}), kQint8Range);
  EXPECT_THAT(bytes_of(tensor), ElementsAre(0, 128, 255));
  EXPECT_FLOAT_EQ(decoded(tensor)[2], huge);
}

TEST(Quantize, AConstantTensorHasNoRangeAndIsSymmetric) {
  const Tensor tensor = quantize(matrix({-3, -3}), kQint8Range);
  EXPECT_FALSE(tensor.layout.affine()->get().ranged());
  EXPECT_THAT(bytes_of(tensor), ElementsAre(0x81, 0x81));
}

TEST(Quantize, ZerosHaveNoScale) {
  for (const StoredType& type : {kQint8, kQint4, kQint8Range, kQint8Mse}) {
    const Tensor tensor = quantize(matrix({0, 0, -0.0F}), type);
    EXPECT_EQ(tensor.layout.affine()->get().delta, 0) << to_string(type);
    EXPECT_THAT(decoded(tensor), ElementsAre(0, 0, 0));
  }
  EXPECT_EQ(bytes_of(quantize(matrix({}), kQint4)).size(), 0U);
  // The scale of the smallest numbers is zero, too.
  EXPECT_THAT(decoded(quantize(matrix({1e-45F, -1e-45F}), kQint8)), ElementsAre(0, 0));
}

TEST(Quantize, ElementsThatAreNotFiniteAreRefusedByIndex) {
  auto values = normal_values(200'000, 1);
  values[150'001] = std::numeric_limits<float>::quiet_NaN();
  values[190'000] = std::numeric_limits<float>::infinity();
  for (const StoredType& type : {kQint8, kQint8Range, kQint4Mse}) {
    const Tensor tensor = quantize(matrix(values), type);
    const Error error = support::error_of([&] { tensor.layout.affine()->get(); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("tensor w: element 150001 is not finite"));
  }
}

// 127 times a rounded scale may be more than any float32 number.
TEST(Quantize, CodesOfNumbersThatAreNotFiniteAreRefused) {
  std::size_t refused = 0;
  for (const StoredType& type : {kQint8, kQint4, kQint8Range, kQint4Range}) {
    float largest = std::numeric_limits<float>::max();
    for (int i = 0; i < 200; ++i, largest = std::nextafter(largest, 0.0F)) {
      const Tensor tensor = quantize(matrix({largest, -largest, 1.0F}), type);
      try {
        for (const float value : decoded(tensor)) ASSERT_TRUE(std::isfinite(value)) << to_string(type);
        (void)bytes_of(tensor);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::unsupported);
        EXPECT_EQ(error.remedies().front().kind, Remedy::Kind::keep);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 0U);
}

// Any piece at any place equals the result of the plain formula.
TEST(Quantize, EveryPieceAgreesWithTheFormula) {
  const auto values = normal_values(100'001, 2);
  const Tensor eight = quantize(matrix(values), kQint8);
  const Tensor four = quantize(matrix(values), kQint4);
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  EXPECT_EQ(eight.layout.affine()->get().delta, largest / 127);
  EXPECT_EQ(four.layout.affine()->get().delta, largest / 7);
  const auto code = [&](std::size_t i, const Tensor& tensor) {
    return static_cast<int>(std::nearbyint(values[i] / tensor.layout.affine()->get().delta));
  };
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    const std::size_t begin = random() % 50'000;
    const std::size_t count = 1 + random() % 9'000;
    std::vector<std::byte> bytes(count);
    eight.require("data").blob->read(begin, bytes);
    for (std::size_t i = 0; i < count; ++i)
      ASSERT_EQ(static_cast<int>(std::to_integer<std::int8_t>(bytes[i])), code(begin + i, eight));
    four.require("data").blob->read(begin / 2, std::span(bytes).first(count / 2));
    for (std::size_t i = 0; i < count / 2; ++i) {
      const std::size_t element = 2 * (begin / 2 + i);
      ASSERT_EQ(std::to_integer<int>(bytes[i]), (code(element, four) & 15) | (code(element + 1, four) & 15) << 4);
    }
  }
}

// The best of two thousand evenly spaced clipping magnitudes, tried on the values themselves, is hardly better.
TEST(Quantize, LeastSquaresFindsTheBestClippingScale) {
  auto values = normal_values(20'000, 4);
  const auto best_of_all = [&](double largest, double levels) {
    double least = squared_error(values, largest / levels, levels);
    for (int i = 1; i < 500; ++i) least = std::min(least, squared_error(values, largest * i / 500 / levels, levels));
    return least;
  };
  for (const float outlier : {0.0F, 0.3F, 5.0F}) {
    values[77] = outlier;
    double largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(static_cast<double>(value)));
    for (const auto& [type, levels] : {std::pair{kQint8Mse, 127.0}, std::pair{kQint4Mse, 7.0}}) {
      const double found = squared_error(
          values, static_cast<double>(quantize(matrix(values), type).layout.affine()->get().delta), levels);
      EXPECT_LE(found, best_of_all(largest, levels) * 1.002) << to_string(type) << " " << outlier;
      EXPECT_LE(found, squared_error(values, largest / levels, levels) * 1.0001);  // a histogram is not an exact sum
    }
  }
}

TEST(Quantize, TheReportMatchesTheLoss) {
  const auto values = normal_values(30'001, 5);
  LossyBlobPtr<QuantizationError> codes;
  const Tensor tensor = quantize(matrix(values), kQint4, &codes);
  ASSERT_EQ(tensor.require("data").blob, codes);
  QuantizationError total;
  std::vector<std::byte> bytes(codes->size());
  codes->read_measured(0, bytes, &total);
  const auto back = decoded(quantize(matrix(values), kQint4));
  double worst = 0;
  double error = 0;
  double signal = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = static_cast<double>(values[i]) - static_cast<double>(back[i]);
    worst = std::max(worst, std::abs(difference));
    error += difference * difference;
    signal += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  EXPECT_EQ(total.values, values.size());
  EXPECT_EQ(total.worst, worst);
  EXPECT_NEAR(total.rms(), std::sqrt(error / static_cast<double>(values.size())), 1e-6 * total.rms());
  EXPECT_NEAR(total.signal_to_noise_db(), 10 * std::log10(signal / error), 1e-5);
  EXPECT_TRUE(std::isinf(QuantizationError{}.signal_to_noise_db()));
}

TEST(Quantize, HalvesAndCodesAreQuantizedByTheirValues) {
  const Tensor codes = quantize(matrix({127, -127, 64}), kQint8);
  EXPECT_THAT(decoded(quantize(codes, kQint8)), ElementsAre(127, -127, 64));
  const auto halves = read_all(*make_dense_blob(matrix({7, -3}), DType::f16));
  const Tensor half = make_dense("h", {1, 2}, DType::f16, make_memory_blob(halves, "h"));
  EXPECT_THAT(bytes_of(quantize(half, kQint4)), ElementsAre(0xd7));
}

TEST(Affine, OneCodeAByteIsPackedForWriting) {
  Tensor loose =
      make_dense("w", {5}, DType::qint4,
                 make_memory_blob({std::byte{7}, std::byte{0xf9}, std::byte{0}, std::byte{0xff}, std::byte{1}}, "w"));
  loose.layout = make_affine({0.5F, 0, 0, false});
  const Tensor packed = make_packed_qint4_view(loose);
  EXPECT_TRUE(packed.layout.affine()->get().packed);
  EXPECT_THAT(bytes_of(packed), ElementsAre(0x97, 0xf0, 0x01));
  EXPECT_THAT(decoded(loose), ElementsAre(3.5F, -3.5F, 0, -0.5F, 0.5F));
  EXPECT_EQ(decoded(packed), decoded(loose));
}

TEST(Affine, ACodeThatDoesNotFitFourBitsIsFound) {
  const std::vector<std::byte> symmetric = {std::byte{7}, std::byte{0xf8}, std::byte{8}};
  EXPECT_EQ(find_bad_code(get_code_format(DType::qint4, {1, 0, 0, false}), symmetric)->element, 2U);
  const std::vector<std::byte> range = {std::byte{15}, std::byte{16}};
  EXPECT_EQ(find_bad_code(get_code_format(DType::qint4, {1, 0, 15, false}), range)->element, 1U);
  EXPECT_FALSE(find_bad_code(get_code_format(DType::qint8, {1, 0, 0, false}), symmetric));
}

// verify() reports such a tensor; reading it throws.
TEST(Affine, InvalidTensorsAreNotDecoded) {
  const auto problem = [](const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
      return error.message();
    }
    return std::string();
  };
  Tensor loose =
      make_dense("w", {3}, DType::qint4, make_memory_blob({std::byte{7}, std::byte{200}, std::byte{0}}, "w"));
  loose.layout = make_affine({0.5F, 0, 0, false});
  const std::string expected = "tensor w: element 1: the code 200 does not fit 4 bits";
  EXPECT_EQ(problem([&] { decoded(loose); }), expected);
  EXPECT_EQ(problem([&] { bytes_of(make_packed_qint4_view(loose)); }), expected);
  EXPECT_EQ(problem([&] { bytes_of(add_value_checks(loose)); }),
            "tensor w: data: element 1: the code 200 does not fit 4 bits");
  Tensor odd = make_dense("w", {3}, DType::qint4, make_memory_blob({std::byte{0x21}, std::byte{0x43}}, "w"));
  odd.layout = make_affine({0.5F, 0, 0, true});
  EXPECT_EQ(problem([&] { bytes_of(add_value_checks(odd)); }),
            "tensor w: data: the high half of the last byte holds no code: expected 0, found 4");
  Tensor scaled = make_dense("w", {1}, DType::qint8, make_memory_blob({std::byte{7}}, "w"));
  scaled.layout = make_affine({std::numeric_limits<float>::quiet_NaN(), 0, 0, false});
  EXPECT_EQ(problem([&] { decoded(scaled); }), "tensor w: delta is nan, expected a finite number of at least 0");
  scaled.layout = make_affine({1, 0, std::numeric_limits<float>::infinity(), false});
  EXPECT_EQ(problem([&] { decoded(scaled); }), "tensor w: min and max are 0 and inf, expected finite numbers");
}

TEST(StoredType, NamesAreReadAndWritten) {
  for (const char* name :
       {"f32", "f16", "bf16", "qint8", "qint4", "qint8:range", "qint4:range", "qint8:mse", "qint4:mse"}) {
    const auto type = stored_type_from_name(name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(to_string(*type), name);
  }
  for (const char* name : {"", "f64", "i8", "f16:mse", "qint8:", "qint8:MSE", "qint8:range:mse", ":mse"})
    EXPECT_FALSE(stored_type_from_name(name)) << name;
}

}  // namespace
}  // namespace poise
