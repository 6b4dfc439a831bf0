// The objects of a pickle, compared with those that Python's own pickle module wrote; tests/hostile/pytorch_test.cpp
// breaks its rules.
#include "syntax/pickle.hpp"

#include <array>

#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/bytes.hpp"

namespace poise::pickle {
namespace {

// pickle.dumps([1, -2, 1<<40, -(1<<70), True, None, 1.5, 'é', 'x\ny', b'\xff', (1,), (), {'a': [1]}, {3}], protocol)
constexpr std::array<std::string_view, 6> kDumps = {
    "286c70300a49310a61492d320a614c313039393531313632373737364c0a614c2d313138303539313632303731373431313330333432344c0a"
    "614930310a614e6146312e350a6156e90a70310a6156785c7530303061790a70320a61635f636f646563730a656e636f64650a70330a2856ff"
    "0a70340a566c6174696e310a70350a7470360a5270370a612849310a7470380a61287461286470390a56610a7031300a286c7031310a49310a"
    "617361635f5f6275696c74696e5f5f0a7365740a7031320a28286c7031330a49330a61747031340a527031350a612e",
    "5d7100284b014afeffffff4c313039393531313632373737364c0a4c2d313138303539313632303731373431313330333432344c0a4930310a"
    "4e473ff80000000000005802000000c3a971015803000000780a797102635f636f646563730a656e636f64650a7103285802000000c3bf7104"
    "58060000006c6174696e317105747106527107284b01747108297d7109580100000061710a5d710b4b016173635f5f6275696c74696e5f5f0a"
    "7365740a710c285d710d4b036174710e52710f652e",
    "80025d7100284b014afeffffff8a060000000000018a090000000000000000c0884e473ff80000000000005802000000c3a971015803000000"
    "780a797102635f636f646563730a656e636f64650a71035802000000c3bf710458060000006c6174696e3171058671065271074b0185710829"
    "7d7109580100000061710a5d710b4b016173635f5f6275696c74696e5f5f0a7365740a710c5d710d4b036185710e52710f652e",
    "80035d7100284b014afeffffff8a060000000000018a090000000000000000c0884e473ff80000000000005802000000c3a971015803000000"
    "780a7971024301ff71034b01857104297d710558010000006171065d71074b016173636275696c74696e730a7365740a71085d71094b036185"
    "710a52710b652e",
    "80049550000000000000005d94284b014afeffffff8a060000000000018a090000000000000000c0884e473ff80000000000008c02c3a9948c"
    "03780a79944301ff944b018594297d948c0161945d944b0161738f94284b0390652e",
    "80059550000000000000005d94284b014afeffffff8a060000000000018a090000000000000000c0884e473ff80000000000008c02c3a9948c"
    "03780a79944301ff944b018594297d948c0161945d944b0161738f94284b0390652e"};

std::vector<std::byte> from_hex(std::string_view digits) {
  std::vector<std::byte> bytes;
  for (std::size_t at = 0; at < digits.size(); at += 2)
    bytes.push_back(static_cast<std::byte>(std::stoi(std::string(digits.substr(at, 2)), nullptr, 16)));
  return bytes;
}

TEST(Pickle, EveryProtocolBuildsTheSame) {
  for (std::size_t protocol = 0; protocol < kDumps.size(); ++protocol) {
    SCOPED_TRACE(protocol);
    const std::vector<std::byte> bytes = from_hex(kDumps[protocol]);
    const Pickle pickle = run(bytes, "a");
    EXPECT_EQ(pickle.size(), bytes.size());
    ASSERT_EQ(pickle.kind(pickle.root()), Kind::list);
    const auto items = pickle.items(pickle.root());
    ASSERT_EQ(items.size(), 14U);
    EXPECT_EQ(pickle.integer(items[0]), 1);
    EXPECT_EQ(pickle.integer(items[1]), -2);
    EXPECT_EQ(pickle.integer(items[2]), std::int64_t{1} << 40);
    EXPECT_EQ(pickle.kind(items[3]), Kind::wide_integer);
    EXPECT_EQ(pickle.kind(items[4]), Kind::boolean);
    EXPECT_TRUE(pickle.boolean(items[4]));
    EXPECT_EQ(items[5], kNone);
    EXPECT_EQ(pickle.real(items[6]), 1.5);
    EXPECT_EQ(pickle.text(items[7]), "\xc3\xa9");
    EXPECT_EQ(pickle.text(items[8]), "x\ny");
    if (protocol < 3) {  // _codecs.encode("\xff", "latin1")
      ASSERT_EQ(pickle.kind(items[9]), Kind::call);
      EXPECT_EQ(pickle.global(pickle.call(items[9]).function).name, "encode");
    } else {
      EXPECT_EQ(pickle.text(items[9]), "\xff");
    }
    EXPECT_EQ(pickle.items(items[10]).size(), 1U);
    EXPECT_EQ(pickle.items(items[11]).size(), 0U);
    ASSERT_EQ(pickle.kind(items[12]), Kind::dict);
    EXPECT_EQ(pickle.text(pickle.items(items[12])[0]), "a");
    EXPECT_EQ(pickle.integer(pickle.items(pickle.items(items[12])[1])[0]), 1);
  }
}

TEST(Pickle, CutsAreRefused) {
  for (const std::string_view dump : kDumps) {
    const std::vector<std::byte> bytes = from_hex(dump);
    for (std::size_t length = 0; length < bytes.size(); ++length)
      EXPECT_THROW(run(std::span(bytes).first(length), "a"), Error) << length;
  }
}

// MEMOIZE uses the number of keys in the memo as its key, as in CPython: here 2, not 3.
TEST(Pickle, AKeyOfTheMemoCountsOnce) {
  const std::string program = "Np1\n]p0\n0Np1\n}\x94h\2.";
  const Pickle pickle = run(std::as_bytes(std::span(program)), "a");
  EXPECT_EQ(pickle.kind(pickle.root()), Kind::dict);
  // Keys come in any order, and some are large: 5, 1, 0, 2, then MEMOIZE's key 4.
  const std::string far = "Np5\n0Np1\n0Np0\n0Np2\n0}\x94g4\n.";
  const Pickle other = run(std::as_bytes(std::span(far)), "a");
  EXPECT_EQ(other.kind(other.root()), Kind::dict);
}

// Steps that Python's readers run differently, or after which they may go on, are unsupported; elsewhere they stop,
// too.
TEST(Pickle, ErrorsShowWhetherPythonStops) {
  const auto kind_of = [](const std::string& program) {
    return run_until_error(std::as_bytes(std::span(program)), "a").stop->kind();
  };
  for (const char* stops : {"I1_\n.", "Fx\n.", "S'a\n.", "NK\1K\2s.", "K\1K\2a.", "t.", "h\7.", "Np-1\n."})
    EXPECT_EQ(kind_of(stops), ErrorKind::invalid_file) << stops;
  for (const char* goes_on : {"I017\n.", "cos\nsystem\n]R.", "cos\nsystem\nK\1K\2s.", "C\1aK\1a.", "}K\1K\2sK\1b."})
    EXPECT_EQ(kind_of(goes_on), ErrorKind::unsupported) << goes_on;
}

TEST(Pickle, ChangesAfterACallAreRecorded) {
  const std::string program =
      "]q\1"
      "0cm\nf\n(h\1}tRh\1Na0.";
  const Partial partial = run_until_error(std::as_bytes(std::span(program)), "a");
  ASSERT_FALSE(partial.stop);
  const Pickle& pickle = partial.pickle;
  const auto arguments = pickle.items(pickle.call(pickle.root()).arguments);
  EXPECT_TRUE(pickle.is_changed_after(arguments[0], pickle.root()));
  EXPECT_FALSE(pickle.is_changed_after(arguments[1], pickle.root()));
}

TEST(Pickle, ErrorsPointAtTheStep) {
  const std::vector<std::byte> bytes = from_hex("80024b01ff");
  try {
    run(bytes, "a", 100);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.offset(), 104U);
  }
}

}  // namespace
}  // namespace poise::pickle
