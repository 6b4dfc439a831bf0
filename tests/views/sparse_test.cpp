// Sparse tensors spelled out by hand from the layout in sparse.hpp, and dense ones that go there and back.
#include "views/sparse.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <limits>
#include <random>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "numeric/integers.hpp"
#include "support/errors.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::array kIndexTypes = {DType::i64, DType::i32, DType::i16, DType::i8,
                                    DType::u64, DType::u32, DType::u16, DType::u8};

template <typename T>
BlobPtr blob_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return make_memory_blob(std::move(bytes), "memory");
}

template <typename T>
std::vector<T> values_of(const Blob& blob) {
  const auto bytes = read_all(blob);
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Part part(std::string role, DType dtype, BlobPtr blob) {
  return {.role = std::move(role), .dtype = dtype, .blob = std::move(blob), .digest = {}};
}

Part indices(std::string role, DType dtype, const std::vector<std::int64_t>& numbers) {
  std::vector<std::byte> bytes;
  visit_integer(dtype, [&](auto zero) {
    bytes.resize(numbers.size() * sizeof zero);
    for (std::size_t i = 0; i < numbers.size(); ++i)
      store_le(bytes.data() + i * sizeof zero, static_cast<decltype(zero)>(numbers[i]));
  });
  return part(std::move(role), dtype, make_memory_blob(std::move(bytes), "memory"));
}

Tensor sparse(Layout layout, Shape shape, std::vector<Part> parts) {
  Tensor tensor;
  tensor.name = "w";
  tensor.shape = std::move(shape);
  tensor.layout = layout;
  tensor.parts = {parts.begin(), parts.end()};
  return tensor;
}

Tensor csr(Shape shape, const std::vector<float>& values, const std::vector<std::int64_t>& columns,
           const std::vector<std::int64_t>& pointers, DType column_type = DType::u16, DType pointer_type = DType::u16) {
  return sparse(Layout::sparse_csr, std::move(shape),
                {part("values", DType::f32, blob_of(values)), indices("indices", column_type, columns),
                 indices("indptr", pointer_type, pointers)});
}

Tensor coo(Shape shape, const std::vector<float>& values, const std::vector<std::int64_t>& coordinates,
           DType type = DType::u16) {
  return sparse(Layout::sparse_coo, std::move(shape),
                {part("values", DType::f32, blob_of(values)), indices("coords", type, coordinates)});
}

template <typename Use>
std::string message_of(Use&& use) {
  const Error error = support::error_of(std::forward<Use>(use));
  EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
  return error.message();
}

// Returns the message with which all ways to the elements refuse a tensor.
std::string refusal(const Tensor& tensor, SparseRules rules = SparseRules::any_order) {
  const std::string message = message_of([&] { validate_sparse(tensor, rules); });
  if (rules == SparseRules::any_order) {
    EXPECT_EQ(message_of([&] { read_all(*densify(tensor)); }), message);
  }
  return message;
}

TEST(Sparse, RowsOfEveryIndexType) {
  for (const DType columns : kIndexTypes) {
    for (const DType pointers : kIndexTypes) {
      SCOPED_TRACE(fmt::format("{} {}", to_string(columns), to_string(pointers)));
      const Tensor tensor = csr({3, 3}, {1.5F, -2, 3}, {1, 0, 2}, {0, 1, 1, 3}, columns, pointers);
      EXPECT_THAT(values_of<float>(*densify(tensor)), ElementsAre(0, 1.5F, 0, 0, 0, 0, -2, 0, 3));
      EXPECT_NO_THROW(validate_sparse(tensor, SparseRules::ascending));
    }
  }
}

TEST(Sparse, CoordinatesOfEveryIndexType) {
  for (const DType type : kIndexTypes) {
    SCOPED_TRACE(to_string(type));
    // At (0, 1, 1), (1, 0, 0) and (1, 0, 1).
    const Tensor tensor = coo({2, 2, 2}, {5, 6, 7}, {0, 1, 1, 1, 0, 0, 1, 0, 1}, type);
    EXPECT_THAT(values_of<float>(*densify(tensor)), ElementsAre(0, 0, 0, 5, 6, 7, 0, 0));
  }
}

TEST(Sparse, ElementsInAnyOrder) {
  EXPECT_THAT(values_of<float>(*densify(csr({2, 3}, {1, 2, 3}, {2, 0, 1}, {0, 2, 3}))), ElementsAre(2, 0, 1, 0, 3, 0));
  EXPECT_THAT(values_of<float>(*densify(coo({4}, {1, 2, 3}, {3, 0, 1}))), ElementsAre(2, 3, 0, 1));
}

TEST(Sparse, EmptyTensors) {
  EXPECT_THAT(values_of<float>(*densify(csr({2, 2}, {}, {}, {0, 0, 0}))), ElementsAre(0, 0, 0, 0));
  EXPECT_THAT(values_of<float>(*densify(csr({0, 5}, {}, {}, {0}))), ElementsAre());
  EXPECT_THAT(values_of<float>(*densify(coo({2, 1}, {}, {}))), ElementsAre(0, 0));
}

std::vector<std::string> problems(const Tensor& tensor, std::size_t most = 99) {
  std::vector<std::string> problems;
  const SparseFaults faults = find_sparse_faults(tensor, SparseRules::any_order, most);
  for (const SparseFault& fault : faults.first)
    problems.push_back(fmt::format("{} at {} of {}", fault.problem, fault.byte, fault.part->role));
  if (faults.count > faults.first.size()) problems.push_back(fmt::format("{} in all", faults.count));
  return problems;
}

TEST(Sparse, EveryWrongIndexIsReported) {
  const Tensor wrong = csr({4, 3}, {1, 2, 3, 4, 5, 6}, {3, 0, 9, 1, 2, 2}, {0, 2, 9, 4, 6});
  EXPECT_THAT(problems(wrong), ElementsAre("indices: element 0 in row 0 is in column 3, there are 3 at 0 of indices",
                                           "indptr: row 1 ends at element 9, there are 6 at 4 of indptr",
                                           "indices: column 2 appears twice in row 3 at 8 of indices"));
  EXPECT_EQ(problems(wrong, 1).back(), "3 in all");
  EXPECT_THAT(
      problems(coo({2, 3}, {1, 2, 3, 4, 5}, {1, 2, 0, 1, 1, 2, 0, 7, 2, 0})),
      ElementsAre("coords: element 1 is at 2 in dimension 0, which has 2 at 2 of coords",
                  "coords: element 2 is at 7 in dimension 1, which has 3 at 14 of coords",
                  "coords: cell 5 appears twice, counted row by row (PyTorch's x.coalesce() adds such values up) "
                  "at 0 of coords"));
  EXPECT_THAT(problems(csr({2, 3}, {1, 2}, {2, 0}, {0, 1, 2})), ElementsAre());
}

TEST(Sparse, WrongRowPointersAreRefused) {
  EXPECT_THAT(refusal(csr({2, 3}, {1, 2}, {0, 1}, {1, 1, 2})),
              HasSubstr("tensor w: indptr: it begins with 1, expected 0"));
  EXPECT_THAT(refusal(csr({3, 3}, {1, 2}, {0, 1}, {0, 2, 1, 2})),
              HasSubstr("indptr: it falls from 2 to 1 after row 1"));
  EXPECT_THAT(refusal(csr({2, 3}, {1, 2}, {0, 1}, {0, 3, 3})),
              HasSubstr("indptr: row 0 ends at element 3, there are 2"));
  EXPECT_THAT(refusal(csr({2, 3}, {1, 2}, {0, 1}, {0, 1, 1})), HasSubstr("indptr: it ends with 1, expected 2"));
  EXPECT_THAT(refusal(csr({2, 3}, {1, 2}, {0, 1}, {0, -1, 2}, DType::u16, DType::i64)),
              HasSubstr("indptr: it falls from 0 to -1"));
  const auto huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(refusal(csr({2, 3}, {1, 2}, {0, 1}, {0, huge, huge}, DType::u16, DType::u64)), HasSubstr("there are 2"));
  EXPECT_THAT(refusal(csr({2, 3}, {1, 2}, {0, 1}, {0, -1, -1}, DType::u16, DType::u64)),
              HasSubstr("ends at element 18446744073709551615, there are 2"));
}

TEST(Sparse, ColumnsOutsideAreRefused) {
  EXPECT_THAT(refusal(csr({2, 3}, {1, 2}, {0, 3}, {0, 1, 2})),
              HasSubstr("indices: element 1 in row 1 is in column 3, there are 3"));
  EXPECT_THAT(refusal(csr({2, 3}, {1, 2}, {-1, 0}, {0, 1, 2}, DType::i8)), HasSubstr("is in column -1, there are 3"));
  EXPECT_THAT(refusal(csr({2, 3}, {1, 2}, {-1, 0}, {0, 1, 2}, DType::u64)),
              HasSubstr("is in column 18446744073709551615, there are 3"));
}

TEST(Sparse, CoordinatesOutsideAreRefused) {
  EXPECT_THAT(refusal(coo({2, 3}, {1, 2}, {0, 2, 1, 1})),
              HasSubstr("coords: element 1 is at 2 in dimension 0, which has 2"));
  EXPECT_THAT(refusal(coo({2, 3}, {1, 2}, {0, 1, 3, 1})),
              HasSubstr("coords: element 0 is at 3 in dimension 1, which has 3"));
  EXPECT_THAT(refusal(coo({2, 3}, {1, 2}, {0, 1, 0, -5}, DType::i32)), HasSubstr("is at -5 in dimension 1"));
  // As a dense tensor, this one would have no element to read.
  EXPECT_THAT(message_of([] {
                validate_sparse(coo({0, 3}, {1}, {0, 0}), SparseRules::any_order);
              }),
              HasSubstr("is at 0 in dimension 0, which has 0"));
}

TEST(Sparse, ACellOccursOnce) {
  EXPECT_THAT(refusal(csr({1, 3}, {1, 2}, {1, 1}, {0, 2})), HasSubstr("indices: column 1 appears twice in row 0"));
  EXPECT_THAT(refusal(csr({1, 3}, {1, 2, 3}, {1, 0, 1}, {0, 3})),
              HasSubstr("indices: column 1 appears twice in row 0"));
  EXPECT_THAT(refusal(coo({2, 3}, {1, 2}, {1, 1, 2, 2})), HasSubstr("coords: cell 5 appears twice"));
}

TEST(Sparse, Version2RequiresAscendingColumns) {
  EXPECT_THAT(refusal(csr({1, 3}, {1, 2}, {1, 0}, {0, 2}), SparseRules::ascending),
              HasSubstr("the columns of row 0 do not ascend at element 1"));
}

TEST(Sparse, PartsThatDoNotFitTheShapeAreRefused) {
  EXPECT_THAT(refusal(csr({3, 3}, {1, 2}, {0, 1}, {0, 1, 2})), HasSubstr("indptr: expected 8 bytes, found 6"));
  EXPECT_THAT(refusal(csr({2, 3}, {1}, {0, 1}, {0, 1, 2})), HasSubstr("values: expected 8 bytes, found 4"));
  EXPECT_THAT(refusal(csr({6}, {1, 2}, {0, 1}, {0, 1, 2})), HasSubstr("rank 2, found the shape"));
  EXPECT_THAT(refusal(coo({2, 3}, {1, 2}, {0, 1, 1})),
              HasSubstr("coords: 6 bytes are not a whole number of coordinates of rank 2"));
  EXPECT_THAT(refusal(coo({2, 3}, {1}, {0, 1, 1, 0})), HasSubstr("values: expected 8 bytes, found 4"));
  EXPECT_THAT(refusal(coo({}, {1}, {})), HasSubstr("rank 1 or more"));
}

TEST(WidenIndices, AsU64) {
  for (const DType type : kIndexTypes) {
    const Part narrow = indices("indices", type, {0, 7, 127});
    EXPECT_THAT(values_of<std::uint64_t>(*widen_indices("w", narrow)), ElementsAre(0, 7, 127)) << to_string(type);
  }
  std::vector<std::byte> piece(11);
  widen_indices("w", indices("indices", DType::u8, {1, 2, 3}))->read(5, piece);
  EXPECT_THAT(piece, ElementsAre(std::byte{0}, std::byte{0}, std::byte{0}, std::byte{2}, std::byte{0}, std::byte{0},
                                 std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}));
  EXPECT_THAT(message_of([] {
                read_all(*widen_indices("w", indices("indices", DType::i16, {1, -2})));
              }),
              HasSubstr("tensor w: indices: index 1 is -2"));
}

