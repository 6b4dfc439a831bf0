// Reads a zip archive of torch.save(): a pickle of the objects, and a member for each storage. archive.hpp has the
// layout. Source: torch/serialization.py of PyTorch, _load(), and caffe2/serialize/inline_container.h.
#include "formats/pytorch/archive.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"
#include "formats/pickle_files.hpp"
#include "io/read_fully.hpp"

namespace poise::pytorch {
namespace {

// Returns the largest size of an inflated pickle. It is small because the whole pickle is in memory.
std::uint64_t compute_pickle_limit(std::uint64_t stored_bytes) { return (std::uint64_t{8} << 20) + 2 * stored_bytes; }

class ArchiveStorages final : public Storages {
 public:
  ArchiveStorages(const ZipArchive& archive, const std::string& root, bool big_endian)
      : archive_(archive), big_endian_(big_endian) {
    const std::string folder = root + "data/";
    for (const ZipMember& member : archive.members()) {
      if (member.name.starts_with(folder))
        members_.emplace(std::string_view(member.name).substr(folder.size()), &member);
    }
  }

  BlobPtr find(const StorageName& name) override {
    const auto found = members_.find(name.key);
    if (found == members_.end())
      throw Error(ErrorKind::invalid_file, fmt::format("the archive has no data/{}", name.key));
    const ZipMember& member = *found->second;
    const auto bytes = packed_bytes(name.dtype, name.elements);
    if (!bytes || *bytes != member.bytes)
      throw Error(ErrorKind::invalid_file, fmt::format("data/{} has {} bytes, {} elements of {} are expected", name.key,
                                                       member.bytes, name.elements, to_string(name.dtype)));
    BlobPtr& blob = blobs_[name.key];
    if (blob == nullptr) blob = archive_.make_blob(member);
    return blob;
  }

  bool is_big_endian() const override { return big_endian_; }
  bool is_used(std::string_view key) const { return blobs_.contains(key); }

 private:
  const ZipArchive& archive_;
  bool big_endian_;
  std::unordered_map<std::string_view, const ZipMember*> members_;
  std::unordered_map<std::string_view, BlobPtr> blobs_;
};

// Returns the member data.pkl. Throws invalid_file unless there is exactly one.
const ZipMember& find_pickle(const ZipArchive& archive) {
  const ZipMember* found = nullptr;
  for (const ZipMember& member : archive.members()) {
    if (!is_pickle_name(member.name)) continue;
    if (found != nullptr)
      throw Error(ErrorKind::invalid_file,
                  fmt::format("pytorch: the archive has two pickles: {} and {}", found->name, member.name),
                  archive.source()->name(), member.header);
    found = &member;
  }
  if (found == nullptr)
    throw Error(ErrorKind::invalid_file, "pytorch: the archive has no data.pkl", archive.source()->name(), 0);
  return *found;
}

bool is_big_endian(const ZipArchive& archive, const std::string& root) {
  constexpr std::uint64_t kMostBytes = 64;
  const ZipMember* member = archive.find(root + "byteorder");
  if (member == nullptr) return false;
  const SourcePtr source = archive.open(*member, kMostBytes);
  const std::string_view order(reinterpret_cast<const char*>(source->bytes().data()), source->bytes().size());
  if (order != "little" && order != "big")
    throw Error(ErrorKind::invalid_file, fmt::format("pytorch: byteorder: \"{}\", expected little or big", order),
                archive.source()->name(), member->begin);
  return order == "big";
}

// Warns about members that no tensor uses, except the small ones that torch.save() adds to each archive.
void warn_of_unused_members(const ZipArchive& archive, const std::string& root, const ArchiveStorages& storages,
                            Rest& rest) {
  const std::string folder = root + "data/";
  for (const ZipMember& member : archive.members()) {
    const std::string_view name = member.name;
    const bool is_inside = name.starts_with(root);
    const std::string_view inside = is_inside ? name.substr(root.size()) : name;
    const bool is_known = is_inside && (inside == kPickle || inside == "version" || inside == "byteorder" ||
                                        inside == ".format_version" || inside == ".storage_alignment" ||
                                        inside.starts_with(".data/") || name.ends_with('/'));
    if (is_known || (name.starts_with(folder) && storages.is_used(name.substr(folder.size())))) continue;
    rest.findings.push_back({Severity::warning, fmt::format("the archive's member {} belongs to no tensor", name),
                             archive.source()->name(), member.header});
  }
}

// Throws for two names that differ only in case, because PyTorch ignores case, and may load another member than Poise.
void require_distinct_names(const ZipArchive& archive) {
  std::unordered_map<std::string, const ZipMember*> names;
  for (const ZipMember& member : archive.members()) {
    const auto [other, is_new] = names.emplace(to_lower_ascii(member.name), &member);
    if (!is_new)
      throw Error(
          ErrorKind::invalid_file,
          fmt::format("pytorch: the members {} and {} have the same name except for case: torch.load() may read either",
                      other->second->name, member.name),
          archive.source()->name(), member.header);
  }
}

// Opens an archive, and finds its data.pkl. Throws unsupported for a program of TorchScript and for too large a pickle.
struct ArchivePickle {
  explicit ArchivePickle(const SourcePtr& source)
      : archive(source),
        member(find_pickle(archive)),
        root(member.name.substr(0, member.name.size() - kPickle.size())) {
    require_distinct_names(archive);
    if (archive.find(root + "constants.pkl") != nullptr)
      throw Error(ErrorKind::unsupported,
                  "pytorch: this is a program of TorchScript: in Python, save its state_dict() with torch.save()",
                  source->name(), 0);
    if (member.bytes > kMaxPickleBytes)
      throw Error(ErrorKind::unsupported,
                  fmt::format("pytorch: data.pkl has {} bytes, at most {} are read", member.bytes, kMaxPickleBytes),
                  source->name(), member.begin);
    if (member.deflated && member.bytes > compute_pickle_limit(member.stored_bytes))
      throw Error(
          ErrorKind::unsupported,
          fmt::format("pytorch: data.pkl has {} bytes when unpacked, at most {} are read for its {} compressed bytes",
                      member.bytes, compute_pickle_limit(member.stored_bytes), member.stored_bytes),
          source->name(), member.begin);
  }

