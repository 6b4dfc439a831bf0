#include <poise/detail/small_vector.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace poise {
namespace {

using Texts = SmallVector<std::string, 1>;

// As those of std::vector.
TEST(SmallVector, GrowsByItsOwnElements) {
  const std::string text(40, 'x');
  Texts resized{text};
  resized.resize(5, resized[0]);
  EXPECT_EQ(resized, Texts(5, text));
  Texts pushed{text};
  for (int i = 0; i < 4; ++i) pushed.push_back(pushed.front());
  EXPECT_EQ(pushed, Texts(5, text));
  resized.resize(2, resized[4]);
  EXPECT_EQ(resized, Texts(2, text));
}

// Counts the objects that live; copying may throw.
struct Counted {
  static inline int living = 0;
  static inline int copies_until_throw = 1000;
  std::string text = std::string(40, 'x');  // memory that a leak keeps

  Counted() { ++living; }
  Counted(const Counted& other) : text(other.text) {
    if (copies_until_throw-- == 0) throw std::runtime_error("no copy");
    ++living;
  }
  Counted(Counted&& other) noexcept : text(std::move(other.text)) { ++living; }
  ~Counted() { --living; }
};

// With each copy the one that throws. Sanitizers find memory that is lost.
TEST(SmallVector, LosesNothingWhenACopyThrows) {
  using Items = SmallVector<Counted, 2>;
  for (int before = 0; before < 12; ++before) {
    {
      const std::vector<Counted> from(5);
      const Items items(from.begin(), from.end());
      const auto attempt = [&](const auto& make) {
        const int living = Counted::living;
        Counted::copies_until_throw = before;
        try {
          const Items made = make();
        } catch (const std::runtime_error&) {
        }
        Counted::copies_until_throw = 1000;
        EXPECT_EQ(Counted::living, living) << before;
      };
      attempt([&] { return Items(from.begin(), from.end()); });
      attempt([&] { return Items(items); });
      attempt([&] { return Items(5, from.front()); });
      attempt([&] {
        Items grown;
        for (const Counted& item : from) grown.push_back(item);
        grown.resize(9, grown.front());
        return grown;
      });
    }
    EXPECT_EQ(Counted::living, 0);
  }
}

}  // namespace
}  // namespace poise
