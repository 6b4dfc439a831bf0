#include <filesystem>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/session.hpp>
#include <poise/values.hpp>

#include "runtime/random_model.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::vector<TokenId> some_tokens(std::size_t count) {
  std::mt19937 random(7);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 37);
  return tokens;
}

Model random_model(Config config = small_config(), std::uint32_t seed = 1) {
  return make_model(config, random_weights(config, seed));
}

class SessionFiles : public ::testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const { return directory_.path() / name; }

  support::TemporaryDirectory directory_;
};

class SessionFilesOfCaches : public SessionFiles, public ::testing::WithParamInterface<CacheType> {};

INSTANTIATE_TEST_SUITE_P(Types, SessionFilesOfCaches, ::testing::Values(CacheType::f32, CacheType::f16, CacheType::q8),
                         [](const auto& type) { return std::string(to_string(type.param)); });

TEST_P(SessionFilesOfCaches, GoOnAsTheSessionWould) {
  for (const std::int64_t window : {0, 5, 100}) {
    SCOPED_TRACE(window);
    Config config = small_config();
    config.sliding_window = window;
    config.max_position_embeddings = 900;
    const Model model = random_model(config);
    Session session(model, {.cache = GetParam()});
    session.feed(some_tokens(650));
    session.save(path("kept.zt"), true);
    const std::vector<TokenId> more = {1, 2, 3, 4, 5};
    for (const std::size_t context : {900U, 660U}) {
      SCOPED_TRACE(context);
      Session other(model, {.context = context, .cache = GetParam()});
      other.feed(std::vector<TokenId>{9, 9});
      other.load(path("kept.zt"));
      EXPECT_THAT(other.tokens(), ElementsAreArray(session.tokens()));
      EXPECT_THAT(other.logits(), ElementsAreArray(session.logits()));
      Session expected = session.fork();
      expected.feed(more);
      other.feed(more);
      EXPECT_THAT(other.logits(), ElementsAreArray(expected.logits()));
      for (const std::size_t kept : {640U, 300U}) {
        expected.truncate(kept);
        other.truncate(kept);
        expected.feed(more);
        other.feed(more);
        EXPECT_THAT(other.logits(), ElementsAreArray(expected.logits())) << kept;
      }
    }
  }
}

TEST_F(SessionFiles, KeepThePendingTokenAndWhatIsNotComputed) {
  const Model model = random_model();
  Session session(model);
  Session other(model);
  session.save(path("empty.zt"));
  other.load(path("empty.zt"));
  EXPECT_EQ(other.position(), 0U);
  session.feed(some_tokens(20));
  session.generate({.max_tokens = 3});
  session.save(path("pending.zt"));
  other.load(path("pending.zt"));
  ASSERT_TRUE(session.pending());
  EXPECT_EQ(other.pending(), session.pending());
  session.truncate(15);
  EXPECT_FALSE(session.pending());
  session.save(path("cut.zt"));
  other.load(path("cut.zt"));
  EXPECT_FALSE(other.pending());
  EXPECT_EQ(other.position(), 15U);
  EXPECT_THROW((void)other.logits(), Error);
}

TEST_F(SessionFiles, AreWrittenOverOnlyIfAsked) {
  Session session(random_model());
  session.feed(some_tokens(3));
  session.save(path("a.zt"));
  EXPECT_THROW(session.save(path("a.zt")), Error);
  session.save(path("a.zt"), true);
}

TEST_F(SessionFiles, OfAnotherModelAreRefused) {
  Session session(random_model());
  session.feed(some_tokens(20));
  session.save(path("a.zt"));
  Config other_rope = small_config();
  other_rope.rope_theta = 2000.0F;
  for (const Model& model : {random_model(small_config(), 2), random_model(other_rope)}) {
    Session other(model);
    other.feed(some_tokens(4));
    const Error error = support::error_of([&] { other.load(path("a.zt")); });
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
    EXPECT_THAT(error.message(), HasSubstr("the session is of another model: its fingerprint is \"xxh3:"));
    EXPECT_EQ(error.path(), path("a.zt").string());
    EXPECT_EQ(other.position(), 4U);
    EXPECT_EQ(other.logits().size(), 37U);
  }
  // The same tensors from another file.
  save(random_model(), path("model.zt"));
  Session same(open(path("model.zt")));
  same.load(path("a.zt"));
  EXPECT_EQ(same.position(), 20U);
}

