#include "ops/ranks.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "formats/format.hpp"
#include "io/extents.hpp"
#include "io/meter.hpp"
#include "ops/digest_check.hpp"
#include "ops/shared_bytes.hpp"
#include "pack/digest.hpp"
#include "pack/part_digest.hpp"
#include "pack/scan.hpp"

namespace poise {
namespace {

// Refers to a part, or to a whole file that holds parts. If the model's files have a digest of the item, hashing checks
// this digest, so that damaged bytes get no hash.
struct Item {
  const Tensor* tensor;
  const Part* part;
  BlobPtr blob;
  const FileDigest* file = nullptr;  // null: a part
  std::string sha256 = {};           // the hash of a part
  bool is_other = false;             // true if another rank reads it
};

// Marks the items that other ranks read.
void assign_items(std::vector<Item>& items, const Communicator& ranks) {
  std::vector<std::uint64_t> sizes;
  for (const Item& item : items) sizes.push_back(item.blob->size());
  const std::vector<std::size_t> dealt = assign_to_ranks(sizes, ranks.size());
  for (std::size_t i = 0; i < items.size(); ++i) items[i].is_other = dealt[i] != ranks.rank();
}

// Sends each rank the digests of the others.
void gather_digests(std::vector<Item>& items, Communicator& ranks) {
  std::string own;
  for (const Item& item : items) own += item.is_other ? "" : item.sha256 + "\n";
  std::string all;
  for (const std::string& text : ranks.gather(own)) all += text;
  // The items of a rank are neighbours, so the digests are in the order of the items.
  std::string_view left = all;
  for (Item& item : items) {
    const std::size_t end = left.find('\n');
    item.sha256 = left.substr(0, end);
    left.remove_prefix(end + 1);
  }
}

class ItemHash final : public Visitor {
 public:
  static Visit make_visit(Item& item, Meter& meter) {
    auto hash = std::make_unique<ItemHash>(item, meter);
    const bool sha256 = item.file == nullptr || hash->claim_->needs_sha256();
    return {item.blob, sha256, std::move(hash)};
  }
  ItemHash(Item& item, Meter& meter) : item_(item), meter_(meter) {
    const std::optional<Digest>& digest = item.part->digest;
    if (item.file != nullptr) {
      claim_.emplace(item.blob, item.file->digest);
    } else if (digest && is_computable(digest->algorithm)) {
      claim_.emplace(item.blob, *digest);
    }
  }

  void update(std::span<const std::byte> bytes) override {
    if (claim_) claim_->update(bytes);
    meter_.advance(bytes.size(), item_.tensor->name);
  }

  void end(std::string sha256) override {
    item_.sha256 = sha256;
    const auto problem = claim_ ? claim_->find_mismatch(std::move(sha256)) : std::nullopt;
    if (!problem) return;
    const Place place = find_place(*item_.blob);
    const std::string file = item_.file == nullptr ? std::string() : item_.file->what + ": ";
    throw Error(ErrorKind::invalid_file,
                fmt::format("tensor {}: {}: {}{}", item_.tensor->name, item_.part->role, file, *problem), place.path,
                place.offset);
  }

 private:
  Item& item_;
  Meter& meter_;
  std::optional<DigestClaim> claim_;
};

// Reads every item of this rank once.
void hash_items(std::vector<Item>& items, const Progress& progress) {
  std::vector<Item*> own;
  std::vector<std::uint64_t> sizes;
  std::uint64_t bytes = 0;
  for (Item& item : items) {
    if (item.is_other) continue;
    own.push_back(&item);
    bytes = saturating_add(bytes, sizes.emplace_back(item.blob->size()));
  }
  Meter meter(progress, bytes);
  Scan scan(sizes, [&](std::size_t index) { return ItemHash::make_visit(*own[index], meter); });
  scan.start();
  scan.finish();
}

// Hashes a model; `ranks` is null for a single rank.
ModelHash hash_model(const Model& model, const Progress& progress, Communicator* ranks) {
  const std::vector<PartRef> parts = list_parts(model);
  const SameBefore same = find_first_with_same_bytes(parts);
  std::vector<Item> items;
  std::vector<std::size_t> item_of(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    item_of[i] = same[i] ? item_of[*same[i]] : items.size();
    if (!same[i]) items.push_back({parts[i].tensor, parts[i].part, parts[i].part->blob});
  }
  for (const FileClaim& claim : find_file_claims(model, [](const Tensor&) { return true; })) {
    if (is_computable(claim.file->digest.algorithm))
      items.push_back({claim.tensor, claim.part, claim.bytes, claim.file});
  }
  if (ranks != nullptr) assign_items(items, *ranks);
  hash_items(items, progress);
  if (ranks != nullptr) gather_digests(items, *ranks);
  ModelHash result;
  for (std::size_t i = 0; i < parts.size(); ++i)
    result.parts.push_back({parts[i].tensor->name, parts[i].part->role, items[item_of[i]].sha256});
  std::ranges::sort(result.parts, {}, [](const PartHash& part) {
    return std::pair<std::string_view, std::string_view>(part.tensor, part.role);
  });
  std::string lines;
  for (const PartHash& part : result.parts) lines += fmt::format("{}  {}/{}\n", part.sha256, part.tensor, part.role);
  result.model = compute_sha256(std::as_bytes(std::span(lines)));
  result.content = find_content_digest(model).value_or("");
  return result;
}

}  // namespace

ModelHash hash(const Model& model, const Progress& progress) {
  return run_naming_parts({&model}, [&] { return hash_model(model, progress, nullptr); });
}

ModelHash hash(const Model& model, const Progress& progress, Communicator& ranks) {
  return run_naming_parts({&model}, [&] { return hash_model(model, progress, &ranks); });
}

}  // namespace poise
