#include "ops/ranks.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace poise {

void append_number(std::string& message, std::uint64_t number) {
  message.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_text(std::string& message, std::string_view text) {
  append_number(message, text.size());
  message += text;
}

std::uint64_t read_number(std::string_view& message) {
  std::uint64_t number = 0;
  const std::size_t count = std::min(message.size(), sizeof number);
  std::memcpy(&number, message.data(), count);
  message.remove_prefix(count);
  return number;
}

std::string read_text(std::string_view& message) {
  const std::uint64_t length = read_number(message);
  const std::string text(message.substr(0, length));
  message.remove_prefix(text.size());
  return text;
}

void append_statistics(std::string& message, const TensorStatistics& statistics) {
  for (const double number : {statistics.min, statistics.max, statistics.mean, statistics.deviation, statistics.rms})
    append_number(message, std::bit_cast<std::uint64_t>(number));
  for (const std::uint64_t count :
       {statistics.zeros, statistics.subnormals, statistics.nans, statistics.infinities, statistics.outliers})
    append_number(message, count);
  append_number(message, statistics.largest_channel ? 1 : 0);
  if (const auto& channel = statistics.largest_channel) {
    append_number(message, channel->index);
    append_number(message, std::bit_cast<std::uint64_t>(channel->rms));
  }
  append_number(message, statistics.histogram ? 1 : 0);
  if (const auto& histogram = statistics.histogram) {
    append_number(message, std::bit_cast<std::uint64_t>(histogram->low));
    append_number(message, std::bit_cast<std::uint64_t>(histogram->high));
    for (const std::uint64_t count : histogram->counts) append_number(message, count);
  }
}

void read_statistics(std::string_view& message, TensorStatistics& statistics) {
  const auto read_double = [&] { return std::bit_cast<double>(read_number(message)); };
  for (double* const number :
       {&statistics.min, &statistics.max, &statistics.mean, &statistics.deviation, &statistics.rms})
    *number = read_double();
  for (std::uint64_t* const count :
       {&statistics.zeros, &statistics.subnormals, &statistics.nans, &statistics.infinities, &statistics.outliers})
    *count = read_number(message);
  if (read_number(message) != 0) {
    TensorStatistics::Channel channel;
    channel.index = read_number(message);
    channel.rms = read_double();
    statistics.largest_channel = channel;
  }
  if (read_number(message) != 0) {
    Histogram& histogram = statistics.histogram.emplace();
    histogram.low = read_double();
    histogram.high = read_double();
    for (std::uint64_t& count : histogram.counts) count = read_number(message);
  }
}

void append_findings(std::string& message, std::span<const Finding> findings) {
  append_number(message, findings.size());
  for (const Finding& finding : findings) {
    append_number(message, static_cast<std::uint64_t>(finding.severity));
    for (const std::string* const text : {&finding.message, &finding.path, &finding.tensor})
      append_text(message, *text);
    append_number(message, finding.offset ? 1 : 0);
    append_number(message, finding.offset.value_or(0));
  }
}

std::vector<Finding> read_findings(std::string_view& message) {
  std::vector<Finding> findings;
  for (std::uint64_t left = read_number(message); left > 0; --left) {
    Finding& finding = findings.emplace_back();
    finding.severity = static_cast<Severity>(read_number(message));
    for (std::string* const text : {&finding.message, &finding.path, &finding.tensor}) *text = read_text(message);
    const bool has_offset = read_number(message) != 0;
    const std::uint64_t offset = read_number(message);
    if (has_offset) finding.offset = offset;
  }
  return findings;
}

}  // namespace poise
