#include "pack/tar.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "io/source_range.hpp"
#include "pack/member_order.hpp"
#include "pack/zip.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kTarBlock = 512;
constexpr std::uint64_t kMostAttributes = 1 << 20;  // bytes of a long name, or of the attributes of a member
constexpr std::size_t kNameBytes = 100;
constexpr std::size_t kSize = 124;
constexpr std::size_t kNumberBytes = 12;
constexpr std::size_t kChecksum = 148;
constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kType = 156;
constexpr std::size_t kLink = 157;
constexpr std::size_t kMagic = 257;
constexpr std::size_t kPrefix = 345;
constexpr std::string_view kNoFiles = "3456DMNV";  // devices, folders, and what only GNU tar knows

std::string_view until_zero(std::string_view text) { return text.substr(0, text.find('\0')); }

// The sum of a header's bytes, with the checksum itself as spaces.
template <typename Byte>
std::int64_t checksum(std::string_view block) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool is_own = i >= kChecksum && i < kChecksum + kChecksumBytes;
    sum += is_own ? ' ' : static_cast<Byte>(block[i]);
  }
  return sum;
}

// A number of a header as Python's tarfile reads it: bytes after one of 0x80 or 0xff, or what int(text, 8) takes.
std::optional<std::int64_t> number_for_python(std::string_view field) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  if (field[0] == '\x80' || field[0] == '\xff') {
    std::uint64_t number = field[0] == '\xff' ? UINT64_MAX : 0;
    for (const char byte : field.substr(1)) number = number << 8U | static_cast<unsigned char>(byte);
    return static_cast<std::int64_t>(number);
  }
  std::string_view text = until_zero(field);
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

class TarReader {
 public:
  explicit TarReader(const Source& source) : range_(source, SourceRange::Records::scattered), reader_(range_, "tar") {}

