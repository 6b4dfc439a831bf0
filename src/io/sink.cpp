#include "io/sink.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <system_error>

#include <poise/error.hpp>

#include "io/atomic_file.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kCopyBytes = 256 << 10;  // a piece stays in the cache between reading and writing

}  // namespace

void Sink::write(std::span<const std::byte> bytes) {
  do_write(bytes);
  position_ += bytes.size();
}

void Sink::pad_to(std::uint64_t alignment) { pad((alignment - position_ % alignment) % alignment); }

void Sink::pad(std::uint64_t count) {
  do_pad(count);
  position_ += count;
  padding_ += count;
}

void Sink::skip(std::uint64_t count) {
  do_skip(count);
  position_ += count;
}

void Sink::do_pad(std::uint64_t count) {
  static constexpr std::array<std::byte, 4096> kZeros{};
  while (count > 0) {
    const std::uint64_t piece = std::min<std::uint64_t>(count, kZeros.size());
    do_write(std::span(kZeros).first(piece));
    count -= piece;
  }
}

void Sink::copy(const Source& source, std::uint64_t offset, std::uint64_t length) {
  do_copy(source, offset, length);
  position_ += length;
}

void Sink::do_copy(const Source& source, std::uint64_t offset, std::uint64_t length) {
  if (source.mapped() && source.descriptor() < 0) {
    do_write(source.bytes().subspan(offset, length));
    return;
  }
  std::vector<std::byte> chunk(static_cast<std::size_t>(std::min<std::uint64_t>(length, kCopyBytes)));
  while (length > 0) {
    const auto part = std::span(chunk).first(static_cast<std::size_t>(std::min<std::uint64_t>(length, chunk.size())));
    source.read(offset, part);
    do_write(part);
    offset += part.size();
    length -= part.size();
  }
}

struct FileOutput::Files {
  std::deque<AtomicFile> siblings;
  std::optional<AtomicFile> main;
};

FileOutput::FileOutput(std::filesystem::path path, bool overwrite, std::vector<std::filesystem::path> inputs)
    : path_(std::move(path)), overwrite_(overwrite), inputs_(std::move(inputs)), files_(new Files) {
  files_->main.emplace(check_not_input(path_), overwrite_);
}

FileOutput::~FileOutput() = default;

Sink& FileOutput::main() { return *files_->main; }

Sink& FileOutput::open_main(const std::string& name) {
  files_->main.reset();
  return files_->main.emplace(check_not_input(path_.parent_path() / name), overwrite_);
}

Sink& FileOutput::open_sibling(const std::string& name) {
  return files_->siblings.emplace_back(check_not_input(path_.parent_path() / name), overwrite_);
}

void FileOutput::check_replaceable(const std::filesystem::path& path, bool overwrite,
                                   const std::vector<std::filesystem::path>& inputs) {
  require_not_input(inputs, path);
  require_replaceable(path, overwrite);
}

void FileOutput::require_not_input(const std::vector<std::filesystem::path>& inputs,
                                   const std::filesystem::path& path) {
  for (const std::filesystem::path& input : inputs) {
    std::error_code ignored;
    if (std::filesystem::equivalent(input, path, ignored))
      throw Error(ErrorKind::bad_argument, "this file is the input; it cannot be the output too", path.string());
  }
}

std::filesystem::path FileOutput::check_not_input(std::filesystem::path path) const {
  require_not_input(inputs_, path);
  return path;
}

std::uint64_t FileOutput::bytes() const {
  std::uint64_t sum = files_->main->position();
  for (const AtomicFile& file : files_->siblings) sum += file.position();
  return sum;
}

std::uint64_t FileOutput::padding() const {
  std::uint64_t sum = files_->main->padding();
  for (const AtomicFile& file : files_->siblings) sum += file.padding();
  return sum;
}

std::vector<std::filesystem::path> FileOutput::paths() const {
  std::vector<std::filesystem::path> all = {files_->main->target()};
  for (const AtomicFile& file : files_->siblings) all.push_back(file.target());
  return all;
}

void FileOutput::commit() {
  if (files_->siblings.empty()) return files_->main->commit();
  std::vector<AtomicFile*> all;
  for (AtomicFile& file : files_->siblings) all.push_back(&file);
  all.push_back(&*files_->main);
  for (AtomicFile* file : all) file->flush();
  try {
    for (AtomicFile* file : all) file->commit_undoably();
  } catch (...) {
    for (AtomicFile* file : all) file->undo_commit();
    throw;
  }
  for (AtomicFile* file : all) file->end_commit();
}

}  // namespace poise
