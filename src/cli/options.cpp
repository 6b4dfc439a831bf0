#include "cli/options.hpp"

#include <map>
#include <string>

namespace poise::cli {

void add_io_option(CLI::App& command, ReadOptions& options) {
  static const std::map<std::string, IoMode> kModes{{"map", IoMode::map}, {"read", IoMode::read}};
  command.add_option("--io", options.io, "How files are read: map borrows the page cache; read copies, and survives files that shrink meanwhile")
      ->transform(CLI::CheckedTransformer(kModes).description(""))
      ->type_name("map|read")
      ->default_str("map");
}

}  // namespace poise::cli
