#include "formats/ztensor/list_keys.hpp"

#include "formats/type_name.hpp"

namespace poise::ztensor {

std::vector<MetadataKey> list_keys(const Source& source, const ManifestRange& range, cbor::Rules rules) {
  const ManifestBytes bytes(source, range);
  cbor::Cursor in(bytes.bytes(), range.begin, source.name(), "zTensor: manifest", rules);
  std::vector<MetadataKey> keys;
  for (auto root = in.map(); root.next();) {
    if (root.key() != "attributes") {
      in.skip();
    } else if (!in.null()) {
      for (const auto& [key, value] : in.attributes()) keys.push_back({key, type_name(value), value});
    }
  }
  return keys;
}

}  // namespace poise::ztensor
