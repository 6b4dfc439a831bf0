#include "model/fault_lists.hpp"

#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

namespace poise {
namespace {

std::string format_with_place(const Finding& finding) {
  if (finding.tensor.empty() || !finding.offset) return finding.message;
  const std::string tensor = format_tensor_start(finding.tensor);
  return fmt::format("{} ({} at 0x{:x}){}", tensor, finding.path, *finding.offset,
                     std::string_view(finding.message).substr(tensor.size()));
}

}  // namespace

std::string format_tensor_start(std::string_view tensor) { return fmt::format("tensor {}", tensor); }

std::vector<std::string> format_messages(const std::vector<Finding>& findings) {
  std::vector<std::string> messages;
  for (const Finding& finding : findings) messages.push_back(format_with_place(finding));
  return messages;
}

void add_fault(std::vector<std::string>& faults, std::string fault) {
  if (faults.size() < kMostListedFaults) faults.push_back(std::move(fault));
}

void add_fault(std::vector<Finding>& faults, Finding fault) {
  if (faults.size() < kMostListedFaults) faults.push_back(std::move(fault));
}

std::string format_faults(const std::vector<Finding>& faults) { return format_faults(format_messages(faults)); }

std::string format_faults(const std::vector<std::string>& faults, std::size_t most) {
  if (faults.size() == 1) return faults.front();
  const std::string_view more = faults.size() == most ? " or more" : "";
  return fmt::format("{}{} faults:\n  {}", faults.size(), more, fmt::join(faults, "\n  "));
}

void throw_faults(const std::vector<std::string>& faults, const std::string& path) {
  if (!faults.empty()) throw Error(ErrorKind::invalid_file, format_faults(faults), path);
}

}  // namespace poise
