// Compares weights in their stored form with the numbers of views/. tests/views/ has numbers written by hand.
#include "runtime/matrix.hpp"

#include <cmath>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/units.hpp"
#include "tensor/group_scheme.hpp"
#include "views/dense.hpp"
#include "views/groups.hpp"

namespace poise {
namespace {

// Makes numbers of a tensor's parts, the same in every run.
class RandomParts {
 public:
  Part codes(std::string role, DType dtype, std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    for (std::byte& byte : data) byte = static_cast<std::byte>(random_());
    return {.role = std::move(role), .dtype = dtype, .blob = make_memory_blob(std::move(data), "codes")};
  }
  // Makes numbers from -2 to 2 that float16 and bfloat16 hold.
  Part numbers(std::string role, DType dtype, std::size_t count) {
    std::vector<float> numbers(count);
    for (float& number : numbers) number = static_cast<float>(static_cast<int>(random_() % 129) - 64) / 32.0F;
    const auto bytes = std::as_bytes(std::span(numbers));
    const Tensor exact =
        make_dense("numbers", {count}, DType::f32, make_memory_blob({bytes.begin(), bytes.end()}, "f"));
    return {.role = std::move(role), .dtype = dtype, .blob = make_dense_blob(exact, dtype)};
  }

 private:
  std::mt19937 random_{7};
};

Tensor with(TensorLayout layout, Shape shape, std::vector<Part> parts) {
  Tensor tensor;
  tensor.name = "w";
  tensor.shape = std::move(shape);
  tensor.layout = std::move(layout);
  for (Part& part : parts) tensor.parts.push_back(std::move(part));
  return tensor;
}

Tensor codebook(const Shape& shape, std::uint64_t block) {
  RandomParts random;
  const std::uint64_t elements = *element_count(shape);
  return with(make_codebook_layout(block), shape,
              {random.codes("data", DType::u8, elements / 2), random.numbers("codebook", DType::f32, 16),
               random.numbers("scales", DType::f32, (elements + block - 1) / block)});
}

Tensor block_scaled(const Shape& shape, DType dtype, const BlockShape& block) {
  RandomParts random;
  const std::uint64_t rows = shape[shape.size() - 2];
  const std::uint64_t scales =
      (rows + block.rows - 1) / block.rows * ((shape.back() + block.columns - 1) / block.columns);
  return with(make_block_scaled_layout(block), shape,
              {random.codes("data", dtype, *packed_bytes(dtype, *element_count(shape))),
               random.numbers("scales", DType::f32, *element_count(shape) / rows / shape.back() * scales)});
}

struct Types {
  DType scales = DType::f32;
  DType zeros = DType::unknown;  // none
};

// Makes rows of codes, with a scale for `group` columns, or for each row if that is 0.
Tensor groups(const Shape& shape, unsigned bits, std::uint64_t group, const Types& types, std::int64_t zero = 0) {
  RandomParts random;
  GroupScheme scheme;
  scheme.bits = bits;
  scheme.group_size = group;
  scheme.axis = group == 0 ? 0 : shape.size() - 1;
  scheme.packing_axis = shape.size() - 1;
  scheme.word = DType::u8;
  scheme.per_word = 8 / bits;
  scheme.zeros = types.zeros != DType::unknown ? GroupScheme::Zeros::plain
                 : zero != 0                   ? GroupScheme::Zeros::fixed
                                               : GroupScheme::Zeros::none;
  scheme.zero = zero;
  scheme.words = GroupWords::zt2;
  const std::uint64_t elements = *element_count(shape);
  const std::uint64_t count = group == 0 ? shape[0] : elements / group;
  std::vector<Part> parts = {random.codes("packed_weight", DType::u8, elements * bits / 8),
                             random.numbers("scales", types.scales, count)};
  if (types.zeros != DType::unknown) parts.push_back(random.numbers("zeros", types.zeros, count));
  return with(make_group_layout(scheme), shape, std::move(parts));
}

// Makes rows of codes, each column in the group that the index names.
Tensor indexed(const Shape& shape, unsigned bits, std::uint64_t group, const std::vector<std::uint32_t>& index,
               const Types& types = {DType::f16, DType::f16}, std::size_t axis = 1) {
  RandomParts random;
  const std::uint64_t elements = *element_count(shape);
  Tensor tensor = with(
      {}, shape,
      {random.codes("data", DType::u8, elements * bits / 8), random.numbers("scales", types.scales, elements / group),
       random.numbers("zeros", types.zeros, elements / group)});
  const auto bytes = std::as_bytes(std::span(index));
  tensor.parts.push_back(
      {.role = "group_index", .dtype = DType::u32, .blob = make_memory_blob({bytes.begin(), bytes.end()}, "index")});
  tensor.attributes = {
      {"bits", std::uint64_t{bits}},
      {"group_size", group},
      {"axis", std::uint64_t{axis}},
      {"packing", Attributes{{"word", "u8"}, {"order", "lsb_first"}, {"per_word", std::uint64_t{8 / bits}}}},
      {"scale_form", types.scales == DType::f16 ? "f16_factors" : "f32_factors"},
      {"zero_point", Attributes{{"form", "tensor"}, {"packing", "plain"}}}};
  tensor.layout = make_indexed_groups_layout(tensor);
  return tensor;
}

// Returns the group of each column: `group` columns each, in an order that follows from the seed.
std::vector<std::uint32_t> shuffled(std::size_t columns, std::size_t group, unsigned seed) {
  std::vector<std::uint32_t> index(columns);
  for (std::size_t i = 0; i < columns; ++i) index[i] = static_cast<std::uint32_t>(i / group);
  std::mt19937 random(seed);
  for (std::size_t i = columns; i > 1; --i) std::swap(index[i - 1], index[random() % i]);
  return index;
}

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

class StoredForms : public ::testing::TestWithParam<Unit> {
  ChosenUnit chosen_{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Targets, StoredForms, ::testing::ValuesIn(every_unit()),
                         [](const auto& unit) { return name_of(unit.param); });

// Expects that memory holds the codes, not their numbers, and that the numbers are the same to the bit.
void expect_stored(const Tensor& tensor, Storage storage, const std::string& what) {
  SCOPED_TRACE(what);
  ASSERT_EQ(make_stored_form(tensor).rows.storage, storage);
  const BlobPtr blob = make_dense_blob(tensor, DType::f32);
  std::vector<float> expected(tensor.elements());
  blob->read(0, std::as_writable_bytes(std::span(expected)));
  const std::size_t columns = tensor.shape.back();
  std::vector<std::unique_ptr<Matrix>> matrices;
  if (tensor.shape.size() == 3) {
    matrices = load_matrices(tensor, Orientation::out_in);
  } else {
    matrices.push_back(load_matrix(tensor));
  }
  std::size_t at = 0;
  for (const auto& matrix : matrices) {
    EXPECT_EQ(matrix->stored().storage, storage);
    for (std::size_t r = 0; r < matrix->rows(); ++r) {
      std::vector<float> row(columns);
      matrix->decode(r, 1, row.data());
      for (std::size_t c = 0; c < columns; ++c, ++at)
        ASSERT_TRUE(same(row[c], expected[at])) << r << ", " << c << ": " << row[c] << ", " << expected[at];
    }
  }
}

TEST_P(StoredForms, OfCodebooks) {
  expect_stored(codebook({5, 128}, 64), Storage::codebook4, "blocks in rows");
  expect_stored(codebook({6, 64}, 128), Storage::codebook4, "a block has two rows");
  expect_stored(codebook({5, 64}, 128), Storage::codebook4, "the last block is short");
  expect_stored(codebook({3, 4, 64}, 32), Storage::codebook4, "several matrices");
  expect_stored(codebook({5, 96}, 64), Storage::f32, "blocks end within rows");
  expect_stored(codebook({3, 3, 64}, 128), Storage::f32, "a block has rows of two matrices");
  expect_stored(codebook({5, 24}, 8), Storage::f32, "blocks shorter than vectors");
}

TEST_P(StoredForms, OfNumbersWithScales) {
  for (const auto& [dtype, storage] :
       {std::pair{DType::f8_e4m3, Storage::scaled_f8_e4m3}, std::pair{DType::f8_e5m2, Storage::scaled_f8_e5m2},
        std::pair{DType::f4_e2m1, Storage::codebook4}}) {
    expect_stored(block_scaled({7, 112}, dtype, {3, 48}), storage, "short blocks at the end");
    expect_stored(block_scaled({7, 112}, dtype, {1, 112}), storage, "a scale a row");
    expect_stored(block_scaled({7, 112}, dtype, {7, 112}), storage, "one scale");
    expect_stored(block_scaled({7, 112}, dtype, {128, 128}), storage, "blocks larger than the matrix");
    expect_stored(block_scaled({7, 112}, dtype, {1, 16}), storage, "blocks in rows");
    expect_stored(block_scaled({3, 4, 32}, dtype, {2, 16}), storage, "several matrices");
    expect_stored(block_scaled({3, 5, 32}, dtype, {2, 16}), Storage::f32, "several matrices, short blocks");
    expect_stored(block_scaled({7, 24}, dtype, {1, 24}), Storage::f32, "rows that are not whole vectors");
    expect_stored(block_scaled({7, 48}, dtype, {1, 12}), Storage::f32, "blocks shorter than vectors");
  }
  expect_stored(block_scaled({7, 112}, DType::bf16, {1, 16}), Storage::f32, "numbers of 16 bits");
}

TEST_P(StoredForms, OfGroups) {
  for (const unsigned bits : {4U, 8U}) {
    const Storage scaled = bits == 8 ? Storage::scaled8 : Storage::scaled4;
    const Storage halves = bits == 8 ? Storage::group8 : Storage::group4;
    expect_stored(groups({5, 64}, bits, 32, {DType::f16, DType::f16}), halves, "halves");
    expect_stored(groups({5, 64}, bits, 32, {DType::f32, DType::f32}), scaled, "float32");
    expect_stored(groups({5, 64}, bits, 16, {DType::bf16, DType::f16}), scaled, "bfloat16 scales");
    expect_stored(groups({5, 64}, bits, 64, {DType::f16, DType::f32}), scaled, "float32 zero points");
    expect_stored(groups({5, 64}, bits, 32, {DType::f16}), scaled, "no zero points");
    expect_stored(groups({5, 64}, bits, 32, {DType::f16}, 9), scaled, "one zero point");
    expect_stored(groups({3, 4, 64}, bits, 32, {DType::f32, DType::f32}), scaled, "several matrices");
    expect_stored(groups({5, 64}, bits, 0, {DType::f32, DType::f32}), scaled, "a scale a row");
    expect_stored(groups({5, 64}, bits, 8, {DType::f32}), Storage::f32, "groups shorter than vectors");
  }
}

TEST_P(StoredForms, OfGroupsInAnotherOrder) {
  for (const unsigned bits : {4U, 8U}) {
    const Storage scaled = bits == 8 ? Storage::scaled8 : Storage::scaled4;
    const Storage halves = bits == 8 ? Storage::group8 : Storage::group4;
    expect_stored(indexed({5, 128}, bits, 32, shuffled(128, 32, 1)), halves, "halves");
    expect_stored(indexed({5, 128}, bits, 32, shuffled(128, 32, 1), {DType::f32, DType::f32}), scaled, "float32");
    expect_stored(indexed({5, 128}, bits, 16, shuffled(128, 64, 1)), halves, "groups without columns");
    std::vector<std::uint32_t> index = shuffled(128, 128, 1);
    for (std::size_t i = 0; i < 128; i += 8) index[i] = 3;
    expect_stored(indexed({5, 128}, bits, 32, index), halves, "groups of 112 and of 16 columns");
    index[1] = 2;
    expect_stored(indexed({5, 128}, bits, 32, index), Storage::f32, "a group of one column");
  }
}

// Matrices with the same order of columns share x in that order.
TEST_P(StoredForms, OfGroupsInAnotherOrderMultiplyAsTheirNumbersDo) {
  constexpr std::size_t kRows = 24, kColumns = 192;
  std::vector<std::unique_ptr<Matrix>> stored, dense;
  for (const unsigned seed : {1U, 1U, 2U}) {
    const Tensor tensor = indexed({kRows, kColumns}, 4, 64, shuffled(kColumns, 64, seed));
    stored.push_back(load_matrix(tensor));
    ASSERT_EQ(stored.back()->stored().storage, Storage::group4);
    const auto bytes = read_all(*make_dense_blob(tensor, DType::f32));
    dense.push_back(load_matrix(make_dense("w", tensor.shape, DType::f32, make_memory_blob(bytes, "n"))));
  }
  for (const std::size_t tokens : {1U, 3U, 50U}) {
    std::vector<float> x(tokens * kColumns);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
    for (const Precision precision : {Precision::exact, Precision::fast, Precision::apart}) {
      std::vector<std::vector<float>> y(6, std::vector<float>(tokens * kRows));
      std::vector<Product> products;
      for (std::size_t m = 0; m < 3; ++m) {
        products.push_back({stored[m].get(), y[m].data()});
        multiply(*dense[m], x.data(), tokens, y[3 + m].data(), Precision::exact);
      }
      multiply(products, x.data(), tokens, precision);
      for (std::size_t m = 0; m < 3; ++m) {
        for (std::size_t i = 0; i < y[m].size(); ++i) {
          std::vector<float> row(kColumns);
          dense[m]->decode(i % kRows, 1, row.data());
          double magnitude = 0;
          for (std::size_t c = 0; c < kColumns; ++c)
            magnitude += std::abs(static_cast<double>(row[c]) * static_cast<double>(x[i / kRows * kColumns + c]));
          const double most = precision == Precision::exact ? 0x1p-20 : 0x1.02p-7;  // kernels/product.hpp
          ASSERT_NEAR(y[m][i], y[3 + m][i], most * magnitude) << tokens << ", " << m << ", " << i;
        }
      }
    }
  }
}

TEST_P(StoredForms, OfGroupsAlongColumns) {
  for (const unsigned bits : {2U, 4U, 8U}) {
    const Storage storage = bits == 8 ? Storage::by_column8 : Storage::by_column4;
    for (const Types& types : {Types{DType::f16, DType::f16}, {DType::bf16, DType::f32}}) {
      expect_stored(indexed({24, 48}, bits, 8, shuffled(24, 8, 1), types, 0), storage, "rows of three groups");
      expect_stored(indexed({24, 48}, bits, 24, std::vector<std::uint32_t>(24), types, 0), storage, "one group");
    }
    expect_stored(indexed({24, 24}, bits, 8, shuffled(24, 8, 1), {DType::f16, DType::f16}, 0), Storage::f32,
                  "rows that are not whole vectors");
  }
}

// These codes are kept in four bits.
TEST_P(StoredForms, OfGroupsOfTwoBits) {
  expect_stored(groups({5, 64}, 2, 32, {DType::f16, DType::f16}), Storage::group4, "halves");
  expect_stored(groups({5, 64}, 2, 16, {DType::f32, DType::f32}), Storage::scaled4, "float32");
  expect_stored(groups({3, 4, 64}, 2, 32, {DType::f16, DType::f16}), Storage::group4, "several matrices");
  expect_stored(groups({5, 48}, 2, 0, {DType::f32}, 2), Storage::scaled4, "a scale a row");
  expect_stored(groups({4, 6}, 2, 3, {DType::f16, DType::f16}), Storage::f32, "rows that are not whole bytes");
  expect_stored(indexed({5, 128}, 2, 32, shuffled(128, 32, 1)), Storage::group4, "in another order");
}

// An empty tensor has no number of columns to divide by.
TEST_P(StoredForms, OfNoElements) {
  for (const Shape& shape : {Shape{0, 64}, Shape{4, 0}, Shape{0, 0}}) {
    EXPECT_EQ(make_stored_form(codebook(shape, 64)).rows.storage, Storage::f32);
    EXPECT_EQ(make_stored_form(groups(shape, 2, 16, {DType::f16, DType::f16})).rows.storage, Storage::f32);
    EXPECT_EQ(make_stored_form(with(make_block_scaled_layout({2, 16}), shape,
                                    {RandomParts().codes("data", DType::f8_e4m3, 0),
                                     RandomParts().numbers("scales", DType::f32, 0)}))
                  .rows.storage,
              Storage::f32);
  }
}

// Products equal those of the same numbers as float32: to the bit with Precision::exact, else up to the rounding of a
// matrix unit.
TEST_P(StoredForms, MultiplyAsTheirNumbersDo) {
  for (const Tensor& tensor : {codebook({40, 192}, 64), block_scaled({40, 192}, DType::f4_e2m1, {1, 16}),
                               groups({40, 192}, 8, 64, {DType::f32, DType::f32}),
                               indexed({40, 192}, 4, 10, shuffled(40, 10, 1), {DType::f16, DType::f16}, 0)}) {
    const BlobPtr blob = make_dense_blob(tensor, DType::f32);
    const auto matrix = load_matrix(tensor);
    const auto numbers = load_matrix(make_dense("w", tensor.shape, DType::f32, make_memory_blob(read_all(*blob), "n")));
    for (const std::size_t tokens : {1U, 3U, 50U}) {
      std::vector<float> x(tokens * 192);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i));
      std::vector<float> y(tokens * 40), exact(y), expected(y);
      multiply(*matrix, x.data(), tokens, exact.data(), Precision::exact);
      multiply(*numbers, x.data(), tokens, expected.data(), Precision::exact);
      EXPECT_EQ(exact, expected) << tokens;
      multiply(*matrix, x.data(), tokens, y.data());
      for (std::size_t i = 0; i < y.size(); ++i) {
        std::vector<float> row(192);
        matrix->decode(i % 40, 1, row.data());
        double magnitude = 0;
        for (std::size_t c = 0; c < row.size(); ++c)
          magnitude += std::abs(static_cast<double>(row[c]) * static_cast<double>(x[i / 40 * 192 + c]));
        ASSERT_NEAR(y[i], expected[i], 0x1.02p-7 * magnitude) << tokens << ", " << i;  // kernels/product.hpp
      }
    }
  }
}

// Loads some outputs or inputs, as ranks have them.
TEST(StoredFormParts, AreThoseOfTheWhole) {
  for (const Tensor& tensor :
       {codebook({40, 192}, 64), block_scaled({40, 192}, DType::f8_e4m3, {16, 32}),
        groups({40, 192}, 4, 64, {DType::f32, DType::f32}), indexed({40, 192}, 4, 64, shuffled(192, 64, 3)),
        indexed({40, 192}, 4, 10, shuffled(40, 10, 1), {DType::f16, DType::f16}, 0)}) {
    const auto all = load_matrix(tensor);
    for (const MatrixShare& part : {MatrixShare{MatrixShare::Side::outputs, {3, 20}},
                                    {MatrixShare::Side::outputs, {16, 40}},
                                    {MatrixShare::Side::inputs, {8, 100}},
                                    {MatrixShare::Side::inputs, {64, 192}}}) {
      const auto some = load_matrix(tensor, Orientation::out_in, part);
      const std::size_t step = find_share_step(tensor, Orientation::out_in, part.side);
      if (step > 1) {
        EXPECT_EQ(some->stored().storage, part.range.first % step == 0 ? all->stored().storage : Storage::f32);
      }
      const bool of_outputs = part.side == MatrixShare::Side::outputs;
      std::vector<float> row(192), of_part(some->columns());
      for (std::size_t r = 0; r < some->rows(); ++r) {
        all->decode(r + (of_outputs ? part.range.first : 0), 1, row.data());
        some->decode(r, 1, of_part.data());
        const std::size_t first = of_outputs ? 0 : part.range.first;
        for (std::size_t c = 0; c < of_part.size(); ++c) ASSERT_TRUE(same(of_part[c], row[first + c])) << r << " " << c;
      }
    }
  }
}

}  // namespace
}  // namespace poise
