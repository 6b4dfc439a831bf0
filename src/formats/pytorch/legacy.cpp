// Reads a file of torch.save() from before version 1.6: five pickles, then the storages. pytorch.hpp has the layout.
// Source: torch/serialization.py of PyTorch, _legacy_load().
#include "formats/pytorch/pytorch.hpp"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "formats/pickle_files.hpp"
#include "io/lookalikes.hpp"
#include "syntax/pickle_machine.hpp"

namespace poise::pytorch {
namespace {

using pickle::Id;
using pickle::Kind;
using pickle::Pickle;

constexpr std::int64_t kProtocol = 1001;

// Runs the pickles at a file's beginning. Reads a file that is not mapped in growing pieces, not the whole file.
class Front {
 public:
  explicit Front(const SourcePtr& source) : source_(source) {}

  // Runs the pickle at an offset. The result is valid while this exists.
  Pickle run_pickle(std::uint64_t at) {
    if (source_->mapped()) return pickle::run(source_->bytes().subspan(at), source_->name(), at);
    for (std::uint64_t length = 1 << 20;; length *= 4) {
      const std::uint64_t some = std::min(length, source_->size() - at);
      pieces_.emplace_back(some);
      source_->read(at, pieces_.back());
      try {
        return pickle::run(pieces_.back(), source_->name(), at);
      } catch (const Error& error) {
        const bool may_be_cut = error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported;
        if (!may_be_cut || some == source_->size() - at || length >= kMaxPickleBytes) throw;
        pieces_.pop_back();
      }
    }
  }

 private:
  const SourcePtr& source_;
  std::deque<std::vector<std::byte>> pieces_;
};

class LegacyStorages final : public Storages {
 public:
  explicit LegacyStorages(SourcePtr source) : source_(std::move(source)) {}

  // Records the sizes of the storages that the objects name, because a storage itself states only its element count.
  void record_sizes(const Pickle& objects) {
    for (Id id = 0; id < objects.count_objects(); ++id) {
      if (objects.kind(id) != Kind::persistent || !is_storage_key(objects, objects.persistent(id))) continue;
      const StorageName name = read_storage_name(objects, id, source_->name());
      sizes_.emplace(name.key, *compute_size(name));
    }
  }

  // Locates the storages, which follow the pickles from offset `at` on, in the order of the keys.
  void locate_storages(const Pickle& keys, std::uint64_t at) {
    ByteReader reader(*source_, "pytorch", at, source_->size());
    if (keys.kind(keys.root()) != Kind::list)
      reader.fail("keys of storages", "expected a list", keys.offset(keys.root()));
    for (const Id key : keys.items(keys.root())) {
      if (keys.kind(key) != Kind::text) reader.fail("keys of storages", "expected texts", keys.offset(key));
      const std::string name(keys.text(key));
      const auto size = sizes_.find(name);
      if (size == sizes_.end())
        reader.fail("keys of storages", fmt::format("no object names the storage {}", name), keys.offset(key));
      const std::uint64_t count_at = reader.position();
      const std::uint64_t count = reader.read_u64("elements of a storage");
      const Size& expected = size->second;
      if (count != expected.elements)
        reader.fail("elements of a storage", fmt::format("{}, the objects need {}", count, expected.elements),
                    count_at);
      if (!places_.emplace(name, make_storage_blob(reader, expected.bytes)).second)
        reader.fail("keys of storages", fmt::format("{} appears twice", name), keys.offset(key));
    }
    if (reader.remaining() > 0)
      reader.fail("end", fmt::format("{} bytes after the last storage", reader.remaining()), reader.position());
  }

  BlobPtr find(const StorageName& name) override {
    const auto found = places_.find(std::string(name.key));
    if (found == places_.end()) throw Error(ErrorKind::invalid_file, fmt::format("there is no storage {}", name.key));
    const auto bytes = packed_bytes(name.dtype, name.elements);
    if (!bytes || *bytes != found->second->size())
      throw Error(ErrorKind::invalid_file,
                  fmt::format("storage {} has {} bytes, {} elements of {} are expected", name.key,
                              found->second->size(), name.elements, to_string(name.dtype)));
    return found->second;
  }

 private:
  struct Size {
    std::uint64_t elements;
    std::uint64_t bytes;
  };

  // Returns false for a class with its source code ("module"), which tensors do not need. All other persistent objects
  // must be storages.
  static bool is_storage_key(const Pickle& objects, Id key) {
    return objects.kind(key) != Kind::tuple || objects.items(key).empty() ||
           objects.kind(objects.items(key)[0]) != Kind::text || objects.text(objects.items(key)[0]) != "module";
  }

