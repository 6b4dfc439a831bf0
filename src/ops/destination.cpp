#include "ops/destination.hpp"

namespace poise {

void Destination::require_possible(const Format& format, bool overwrite,
                                   const std::vector<std::filesystem::path>& inputs, bool is_dry_run) const {
  if (opened_ != nullptr || (is_dry_run && path_.empty())) return;
  require_possible_output(format, path_, overwrite, inputs);
}

SavedOutput& Destination::open(const Format& format, bool overwrite, std::vector<std::filesystem::path> inputs) {
  if (opened_ != nullptr) return *opened_;
  own_ = make_saved_output(format, path_, overwrite, std::move(inputs));
  return *own_;
}

}  // namespace poise
