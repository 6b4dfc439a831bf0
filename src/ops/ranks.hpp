// Declares work that several ranks (processes) share: each reads some of the bytes, and all get the same results.
//
// Each function with a Communicator throws what its counterpart for one rank throws, on the rank that finds the fault.
// Requires: all ranks have the same headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <poise/convert.hpp>
#include <poise/diff.hpp>
#include <poise/hash.hpp>
#include <poise/statistics.hpp>
#include <poise/verify.hpp>

#include "cluster/communicator.hpp"

namespace poise {

ModelHash hash(const Model& model, const Progress& progress, Communicator& ranks);

// Each rank writes its share of the tensors to the same files, on a file system that all ranks see. The files have the
// same bytes as those of a single rank. If a writer cannot divide the output, for example compressed parts, rank 0
// writes all of it, and the other ranks compute it without writing.
ConvertReport convert(const std::filesystem::path& input, const std::filesystem::path& output,
                      const ConvertOptions& options, Communicator& ranks);

DiffReport diff(const Model& a, const Model& b, const DiffOptions& options, Communicator& ranks);

ModelStatistics compute_statistics(const Model& model, const StatisticsOptions& options, Communicator& ranks);

// Only rank 0 checks caches of the Hub, checksums, unused bytes and code, so only its report has these findings.
VerifyReport verify(const std::filesystem::path& path, const ReadOptions& options, const Progress& progress,
                    Communicator& ranks);

// Each function appends to a message between ranks: a number, a text with its length, findings, or the measured numbers
// of a tensor.
void append_number(std::string& message, std::uint64_t number);
void append_text(std::string& message, std::string_view text);
void append_findings(std::string& message, std::span<const Finding> findings);
void append_statistics(std::string& message, const TensorStatistics& statistics);
// Each function reads what one of the functions above has appended, and removes it from the front of the message.
std::uint64_t read_number(std::string_view& message);
std::string read_text(std::string_view& message);
std::vector<Finding> read_findings(std::string_view& message);
void read_statistics(std::string_view& message, TensorStatistics& statistics);

}  // namespace poise
