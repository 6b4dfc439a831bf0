#include <poise/model.hpp>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/platform.hpp"
#include "bytes/text_table.hpp"
#include "model/card.hpp"
#include "model/limits.hpp"

namespace poise {

constexpr std::size_t kMaxArena = UINT32_MAX;  // bytes of text; offsets into it have 32 bits

std::string_view to_string(TokenType type) {
  switch (type) {
    case TokenType::normal: return "normal";
    case TokenType::byte: return "byte";
    case TokenType::control: return "control";
    case TokenType::unknown: return "unknown";
    case TokenType::unused: return "unused";
    case TokenType::bos: return "bos";
    case TokenType::eos: return "eos";
    case TokenType::pad: return "pad";
    case TokenType::user_defined: return "user_defined";
  }
  return "normal";
}

MergeList::MergeList(std::initializer_list<value_type> pairs) {
  for (const auto& [left, right] : pairs) emplace_back(left, right);
}

void MergeList::reserve(std::size_t merges, std::size_t bytes) {
  ends_.reserve(merges);
  arena_.reserve(bytes);
  advise_huge_pages(ends_);
  advise_huge_pages(arena_);
}

void MergeList::emplace_back(std::string_view left, std::string_view right) {
  const std::size_t left_over = kMaxArena - arena_.size();
  if (left.size() > left_over || right.size() > left_over - left.size())
    throw Error(ErrorKind::unsupported, "the merges have more than 4 GiB of text");
  arena_ += left;
  const auto middle = static_cast<std::uint32_t>(arena_.size());
  arena_ += right;
  ends_.push_back({middle, static_cast<std::uint32_t>(arena_.size())});
}

void Vocabulary::reserve(std::size_t tokens, std::size_t bytes) {
  tokens_.reserve(tokens);
  arena_.reserve(bytes);
  advise_huge_pages(tokens_);
  advise_huge_pages(arena_);
}

void Vocabulary::add(std::string_view text, float score, TokenType type) {
  if (tokens_.size() == kMaxTokens)
    throw Error(ErrorKind::unsupported, fmt::format("the vocabulary has more than {} tokens", kMaxTokens));
  if (text.size() > kMaxArena - arena_.size())
    throw Error(ErrorKind::unsupported, "the vocabulary has more than 4 GiB of text");
  tokens_.push_back({static_cast<std::uint32_t>(arena_.size()), static_cast<std::uint32_t>(text.size()), score, type});
  arena_ += text;
  index_.texts = nullptr;
}

const Tensor& Model::add(Tensor tensor) {
  const auto require = [&](bool holds, std::string_view what, std::size_t most) {
    if (!holds)
      throw Error(ErrorKind::unsupported, fmt::format("tensor {}: more than {} {}", tensor.name, most, what),
                  origin.path.string());
  };
  require(tensors_.size() < kMaxTensors, "tensors", kMaxTensors);
  require(tensor.parts.size() <= kMaxTensorParts, "parts", kMaxTensorParts);
  require(tensor.parts.size() <= kMaxParts - parts_, "parts in all", kMaxParts);
  require(tensor.shape.size() <= kMaxRank, "dimensions", kMaxRank);
  reserve(tensors_.size() + 1);
  const std::uint32_t tag = by_name_->prefetch(tensor.name);
  const Tensor& added = tensors_.emplace_back(std::move(tensor));
  const auto position = static_cast<std::uint32_t>(tensors_.size() - 1);
  if (!by_name_->insert(tag, added.name, position,
                        [this](std::uint32_t at) -> std::string_view { return tensors_[at].name; })) {
    parts_ += added.parts.size();
    return added;
  }
  const std::string name = added.name;
  tensors_.pop_back();
  throw Error(ErrorKind::invalid_file, fmt::format("the tensor name \"{}\" appears twice", name), origin.path.string());
}

void Model::reserve(std::size_t tensors) {
  if (!by_name_) by_name_ = std::make_shared<TextTable>();
  by_name_->reserve(tensors);
}

void Model::reorder(const std::vector<std::uint32_t>& order) {
  // Moves tensors along each cycle of the permutation, so that only one is held aside. Prefetches, since the next
  // tensor may be anywhere in memory.
  constexpr std::size_t kAhead = 8;
  constexpr std::size_t kCacheLine = 64;
  std::vector<bool> done(order.size(), false);
  for (std::size_t first = 0; first < order.size(); ++first) {
    if (done[first] || order[first] == first) continue;
    Tensor held = std::move(tensors_[first]);
    std::size_t at = first;
    std::size_t ahead = first;
    for (std::size_t i = 0; i < kAhead; ++i) ahead = order[ahead];
    for (std::size_t from = order[at]; from != first; at = from, from = order[at], ahead = order[ahead]) {
      for (std::size_t byte = 0; byte < sizeof(Tensor); byte += kCacheLine)
        __builtin_prefetch(reinterpret_cast<const char*>(&tensors_[ahead]) + byte, 1);
      tensors_[at] = std::move(tensors_[from]);
      done[at] = true;
    }
    tensors_[at] = std::move(held);
    done[at] = true;
  }
  std::vector<std::uint32_t> positions(order.size());
  for (std::uint32_t at = 0; at < order.size(); ++at) positions[order[at]] = at;
  if (by_name_) by_name_->renumber(positions);
}

const Tensor* Model::find(std::string_view name) const {
  if (!by_name_) return nullptr;
  const auto found = by_name_->find(name, [this](std::uint32_t at) -> std::string_view { return tensors_[at].name; });
  return found ? &tensors_[*found] : nullptr;
}

std::vector<const Tensor*> Model::find_in_file(std::string_view file_name) const {
  std::vector<const Tensor*> found;
  for (const Tensor& tensor : tensors_) {
    if (tensor.file_name && *tensor.file_name == file_name) found.push_back(&tensor);
  }
  return found;
}

Attributes card_to_attributes(const Card& card) {
  Attributes map;
  for (const CardField& field : list_card_fields()) map.set(std::string(field.name), card.*field.text);
  return map;
}

}  // namespace poise
