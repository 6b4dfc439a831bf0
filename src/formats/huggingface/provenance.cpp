// Makes the card of a Hugging Face model, and an id from its content.
#include "formats/huggingface/directory.hpp"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <map>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <poise/error.hpp>

#include "pack/digest.hpp"

namespace poise::huggingface {
namespace {

constexpr std::uint64_t kSampleBytes = 4096;
constexpr std::string_view kSite = "https://huggingface.co/";

constexpr long long kLastDay = 253402300799;  // 9999-12-31

// Returns the date of SOURCE_DATE_EPOCH as YYYY-MM-DD in UTC; empty if the variable is not set.
std::string read_source_date() {
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  if (epoch == nullptr || *epoch == '\0') return {};
  char* end = nullptr;
  const long long seconds = std::strtoll(epoch, &end, 10);
  if (*end != '\0' || seconds < 0 || seconds > kLastDay) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("SOURCE_DATE_EPOCH is \"{}\", expected seconds since 1970", epoch));
  }
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

void hash_text(Hasher& hasher, std::string_view text) {
  const std::string sized = fmt::format("{}:{}\n", text.size(), text);
  hasher.update(std::as_bytes(std::span(sized)));
}

void hash_samples(Hasher& hasher, const Blob& blob) {
  std::vector<std::byte> sample(static_cast<std::size_t>(std::min(kSampleBytes, blob.size())));
  blob.read(0, sample);
  hasher.update(sample);
  blob.read(blob.size() - sample.size(), sample);
  hasher.update(sample);
}

}  // namespace

Card read_card(const Attributes& config, const FrontMatter& front_matter) {
  const auto find_text = [&](std::string_view key) {
    const auto* text = config.get_if<std::string>(key);
    return text == nullptr || text->empty() ? front_matter.find_value(key) : *text;
  };
  Card card;
  card.license = find_text("license");
  card.base_model = find_text("base_model");
  if (card.base_model.starts_with(kSite)) card.base_model.erase(0, kSite.size());
  for (const std::string_view key : {"author", "model_author", "model_creator"}) {
    if (card.author.empty()) card.author = front_matter.find_value(key);
  }
  return card;
}

void complete_card(const Model& model, Card& card) {
  const bool is_address = card.base_model.find("://") != std::string::npos;
  const std::size_t slash = card.base_model.find('/');
  if (card.author.empty() && slash != std::string::npos && !is_address) card.author = card.base_model.substr(0, slash);
  if (card.created_at.empty()) card.created_at = read_source_date();
  if (card.last_modified.empty()) card.last_modified = read_source_date();
  if (card.uuid.empty()) card.uuid = make_content_uuid(model);
}

std::string make_content_uuid(const Model& model) {
  const auto hasher = make_sha256();
  hash_text(*hasher,
            to_json(model.config ? config_to_attributes(*model.config, model.card.model_type) : model.config_json));
  if (model.vocabulary) {
    for (std::size_t id = 0; id < model.vocabulary->size(); ++id) hash_text(*hasher, model.vocabulary->text(id));
  }
  std::map<std::string_view, const Tensor*> by_name;
  for (const Tensor& tensor : model.tensors()) by_name.emplace(tensor.name, &tensor);
  for (const auto& [name, tensor] : by_name) {
    for (const Part& part : tensor->parts) {
      hash_text(*hasher, fmt::format("{} {} {}", name, to_string(part.dtype), to_string(tensor->shape)));
      hash_samples(*hasher, *part.blob);
    }
  }
  std::string hex = hasher->finish().substr(0, 32);
  constexpr std::string_view kVariants = "89ab";
  hex[12] = '8';  // version 8: made by the application's own rule
  hex[16] = kVariants[static_cast<unsigned char>(hex[16]) % kVariants.size()];  // RFC 9562 variant
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4), hex.substr(16, 4),
                     hex.substr(20));
}

}  // namespace poise::huggingface
