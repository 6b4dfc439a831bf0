#include "io/lookalikes.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "bytes/utf8.hpp"
#include "io/source_range.hpp"

namespace poise {
namespace {

constexpr std::string_view kServerMessage =
    "this is a server's message saved instead of the download: sign in there, or check the name";

constexpr std::string_view kHtmlPage =
    "this is an HTML page, perhaps a login or error page saved instead of the download";
constexpr std::string_view kOldGgmlFile =
    "this is a file of ggml from before GGUF; llama.cpp's older conversion scripts make GGUF of it";

constexpr Lookalike kGitLfsPointer = {
    "version https://git-lfs", ErrorKind::invalid_file,
    "this is a Git LFS pointer, not the file itself; `git lfs pull` in its repository fetches the weights"};

constexpr std::array kLookalikes = {
    kGitLfsPointer,
    Lookalike{"<!doctype html", ErrorKind::invalid_file, kHtmlPage},
    Lookalike{"<html", ErrorKind::invalid_file, kHtmlPage},
    Lookalike{"<?xml", ErrorKind::invalid_file,
              "this is an XML document, perhaps a server's error message saved instead of the download"},
    Lookalike{"{\"error\"", ErrorKind::invalid_file, kServerMessage},
    Lookalike{"access to model", ErrorKind::invalid_file, kServerMessage},
    Lookalike{"entry not found", ErrorKind::invalid_file, kServerMessage},
    Lookalike{"repository not found", ErrorKind::invalid_file, kServerMessage},
    Lookalike{"invalid username or password", ErrorKind::invalid_file, kServerMessage},
    Lookalike{"\x80\x02", ErrorKind::unsupported,
              "this is a pickle that torch.save() did not write; Poise runs no code: in Python, save its tensors as "
              "safetensors"},
    Lookalike{
        "\x89hdf\r\n", ErrorKind::unsupported,
        "this is an HDF5 file, as Keras writes them; in Python, save its arrays as safetensors or with numpy.savez()"},
    Lookalike{"lmgg", ErrorKind::unsupported, kOldGgmlFile},
    Lookalike{"fmgg", ErrorKind::unsupported, kOldGgmlFile},
    Lookalike{"tjgg", ErrorKind::unsupported, kOldGgmlFile},
    Lookalike{"\x89png", ErrorKind::unsupported, "this is a PNG image"},
    Lookalike{"\x1f\x8b", ErrorKind::unsupported, "this is a gzip archive; unpack it first"},
    Lookalike{"\x28\xb5\x2f\xfd", ErrorKind::unsupported, "this is a zstd archive; unpack it with `zstd -d` first"},
};

std::string read_lower_case_start(const Source& source) {
  constexpr std::uint64_t kStart = 256;
  std::string text = to_lower_ascii(read_text(source, std::min(source.size(), kStart)));
  text.erase(0, std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  return text;
}

// Parses a number in the header of a tar archive as Python's tarfile does. After a byte 0x80 or 0xff the number is
// binary. Otherwise it is octal, in the syntax of int(text, 8), except that underscores may stand anywhere. Returns
// std::nullopt for other texts.
std::optional<std::int64_t> parse_tar_number(std::string_view field) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  if (field[0] == '\x80' || field[0] == '\xff') {
    std::uint64_t number = field[0] == '\xff' ? UINT64_MAX : 0;
    for (const char byte : field.substr(1)) number = number << 8U | static_cast<unsigned char>(byte);
    return static_cast<std::int64_t>(number);
  }
  std::string_view text = field.substr(0, field.find('\0'));
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  text = text.substr(0, text.find_last_not_of(kSpace) + 1);
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.starts_with("0o") || text.starts_with("0O")) text.remove_prefix(2);
  std::int64_t number = 0;
  for (const char digit : text) {
    if (digit == '_') continue;
    if (digit < '0' || digit > '7') return std::nullopt;
    number = number << 3 | (digit - '0');
  }
  return is_negative ? -number : number;
}

void refuse_lookalike(std::span<const Lookalike> among, const Source& source) {
  const std::string start = read_lower_case_start(source);
  for (const Lookalike& lookalike : among) {
    if (start.starts_with(lookalike.start))
      throw Error(lookalike.kind, std::string(lookalike.message), source.name(), 0);
  }
}

}  // namespace

std::span<const Lookalike> list_lookalikes() { return kLookalikes; }

void refuse_lookalike(const Source& source) {
  refuse_lookalike(kLookalikes, source);
  if (is_tar_archive(source))
    throw Error(ErrorKind::unsupported,
                "this is a tar archive; unpack it first (if PyTorch wrote it before version 0.1.10, load it with torch "
                "and save it again)",
                source.name(), 0);
}

bool is_tar_archive(const Source& source) {
  constexpr std::uint64_t kHeaderBytes = 512;
  constexpr std::size_t kChecksum = 148;
  constexpr std::size_t kChecksumBytes = 8;
  constexpr std::size_t kMagicOffset = 257;
  if (source.size() < kHeaderBytes) return false;
  const std::string header = read_text(source, kHeaderBytes);
  if (std::string_view(header).substr(kMagicOffset).starts_with("ustar")) return true;
  std::int64_t sum = 0;         // the sum of the bytes, with the checksum itself as spaces
  std::int64_t signed_sum = 0;  // the sum of the bytes as signed numbers, which some old programs computed
  for (std::size_t i = 0; i < header.size(); ++i) {
    const char byte = i >= kChecksum && i < kChecksum + kChecksumBytes ? ' ' : header[i];
    sum += static_cast<unsigned char>(byte);
    signed_sum += static_cast<signed char>(byte);
  }
  const auto claimed = parse_tar_number(std::string_view(header).substr(kChecksum, kChecksumBytes));
  return claimed == sum || claimed == signed_sum;
}

void refuse_git_lfs_pointer(const Source& source) { refuse_lookalike({&kGitLfsPointer, 1}, source); }

SourcePtr find_refused_source(const Error& error, std::span<const SourcePtr> opened) {
  if (error.kind() != ErrorKind::invalid_file && error.kind() != ErrorKind::unsupported) return nullptr;
  const auto found =
      std::ranges::find_if(opened, [&](const SourcePtr& source) { return source->name() == error.path(); });
  return found == opened.end() ? nullptr : *found;
}

}  // namespace poise