TEST_F(SessionFiles, HoldTheNumbersOfTheCache) {
  const Model model = random_model();  // 2 heads of 10 numbers
  for (const auto& [type, dtype] : {std::pair{CacheType::f32, DType::f32}, std::pair{CacheType::f16, DType::f16},
                                    std::pair{CacheType::q8, DType::i8}}) {
    Session session(model, {.cache = type});
    session.feed(some_tokens(20));
    session.save(path("a.zt"), true);
    const Model file = open(path("a.zt"));
    const Attributes& about = *file.attributes.get_if<Attributes>("poise.session");
    EXPECT_EQ(*about.find("cache"), Value(std::string(to_string(type))));
    for (const std::string what : {"keys", "values"}) {
      const Tensor& codes = *file.find("layers.1." + what);
      EXPECT_EQ(codes.parts[0].dtype, dtype);
      EXPECT_EQ(codes.shape, (Shape{20, 20}));
      const Tensor* const scales = file.find("layers.1." + what + ".scales");
      ASSERT_EQ(scales != nullptr, type == CacheType::q8);
      if (scales == nullptr) continue;
      EXPECT_EQ(scales->parts[0].dtype, DType::f32);
      EXPECT_EQ(scales->shape, (Shape{20, 2}));
    }
  }
}

TEST_F(SessionFiles, OfAnotherTypeOfCacheAreRefused) {
  const Model model = random_model();
  Session session(model, {.cache = CacheType::q8});
  session.feed(some_tokens(20));
  session.save(path("a.zt"));
  Session other(model, {.cache = CacheType::f16});
  other.feed(some_tokens(2));
  const Error error = support::error_of([&] { other.load(path("a.zt")); });
  EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
  EXPECT_THAT(error.message(), HasSubstr("the saved session has a cache of \"q8\", and this session one of \"f16\""));
  EXPECT_EQ(other.position(), 2U);

  // Files of programs that knew float32 alone.
  Session plain(model, {.cache = CacheType::f32});
  plain.feed(some_tokens(20));
  plain.save(path("b.zt"));
  Model made = open(path("b.zt"));
  Attributes about = *made.attributes.get_if<Attributes>("poise.session");
  about.erase("cache");
  made.attributes.set("poise.session", about);
  save(made, path("c.zt"));
  Session loaded(model, {.cache = CacheType::f32});
  loaded.load(path("c.zt"));
  EXPECT_THAT(loaded.logits(), ElementsAreArray(plain.logits()));
}

TEST_F(SessionFiles, ThatDoNotFitTheContextAreRefused) {
  const Model model = random_model();
  Session session(model);
  session.feed(some_tokens(20));
  session.save(path("a.zt"));
  Session narrow(model, {.context = 19});
  const Error error = support::error_of([&] { narrow.load(path("a.zt")); });
  EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
  EXPECT_THAT(error.message(), HasSubstr("20 tokens, which do not fit the context of 19 tokens"));
}

// The digests that save() writes cover all that a session goes on from.
TEST_F(SessionFiles, WithAnyByteChangedAreRefused) {
  Config config = small_config();
  config.num_hidden_layers = 1;
  const Model model = random_model(config);
  Session session(model, {.cache = CacheType::q8});  // has scales, too
  session.feed(some_tokens(3));
  session.generate({.max_tokens = 1});
  session.save(path("right.zt"));
  const std::string right = support::contents(path("right.zt"));
  // Holes between the parts are zeros: every 499th byte of them, and their first and last ones.
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const auto is_zero = [&](std::size_t at) { return at < right.size() && right[at] == 0; };
    const bool is_in_hole = i >= 16 && is_zero(i - 16) && is_zero(i) && is_zero(i + 16);
    if (!is_in_hole || i % 499 == 0) places.push_back(i);
  }
  std::mt19937 random(3);
  std::string broken = right;
  const auto change = [&](std::size_t at, unsigned bits) {
    broken[at] = static_cast<char>(static_cast<unsigned char>(right[at]) ^ bits);
    support::put(path("broken.zt"), broken);
  };
  Session other(model, {.cache = CacheType::q8});
  other.feed(some_tokens(2));
  for (const std::size_t at : places) {
    const auto bits = static_cast<unsigned>(random() % 255 + 1);
    change(at, bits);
    ASSERT_THROW(other.load(path("broken.zt")), Error) << "byte " << at << " changed by " << bits;
    broken[at] = right[at];
  }
  EXPECT_EQ(other.position(), 2U) << "as it was";
  change(0, 0);
  other.load(path("broken.zt"));
  EXPECT_THAT(other.logits(), ElementsAreArray(session.logits()));

  // A message names the file and what is wrong with it.
  const std::size_t logit = open(path("right.zt")).find("logits")->parts[0].blob->raw_range()->offset;
  change(logit, 1);
  const Error error = support::error_of([&] { other.load(path("broken.zt")); });
  EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
  EXPECT_THAT(error.message(), HasSubstr("the session's file is damaged: tensor logits"));
  EXPECT_EQ(error.path(), path("broken.zt").string());
}

