// Makes deltas of random models and applies them: the result is the tuned model. delta_golden.py checks the bytes.
#include <poise/delta.hpp>

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/convert.hpp>
#include <poise/error.hpp>
#include <poise/hash.hpp>

#include "ops/delta/delta_parts.hpp"
#include "support/directories.hpp"

namespace poise {
namespace {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

Bytes make_noise(Random& random, std::size_t size) {
  Bytes bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// Changes about one element of `rarity`.
Bytes change_elements(Random& random, Bytes bytes, std::size_t word, std::size_t rarity) {
  for (std::size_t at = 0; at < bytes.size(); at += word) {
    if (random() % rarity == 0) bytes[at + random() % word] ^= static_cast<std::byte>(1 + random() % 255);
  }
  return bytes;
}

BlobPtr make_blob(const Bytes& bytes) { return make_memory_blob(bytes, "test"); }

Bytes read_range(const Blob& blob, std::uint64_t offset, std::size_t size) {
  Bytes bytes(size);
  blob.read(offset, bytes);
  return bytes;
}

TEST(DeltaParts, WhatIsAppliedIsTheTunedPart) {
  Random random(7);
  for (const std::size_t word : {1U, 2U, 4U, 8U, 16U}) {
    for (const std::size_t elements : {1U, 5U, 65537U, 140'000U}) {
      for (const std::size_t rarity : {1U, 1000U, 70'000U}) {
        const Bytes base = make_noise(random, word * elements);
        const Bytes tuned = change_elements(random, base, word, rarity);
        const PartPair pair{"a", make_blob(base), make_blob(tuned), word};
        Meter meter;
        const PartChange chosen = compare_parts({&pair, 1}, meter).front();
        EXPECT_EQ(chosen.changed == 0, base == tuned);
        PartChange sparse = chosen;
        sparse.form = {.is_sparse = true, .word = word};
        sparse.counts.clear();
        for (std::size_t at = 0; at < base.size(); at += word * 65536) {
          std::uint32_t count = 0;
          for (std::size_t i = at; i < std::min(base.size(), at + word * 65536); i += word)
            count += std::equal(&base[i], &base[i] + word, &tuned[i]) ? 0 : 1;
          sparse.counts.push_back(count);
        }
        if (chosen.form.is_sparse) {
          EXPECT_EQ(chosen.counts, sparse.counts);
        }
        PartChange plain = chosen;
        plain.form = {.word = word};
        PartChange shuffled = plain;
        shuffled.form.is_shuffled = true;
        for (const PartChange& change : {chosen, sparse, plain, shuffled}) {
          const BlobPtr blob = make_delta_blob(pair, change);
          const Bytes stored = read_all(*blob);
          const BlobPtr applied = apply_delta_blob("a", pair.base, make_blob(stored), change.form);
          ASSERT_EQ(read_all(*applied), tuned) << word << " " << elements << " " << rarity;
          for (int i = 0; i < 2; ++i) {
            const std::size_t begin = random() % tuned.size();
            const std::size_t size = 1 + random() % (tuned.size() - begin);
            EXPECT_TRUE(std::ranges::equal(read_range(*applied, begin, size), std::span(tuned).subspan(begin, size)));
            if (stored.empty()) continue;
            const std::size_t from = random() % stored.size();
            const std::size_t count = 1 + random() % (stored.size() - from);
            EXPECT_TRUE(std::ranges::equal(read_range(*blob, from, count), std::span(stored).subspan(from, count)));
          }
        }
      }
    }
  }
}

TEST(DeltaParts, EveryDamagedPartIsAnErrorOrHarmless) {
  Random random(8);
  const Bytes base = make_noise(random, 2000);
  const Bytes tuned = change_elements(random, base, 2, 50);
  const PartPair pair{"a", make_blob(base), make_blob(tuned), 2};
  Meter meter;
  const PartChange change = compare_parts({&pair, 1}, meter).front();
  ASSERT_TRUE(change.form.is_sparse);
  const Bytes stored = read_all(*make_delta_blob(pair, change));
  const auto apply = [&](const Bytes& delta) {
    try {
      EXPECT_EQ(read_all(*apply_delta_blob("a", pair.base, make_blob(delta), change.form)).size(), base.size());
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
      return false;
    }
  };
  for (std::size_t size = 0; size < stored.size(); ++size)
    EXPECT_FALSE(apply(Bytes(stored.begin(), stored.begin() + static_cast<std::ptrdiff_t>(size)))) << size;
  for (std::size_t bit = 0; bit < 8 * stored.size(); ++bit) {
    Bytes flipped = stored;
    flipped[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    const bool is_accepted = apply(flipped);
    if (bit < 32) {  // the count of the only block
      EXPECT_FALSE(is_accepted) << bit;
    }
  }
}

class DeltaFiles : public testing::Test {
 protected:
  DeltaFiles() {
    add(base_, "layers.0.weight", {64, 64}, 1);
    add(base_, "layers.1.weight", {64, 64}, 2);
    add(base_, "old.weight", {8}, 3);
    base_.attributes.set("note", "base");
    base_.card.author = "somebody";
    add(tuned_, "new.weight", {4}, 4);
    add(tuned_, "layers.1.weight", {64, 64}, 5);
    add(tuned_, "layers.0.weight", {64, 64}, 1);
    tuned_.attributes = {{"z", "last key first"}, {"note", Value::Array{1, "a"}}};
    tuned_.card.license = "mit";
    save(base_, path("base.zt"));
    save(tuned_, path("tuned.zt"));
  }

  static void add(Model& model, const std::string& name, const Shape& shape, unsigned seed) {
    Random random(seed);
    std::uint64_t elements = 1;
    for (const std::uint64_t size : shape) elements *= size;
    std::vector<float> numbers(elements);
    for (float& number : numbers) number = std::normal_distribution<float>()(random);
    const auto bytes = std::as_bytes(std::span(numbers));
    model.add(make_dense(name, shape, DType::f32, make_memory_blob({bytes.begin(), bytes.end()}, name)));
  }

  std::filesystem::path path(const std::string& name) const { return directory_ / name; }

  ErrorKind find_failure(const ConvertOptions& options, const std::string& input) const {
    try {
      convert(path(input), path("out.zt"), options);
    } catch (const Error& error) {
      EXPECT_FALSE(std::filesystem::exists(path("out.zt")));
      message_ = error.what();
      return error.kind();
    }
    return ErrorKind::internal;
  }

  support::TemporaryDirectory directory_;
  Model base_;
  Model tuned_;
  mutable std::string message_;
};

TEST_F(DeltaFiles, TheDeltaGivesTheTunedModel) {
  const DeltaReport report = make_delta(path("base.zt"), path("tuned.zt"), path("d.zt"));
  EXPECT_EQ(report.equal, 1U);
  EXPECT_EQ(report.removed, std::vector<std::string>{"old.weight"});
  EXPECT_EQ(report.fields, (std::vector<std::string>{"card", "attributes"}));
  EXPECT_EQ(report.bytes_out, std::filesystem::file_size(path("d.zt")));
  EXPECT_EQ(report.base, hash(base_).model);
  const Model base = open(path("base.zt"));
  const Model delta = open(path("d.zt"));
  EXPECT_TRUE(is_delta(delta));
  EXPECT_FALSE(is_delta(base));
  require_base(base, delta);
  const Model tuned = open(path("tuned.zt"));
  const Model again = apply_delta(base, delta);
  EXPECT_EQ(hash(again).model, hash(tuned).model);
  EXPECT_EQ(again.card, tuned.card);
  EXPECT_EQ(again.attributes, tuned.attributes);
  ASSERT_EQ(again.size(), tuned.size());
  for (std::size_t i = 0; i < tuned.size(); ++i) EXPECT_EQ(again.tensors()[i].name, tuned.tensors()[i].name);
  convert(path("base.zt"), path("again.zt"), {.delta = path("d.zt")});
  EXPECT_EQ(
      read_all(*make_source_blob(Source::open(path("again.zt")), 0, std::filesystem::file_size(path("again.zt")))),
      read_all(*make_source_blob(Source::open(path("tuned.zt")), 0, std::filesystem::file_size(path("tuned.zt")))));
}

TEST_F(DeltaFiles, ADryRunStatesTheSize) {
  const DeltaReport dry = make_delta(path("base.zt"), path("tuned.zt"), path("d.zt"), {.dry_run = true});
  EXPECT_FALSE(std::filesystem::exists(path("d.zt")));
  EXPECT_EQ(dry.bytes_out, make_delta(path("base.zt"), path("tuned.zt"), path("d.zt")).bytes_out);
}

TEST_F(DeltaFiles, AnotherBaseIsRefused) {
  make_delta(path("base.zt"), path("tuned.zt"), path("d.zt"));
  // The tensors of the tuned model do not fit the delta.
  EXPECT_EQ(find_failure({.delta = path("d.zt")}, "tuned.zt"), ErrorKind::bad_argument);
  EXPECT_THAT(message_, testing::HasSubstr(hash(base_).model));
  Model other;
  add(other, "layers.0.weight", {64, 64}, 1);
  add(other, "layers.1.weight", {64, 64}, 9);
  add(other, "old.weight", {8}, 3);
  save(other, path("other.zt"));
  EXPECT_EQ(find_failure({.delta = path("d.zt")}, "other.zt"), ErrorKind::bad_argument);
  EXPECT_THAT(message_, testing::HasSubstr(hash(base_).model));
  EXPECT_THAT(message_, testing::HasSubstr(hash(other).model));
  EXPECT_EQ(find_failure({.delta = path("base.zt")}, "base.zt"), ErrorKind::invalid_file);
  EXPECT_THAT(message_, testing::HasSubstr("not a delta"));
}

TEST_F(DeltaFiles, TheDeltaCombinesWithOtherOptions) {
  make_delta(path("base.zt"), path("tuned.zt"), path("d.zt"));
  const ConvertOptions codes{.quantize = stored_type_from_name("q8_0"), .keep = {{"new*", {DType::f32}}}};
  ConvertOptions changed = codes;
  changed.delta = path("d.zt");
  convert(path("tuned.zt"), path("a.zt"), codes);
  convert(path("base.zt"), path("b.zt"), changed);
  EXPECT_EQ(hash(open(path("a.zt"))).model, hash(open(path("b.zt"))).model);
}

TEST_F(DeltaFiles, QuantizedLayoutsComeBack) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"qint8", "zt"}, {"qint4:range", "zt"}, {"group4", "zt"}, {"group4", "zt1"}, {"q4_0", "zt"}, {"q8_0", "zt"}};
  for (const auto& [type, to] : cases) {
    const ConvertOptions codes{
        .format = to, .quantize = stored_type_from_name(type), .only = {"layers*"}, .write = {.overwrite = true}};
    convert(path("base.zt"), path("a.zt"), codes);
    convert(path("tuned.zt"), path("b.zt"), codes);
    make_delta(path("a.zt"), path("b.zt"), path("d.zt"), {.write = {.overwrite = true}});
    const Model base = open(path("a.zt"));
    EXPECT_EQ(hash(apply_delta(base, open(path("d.zt")))).model, hash(open(path("b.zt"))).model) << type << " " << to;
  }
}

}  // namespace
}  // namespace poise