TEST(Sparsify, RowsAndCoordinatesOfNonzeros) {
  const Tensor dense = make_dense("w", {2, 3}, DType::f32, blob_of<float>({0, 5, 0, 7, 0, 9}));
  const Tensor rows = sparsify(dense, Layout::sparse_csr, 0.5).value();
  EXPECT_THAT(values_of<float>(*rows.require("values").blob), ElementsAre(5, 7, 9));
  EXPECT_THAT(values_of<std::uint64_t>(*rows.require("indices").blob), ElementsAre(1, 0, 2));
  EXPECT_THAT(values_of<std::uint64_t>(*rows.require("indptr").blob), ElementsAre(0, 1, 3));
  const Tensor list = sparsify(dense, Layout::sparse_coo, 0.5).value();
  EXPECT_THAT(values_of<float>(*list.require("values").blob), ElementsAre(5, 7, 9));
  EXPECT_THAT(values_of<std::uint64_t>(*list.require("coords").blob), ElementsAre(0, 1, 1, 1, 0, 2));
}

TEST(Sparsify, OnlyTensorsWithEnoughZeros) {
  const Tensor half = make_dense("w", {2, 2}, DType::f32, blob_of<float>({0, 5, 0, 7}));
  EXPECT_TRUE(sparsify(half, Layout::sparse_csr, 0.5).has_value());
  EXPECT_FALSE(sparsify(half, Layout::sparse_csr, 0.51).has_value());
  const Tensor vector = make_dense("w", {4}, DType::f32, blob_of<float>({0, 0, 0, 7}));
  EXPECT_FALSE(sparsify(vector, Layout::sparse_csr, 0.5).has_value());
  EXPECT_TRUE(sparsify(vector, Layout::sparse_coo, 0.5).has_value());
  EXPECT_FALSE(sparsify(make_dense("w", {0, 4}, DType::f32, blob_of<float>({})), Layout::sparse_coo, 0).has_value());
  EXPECT_FALSE(
      sparsify(make_dense("w", {2, 2}, DType::f8_e8m0, blob_of<std::uint8_t>({0, 0, 0, 127})), Layout::sparse_coo, 0)
          .has_value());  // 0 is 2^-127
}