// A draft has computed tokens ahead, which saving neither writes nor forgets.
TEST_F(SessionFiles, SavingChangesNothing) {
  for (const std::int64_t window : {0, 5}) {
    SCOPED_TRACE(window);
    Config config = small_config();
    config.sliding_window = window;
    const auto weights = load_weights(random_model(config));
    const SessionOptions options = {.draft = DraftOptions{.model = weights}};
    Session left_alone(weights, options);
    Session saved(weights, options);
    Session plain(weights);
    Sampler greedy;
    for (Session* session : {&left_alone, &saved, &plain}) session->feed(some_tokens(20));
    for (int i = 0; i < 30; ++i) {
      const std::vector<TokenId> token = {left_alone.sample(greedy)};
      ASSERT_EQ(saved.sample(greedy), token[0]);
      ASSERT_EQ(plain.sample(greedy), token[0]);
      const Session& constant = saved;
      constant.save(path("saved.zt"), true);
      plain.save(path("plain.zt"), true);
      Session loaded(weights);
      loaded.load(path("saved.zt"));
      EXPECT_THAT(loaded.tokens(), ElementsAreArray(plain.tokens()));
      EXPECT_THAT(loaded.logits(), ElementsAreArray(plain.logits()));
      loaded.feed(token);
      for (Session* session : {&left_alone, &saved, &plain}) session->feed(token);
      EXPECT_THAT(loaded.logits(), ElementsAreArray(plain.logits()));
    }
    EXPECT_GT(left_alone.draft_counts().right, 20U);
    EXPECT_EQ(saved.draft_counts().right, left_alone.draft_counts().right);
    EXPECT_EQ(saved.draft_counts().guessed, left_alone.draft_counts().guessed);
  }
}

Tensor ids(std::vector<std::int32_t> numbers) {
  const Shape shape = {numbers.size()};
  return make_dense("tokens", shape, DType::i32, make_memory_blob(bytes_of(numbers), "ids"));
}

