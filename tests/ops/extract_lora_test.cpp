// extract_lora() on small matrices, whose best products follow by hand. tests/schemes/lora_extracts.py compares larger
// ones, whole models and all formats with NumPy.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/make_lora.hpp>
#include <poise/values.hpp>

#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kPrefix = "base_model.model.";

class ExtractLora : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::vector<Tensor>& tensors) const {
    Model model;
    for (const Tensor& tensor : tensors) model.add(tensor);
    save(model, directory_ / name, "safetensors", {.overwrite = true});
    return directory_ / name;
  }

  // Returns the numbers of one of the adapter's tensors: "a.lora_A.weight".
  std::vector<float> read(const std::string& name, const fs::path& adapter) const {
    const Model model = open(adapter);
    const Tensor* tensor = model.find(std::string(kPrefix) + name);
    if (tensor == nullptr) return {};
    EXPECT_EQ(tensor->require("data").dtype, DType::f32);
    return values(*tensor);
  }

  // Returns the product B A of a matrix.
  std::vector<float> multiply(const std::string& module, std::size_t rank, const fs::path& adapter) const {
    const std::vector<float> left = read(module + ".lora_B.weight", adapter);
    const std::vector<float> right = read(module + ".lora_A.weight", adapter);
    const std::size_t rows = left.size() / rank;
    const std::size_t columns = right.size() / rank;
    std::vector<float> product(rows * columns);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        for (std::size_t k = 0; k < rank; ++k) product[i * columns + j] += left[i * rank + k] * right[k * columns + j];
      }
    }
    return product;
  }

  support::TemporaryDirectory directory_;
};

// The difference is (1, 2) (3, 0, 4)^T. Its one singular value is sqrt(5) * 5, and B and A get its square root each.
TEST_F(ExtractLora, ReturnsADifferenceOfTheRank) {
  const fs::path base = write(
      "base.safetensors", {make_tensor("a.weight", {2, 3}, {1, 1, 1, 1, 1, 1}), make_tensor("b.weight", {1, 1}, {7})});
  const fs::path tuned = write(
      "tuned.safetensors", {make_tensor("a.weight", {2, 3}, {4, 1, 5, 7, 1, 9}), make_tensor("b.weight", {1, 1}, {7})});
  const ExtractLoraReport report = extract_lora(base, tuned, directory_ / "lora.safetensors", {.rank = 1});
  ASSERT_EQ(report.matrices.size(), 1U);
  EXPECT_EQ(report.matrices[0].name, "a.weight");
  EXPECT_EQ(report.matrices[0].rank, 1U);
  EXPECT_NEAR(report.matrices[0].rms, std::sqrt(125.0 / 6), 1e-6);
  EXPECT_NEAR(report.captured, 1, 1e-6);
  EXPECT_EQ(report.equal, 1U);
  EXPECT_THAT(report.warnings, IsEmpty());
  EXPECT_EQ(report.format, "safetensors");
  EXPECT_EQ(report.bytes_out, fs::file_size(report.output));
  const std::vector<float> product = multiply("a", 1, report.output);
  const std::vector<float> difference = {3, 0, 4, 6, 0, 8};
  ASSERT_EQ(product.size(), difference.size());
  for (std::size_t i = 0; i < product.size(); ++i) EXPECT_NEAR(product[i], difference[i], 8 * 4e-7F) << i;
  const std::vector<float> left = read("a.lora_B.weight", report.output);
  EXPECT_NEAR(left[0] * left[0] + left[1] * left[1], std::sqrt(5.0) * 5, 1e-5);
}

// diag(4, 2, 1), whose squares add up to 21: the best product of rank 2 is diag(4, 2, 0), whose squares add up to 20.
TEST_F(ExtractLora, KeepsTheLargestSingularValues) {
  const fs::path base = write("base.safetensors", {make_tensor("a.weight", {3, 3}, std::vector<float>(9))});
  const fs::path tuned = write("tuned.safetensors", {make_tensor("a.weight", {3, 3}, {4, 0, 0, 0, 2, 0, 0, 0, 1})});
  const ExtractLoraReport report = extract_lora(base, tuned, directory_ / "lora.safetensors", {.rank = 2});
  EXPECT_NEAR(report.captured, 20.0 / 21, 1e-6);
  const std::vector<float> product = multiply("a", 2, report.output);
  const std::vector<float> best = {4, 0, 0, 0, 2, 0, 0, 0, 0};
  for (std::size_t i = 0; i < best.size(); ++i) EXPECT_NEAR(product[i], best[i], 4e-6F) << i;
}

TEST_F(ExtractLora, AShorterSideLimitsTheRank) {
  const fs::path base = write("base.safetensors", {make_tensor("a.weight", {2, 3}, std::vector<float>(6))});
  const fs::path tuned = write("tuned.safetensors", {make_tensor("a.weight", {2, 3}, {1, 2, 3, 4, 5, 6})});
  const ExtractLoraReport report = extract_lora(base, tuned, directory_ / "lora.safetensors", {.rank = 16});
  EXPECT_EQ(report.matrices[0].rank, 2U);
  EXPECT_EQ(read("a.lora_A.weight", report.output).size(), 2U * 3U);
  const std::vector<float> product = multiply("a", 2, report.output);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(product[i], static_cast<float>(i + 1), 4e-6F);
}

