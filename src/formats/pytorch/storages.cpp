// Reads the persistent objects that name storages: ("storage", class, key, device, elements). In old files, a sixth
// item may make the storage a part of another one. Source: torch/serialization.py of PyTorch, persistent_load().
#include "formats/pytorch/storages.hpp"

#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/pickle_globals.hpp"

namespace poise::pytorch {

using pickle::Id;
using pickle::Kind;
using pickle::Pickle;

StorageName read_storage_name(const Pickle& pickle, Id id, const std::string& path) {
  const auto fail = [&](ErrorKind kind, const std::string& problem) {
    return Error(kind, "pytorch: storage: " + problem, path, pickle.offset(id));
  };
  const Id key = pickle.persistent(id);
  if (pickle.kind(key) != Kind::tuple || pickle.items(key).size() < 5)
    throw fail(ErrorKind::invalid_file, "expected a tuple of a kind, a class, a key, a device and a size");
  const std::span<const Id> parts = pickle.items(key);
  if (pickle.kind(parts[0]) != Kind::text || pickle.text(parts[0]) != "storage")
    throw fail(ErrorKind::invalid_file, "expected the kind \"storage\"");
  if (pickle.kind(parts[1]) != Kind::global) throw fail(ErrorKind::invalid_file, "expected a class");
  const std::string type = make_full_name(pickle.global(parts[1]));
  const auto dtype = find_storage_dtype(type);
  if (!dtype)
    throw fail(ErrorKind::unsupported,
               fmt::format("the class {} is not known{}", type,
                           type.starts_with("torch.Q") ? ": in Python, save x.dequantize()" : ""));
  if (pickle.kind(parts[2]) != Kind::text) throw fail(ErrorKind::invalid_file, "expected a key that is text");
  if (pickle.kind(parts[4]) != Kind::integer || pickle.integer(parts[4]) < 0)
    throw fail(ErrorKind::invalid_file, "expected a size that is not negative");
  StorageName name{type, pickle.text(parts[2]), *dtype, static_cast<std::uint64_t>(pickle.integer(parts[4])), 0};
  if (parts.size() < 6 || parts[5] == pickle::kNone) return name;
  // The sixth item describes a view of the storage with this key: (the view's key, its first element, its size).
  const bool is_tuple = pickle.kind(parts[5]) == Kind::tuple && pickle.items(parts[5]).size() == 3;
  const Id first = is_tuple ? pickle.items(parts[5])[1] : pickle::kNone;
  if (pickle.kind(first) != Kind::integer || pickle.integer(first) < 0)
    throw fail(ErrorKind::invalid_file, "expected the key, the first element and the size of a view, or None");
  name.first = static_cast<std::uint64_t>(pickle.integer(first));
  return name;
}

}  // namespace poise::pytorch
