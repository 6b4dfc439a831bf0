// FileStamp: detects that a file has changed.
#pragma once

#include <poise/source.hpp>

namespace poise {

class FileStamp {
 public:
  // Records the size and the time of the last change of a source's file. Throws io.
  explicit FileStamp(SourcePtr source);
  // Throws io when either has changed.
  void require_unchanged() const;
  const Source* source() const { return source_.get(); }

 private:
  struct State {
    std::int64_t size = 0;
    std::int64_t seconds = 0;
    std::int64_t nanoseconds = 0;
    friend bool operator==(const State&, const State&) = default;
  };
  State now() const;

  SourcePtr source_;
  State before_;
};

}  // namespace poise
