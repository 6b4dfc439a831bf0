#include "formats/pickle_files.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "io/read_fully.hpp"
#include "syntax/pickle_machine.hpp"

namespace poise::pytorch {
namespace {

using pickle::Id;
using pickle::Kind;
using pickle::Partial;
using pickle::Pickle;

constexpr std::size_t kMostPickles = 1000;  // the most pickles of a file that Poise checks
constexpr std::size_t kMostFindings = 100;
constexpr std::uint64_t kMostUnpromised = 64 << 20;  // bytes of a pickle that are run if the name promises none

// People load files with these endings by torch.load(), pickle.load(), joblib.load() and the like.
constexpr std::array<std::string_view, 14> kPromises = {".npy",    ".npz", ".bin",    ".pt",   ".pth", ".ckpt", ".pkl",
                                                        ".pickle", ".pk",  ".joblib", ".dill", ".p",   ".th",   ".sav"};

// Recognizes archives and compressed files by their first bytes. They may hold pickles, and Poise does not open them.
struct Packed {
  std::string_view begin;
  std::string_view what;
  bool everywhere = false;  // such a file is reported under any name
};
constexpr std::array kPacked = std::to_array<Packed>({
    {"7z\xbc\xaf\x27\x1c", "a 7z archive", true},
    {"Rar!\x1a\x07", "a RAR archive", true},
    {"\x1f\x8b", "compressed by gzip"},
    {"BZh", "compressed by bzip2"},
    {"\xfd"
     "7zXZ",
     "compressed by xz"},
    {"\x28\xb5\x2f\xfd", "compressed by zstd"},
    {"\x04\x22\x4d\x18", "compressed by lz4"},
    {"\x78\x9c", "compressed by zlib"},
    {"\x78\xda", "compressed by zlib"},
    {"\x78\x01", "compressed by zlib"},
});

bool promises_pickle(std::string_view name) {
  constexpr std::array<std::string_view, 7> kCompressions = {".gz", ".bz2", ".xz", ".lzma", ".z", ".zst", ".lz4"};
  const std::string small = to_lower_ascii(name);
  std::string_view rest = small;
  for (const std::string_view ending : kCompressions) {
    if (rest.ends_with(ending)) rest.remove_suffix(ending.size());
  }
  return std::ranges::any_of(kPromises, [&](std::string_view ending) { return rest.ends_with(ending); });
}

// Runs the pickles of a file. Reads a file that is not mapped in growing pieces, not the whole file.
class PickleBytes {
 public:
  explicit PickleBytes(BlobPtr blob) : blob_(std::move(blob)), mapped_(blob_->map()) {}

  std::uint64_t size() const { return blob_->size(); }