TEST_F(SessionFiles, ThatLieAreRefused) {
  const Model model = random_model();  // 3 layers, 20 columns of keys
  Session session(model, {.cache = CacheType::f32});
  session.feed(some_tokens(4));
  session.generate({.max_tokens = 1});
  session.save(path("right.zt"));

  struct Case {
    std::string replaced;  // a tensor, or a key of poise.session
    std::function<void(Model&)> add;
    std::string message;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto none = [](Model&) {};
  const auto tensor = [](const std::string& name, const Shape& shape, const std::vector<float>& numbers) {
    return [=](Model& to) { to.add(make_tensor(name, shape, numbers)); };
  };
  const auto set = [](const std::string& key, const Value& value) {
    return [=](Model& to) {
      Attributes about = *to.attributes.get_if<Attributes>("poise.session");
      about.set(key, value);
      to.attributes.set("poise.session", about);
    };
  };
  const std::vector<Case> cases = {
      {"", [](Model& to) { to.attributes.erase("poise.session"); }, "it is not a session"},
      {"", set("version", 2), "a session of version 2, expected 1"},
      {"", set("version", "one"), "version: expected a whole number, found \"one\""},
      {"", set("position", 5), "position: 5 is more than the 4 tokens of the session"},
      {"", set("position", -1), "position: expected a whole number, found -1"},
      {"", set("position", 3), "the last token is not computed"},
      {"", set("pending", 37), "pending: token 37, the model has 37 tokens"},
      {"tokens", none, "tensor tokens is missing"},
      {"tokens", tensor("tokens", {4}, {1, 2, 3, 4}), "expected a dense i32 tensor of rank 1, found dense f32 [4]"},
      {"tokens",
       [](Model& to) {
         to.add(ids({1, 2, 37, 4}));
       },
       "tokens: number 2: token 37, the model has 37"},
      {"tokens",
       [](Model& to) {
         to.add(ids({1, -2, 3, 4}));
       },
       "tokens: number 1: token 18446744073709551614"},
      {"tokens",
       [](Model& to) {
         to.add(ids({1, 2, 3}));
       },
       "position: 4 is more than the 3 tokens of the session"},
      {"tokens",
       [](Model& to) {
         to.add(ids({1, 2, 3, 4, 5}));
       },
       "the last token is not computed"},
      {"logits", tensor("logits", {36}, std::vector<float>(36)), "logits: 36 scores, expected 37"},
      {"logits", tensor("logits", {37}, std::vector<float>(37, nan)), "logits: number 0 is nan"},
      {"layers.1.keys", none, "tensor layers.1.keys is missing"},
      {"layers.1.keys", tensor("layers.1.keys", {5, 20}, std::vector<float>(100)), "expected at most 4 rows of 20"},
      {"layers.1.keys", tensor("layers.1.keys", {4, 21}, std::vector<float>(84)), "expected at most 4 rows of 20"},
      {"layers.1.keys", tensor("layers.1.keys", {80}, std::vector<float>(80)), "of rank 2, found dense f32 [80]"},
      {"layers.1.keys", tensor("layers.1.keys", {3, 20}, std::vector<float>(60)),
       "layer 1: keys has 3 positions, and values has 4"},
      {"layers.2.values", tensor("layers.2.values", {4, 20}, std::vector<float>(80, nan)), "number 0 is nan"},
      {"", tensor("layers.3.keys", {4, 20}, std::vector<float>(80)), "it has 9 tensors, expected 8"},
  };
  for (const Case& broken : cases) {
    SCOPED_TRACE(broken.message);
    const Model right = open(path("right.zt"));
    Model made{ModelHeader(right.header())};
    for (const Tensor& kept : right.tensors()) {
      if (kept.name != broken.replaced) made.add(kept);
    }
    broken.add(made);
    save(made, path("broken.zt"), {.overwrite = true});
    Session other(model, {.cache = CacheType::f32});
    other.feed(some_tokens(2));
    const Error error = support::error_of([&] { other.load(path("broken.zt")); });
    EXPECT_THAT(error.message(), HasSubstr(broken.message));
    EXPECT_EQ(error.path(), path("broken.zt").string());
    EXPECT_EQ(other.position(), 2U) << "as it was";
  }

  // Scales that are missing, of another shape, or no numbers.
  Session coded(model, {.cache = CacheType::q8});
  coded.feed(some_tokens(4));
  coded.save(path("coded.zt"));
  const std::string name = "layers.1.keys.scales";
  for (const auto& [shape, number, message] :
       {std::tuple{Shape{}, 0.0F, "tensor layers.1.keys.scales is missing"},
        std::tuple{Shape{4, 3}, 0.0F, "expected at most 4 rows of 2"},
        std::tuple{Shape{3, 2}, 0.0F, "layer 1: keys has 4 positions, and keys.scales has 3"},
        std::tuple{Shape{4, 2}, nan, "layers.1.keys.scales: number 0 is nan"}}) {
    const Model right = open(path("coded.zt"));
    Model made{ModelHeader(right.header())};
    for (const Tensor& kept : right.tensors()) {
      if (kept.name != name) made.add(kept);
    }
    if (!shape.empty()) made.add(make_tensor(name, shape, std::vector<float>(shape[0] * shape[1], number)));
    save(made, path("broken.zt"), {.overwrite = true});
    const Error error = support::error_of([&] { coded.load(path("broken.zt")); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_THAT(error.message(), HasSubstr(message));
    EXPECT_EQ(coded.position(), 4U) << "as it was";
  }

  // Fewer positions than tokens see.
  const Model right = open(path("right.zt"));
  Model made{ModelHeader(right.header())};
  for (const Tensor& kept : right.tensors()) {
    if (!kept.name.starts_with("layers.")) made.add(kept);
  }
  for (int layer = 0; layer < 3; ++layer) {
    for (const std::string what : {"keys", "values"})
      made.add(make_tensor(fmt::format("layers.{}.{}", layer, what), {3, 20}, std::vector<float>(60)));
  }
  save(made, path("broken.zt"), {.overwrite = true});
  Session other(model, {.cache = CacheType::f32});
  EXPECT_THAT(support::error_of([&] { other.load(path("broken.zt")); }).message(),
              HasSubstr("keys and values that 4 tokens need are missing"));
}

}  // namespace
}  // namespace poise