  // Runs the pickle, and returns visit(pickle).
  template <typename Visit>
  auto visit_objects(const Visit& visit) const {
    const std::string& path = archive.source()->name();
    const WholeBlob bytes(archive.make_blob(member));
    try {
      const pickle::Pickle pickle = pickle::run(bytes.bytes(), path, member.begin);
      if (pickle.size() < member.bytes)
        throw Error(ErrorKind::invalid_file, "pytorch: data.pkl: there are bytes after its end", path,
                    member.begin + pickle.size());
      return visit(pickle);
    } catch (const Error& error) {
      if (!member.deflated || !error.offset()) throw;
      throw Error(error.kind(), error.message(), path, member.begin);  // the error's own offset counts decoded bytes
    }
  }

  ZipArchive archive;
  const ZipMember& member;
  std::string root;
};

}  // namespace

bool is_pickle_name(std::string_view member) { return to_lower_ascii(member.substr(member.rfind('/') + 1)) == kPickle; }

Rest read_archive(const SourcePtr& source, FunctionRef<void(Tensor)> add_tensor) {
  const ArchivePickle file(source);
  ArchiveStorages storages(file.archive, file.root, is_big_endian(file.archive, file.root));
  return file.visit_objects([&](const pickle::Pickle& pickle) {
    Rest rest = read_objects(pickle, source->name(), storages, add_tensor);
    if (rest.faults.empty()) warn_of_unused_members(file.archive, file.root, storages, rest);
    return rest;
  });
}

std::vector<Finding> find_dangers_in_archive(const SourcePtr& source) {
  const ZipArchive archive(source);
  std::vector<Finding> findings = check_members(archive, [](std::string_view) { return false; });
  const bool is_checkpoint =
      std::ranges::any_of(archive.members(), [](const ZipMember& member) { return is_pickle_name(member.name); });
  if (!is_checkpoint) return findings;
  try {
    (void)ArchivePickle(source);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io) throw;
    findings.push_back({Severity::error, error.message(), source->name(), error.offset()});
  }
  return findings;
}

std::vector<Finding> find_dangers_in_other_members(const ZipArchive& archive) {
  const std::string& pickle = find_pickle(archive).name;
  return check_members(archive, [&](std::string_view name) { return name == pickle; });
}

}  // namespace poise::pytorch
