#include "formats/faulty_model.hpp"

#include <utility>

#include <fmt/format.h>

namespace poise {
namespace {

constexpr std::size_t kMostFaults = 100;

}  // namespace

std::string message_of(const std::vector<Finding>& faults) {
  const std::size_t more = faults.size() - 1;
  return more == 0 ? faults.front().message
                   : fmt::format("{} (and {} more fault{})", faults.front().message, more, more == 1 ? "" : "s");
}

FaultyModel::FaultyModel(std::vector<Finding> faults, Model sound, ErrorKind kind)
    : Error(kind, message_of(faults), faults.front().path, faults.front().offset),
      found_(std::make_shared<const Found>(Found{std::move(faults), std::move(sound)})) {}

void TensorFaults::note(const Error& error) {
  faults_.push_back({Severity::error, error.message(), error.path(), error.offset()});
  if (faults_.size() < kMostFaults) return;
  faults_.push_back({Severity::error,
                     fmt::format("{} faults are enough: the rest of the file is not looked at", kMostFaults),
                     error.path(), error.offset()});
  throw_if_any();
}

void TensorFaults::throw_if_any() {
  if (!faults_.empty()) throw FaultyModel(std::move(faults_), std::move(model_));
}

}  // namespace poise
