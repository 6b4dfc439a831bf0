// StopTexts: cuts a text that arrives in pieces where one of several stop texts begins: the one that is complete first;
// of several that end there, the longest. How the text is divided makes no difference.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace poise {

class StopTexts {
 public:
  // Throws bad_argument for an empty text.
  explicit StopTexts(std::vector<std::string> stops);

  // The text that certainly precedes a stop, after this piece: holds back a suffix that may begin a stop. Empty after a
  // stop was found.
  std::string add(std::string_view piece);
  // The text held back, if it ends without a stop.
  std::string finish();
  bool found() const { return found_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool found_ = false;
};

}  // namespace poise
