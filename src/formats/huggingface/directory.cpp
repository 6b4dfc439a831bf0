#include "formats/huggingface/directory.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/error.hpp>

#include "formats/huggingface/names.hpp"
#include "formats/huggingface/python_json.hpp"
#include "io/source_text.hpp"
#include "syntax/wide_integers.hpp"
#include "tokenizer/files/files.hpp"

namespace poise::huggingface {
namespace {

constexpr std::uint64_t kMaxJsonFileBytes = std::uint64_t{256} << 20;  // config.json, an index, ...
constexpr std::uint64_t kFrontMatterBytes = 1 << 20;                   // of the README, which contain its front matter

}  // namespace

SourcePtr DirectoryReader::open(std::string_view name) {
  SourcePtr source = container_.open(name);
  opened_.push_back(source);
  record(name, *source);
  return source;
}

// An archive is one file.
void DirectoryReader::record(std::string_view name, const Source& source) {
  std::filesystem::path file = container_.file_of(name);
  if (files_.empty() || files_.back() != file) files_.push_back(std::move(file));
  size_ += source.size();
}

std::vector<DirectoryFile> DirectoryReader::other_files(std::vector<Finding>& warnings) {
  std::vector<DirectoryFile> files;
  const auto add = [&](std::string_view name) {
    if (!container_.has_file(name)) return;
    const std::string path = container_.path(name).string();
    const auto found = std::ranges::find(opened_, path, [](const SourcePtr& source) { return source->name(); });
    try {
      files.push_back({std::string(name), found != opened_.end() ? *found : open(name)});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_file && error.kind() != ErrorKind::unsupported) throw;
      warnings.push_back({Severity::warning,
                          fmt::format("it is not copied into another directory: {}", error.message()), path,
                          error.offset()});
    }
  };
  std::ranges::for_each(kTokenizerFiles, add);
  std::ranges::for_each(additional_templates(container_), add);
  add(kGeneration);
  if (readme_) files.push_back({std::string(kReadme), readme_});
  return files;
}

std::string DirectoryReader::text(std::string_view name) {
  const SourcePtr source = open(name);
  if (source->size() > kMaxJsonFileBytes)
    throw Error(ErrorKind::invalid_file, fmt::format("{} bytes are too many for this file", source->size()),
                source->name());
  return read_text(*source, source->size());
}

std::string DirectoryReader::readme() {
  if (!container_.has_file(kReadme)) return {};
  if (!readme_) {
    readme_ = container_.open(kReadme);
    record(kReadme, *readme_);
  }
  return read_text(*readme_, std::min(readme_->size(), kFrontMatterBytes));
}

Attributes DirectoryReader::json_object(std::string_view name, std::vector<Finding>& warnings) {
  const std::string source = container_.path(name).string();
  std::vector<std::string> numbers;
  const std::string text_there = without_non_finite(text(name), numbers);
  Value value = parse_json(text_there, source);
  if (!numbers.empty())
    warnings.push_back({Severity::warning,
                        fmt::format("{} is not JSON: null takes its place", fmt::join(numbers, ", ")), source,
                        std::nullopt});
  for (const std::string_view integer : wide_integers(text_there))
    warnings.push_back({Severity::warning,
                        fmt::format("the integer {} has more than 64 bits: {} takes its place", short_integer(integer),
                                    to_json(parse_json(integer, source))),
                        source, std::nullopt});
  if (value.get_if<Attributes>() == nullptr) throw Error(ErrorKind::invalid_file, "JSON: expected an object", source);
  return std::move(value).take<Attributes>();
}

}  // namespace poise::huggingface