TEST(Sparsify, TheNegativeZeroIsKept) {
  const Tensor dense = make_dense("w", {1, 4}, DType::f32, blob_of<float>({0, -0.0F, 0, 0}));
  const Tensor sparse = sparsify(dense, Layout::sparse_csr, 0.5).value();
  EXPECT_EQ(sparse.require("values").blob->size(), 4U);
  EXPECT_EQ(read_all(*densify(sparse)), read_all(*dense.require("data").blob));
}

struct Random {
  Shape shape;
  DType dtype;
  double zeros;
};

// Tensors are larger than the blocks in which nonzeros are counted, of every width, and read whole and in pieces.
TEST(Sparsify, RoundTripsKeepEveryElement) {
  std::mt19937 random(7);  // NOLINT: the same tensors every time
  for (const Random& kind : {Random{{300, 171}, DType::f32, 0.9}, Random{{1, 40000}, DType::u8, 0.5},
                             Random{{40000, 1}, DType::f16, 0.99}, Random{{128, 128}, DType::f64, 0},
                             Random{{128, 129}, DType::bf16, 1}, Random{{7, 5, 3}, DType::complex128, 0.6}}) {
    const std::uint64_t width = info(kind.dtype).bits / 8;
    std::vector<std::byte> bytes(*packed_bytes(kind.dtype, *element_count(kind.shape)));
    std::bernoulli_distribution zero(kind.zeros);
    for (std::size_t i = 0; i < bytes.size(); i += width) {
      if (zero(random)) continue;
      for (std::size_t b = 0; b < width; ++b) bytes[i + b] = static_cast<std::byte>(random() % 255 + 1);
    }
    const Tensor dense =
        make_dense("w", kind.shape, kind.dtype, make_memory_blob(std::vector<std::byte>(bytes), "memory"));
    for (const Layout layout : {Layout::sparse_csr, Layout::sparse_coo}) {
      SCOPED_TRACE(fmt::format("{} of {} {}", to_string(layout), to_string(kind.dtype), to_string(kind.shape)));
      const auto sparse = sparsify(dense, layout, 0);
      if (layout == Layout::sparse_csr && kind.shape.size() != 2) {
        EXPECT_FALSE(sparse.has_value());
        continue;
      }
      ASSERT_TRUE(sparse.has_value());
      EXPECT_NO_THROW(validate_sparse(*sparse, SparseRules::ascending));
      const BlobPtr back = densify(*sparse);
      EXPECT_TRUE(read_all(*back) == bytes);
      for (const Part& part : sparse->parts) {
        const auto whole = read_all(*part.blob);
        for (int i = 0; i < 20; ++i) {
          const std::size_t offset = random() % (whole.size() + 1);
          std::vector<std::byte> piece(random() % (whole.size() - offset + 1));
          part.blob->read(offset, piece);
          EXPECT_TRUE(std::equal(piece.begin(), piece.end(), whole.begin() + static_cast<std::ptrdiff_t>(offset)))
              << part.role << " at " << offset;
        }
      }
      for (int i = 0; i < 20; ++i) {
        const std::size_t offset = random() % bytes.size();
        std::vector<std::byte> piece(random() % (bytes.size() - offset));
        back->read(offset, piece);
        EXPECT_TRUE(std::equal(piece.begin(), piece.end(), bytes.begin() + static_cast<std::ptrdiff_t>(offset)))
            << "dense at " << offset;
      }
    }
  }
}

}  // namespace
}  // namespace poise
