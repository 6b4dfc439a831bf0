#include "cli/commands.hpp"

namespace poise::cli {
void add_run(CLI::App&) {}
}  // namespace poise::cli
