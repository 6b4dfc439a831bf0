#include <poise/detail/name.hpp>

#include <algorithm>
#include <functional>

namespace poise {
namespace {

// Texts that need no memory of their own, each with a zero byte after it: the empty text, and the roles of the layouts
// that Poise interprets.
constexpr char kTexts[] = "\0data\0values\0indices\0indptr\0coords\0packed_weight\0scales\0zeros";
constexpr std::string_view kShared(kTexts, sizeof kTexts);
constexpr std::size_t kLongestShared = std::string_view("packed_weight").size();

// The address of a text in kShared, or null.
const char* shared(std::string_view text) {
  if (text.size() > kLongestShared) return nullptr;
  for (std::size_t begin = 0; begin < kShared.size();) {
    const std::size_t end = kShared.find('\0', begin);
    if (kShared.substr(begin, end - begin) == text) return kShared.data() + begin;
    begin = end + 1;
  }
  return nullptr;
}

bool is_shared(const char* text) {
  const std::less<const char*> before;
  return !before(text, kShared.data()) && before(text, kShared.data() + kShared.size());
}

std::string_view held(std::string_view text) {
  if (const char* at = shared(text)) return {at, text.size()};
  char* const bytes = new char[text.size() + 1];
  *std::ranges::copy(text, bytes).out = '\0';
  return {bytes, text.size()};
}

}  // namespace

Name::Name() noexcept : std::string_view(kShared.data(), 0) {}

Name::Name(std::string_view text) : std::string_view(held(text)) {}

Name::~Name() {
  if (!is_shared(data())) delete[] data();
}

}  // namespace poise
