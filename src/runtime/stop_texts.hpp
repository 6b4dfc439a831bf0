// StopTexts: cuts a text that arrives in pieces where one of some texts begins.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace poise {

class StopTexts {
 public:
  // Throws bad_argument for an empty one.
  explicit StopTexts(std::vector<std::string> stops);

  // What is certain to come before a stop, after this piece: the end of the text that may be the beginning of a stop is
  // held back. Nothing once a stop was found.
  std::string add(std::string_view piece);
  // What was held back, where the text ends without a stop.
  std::string finish();
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace poise