  std::optional<Size> compute_size(const StorageName& name) const {
    const auto bytes = packed_bytes(name.dtype, name.elements);
    if (!bytes)
      throw Error(ErrorKind::invalid_file,
                  fmt::format("pytorch: storage {}: {} elements take more than 2^64 bytes", name.key, name.elements),
                  source_->name(), 0);
    return Size{name.elements, *bytes};
  }

  BlobPtr make_storage_blob(ByteReader& reader, std::uint64_t bytes) const {
    const std::uint64_t begin = reader.position();
    reader.skip(bytes, "elements of a storage");
    return make_source_blob(source_, begin, bytes);
  }

  SourcePtr source_;
  std::unordered_map<std::string, Size> sizes_;
  std::unordered_map<std::string, BlobPtr> places_;
};

void require_little_endian(const Pickle& facts, const std::string& path) {
  if (facts.kind(facts.root()) != Kind::dict) return;
  const std::span<const Id> items = facts.items(facts.root());
  for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
    const bool is_order = facts.kind(items[i]) == Kind::text && facts.text(items[i]) == "little_endian";
    if (is_order && facts.kind(items[i + 1]) == Kind::boolean && !facts.boolean(items[i + 1]))
      throw Error(ErrorKind::unsupported,
                  "pytorch: the file was saved on a big-endian machine: load it with torch and save it again", path,
                  facts.offset(items[i]));
  }
}

// Reads the five pickles at the beginning of a file. Throws invalid_file for another beginning, unsupported for numbers
// in big-endian order.
struct LegacyPickles {
  LegacyPickles(Front& front, const std::string& path) {
    const auto next = [&] {
      Pickle pickle = front.run_pickle(end);
      end += pickle.size();
      return pickle;
    };
    const auto fail = [&](const std::string& problem, std::uint64_t offset) {
      throw Error(ErrorKind::invalid_file, "pytorch: " + problem, path, offset);
    };
    magic = next();
    if (!is_magic_number(magic)) fail("the first pickle is not the magic number of torch.save()", 0);
    const std::uint64_t protocol_at = end;
    protocol = next();
    if (protocol.kind(protocol.root()) != Kind::integer || protocol.integer(protocol.root()) != kProtocol)
      fail(fmt::format("protocol: expected {}", kProtocol), protocol_at);
    facts = next();
    require_little_endian(facts, path);
    objects = next();
    keys = next();
  }

  std::uint64_t end = 0;
  Pickle magic;
  Pickle protocol;
  Pickle facts;  // facts about the machine
  Pickle objects;
  Pickle keys;
};

// If a file is also a tar archive, torch.load() reads the archive, because PyTorch's oldest files are tar archives.
constexpr std::string_view kIsTar =
    "pytorch: the first 512 bytes are the header of a tar archive, too: torch.load() runs other pickles than those at "
    "the beginning";

}  // namespace

bool has_legacy_magic(std::string_view start) {
  constexpr std::string_view kText = "L119547037146038801333356L\n.";  // how protocols 0 and 1 write it
  constexpr std::string_view kStep = "\x8a\x0a";                       // LONG1, 10 bytes
  if (start.starts_with(kText)) return true;
  return start.starts_with('\x80') && start.find(fmt::format("{}{}.", kStep, kMagicNumber)) != std::string_view::npos;
}

Rest read_legacy(const SourcePtr& source, FunctionRef<void(Tensor)> add_tensor) {
  if (is_tar_archive(*source)) throw Error(ErrorKind::invalid_file, std::string(kIsTar), source->name(), 0);
  Front front(source);
  const LegacyPickles pickles(front, source->name());
  LegacyStorages storages(source);
  storages.record_sizes(pickles.objects);
  storages.locate_storages(pickles.keys, pickles.end);
  Rest rest = read_objects(pickles.objects, source->name(), storages, add_tensor);
  for (const Pickle* other : {&pickles.magic, &pickles.protocol, &pickles.facts, &pickles.keys})
    std::ranges::move(find_unsafe_steps(*other, source->name()), std::back_inserter(rest.findings));
  return rest;
}

std::vector<Finding> find_dangers_in_pickles(const SourcePtr& source) {
  const std::string& path = source->name();
  std::vector<Finding> findings =
      check_pickles({.bytes = make_source_blob(source, 0, source->size()), .name = path, .path = path, .begin = 0});
  std::vector<std::byte> start(std::min<std::uint64_t>(kMagicWithin, source->size()));
  source->read(0, start);
  if (has_legacy_magic(pickle::view_as_text(start)) && is_tar_archive(*source))
    findings.push_back({Severity::error, std::string(kIsTar), path, 0});
  return findings;
}

}  // namespace poise::pytorch
