// Pickles in any file: those that Python programs load besides a checkpoint itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <poise/blob.hpp>
#include <poise/finding.hpp>

#include "bytes/function_ref.hpp"
#include "pack/zip.hpp"
#include "syntax/pickle.hpp"

namespace poise::pytorch {

inline constexpr std::uint64_t kMaxPickleBytes = std::uint64_t{1} << 30;

// A file of torch.save() from before version 1.6 begins with a pickle of this number (the lowest byte first), and four
// others.
inline constexpr std::string_view kMagicNumber = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
bool is_magic_number(const pickle::Pickle& pickle);
inline constexpr std::size_t kLegacyPickles = 5;

// A place where pickles may be, and the words of its findings.
struct PickleFile {
  BlobPtr bytes;
  std::string name;                          // of the file or member: its ending says if programs take it for a pickle
  std::string path;                          // Finding::path
  std::string prefix = {};                   // of messages: "evil.pkl: " in an archive
  std::optional<std::uint64_t> begin;        // where the bytes are in the file; nothing if they are decoded
  std::optional<std::uint64_t> header = {};  // Finding::offset of those
};

// Errors for what the pickles at the begin of a file would have Python do besides making what checkpoints consist of
// (unsafe_steps), and where they cannot be followed to their end.
//
// A file that is called like one of PyTorch's or pickle's is taken for a pickle if it begins like one, or names or
// calls anything; other files only if they end as a pickle, or make a call, by names that Python can import. So text,
// images and raw weights are silent. Throws io.
std::vector<Finding> check_pickles(const PickleFile& file);

// The same for bytes that certainly are pickles, and nothing else: the data of an object array of NumPy.
std::vector<Finding> check_pickle(const PickleFile& file);

// check_pickles() of each member of an archive, and of archives in it, but for those that `skip` names.
std::vector<Finding> check_members(const ZipArchive& archive, FunctionRef<bool(std::string_view name)> skip);

}  // namespace poise::pytorch
