// Edits `__metadata__`. The rest of the header keeps its bytes.
#include <array>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "bytes/checked.hpp"
#include "bytes/little_endian.hpp"
#include "bytes/utf8.hpp"
#include "formats/edited_beginning.hpp"
#include "formats/metadata.hpp"
#include "formats/safetensors/safetensors.hpp"
#include "syntax/json.hpp"
#include "syntax/json_writer.hpp"

namespace poise {
namespace {

using namespace safetensors;

[[noreturn]] void refuse(const std::string& problem) { throw Error(ErrorKind::bad_argument, problem); }

// Locates the member `__metadata__` in a header. If there is none, the place is before all members.
struct MetadataPlace {
  Attributes metadata;
  std::size_t begin = 0;
  std::size_t end = 0;    // behind the member, its comma and white space
  bool has_next = false;  // another member follows
};

MetadataPlace find_metadata(const std::string& header, const std::string& path) {
  MetadataPlace place;
  std::optional<std::size_t> first;
  bool is_found = false;
  walk_json_object(JsonText(std::string_view(header)), path, kSizeBytes, [&](std::string_view name, JsonValue& value) {
    const auto begin = value.position() - kSizeBytes;
    if (!first) first = begin;
    if (name == kMetadata) {
      place.metadata = value.read_tree().take<Attributes>();
      place.begin = begin;
      is_found = true;
    } else if (is_found && !place.has_next) {
      place.end = begin;
      place.has_next = true;
    }
  });
  const std::size_t close = header.rfind('}');
  if (!is_found) {
    place.begin = place.end = first.value_or(close);
    place.has_next = first.has_value();
  } else if (!place.has_next) {
    place.end = close;
  }
  return place;
}

// Applies the changes. Returns the new keys.
std::vector<std::string> apply_to_metadata(Attributes& metadata, const AttributeChanges& changes) {
  const auto set = [&](const std::string& key, const Value& value) {
    if (key.empty() || !is_utf8(key)) refuse("the name of an attribute must be UTF-8 text that is not empty");
    const bool is_new = metadata.find(key) == nullptr;
    metadata.set(key, value.get_if<std::string>() != nullptr ? value : Value(format_python_json(value)));
    return is_new;
  };
  return apply_changes(
      changes, [&](const std::string& key) { return metadata.erase(key); }, set);
}

}  // namespace

std::unique_ptr<PreparedEdit> edit_safetensors(const Input& input, const AttributeChanges& changes) {
  const Source& source = *input.source;
  std::array<std::byte, kSizeBytes> size{};
  source.read(0, size);
  std::string header(load_le<std::uint64_t>(size.data()), '\0');
  source.read(kSizeBytes, std::as_writable_bytes(std::span(header)));
  const std::uint64_t data = kSizeBytes + header.size();

  MetadataPlace place = find_metadata(header, input.path.string());
  std::vector<std::string> added = apply_to_metadata(place.metadata, changes);
  const std::string member = fmt::format("\"{}\":{}{}", kMetadata, to_json(place.metadata), place.has_next ? "," : "");
  std::string edited = header.substr(0, place.begin) + member + header.substr(place.end);
  edited.erase(edited.find_last_not_of(" \t\r\n") + 1);
  require_readable(measure_cost(place.metadata), edited.size());
  const bool fits = edited.size() <= header.size();
  edited.resize(fits ? header.size() : *checked_align(edited.size(), kAlignment), ' ');
  if (edited.size() > kMaxHeaderBytes) refuse("the header would be larger than 100 MB");
  ByteWriter out;
  out.append_u64(edited.size());
  out.append_text(edited);
  return std::make_unique<EditedBeginning>(input, out.bytes(), data, std::move(added));
}

}  // namespace poise
