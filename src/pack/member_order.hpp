// Which of an archive's members count: of those with one name, the last.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <poise/finding.hpp>

namespace poise {

// At most 200 bytes of a name, for a message.
std::string short_name(std::string_view name);

// Some names, which may be many, for one message: "a, b, c, d, e and 7 more".
class ToldNames {
 public:
  void add(std::string_view text);
  bool empty() const { return first_.empty(); }
  std::string text() const;

 private:
  std::vector<std::string> first_;
  std::size_t more_ = 0;
};

// Members get numbers from 0 on, in the archive's order.
class MemberOrder {
 public:
  // Adds a member. `plain`: plain_member_name() of its name.
  void add(const std::string& plain, std::string_view name);

  // The last one of that plain name so far.
  std::optional<std::size_t> find(const std::string& plain) const;
  // False once another one has its name.
  bool counts(std::size_t member) const { return !members_[member].is_replaced; }

  // One warning for all names that came more than once. `format`: "tar".
  std::optional<Finding> repeated(std::string_view format, const std::string& path) const;

 private:
  struct Member {
    std::string other_spelling = {};  // the name as the archive has it; empty: plain
    bool is_replaced = false;
  };

  std::unordered_map<std::string, std::size_t> last_;
  std::vector<Member> members_;
  ToldNames repeated_;
};

}  // namespace poise