  std::string read_begin(std::size_t count) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(std::min<std::uint64_t>(count, size())));
    blob_->read(0, bytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  // Runs the pickle at an offset, in at most `most` bytes. The result's objects are valid while this lives.
  Partial run_pickle(std::uint64_t at, std::uint64_t most, const std::string& name) {
    constexpr std::uint64_t kFirst = 64 << 10;
    if (mapped_) {
      const auto rest = mapped_->subspan(static_cast<std::size_t>(at));
      return pickle::run_until_error(rest.first(std::min<std::size_t>(rest.size(), most)), name, at);
    }
    for (std::uint64_t length = kFirst;; length *= 4) {
      const std::uint64_t some = std::min({length, size() - at, most});
      std::vector<std::byte>& piece = pieces_.emplace_back(static_cast<std::size_t>(some));
      blob_->read(at, piece);
      Partial partial = pickle::run_until_error(piece, name, at);
      if (!partial.has_run_out || some == size() - at || some == most) return partial;
      pieces_.pop_back();
    }
  }

 private:
  BlobPtr blob_;
  std::optional<std::span<const std::byte>> mapped_;
  std::deque<std::vector<std::byte>> pieces_;
};

bool has_calls(const Pickle& pickle) {
  for (Id id = 0; id < pickle.count_objects(); ++id) {
    if (pickle.kind(id) == Kind::call) return true;
  }
  return false;
}

// Returns true for names that Python can import. Other names show that the file is a text that begins like a pickle.
bool is_dotted_name(std::string_view name) {
  bool at_begin = true;
  for (const char c : name) {
    const bool is_letter = is_ascii_letter(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
    const bool is_digit = c >= '0' && c <= '9';
    if (c == '.' ? at_begin : !is_letter && (at_begin || !is_digit)) return false;
    at_begin = c == '.';
  }
  return !at_begin;
}

bool has_importable_names(const Pickle& pickle) {
  return std::ranges::all_of(pickle.list_globals(), [&](Id id) {
    return is_dotted_name(pickle.global(id).module) && is_dotted_name(pickle.global(id).name);
  });
}

class Check {
 public:
  explicit Check(const PickleFile& file) : file_(file), bytes_(file.bytes) {}

  std::vector<Finding> check_all() {
    const bool is_promised = promises_pickle(file_.name);
    if (report_packed(is_promised)) return std::move(findings_);
    std::uint64_t at = 0;
    std::size_t most = kMostPickles;
    for (std::size_t i = 0; at < bytes_.size() && findings_.size() < kMostFindings; ++i) {
      if (i == most) {
        if (most == kMostPickles) report(at, fmt::format("more than {} pickles: the rest is not checked", most));
        break;
      }
      const Partial partial = bytes_.run_pickle(at, is_promised ? kMaxPickleBytes : kMostUnpromised, file_.path);
      if (is_pickle(partial, at, is_promised)) add_findings(partial);
      if (partial.stop) break;
      if (i == 0 && is_magic_number(partial.pickle))
        most = kLegacyPickles;  // after these, an old file of PyTorch has raw numbers
      at += partial.pickle.size();
    }
    return std::move(findings_);
  }

  std::vector<Finding> check_certain() {
    for (std::uint64_t at = 0; findings_.size() < kMostFindings;) {
      const Partial partial = bytes_.run_pickle(at, kMaxPickleBytes, file_.path);
      add_findings(partial);
      if (partial.stop) break;
      at += partial.pickle.size();
      if (at == bytes_.size()) break;
    }
    return std::move(findings_);
  }

 private:
  void report(std::uint64_t at, std::string problem) {
    findings_.push_back({Severity::error, file_.prefix + problem, file_.path, find_place(at)});
  }

  std::optional<std::uint64_t> find_place(std::uint64_t at) const {
    return file_.begin ? std::optional(*file_.begin + at) : file_.header;
  }

  bool report_packed(bool is_promised) {
    constexpr std::size_t kLongest = 8;
    const std::string begin = bytes_.read_begin(kLongest);
    for (const Packed& packed : kPacked) {
      if (!begin.starts_with(packed.begin) || (!packed.everywhere && !is_promised)) continue;
      report(0,
             fmt::format("this is {}, which Poise does not check: unpack it where that is safe, and verify its files",
                         packed.what));
      return true;
    }
    return false;
  }

  bool is_pickle(const Partial& partial, std::uint64_t at, bool is_promised) {
    const Pickle& pickle = partial.pickle;
    const bool calls = has_calls(pickle);
    if (!is_promised)
      return has_importable_names(pickle) && (calls || (!partial.stop && !pickle.list_globals().empty()));
    if (!partial.stop || calls || !pickle.list_globals().empty()) return true;
    return partial.stop->kind() == ErrorKind::unsupported || begins_with_protocol(at);
  }

  bool begins_with_protocol(std::uint64_t at) const {
    constexpr std::byte kOpcode{0x80};
    constexpr std::byte kOldest{2};  // the opcode came with protocol 2
    constexpr std::byte kNewest{5};
    std::array<std::byte, 2> begin;
    if (bytes_.size() - at < begin.size()) return false;
    file_.bytes->read(at, begin);
    return begin[0] == kOpcode && begin[1] >= kOldest && begin[1] <= kNewest;
  }

  // Adds the faults of one pickle. Without PickleFile::begin, all of them get the offset PickleFile::header.
  void add_findings(const Partial& partial) {
    for (Finding& finding : find_unsafe_steps(partial.pickle, file_.path)) {
      finding.message.insert(0, file_.prefix);
      finding.offset = find_place(finding.offset.value_or(0));
      findings_.push_back(std::move(finding));
    }
    if (!partial.stop) return;
    constexpr std::string_view kContext = "pickle: ";
    std::string_view problem = partial.stop->message();
    if (problem.starts_with(kContext)) problem.remove_prefix(kContext.size());
    const bool python_stops = partial.stop->kind() == ErrorKind::invalid_file;
    report(partial.stop->offset().value_or(0),
           python_stops ? fmt::format("a pickle breaks off, but Python runs the steps before: {}", problem)
                        : fmt::format("Poise cannot follow a pickle to its end, but Python may: {}", problem));
  }

  const PickleFile& file_;
  PickleBytes bytes_;
  std::vector<Finding> findings_;
};

// Checks the members of an archive, and of archives in it.
class MemberCheck {
 public:
  explicit MemberCheck(std::string path) : path_(std::move(path)) {}

  std::vector<Finding> check(const ZipArchive& archive, FunctionRef<bool(std::string_view name)> skip,
                             const std::string& prefix, std::size_t depth) {
    std::vector<Finding> findings;
    for (const ZipMember& member : archive.members()) {
      if (member.bytes == 0 || skip(member.name)) continue;
      try {
        std::ranges::move(check(archive, member, prefix + member.name + ": ", depth), std::back_inserter(findings));
      } catch (const Error& error) {
        if (error.kind() == ErrorKind::io) throw;
        findings.push_back({Severity::error, prefix + member.name + ": " + error.message(), path_, member.header});
      }
    }
    return findings;
  }

 private:
  std::vector<Finding> check(const ZipArchive& archive, const ZipMember& member, const std::string& prefix,
                             std::size_t depth) {
    constexpr std::size_t kMostLevels = 3;
    constexpr std::string_view kZip = "PK\3\4";
    const BlobPtr blob = archive.make_blob(member);
    std::array<std::byte, kZip.size()> begin = {};
    if (member.bytes >= begin.size()) blob->read(0, begin);
    if (pickle::view_as_text(begin) == kZip && depth < kMostLevels) {
      const SourcePtr inner = archive.open(member, compute_decoded_limit(member.stored_bytes), path_);
      return check(
          ZipArchive(inner), [](std::string_view) { return false; }, prefix, depth + 1);
    }
    // Offsets in an inner archive are not those of the file.
    const bool is_in_place = !member.deflated && depth == 0;
    return check_pickles({.bytes = blob,
                          .name = member.name,
                          .path = path_,
                          .prefix = prefix,
                          .begin = is_in_place ? std::optional(member.begin) : std::nullopt,
                          .header = depth == 0 ? std::optional(member.header) : std::nullopt});
  }

  std::string path_;
};

}  // namespace

bool is_magic_number(const Pickle& pickle) {
  if (pickle.kind(pickle.root()) != Kind::wide_integer) return false;
  const std::string_view number = pickle.text(pickle.root());
  return number.starts_with(kMagicNumber) &&
         number.find_first_not_of('\0', kMagicNumber.size()) == std::string_view::npos;
}

std::vector<Finding> check_pickles(const PickleFile& file) { return Check(file).check_all(); }
std::vector<Finding> check_certain_pickles(const PickleFile& file) { return Check(file).check_certain(); }

std::vector<Finding> check_members(const ZipArchive& archive, FunctionRef<bool(std::string_view name)> skip) {
  return MemberCheck(archive.source()->name()).check(archive, skip, {}, 0);
}

}  // namespace poise::pytorch
