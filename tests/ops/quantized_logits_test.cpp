// Scores of examples/nano-mistral in every type of weights: near those of float32 weights with the same numbers, and
// within the distances of docs/quantization.md from the model's own.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <poise/format.hpp>
#include <poise/session.hpp>

#include "kernels/tiles.hpp"
#include "ops/transform/transform.hpp"
#include "support/directories.hpp"

namespace poise {
namespace {

// Returns the scores after the same prompt twice: fed as one, and token by token, which uses other kernels.
std::vector<float> logits(const Model& model) {
  Session session(model);
  const auto prompt = session.prompt("Once upon a time there was a little");
  session.feed(prompt);
  std::vector<float> logits(session.logits().begin(), session.logits().end());
  session.reset();
  for (const TokenId token : prompt) session.feed(std::span(&token, 1));
  logits.insert(logits.end(), session.logits().begin(), session.logits().end());
  return logits;
}

struct Errors {
  Errors(const std::vector<float>& actual, const std::vector<float>& expected) {
    for (std::size_t i = 0; i < actual.size(); ++i) {
      const double error = std::abs(static_cast<double>(actual[i]) - static_cast<double>(expected[i]));
      largest = std::max(largest, error);
      rms += error * error;
    }
    rms = std::sqrt(rms / static_cast<double>(actual.size()));
  }
  double largest = 0;
  double rms = 0;
};

TEST(QuantizedLogits, AreNearThoseOfTheSameNumbersInFloat32) {
  const auto path = source_directory() / "examples/nano-mistral";
  const Format& format = find_format_by_name("zt");
  const std::vector<float> exact = logits(open(path));
  struct Type {
    const char* name;
    double largest;  // docs/quantization.md
    double rms;
    bool rounded = false;    // to bfloat16, by a matrix unit
    bool four_bits = false;  // they meet x of 7 bits in the prompt
  };
  constexpr Type kTypes[] = {{"f16", 1e-4, 5e-5},
                             {"bf16", 1e-4, 5e-5},
                             {"group8", 0.26, 0.035, true},
                             {"qint8", 1.33, 0.25},
                             {"group4", 5.1, 0.81, true, true},
                             {"qint4", 8.0, 1.37, false, true},
                             {"qint8:range", 0.94, 0.14},
                             {"qint4:range", 5.7, 1.01, false, true}};
  for (const Type& type : kTypes) {
    ConvertOptions options;
    const StoredType wanted = stored_type_from_name(type.name).value();
    if (wanted.quantized()) {
      options.quantize = wanted;
    } else {
      options.dtype = wanted.dtype;
    }
    Transformed stored = transform(open(path), format, options);
    const std::vector<float> found = logits(stored.model);
    ConvertOptions numbers;
    numbers.dtype = DType::f32;
    const Transformed decoded = transform(std::move(stored.model), format, numbers);
    const Errors of_kernels(found, logits(decoded.model));
    const Errors of_type(found, exact);
    RecordProperty(fmt::format("{}", type.name), fmt::format("{:.2g} {:.2g} {:.2g} {:.2g}", of_kernels.largest,
                                                             of_kernels.rms, of_type.largest, of_type.rms));
    // A matrix unit rounds the sums of groups in the prompt, by a tenth of what the codes lose. Integers of 7 bits
    // change less than a fiftieth of what codes of four bits lose.
    const bool rounds = type.rounded && get_tile_unit() != TileUnit::none;
    EXPECT_LE(of_kernels.largest, type.four_bits ? type.largest / 50 : rounds ? 2e-2 : 2e-3) << type.name;
    EXPECT_LE(of_kernels.rms, type.four_bits ? type.rms / 50 : rounds ? 4e-3 : 5e-4) << type.name;
    EXPECT_LE(of_type.largest, type.largest) << type.name;
    EXPECT_LE(of_type.rms, type.rms) << type.name;
  }
}

}  // namespace
}  // namespace poise
