// Lists faults of a model: adds them up to a limit, and formats them as one message.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <poise/finding.hpp>

namespace poise {

constexpr std::size_t kMostListedFaults = 1000;

// Returns the first words of each message about a tensor.
std::string format_tensor_start(std::string_view tensor);

// Returns the messages of findings. A finding about stored bytes has their place after the tensor's name, for callers
// that show only the message. Requires: a message about a tensor begins with format_tensor_start().
std::vector<std::string> format_messages(const std::vector<Finding>& findings);

// Appends a fault, unless the list already has kMostListedFaults.
void add_fault(std::vector<std::string>& faults, std::string fault);
void add_fault(std::vector<Finding>& faults, Finding fault);

// Returns the message that lists every fault, one a line. A list of `most` faults may lack others. Requires: there is a
// fault; the message of a fault with a tensor begins with "tensor" and its name, as those of find_inconsistencies() do.
std::string format_faults(const std::vector<std::string>& faults, std::size_t most = kMostListedFaults);
std::string format_faults(const std::vector<Finding>& faults);

// Throws invalid_file with the message of format_faults() if there are faults.
void throw_faults(const std::vector<std::string>& faults, const std::string& path);

}  // namespace poise
