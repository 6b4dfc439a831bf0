// Files of sessions: the part of Session that knows formats.
#include <poise/format.hpp>
#include <poise/session.hpp>

namespace poise {

void Session::save(const std::filesystem::path& path, bool overwrite) const {
  poise::save(snapshot(), path, "zt", {.overwrite = overwrite});
}

void Session::load(const std::filesystem::path& path) { restore(open(path)); }

}  // namespace poise
