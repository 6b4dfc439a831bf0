// Digests with every instruction set, compared with OpenSSL's and the examples of FIPS 180-4.
#include "pack/sha256_lanes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <stdexcept>

#include "pack/digest.hpp"
#include "support/instruction_set.hpp"

namespace poise {
namespace {

using testing::ElementsAre;

class Sha256Lanes : public EachInstructionSet {};

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// What came of each message.
struct Outcome {
  std::vector<std::byte> seen;
  std::vector<std::string> digests;
};

std::vector<Outcome> hash_all(const std::vector<std::vector<std::byte>>& messages, std::size_t most = 100) {
  std::vector<Outcome> outcomes(messages.size());
  std::size_t begun = 0;
  sha256_side_by_side(most, [&]() -> std::optional<Sha256Message> {
    if (begun == messages.size()) return std::nullopt;
    Outcome& outcome = outcomes[begun];
    return Sha256Message{
        messages[begun++],
        [&](std::span<const std::byte> bytes) { outcome.seen.insert(outcome.seen.end(), bytes.begin(), bytes.end()); },
        [&](std::string digest) { outcome.digests.push_back(std::move(digest)); }};
  });
  return outcomes;
}

TEST_P(Sha256Lanes, KnownDigests) {
  const std::vector<Outcome> outcomes =
      hash_all({bytes_of("abc"), {}, bytes_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")});
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

TEST_P(Sha256Lanes, NotAllLanesHaveToBeTaken) {
  std::vector<std::vector<std::byte>> messages;
  for (std::size_t i = 0; i < 30; ++i) messages.emplace_back(i * 977, static_cast<std::byte>(i));
  for (const std::size_t most : {1U, 3U, 15U}) {
    const std::vector<Outcome> outcomes = hash_all(messages, most);
    for (std::size_t i = 0; i < messages.size(); ++i)
      ASSERT_THAT(outcomes[i].digests, ElementsAre(sha256_hex(messages[i])));
  }
}

TEST_P(Sha256Lanes, NoMessagesAreNoWork) { EXPECT_TRUE(hash_all({}).empty()); }

TEST_P(Sha256Lanes, AFailureEndsIt) {
  const std::vector<std::byte> message(1 << 20);
  const auto next = [&] {
    return Sha256Message{message, [](std::span<const std::byte>) { throw std::runtime_error("enough"); },
                         [](const std::string&) { ADD_FAILURE(); }};
  };
  EXPECT_THROW(sha256_side_by_side(100, next), std::runtime_error);
  HashOrder order(std::vector<std::uint64_t>(1000, message.size()));
  EXPECT_THROW(sha256_on_all_threads(order, [&](const HashOrder::Item&) { return next(); }), std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Targets, Sha256Lanes, every_instruction_set(), instruction_set_name);

TEST(Sha256OnAllThreads, HashesEachMessageOnce) {
  std::vector<std::vector<std::byte>> messages;
  std::vector<std::uint64_t> lengths;
  for (std::size_t i = 0; i < 300; ++i)
    lengths.push_back(messages.emplace_back(i * 97, static_cast<std::byte>(i)).size());
  std::vector<std::string> digests(messages.size());
  std::atomic<std::size_t> done = 0;
  HashOrder order(lengths);
  sha256_on_all_threads(order, [&](const HashOrder::Item& item) {
    return Sha256Message{messages[item.index], [](std::span<const std::byte>) {},
                         [&, i = item.index](std::string digest) {
                           digests[i] = std::move(digest);
                           ++done;
                         }};
  });
  EXPECT_EQ(done, messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) ASSERT_EQ(digests[i], sha256_hex(messages[i]));
}

std::vector<std::size_t> indices_of(HashOrder& order) {
  std::vector<std::size_t> indices;
  while (const auto item = order.next()) indices.push_back(item->index);
  return indices;
}

TEST(HashOrder, TheLongestFirst) {
  HashOrder order(std::vector<std::uint64_t>{5, 20, 100, 20, 0, 21});
  EXPECT_THAT(indices_of(order), ElementsAre(2, 5, 1, 3, 0, 4));
  HashOrder ended(std::vector<std::uint64_t>{5, 20});
  ended.end();
  EXPECT_THAT(indices_of(ended), testing::IsEmpty());
  HashOrder nothing({});
  EXPECT_THAT(indices_of(nothing), testing::IsEmpty());
}

// Those that go into lanes, with two threads.
std::vector<std::size_t> in_lanes(const std::vector<std::uint64_t>& lengths) {
  HashOrder order(lengths, 2);
  std::vector<std::size_t> indices;
  while (const auto item = order.next()) {
    if (!item->alone) indices.push_back(item->index);
  }
  return indices;
}

TEST(HashOrder, WhatIsLongOrHasLittleCompanyStaysAlone) {
  if (!HashOrder::has_lanes()) GTEST_SKIP() << "this processor hashes one message after the other";
  EXPECT_THAT(in_lanes({7}), testing::IsEmpty());
  EXPECT_THAT(in_lanes({1, 1, 1, 1}), testing::IsEmpty());
  EXPECT_THAT(in_lanes({1, 1, 1, 1, 1}), ElementsAre(0, 1, 2, 3, 4));
  // 9 is more than a quarter of 8, 1 is not more than a quarter of 7.
  EXPECT_THAT(in_lanes({1, 1, 1, 1, 9, 1, 1, 1, 1}), ElementsAre(0, 1, 2, 3, 5, 6, 7, 8));
}

TEST(HashOrder, ThreadsShareTheLanes) {
  const std::vector<std::uint64_t> lengths(10, 1);
  EXPECT_EQ(HashOrder(lengths, 2).lanes(), 5U);
  EXPECT_EQ(HashOrder(lengths, 3).lanes(), 4U);
}

}  // namespace
}  // namespace poise
