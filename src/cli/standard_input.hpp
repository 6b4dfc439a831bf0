// Standard input, whole or line by line.
#pragma once

#include <cstddef>
#include <string>

namespace poise::cli {

class Input {
 public:
  // Throws unsupported for more than 256 MiB.
  std::string all();
  // The next line, without its end; false after the last one.
  bool line(std::string& line);

 private:
  bool fill();

  std::string buffer_;
};

}  // namespace poise::cli
