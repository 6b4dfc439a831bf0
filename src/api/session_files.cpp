// Implements Session::save() and load(), the only functions of Session that use formats.
#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/session.hpp>
#include <poise/verify.hpp>

#include "runtime/computed_text.hpp"

namespace poise {

void Session::save(const std::filesystem::path& path, bool overwrite) const {
  poise::save(snapshot(), path, "zt", {.overwrite = overwrite});
}

void Session::load(const std::filesystem::path& path) {
  const Model model = open(path);
  // Other files are not verified, since that may take long: restore() refuses them.
  const VerifyReport report = is_session(model) ? verify(path) : VerifyReport();
  const auto refuse_first = [&](Severity severity) {
    const auto fault = std::ranges::find(report.faults, severity, &Finding::severity);
    if (fault == report.faults.end()) return;
    throw Error(ErrorKind::invalid_file, fmt::format("the session's file is damaged: {}", fault->message),
                fault->path.empty() ? path.string() : fault->path, fault->offset);
  };
  refuse_first(Severity::error);
  // save() writes files without warnings, so a warning is an error. This comes last, because a number that is not
  // finite is a warning, too, and restore() names it.
  restore(model, [&] { refuse_first(Severity::warning); });
}

}  // namespace poise
