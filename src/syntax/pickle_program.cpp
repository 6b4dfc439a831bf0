#include "syntax/pickle_program.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "syntax/limits.hpp"

namespace poise::pickle {
namespace {

constexpr std::uint64_t kMostProgramBytes = std::uint64_t{1} << 31;

}  // namespace

Program::Program(std::span<const std::byte> bytes, const std::string& name, std::uint64_t begin)
    : name_(name),
      begin_(begin),
      bytes_(bytes.first(std::min<std::size_t>(bytes.size(), kMostProgramBytes))),
      budget_(max_value_bytes(bytes_.size())) {}

Step Program::next_step() {
  step_at_ = position_;
  return static_cast<Step>(number<std::uint8_t>("a step"));
}

std::span<const std::byte> Program::raw(std::uint64_t length, std::string_view what) {
  if (length > bytes_.size() - position_)
    fail(fmt::format("{}: {} bytes wanted, {} left", what, length, bytes_.size() - position_));
  const auto bytes = bytes_.subspan(position_, static_cast<std::size_t>(length));
  position_ += bytes.size();
  return bytes;
}

std::string_view Program::line(std::string_view what) {
  const std::string_view rest = as_text(bytes_.subspan(position_));
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) fail(fmt::format("{}: the line has no end", what));
  position_ += end + 1;
  return rest.substr(0, end);
}

std::uint64_t Program::length(std::string_view what) {
  const auto length = number<std::int32_t>(what);
  if (length < 0) fail(fmt::format("{}: {} bytes", what, length));
  return static_cast<std::uint64_t>(length);
}

void Program::charge(std::uint64_t bytes) {
  if (bytes > budget_)
    throw Error(ErrorKind::unsupported, "pickle: its objects take more memory than its size justifies", name_,
                begin_ + step_at_);
  budget_ -= bytes;
}

void Program::fail(const std::string& problem) const {
  throw Error(ErrorKind::invalid_file, "pickle: " + problem, name_, begin_ + step_at_);
}

}  // namespace poise::pickle
