#include "formats/faulty_model.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "bytes/short_text.hpp"

namespace poise {
namespace {

constexpr std::size_t kMostFaults = 100;

}  // namespace

std::string summarize_faults(const std::vector<Finding>& faults) {
  const std::size_t more = std::min(faults.size(), kMostFaults) - 1;  // without the note on the limit
  return more == 0 ? faults.front().message
                   : fmt::format("{} (and {})", faults.front().message, format_count(more, "more fault"));
}

FaultyModel::FaultyModel(std::vector<Finding> faults, Model sound, ErrorKind kind)
    : Error(kind, summarize_faults(faults), faults.front().path, faults.front().offset),
      found_(std::make_shared<Found>(Found{std::move(faults), std::move(sound)})) {}

FaultyModel::FaultyModel(std::string message, const std::string& path, std::vector<Finding> faults, Model sound)
    : Error(ErrorKind::invalid_file, std::move(message), path),
      found_(std::make_shared<Found>(Found{std::move(faults), std::move(sound)})) {}

void Faults::note(const Error& error, std::string_view tensor) {
  if (found_.empty()) first_kind_ = error.kind();
  found_.push_back({Severity::error, error.message(), error.path(), error.offset(), std::string(tensor)});
  if (found_.size() != kMostFaults) return;
  found_.push_back(
      {Severity::error,
       fmt::format("{} faults are listed, the most that Poise lists: the rest of the file is not checked", kMostFaults),
       error.path(), error.offset()});
}

bool Faults::has_reached_limit() const { return found_.size() > kMostFaults; }

Error Faults::make_error() const {
  return {first_kind_, summarize_faults(found_), found_.front().path, found_.front().offset};
}

FaultyModel Faults::make_faulty_model(Model sound) && { return {std::move(found_), std::move(sound), first_kind_}; }

void TensorFaults::throw_if_any() {
  if (!faults_.empty()) throw std::move(faults_).make_faulty_model(std::move(model_));
}

}  // namespace poise
