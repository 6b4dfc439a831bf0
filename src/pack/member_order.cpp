#include "pack/member_order.hpp"

#include <fmt/format.h>

#include "bytes/short_text.hpp"

namespace poise {

std::string short_name(std::string_view name) {
  constexpr std::size_t kShown = 200;
  return shortened(name, kShown);
}

void ToldNames::add(std::string_view text) {
  constexpr std::size_t kMost = 5;
  if (first_.size() < kMost) {
    first_.emplace_back(text);
  } else {
    ++more_;
  }
}

std::string ToldNames::text() const { return listed(first_) + and_more(more_); }

void MemberOrder::add(const std::string& plain, std::string_view name) {
  const auto [last, is_new] = last_.try_emplace(plain, members_.size());
  if (!is_new) {
    Member& before = members_[last->second];
    const std::string_view other = before.other_spelling.empty() ? plain : before.other_spelling;
    repeated_.add(other == name ? short_name(name)
                                : fmt::format("{} (also as {})", short_name(other), short_name(name)));
    before = {.is_replaced = true};
    last->second = members_.size();
  }
  Member& member = members_.emplace_back();
  if (name != plain) member.other_spelling = name;
}

std::optional<std::size_t> MemberOrder::find(const std::string& plain) const {
  const auto found = last_.find(plain);
  return found == last_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Finding> MemberOrder::repeated(std::string_view format, const std::string& path) const {
  if (repeated_.empty()) return std::nullopt;
  return Finding{Severity::warning,
                 fmt::format("{}: {}: more than one member has this name; the last one counts, as if they were "
                             "unpacked one after the other",
                             format, repeated_.text()),
                 path, std::nullopt};
}

}  // namespace poise
