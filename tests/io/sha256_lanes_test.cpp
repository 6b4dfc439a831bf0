// Digests of every instruction set, beside OpenSSL's and the examples of FIPS 180-4.
#include "io/sha256_lanes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <atomic>
#include <random>
#include <stdexcept>

#include "io/digest.hpp"

namespace poise {
namespace {

using testing::ElementsAre;

class Sha256Lanes : public ::testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override {
    hwy::SetSupportedTargetsForTest(GetParam());
    hwy::GetChosenTarget().Update(GetParam());
  }
  void TearDown() override {
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().DeInit();
  }
};

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// What came of each message.
struct Outcome {
  std::vector<std::byte> seen;
  std::vector<std::string> digests;
};

std::vector<Outcome> hash_all(const std::vector<std::vector<std::byte>>& messages) {
  std::vector<Outcome> outcomes(messages.size());
  std::size_t begun = 0;
  sha256_side_by_side([&]() -> std::optional<Sha256Message> {
    if (begun == messages.size()) return std::nullopt;
    Outcome& outcome = outcomes[begun];
    return Sha256Message{messages[begun++], [&](std::span<const std::byte> bytes) { outcome.seen.insert(outcome.seen.end(), bytes.begin(), bytes.end()); },
                         [&](std::string digest) { outcome.digests.push_back(std::move(digest)); }};
  });
  return outcomes;
}

TEST_P(Sha256Lanes, KnownDigests) {
  const std::vector<Outcome> outcomes = hash_all({bytes_of("abc"), {}, bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")});
  EXPECT_THAT(outcomes[0].digests, ElementsAre("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
  EXPECT_THAT(outcomes[1].digests, ElementsAre("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
  EXPECT_THAT(outcomes[2].digests, ElementsAre("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
}

// More messages than lanes, of every length around the ends of blocks, and some longer than a piece.
TEST_P(Sha256Lanes, AgreesWithOpenSslForAllLengths) {
  std::mt19937 random(3);
  std::vector<std::vector<std::byte>> messages;
  const auto add = [&](std::size_t length) {
    std::vector<std::byte>& message = messages.emplace_back(length);
    for (std::byte& byte : message) byte = static_cast<std::byte>(random());
  };
  for (std::size_t length = 0; length < 200; ++length) add(length);
  for (int i = 0; i < 40; ++i) add(random() % 100000);
  std::ranges::shuffle(messages, random);
  const std::vector<Outcome> outcomes = hash_all(messages);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    ASSERT_THAT(outcomes[i].digests, ElementsAre(sha256_hex(messages[i]))) << messages[i].size() << " bytes";
    ASSERT_EQ(outcomes[i].seen, messages[i]);
  }
}

TEST_P(Sha256Lanes, NoMessagesAreNoWork) { EXPECT_TRUE(hash_all({}).empty()); }

TEST_P(Sha256Lanes, AFailureEndsIt) {
  const std::vector<std::byte> message(1 << 20);
  const auto next = [&] {
    return Sha256Message{message, [](std::span<const std::byte>) { throw std::runtime_error("enough"); }, [](const std::string&) { ADD_FAILURE(); }};
  };
  EXPECT_THROW(sha256_side_by_side(next), std::runtime_error);
  EXPECT_THROW(sha256_on_all_threads(next), std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Targets, Sha256Lanes, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const testing::TestParamInfo<std::int64_t>& target) { return hwy::TargetName(target.param); });

TEST(Sha256OnAllThreads, HashesEachMessageOnce) {
  std::vector<std::vector<std::byte>> messages;
  for (std::size_t i = 0; i < 300; ++i) messages.emplace_back(i * 97, static_cast<std::byte>(i));
  std::vector<std::string> digests(messages.size());
  std::atomic<std::size_t> begun = 0;
  std::atomic<std::size_t> done = 0;
  sha256_on_all_threads([&]() -> std::optional<Sha256Message> {
    const std::size_t i = begun++;
    if (i >= messages.size()) return std::nullopt;
    return Sha256Message{messages[i], [](std::span<const std::byte>) {},
                         [&, i](std::string digest) {
                           digests[i] = std::move(digest);
                           ++done;
                         }};
  });
  EXPECT_EQ(done, messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) ASSERT_EQ(digests[i], sha256_hex(messages[i]));
}

std::vector<std::pair<std::size_t, bool>> items_of(const std::vector<std::uint64_t>& lengths) {
  HashOrder order(lengths);
  std::vector<std::pair<std::size_t, bool>> items;
  while (const auto item = order.next()) items.emplace_back(item->index, item->alone);
  return items;
}

TEST(HashOrder, TheLongestFirstAndAloneWhereTheRestIsShort) {
  using testing::Pair;
  EXPECT_THAT(items_of({}), testing::IsEmpty());
  EXPECT_THAT(items_of({7}), ElementsAre(Pair(0, true)));
  // 100 is more than a quarter of 85; 20 is not more than a quarter of 65 + 20.
  EXPECT_THAT(items_of({5, 20, 100, 20, 20, 20}), ElementsAre(Pair(2, true), Pair(1, true), Pair(3, true), Pair(4, true), Pair(5, true), Pair(0, true)));
  EXPECT_THAT(items_of({1, 1, 1, 1, 1, 9}), ElementsAre(Pair(5, true), Pair(0, false), Pair(1, false), Pair(2, false), Pair(3, false), Pair(4, false)));
}

}  // namespace
}  // namespace poise
