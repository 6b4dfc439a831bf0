// The models in examples/ compute the numbers of their reference.json, which other forward passes in examples/training
// computed in float64 with NumPy.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include <poise/format.hpp>
#include <poise/session.hpp>
#include <poise/tiny_llama.hpp>

#include "support/directories.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <typename T>
const T& get(const Attributes& map, std::string_view key) {
  return *map.get_if<T>(key);
}

double number(const Value& value) {
  if (const auto* unsigned_number = value.get_if<std::uint64_t>()) return static_cast<double>(*unsigned_number);
  if (const auto* signed_number = value.get_if<std::int64_t>()) return static_cast<double>(*signed_number);
  return *value.get_if<double>();
}

std::vector<TokenId> ids(const Attributes& map, std::string_view key) {
  std::vector<TokenId> tokens;
  for (const Value& value : get<Value::Array>(map, key)) tokens.push_back(static_cast<TokenId>(number(value)));
  return tokens;
}

class NanoMistral : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!fs::exists(kDirectory / "reference.json")) GTEST_SKIP() << kDirectory << " is not here";
    reference_ = *parse_json(content(kDirectory / "reference.json"), "reference.json").get_if<Attributes>();
  }

  const fs::path kDirectory = source_directory() / "examples" / GetParam();
  Attributes reference_;
};

TEST_P(NanoMistral, GreedyTextAndLogits) {
  struct Way {
    IoMode io;
    bool exact;
    double bound;  // the weights are bfloat16: a matrix unit rounds x in prompts
  };
  for (const Way& way : {Way{IoMode::map, false, 1e-3}, Way{IoMode::read, false, 1e-3}, Way{IoMode::map, true, 1e-4}}) {
    Session session(open(kDirectory, {.io = way.io}), {.exact = way.exact, .cache = CacheType::f32});
    for (const Value& value : get<Value::Array>(reference_, "prompts")) {
      const Attributes& prompt = *value.get_if<Attributes>();
      SCOPED_TRACE(get<std::string>(prompt, "name"));
      session.reset();
      const std::vector<TokenId> tokens = session.prompt(get<std::string>(prompt, "text"));
      EXPECT_EQ(tokens, ids(prompt, "tokens"));
      session.feed(tokens);
      if (const Value* logits = prompt.find("logits")) {
        const auto& expected = *logits->get_if<Value::Array>();
        ASSERT_EQ(session.logits().size(), expected.size());
        for (std::size_t id = 0; id < expected.size(); ++id)
          ASSERT_NEAR(static_cast<double>(session.logits()[id]), number(expected[id]), way.bound) << id;
      }
      TextStream stream(session.tokenizer());
      for (const TokenId token : tokens) stream.add(token);
      std::string text;
      const auto greedy = ids(prompt, "greedy_tokens");
      const Generation generation = session.generate({.max_tokens = greedy.size()}, [&](TokenId token) {
        text += stream.add(token);
        return true;
      });
      EXPECT_EQ(generation.tokens, greedy);
      EXPECT_EQ(text + stream.finish(), get<std::string>(prompt, "greedy_text"));
    }
  }
}

// Generates in steps, and after a prompt that was fed as tokens.
TEST_P(NanoMistral, ATextGoesOn) {
  Session session(open(kDirectory));
  for (const Value& value : get<Value::Array>(reference_, "prompts")) {
    const Attributes& prompt = *value.get_if<Attributes>();
    const std::string& expected = get<std::string>(prompt, "greedy_text");
    const std::size_t count = ids(prompt, "greedy_tokens").size();
    session.reset();
    std::string text = session.generate(get<std::string>(prompt, "text"), {.max_tokens = 3});
    for (std::size_t made = 3; made < count; ++made) text += session.generate("", {.max_tokens = 1});
    EXPECT_EQ(text, expected);

    session.reset();
    session.feed(session.prompt(get<std::string>(prompt, "text")));
    EXPECT_EQ(session.generate("", {.max_tokens = count}), expected);
    // A fed token replaces the pending one.
    session.feed(ids(prompt, "tokens"));
    const std::size_t position = session.position();
    session.generate("and", {.max_tokens = 1});
    EXPECT_EQ(session.position(), position + session.tokenizer().encode("and").size());
  }
}

TEST_P(NanoMistral, Tokenizer) {
  const Session session(open(kDirectory));
  for (const Value& value : get<Value::Array>(reference_, "tokenizer")) {
    const Attributes& sample = *value.get_if<Attributes>();
    EXPECT_EQ(session.tokenizer().encode(get<std::string>(sample, "text")), ids(sample, "tokens"));
  }
}

