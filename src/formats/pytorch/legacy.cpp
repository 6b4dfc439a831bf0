#include "formats/pytorch/legacy.hpp"

#include <unordered_map>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_reader.hpp"
#include "io/source_range.hpp"

namespace poise::pytorch {
namespace {

using pickle::Id;
using pickle::Kind;
using pickle::Pickle;

constexpr std::int64_t kProtocol = 1001;

// The beginning of a file, as far as its pickles need.
class Front {
 public:
  explicit Front(const SourcePtr& source) : source_(source) {}

  // The pickle at a place. Valid while this lives.
  Pickle run(std::uint64_t at) {
    if (source_->mapped()) return pickle::run(source_->bytes().subspan(at), source_->name(), at);
    for (std::uint64_t length = 1 << 20;; length *= 4) {
      const std::uint64_t some = std::min(length, source_->size() - at);
      pieces_.emplace_back(static_cast<std::size_t>(some));
      source_->read(at, pieces_.back());
      try {
        return pickle::run(pieces_.back(), source_->name(), at);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::invalid_file || some == source_->size() - at || length >= kMaxPickleBytes) throw;
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

  // Records the storages that the objects name, with their element types.
  void expect(const Pickle& objects) {
    for (Id id = 0; id < objects.objects(); ++id) {
      if (objects.kind(id) != Kind::persistent || !names_storage(objects, objects.persistent(id))) continue;
      const StorageName name = storage_name(objects, id, source_->name());
      sizes_.emplace(name.key, *packed_bytes_of(name));
    }
  }

  void place(const Pickle& keys, std::uint64_t at) {
    const SourceRange range(*source_);
    ByteReader reader(range, "pytorch", at, source_->size());
    if (keys.kind(keys.root()) != Kind::list)
      reader.fail("keys of storages", "expected a list", keys.offset(keys.root()));
    for (const Id key : keys.items(keys.root())) {
      if (keys.kind(key) != Kind::text) reader.fail("keys of storages", "expected texts", keys.offset(key));
      const std::string name(keys.text(key));
      const auto size = sizes_.find(name);
      if (size == sizes_.end())
        reader.fail("keys of storages", fmt::format("nothing names the storage {}", name), keys.offset(key));
      const std::uint64_t count_at = reader.position();
      const std::uint64_t count = reader.u64("elements of a storage");
      const Size& expected = size->second;
      if (count != expected.elements)
        reader.fail("elements of a storage", fmt::format("{}, the objects say {}", count, expected.elements), count_at);
      if (!places_.emplace(name, make_place(reader, expected.bytes)).second)
        reader.fail("keys of storages", fmt::format("{} comes twice", name), keys.offset(key));
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

  // Other persistent objects are classes with their source code; nothing needs them.
  static bool names_storage(const Pickle& objects, Id key) {
    return objects.kind(key) != Kind::tuple || objects.items(key).empty() ||
           objects.kind(objects.items(key)[0]) != Kind::text || objects.text(objects.items(key)[0]) != "module";
  }

  std::optional<Size> packed_bytes_of(const StorageName& name) const {
    const auto bytes = packed_bytes(name.dtype, name.elements);
    if (!bytes)
      throw Error(ErrorKind::invalid_file,
                  fmt::format("pytorch: storage {}: {} elements take more than 2^64 bytes", name.key, name.elements),
                  source_->name(), 0);
    return Size{name.elements, *bytes};
  }

  BlobPtr make_place(ByteReader& reader, std::uint64_t bytes) const {
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

}  // namespace

Rest read_legacy(const SourcePtr& source, FunctionRef<void(Tensor)> take) {
  Front front(source);
  std::uint64_t at = 0;
  const auto next = [&] {
    Pickle pickle = front.run(at);
    at += pickle.size();
    return pickle;
  };
  const auto fail = [&](const std::string& problem, std::uint64_t offset) {
    throw Error(ErrorKind::invalid_file, "pytorch: " + problem, source->name(), offset);
  };
  const Pickle magic = next();
  constexpr std::string_view kDigits = kMagic.substr(2, 10);
  if (magic.kind(magic.root()) != Kind::wide_integer || magic.text(magic.root()) != kDigits)
    fail("the first pickle is not the magic number of torch.save()", 0);
  const std::uint64_t protocol_at = at;
  const Pickle protocol = next();
  if (protocol.kind(protocol.root()) != Kind::integer || protocol.integer(protocol.root()) != kProtocol)
    fail(fmt::format("protocol: expected {}", kProtocol), protocol_at);
  require_little_endian(next(), source->name());
  const Pickle objects = next();
  LegacyStorages storages(source);
  storages.expect(objects);
  const Pickle keys = next();
  storages.place(keys, at);
  return read_objects(objects, source->name(), storages, take);
}

}  // namespace poise::pytorch