TEST_F(ExtractLora, TheFileDoesNotDependOnTheThreads) {
  std::vector<float> numbers(300 * 170);
  std::vector<float> more(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(i * 7919 % 1009) / 1009;
    more[i] = numbers[i] + static_cast<float>(i * 104729 % 499) / 499;
  }
  const fs::path base = write("base.safetensors", {make_tensor("a.weight", {300, 170}, numbers)});
  const fs::path tuned = write("tuned.safetensors", {make_tensor("a.weight", {300, 170}, more)});
  std::vector<std::string> files;
  for (const std::size_t threads : {1U, 2U, 5U}) {
    const oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism, threads);
    const fs::path output = directory_ / fmt::format("{}.safetensors", threads);
    extract_lora(base, tuned, output, {.rank = 4});
    files.push_back(support::contents(output));
  }
  EXPECT_FALSE(files[0].empty());
  EXPECT_EQ(files[1], files[0]);
  EXPECT_EQ(files[2], files[0]);
}

TEST_F(ExtractLora, NamesWhatItLeavesOut) {
  const fs::path base =
      write("base.safetensors", {make_tensor("a.weight", {2, 2}, {1, 1, 1, 1}), make_tensor("norm.weight", {2}, {1, 1}),
                                 make_tensor("c.weight", {1, 2}, {1, 1})});
  const fs::path tuned = write("tuned.safetensors",
                               {make_tensor("a.weight", {2, 2}, {2, 2, 2, 2}), make_tensor("norm.weight", {2}, {2, 1}),
                                make_tensor("c.weight", {2, 1}, {1, 1}), make_tensor("d.weight", {1, 1}, {1})});
  const ExtractLoraReport report = extract_lora(base, tuned, directory_ / "lora.safetensors", {.rank = 1});
  EXPECT_THAT(report.warnings, ElementsAre(HasSubstr("c.weight is left out: it is f32 [1, 2] in the base"),
                                           HasSubstr("norm.weight is left out: an adapter changes matrices alone"),
                                           HasSubstr("d.weight is left out: the base lacks it")));
}

TEST_F(ExtractLora, ADryRunComputesAndWritesNoFile) {
  const fs::path base = write("base.safetensors", {make_tensor("a.weight", {1, 2}, {0, 0})});
  const fs::path tuned = write("tuned.safetensors", {make_tensor("a.weight", {1, 2}, {3, 4})});
  const ExtractLoraReport report =
      extract_lora(base, tuned, directory_ / "lora.safetensors", {.rank = 1, .dry_run = true});
  EXPECT_TRUE(report.output.empty());
  EXPECT_NEAR(report.captured, 1, 1e-6);
  EXPECT_GT(report.bytes_out, 12U);
  EXPECT_THAT(support::names_in(directory_.path()), ElementsAre("base.safetensors", "tuned.safetensors"));
}

TEST_F(ExtractLora, RefusesWhatMakesNoAdapterAndWritesNoFile) {
  const fs::path base = write("base.safetensors", {make_tensor("a.weight", {1, 2}, {0, 0})});
  const fs::path other = write("other.safetensors", {make_tensor("b.weight", {1, 2}, {0, 0})});
  const fs::path tuned = write("tuned.safetensors", {make_tensor("a.weight", {1, 2}, {3, 4})});
  const fs::path infinite =
      write("infinite.safetensors", {make_tensor("a.weight", {1, 2}, {std::numeric_limits<float>::infinity(), 0})});
  const fs::path output = directory_ / "lora.safetensors";
  const auto expect = [&](ErrorKind kind, const fs::path& to, const ExtractLoraOptions& options, const char* text) {
    const Error error = support::error_of([&] { extract_lora(base, to, output, options); });
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(text));
  };
  expect(ErrorKind::bad_argument, tuned, {.rank = 0}, "the rank is 0, expected 1 to 65536");
  expect(ErrorKind::bad_argument, tuned, {.rank = 65537}, "the rank is 65537");
  expect(ErrorKind::bad_argument, base, {}, "no matrix differs");
  expect(ErrorKind::bad_argument, other, {}, "no tensor of the same name");
  expect(ErrorKind::bad_argument, tuned, {.only = {"nix*"}}, "nix*");
  expect(ErrorKind::invalid_file, infinite, {}, "the difference of the two models is not finite: an element is NaN or");
  expect(ErrorKind::not_found, directory_ / "absent", {}, "absent");
  expect(ErrorKind::cancelled, tuned, {.write = {.progress = [](const ProgressEvent&) { return false; }}}, "");
  EXPECT_FALSE(fs::exists(output));
  extract_lora(base, tuned, output);
  expect(ErrorKind::bad_argument, tuned, {}, "exists");
}

}  // namespace
}  // namespace poise