// Stories are separated by an empty line; each is BOS, its text, EOS.
TEST_P(NanoMistral, PerplexityOfHeldOutStories) {
  const Attributes& held_out = get<Attributes>(reference_, "heldout");
  std::string stories = content(kDirectory / get<std::string>(held_out, "file"));
  stories.pop_back();
  Session session(open(kDirectory), {.cache = CacheType::f32});
  double total = 0;
  std::size_t tokens = 0;
  for (std::size_t begin = 0; begin < stories.size();) {
    const std::size_t end = std::min(stories.find("\n\n", begin), stories.size());
    std::vector<TokenId> story = session.prompt(stories.substr(begin, end - begin));
    story.push_back(session.tokenizer().vocabulary().eos_id);
    for (const double log_probability : session.log_probabilities(story)) total -= log_probability;
    tokens += story.size() - 1;
    begin = end + 2;
  }
  EXPECT_EQ(static_cast<double>(tokens), number(*held_out.find("predicted_tokens")));
  EXPECT_NEAR(std::exp(total / static_cast<double>(tokens)), number(*held_out.find("perplexity")), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Examples, NanoMistral, ::testing::Values("nano-mistral", "nano-mistral-wide"),
                         [](const auto& tested) {
                           return tested.param == std::string("nano-mistral") ? "NanoMistral" : "NanoMistralWide";
                         });

class NanoTinyLlama : public ::testing::Test {
 protected:
  Model model() const {
    Model model = open(kDirectory / "weights.tllm");
    model.vocabulary = read_tiny_llama_vocabulary(kDirectory / "vocab.txt", kDirectory / "merges.txt");
    return model;
  }

  const fs::path kDirectory = source_directory() / "examples/nano-tiny-llama";
  const Attributes reference_ =
      *parse_json(content(kDirectory / "reference.json"), "reference.json").get_if<Attributes>();
};

TEST_F(NanoTinyLlama, GreedyTextAndLogits) {
  Session session(model(), {.cache = CacheType::f32});
  for (const Value& value : get<Value::Array>(reference_, "prompts")) {
    const Attributes& prompt = *value.get_if<Attributes>();
    SCOPED_TRACE(get<std::string>(prompt, "name"));
    session.reset();
    const std::vector<TokenId> tokens = session.prompt(get<std::string>(prompt, "text"));
    EXPECT_EQ(tokens, ids(prompt, "tokens"));
    session.feed(tokens);
    if (const Value* logits = prompt.find("logits")) {
      const auto& expected = *logits->get_if<Value::Array>();
      ASSERT_EQ(session.logits().size(), expected.size());
      double largest = 1;
      for (const Value& logit : expected) largest = std::max(largest, std::abs(number(logit)));
      for (std::size_t id = 0; id < expected.size(); ++id)
        ASSERT_NEAR(static_cast<double>(session.logits()[id]), number(expected[id]), 1e-5 * largest) << id;
    }
    const auto greedy = ids(prompt, "greedy_tokens");
    const Generation generation = session.generate({.max_tokens = greedy.size()});
    EXPECT_EQ(generation.tokens, greedy);
    EXPECT_EQ(session.tokenizer().decode(generation.tokens), get<std::string>(prompt, "greedy_text"));
  }
}

TEST_F(NanoTinyLlama, Tokenizer) {
  const Tokenizer tokenizer(*model().vocabulary);
  for (const Value& value : get<Value::Array>(reference_, "tokenizer")) {
    const Attributes& sample = *value.get_if<Attributes>();
    EXPECT_EQ(tokenizer.encode(get<std::string>(sample, "text")), ids(sample, "tokens"));
  }
}

// Tokens fed one by one give the scores of tokens fed together, except for rounding in float32.
TEST_F(NanoTinyLlama, BatchesChangeNothing) {
  Session together(model());
  Session alone(model());
  const auto& prompts = get<Value::Array>(reference_, "prompts");
  const std::vector<TokenId> tokens = ids(*prompts.back().get_if<Attributes>(), "tokens");
  together.feed(tokens);
  for (const TokenId token : tokens) alone.feed(std::span(&token, 1));
  ASSERT_EQ(together.logits().size(), alone.logits().size());
  const float largest = std::ranges::max(alone.logits());
  for (std::size_t i = 0; i < alone.logits().size(); ++i)
    EXPECT_NEAR(together.logits()[i], alone.logits()[i], 1e-5F * largest);
}

}  // namespace
}  // namespace poise