  TarListing read() {
    while (reader_.remaining() > 0) {
      const std::uint64_t at = reader_.position();
      const std::string block(reader_.text(kTarBlock, "header"));
      if (std::ranges::all_of(block, [](char byte) { return byte == '\0'; })) break;
      read_entry(block, at);
    }
    TarListing listing;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!order_.counts(i)) continue;
      Entry& entry = entries_[i];
      if (entry.kind == Kind::file) {
        listing.members.push_back({std::move(entry.name), entry.begin, entry.bytes});
      } else {
        listing.links.push_back({std::move(entry.name), std::move(entry.target), entry.kind == Kind::hard_link});
      }
    }
    if (auto repeated = order_.repeated("tar", reader_.path())) listing.warnings.push_back(*std::move(repeated));
    return listing;
  }

 private:
  enum class Kind { file, symbolic_link, hard_link };

  // A file, or a link.
  struct Entry {
    Kind kind = Kind::file;
    std::string name = {};
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::string target = {};
  };

  // Adds a member that is one of these.
  void read_entry(std::string_view block, std::uint64_t at) {
    require_checksum(block, at);
    const char type = block[kType] == 'X' ? 'x' : block[kType];  // as Solaris has it
    const bool is_link = type == '1' || type == '2';
    const bool describes_next = type == 'x' || type == 'L' || type == 'K';
    // POSIX: members of a type that is not known are files.
    const bool is_file = !is_link && !describes_next && type != 'g' && kNoFiles.find(type) == std::string_view::npos;
    Entry entry;
    const std::string name = is_file || is_link ? name_of(block) : std::string();
    if (is_link) {
      entry.kind = type == '1' ? Kind::hard_link : Kind::symbolic_link;
      entry.target = next_link_.empty() ? std::string(until_zero(block.substr(kLink, kNameBytes))) : next_link_;
    }
    entry.begin = reader_.position();
    entry.bytes = number(block.substr(kSize, kNumberBytes), "size", at + kSize);
    if (!describes_next && type != 'g' && next_size_) entry.bytes = *next_size_;
    if (type >= '1' && type <= '6') entry.bytes = 0;  // links, devices and folders have none, whatever they claim
    if (entry.bytes > reader_.remaining())
      reader_.fail("size", fmt::format("{} bytes wanted, {} left", entry.bytes, reader_.remaining()), at + kSize);
    if (describes_next) {
      take_description(type, entry, at);
    } else if (type != 'g') {
      next_size_.reset();
      next_name_.clear();
      next_link_.clear();
    }
    reader_.seek(entry.begin + entry.bytes);
    reader_.skip((kTarBlock - entry.bytes % kTarBlock) % kTarBlock, "the rest of a block");
    if (type == 'S') throw Error(ErrorKind::unsupported, "tar: a sparse file", reader_.path(), at);
    if (!(is_file || is_link) || name.ends_with('/')) return;
    entry.name = plain_member_name(name);
    if (!is_zip_name(name) || entry.name.empty())
      reader_.fail("name", fmt::format("\"{}\" leads out of the archive", name), at);
    add(std::move(entry), name, at);
  }

  // Many links may have one target, which is cut before they do.
  void add(Entry entry, std::string_view name, std::uint64_t at) {
    if (entry.kind == Kind::hard_link) follow(entry);
    if (entry.target.size() > kMostTargetBytes) entry.target = entry.target.substr(0, kMostTargetBytes + 1);
    links_ += entry.kind == Kind::file ? 0 : 1;
    if (links_ > kMostArchiveLinks)
      throw Error(ErrorKind::unsupported, fmt::format("tar: more than {} links", kMostArchiveLinks), reader_.path(),
                  at);
    order_.add(entry.name, name);
    entries_.push_back(std::move(entry));
  }

  // tar makes a link to what is there by then: one to a link is the same link.
  void follow(Entry& entry) const {
    const auto found = order_.find(plain_member_name(entry.target));
    if (!found) return;
    const Entry& target = entries_[*found];
    entry.kind = target.kind;
    entry.begin = target.begin;
    entry.bytes = target.bytes;
    if (target.kind != Kind::file) entry.target = target.target;
  }

  void require_checksum(std::string_view block, std::uint64_t at) const {
    const auto sum = static_cast<std::uint64_t>(checksum<unsigned char>(block));
    const std::uint64_t found = number(block.substr(kChecksum, kChecksumBytes), "checksum", at + kChecksum);
    if (found != sum) reader_.fail("checksum", fmt::format("{}, expected {}", found, sum), at + kChecksum);
  }

  std::uint64_t number(std::string_view digits, std::string_view field, std::uint64_t at) const {
    std::uint64_t value = 0;
    if ((static_cast<unsigned char>(digits[0]) & 0x80U) != 0) {
      if (static_cast<unsigned char>(digits[0]) != 0x80U ||
          digits.substr(1, digits.size() - 9).find_first_not_of('\0') != std::string_view::npos)
        reader_.fail(field, "more than 64 bits", at);
      for (const char byte : digits.substr(digits.size() - 8)) value = value << 8U | static_cast<unsigned char>(byte);
      return value;
    }
    digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
    const std::string_view rest(end, static_cast<std::size_t>(digits.data() + digits.size() - end));
    if (error == std::errc::result_out_of_range ||
        rest.find_first_not_of(std::string_view(" \0", 2)) != std::string_view::npos)
      reader_.fail(field, "expected octal digits", at);
    return value;
  }

  std::string name_of(std::string_view block) const {
    std::string name = next_name_;
    if (name.empty()) {
      const bool is_posix = block.substr(kMagic, 6) == std::string_view("ustar\0", 6);
      const std::string_view prefix = is_posix ? until_zero(block.substr(kPrefix, 155)) : std::string_view();
      name = fmt::format("{}{}{}", prefix, prefix.empty() ? "" : "/", until_zero(block.substr(0, kNameBytes)));
    }
    return name;
  }

  void take_description(char type, const Entry& member, std::uint64_t at) {
    if (member.bytes > kMostAttributes)
      reader_.fail("size", fmt::format("{} bytes of attributes, expected at most {}", member.bytes, kMostAttributes),
                   at);
    const std::string text(reader_.text(member.bytes, "attributes"));
    if (type != 'x') {
      (type == 'L' ? next_name_ : next_link_) = until_zero(text);
      return;
    }
    for (std::string_view rest = text; !rest.empty();) {
      std::size_t length = 0;
      const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), length);
      const auto digits = static_cast<std::size_t>(end - rest.data());
      if (error != std::errc() || length > rest.size() || length < digits + 3 || rest[digits] != ' ' ||
          rest[length - 1] != '\n')
        reader_.fail("attributes", "expected LENGTH KEY=VALUE", member.begin + (text.size() - rest.size()));
      take_attribute(rest.substr(digits + 1, length - digits - 2), member.begin);
      rest.remove_prefix(length);
    }
  }

  void take_attribute(std::string_view entry, std::uint64_t at) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) reader_.fail("attributes", "expected KEY=VALUE", at);
    const auto [key, value] = std::pair(entry.substr(0, equals), entry.substr(equals + 1));
    if (key.starts_with("GNU.sparse.")) throw Error(ErrorKind::unsupported, "tar: a sparse file", reader_.path(), at);
    if (key == "path") next_name_ = value;
    if (key == "linkpath") next_link_ = value;
    if (key != "size") return;
    std::uint64_t size = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), size);
    if (error != std::errc() || end != value.data() + value.size())
      reader_.fail("attributes", fmt::format("size: \"{}\", expected digits", value), at);
    next_size_ = size;
  }

  SourceRange range_;
  ByteReader reader_;
  std::string next_name_;  // what an x, L or K member gives to the next one
  std::string next_link_;
  std::optional<std::uint64_t> next_size_;
  std::vector<Entry> entries_;
  MemberOrder order_;
  std::size_t links_ = 0;
};

std::optional<std::array<char, kTarBlock>> first_block(const Source& source) {
  if (source.size() < kTarBlock) return std::nullopt;
  std::array<char, kTarBlock> bytes;
  source.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

}  // namespace

TarListing read_tar(const Source& source) { return TarReader(source).read(); }

bool is_tar(const Source& source) {
  const auto bytes = first_block(source);
  if (!bytes || (*bytes)[0] == '\0') return false;
  const std::string_view block(bytes->data(), bytes->size());
  std::string_view digits = block.substr(kChecksum, kChecksumBytes);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  std::uint64_t claimed = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), claimed, 8);
  return error == std::errc() && claimed == static_cast<std::uint64_t>(checksum<unsigned char>(block));
}

bool is_tar_for_python(const Source& source) {
  const auto bytes = first_block(source);
  if (!bytes) return false;
  const std::string_view block(bytes->data(), bytes->size());
  const auto claimed = number_for_python(block.substr(kChecksum, kChecksumBytes));
  return claimed == checksum<unsigned char>(block) || claimed == checksum<signed char>(block);
}

}  // namespace poise
