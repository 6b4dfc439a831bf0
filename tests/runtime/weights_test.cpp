#include <poise/weights.hpp>

#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/session.hpp>

#include "runtime/random_model.hpp"
#include "support/directories.hpp"

namespace poise {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;

// Refuses to be borrowed, and counts the bytes that are copied from it.
class CountingBlob final : public Blob {
 public:
  CountingBlob(std::vector<std::byte> bytes, std::atomic<std::uint64_t>& count)
      : bytes_(std::move(bytes)), count_(count) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    count_ += out.size();
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

 private:
  std::vector<std::byte> bytes_;
  std::atomic<std::uint64_t>& count_;
};

std::vector<float> scores(Session& session, const std::vector<TokenId>& tokens) {
  for (const TokenId token : tokens) session.feed(std::span(&token, 1));
  return {session.logits().begin(), session.logits().end()};
}

std::vector<float> scores(const Model& model, const std::vector<TokenId>& tokens) {
  Session session(model);
  return scores(session, tokens);
}

TEST(Weights, AreReadOnceForAllSessions) {
  const Config config = small_config();
  std::atomic<std::uint64_t> read = 0;
  std::uint64_t stored = 0;
  const Model model =
      make_model(config, random_weights(config),
                 [&](const std::string& name, const Shape& shape, const std::vector<float>& values) {
                   stored += values.size() * sizeof(float);
                   return make_dense(name, shape, DType::f32, std::make_shared<CountingBlob>(bytes_of(values), read));
                 });
  const auto weights = load_weights(model);
  EXPECT_EQ(read, stored);
  Session first(weights);
  Session another(weights, {.context = 7});
  scores(first, {1, 2, 3});
  scores(another, {4, 5});
  EXPECT_EQ(read, stored);
}

// Each has a position and a cache of its own.
TEST(Weights, SessionsDoNotSeeEachOther) {
  const Config config = small_config();
  const Model model = make_model(config, random_weights(config));
  const auto weights = load_weights(model);
  Session first(weights);
  Session another(weights, {.context = 7});
  EXPECT_EQ(first.context(), 300U);
  EXPECT_EQ(another.context(), 7U);
  scores(first, {1, 2});
  scores(another, {4});
  EXPECT_THAT(scores(first, {3}), ElementsAreArray(scores(model, {1, 2, 3})));
  EXPECT_THAT(scores(another, {5, 6}), ElementsAreArray(scores(model, {4, 5, 6})));
  EXPECT_EQ(first.position(), 3U);
  first.reset();
  EXPECT_THAT(scores(another, {7}), ElementsAreArray(scores(model, {4, 5, 6, 7})));
}

TEST(Weights, OutliveTheModelAsSessionsKeepThem) {
  const Config config = small_config();
  auto model = std::make_unique<Model>(make_model(config, random_weights(config)));
  const std::vector<float> expected = scores(*model, {1, 2, 3});
  auto weights = load_weights(*model);
  model.reset();
  Session session(weights);
  weights.reset();
  EXPECT_THAT(scores(session, {1, 2, 3}), ElementsAreArray(expected));
}

// Many threads, each with a session on the same weights, compute what one alone does.
TEST(Weights, ServeManyThreads) {
  const auto run = [](const Model& model) {
    const auto weights = load_weights(model);
    const std::vector<float> expected = scores(model, {5, 3, 9, 11});
    std::vector<std::vector<float>> results(6);
    std::vector<std::thread> threads;
    for (std::vector<float>& result : results) {
      threads.emplace_back([&result, &weights] {
        Session session(weights, {.threads = 2});
        result = scores(session, {5, 3, 9, 11});
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_THAT(results, Each(ElementsAreArray(expected)));
  };
  const Config config = small_config();
  run(make_model(config, random_weights(config)));
  run(open(source_directory() / "examples/nano-tiny-llama/weights.tllm"));
}

TEST(Weights, ReportTheirSizesAndTokenizer) {
  const auto weights = load_weights(open(source_directory() / "examples/nano-mistral"));
  EXPECT_TRUE(weights->has_tokenizer());
  EXPECT_EQ(weights->vocabulary_size(), weights->tokenizer().vocabulary().size());
  EXPECT_EQ(Session(weights).context(), weights->max_context());
  const auto no_text = load_weights(open(source_directory() / "examples/nano-tiny-llama/weights.tllm"));
  EXPECT_FALSE(no_text->has_tokenizer());
  EXPECT_THROW(no_text->tokenizer(), Error);
}

TEST(Weights, ASessionNeedsSome) { EXPECT_THROW(Session(std::shared_ptr<const Weights>()), Error); }

}  // namespace
}  // namespace poise
