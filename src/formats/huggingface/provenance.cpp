#include "formats/huggingface/provenance.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <map>

#include <sys/stat.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <poise/error.hpp>

#include "formats/huggingface/front_matter.hpp"
#include "pack/digest.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSampleBytes = 4096;
constexpr std::string_view kSite = "https://huggingface.co/";

std::string text_of(const Attributes& map, std::string_view key) {
  const Value* value = map.find(key);
  const auto* text = value == nullptr ? nullptr : value->get_if<std::string>();
  return text == nullptr ? std::string() : *text;
}

std::string directory_name(const fs::path& directory) {
  std::error_code ignored;
  const fs::path real = fs::weakly_canonical(directory, ignored);
  const fs::path& path = real.empty() ? directory : real;
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

constexpr long long kLastDay = 253402300799;  // 9999-12-31

std::time_t newest(const std::vector<fs::path>& weights) {
  std::time_t time = 0;
  for (const fs::path& file : weights) {
    struct stat status {};
    if (::stat(file.c_str(), &status) == 0) time = std::max(time, status.st_mtime);
  }
  return std::min<std::time_t>(time, kLastDay);
}

// YYYY-MM-DD in UTC.
std::string weights_date(const std::vector<fs::path>& weights) {
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  if (epoch == nullptr || *epoch == '\0') return fmt::format("{:%Y-%m-%d}", fmt::gmtime(newest(weights)));
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

Card read_card(const Attributes& config, const std::string& readme, const fs::path& directory,
               const std::vector<fs::path>& weights) {
  const auto known = [&](std::string_view key) {
    const std::string value = text_of(config, key);
    return value.empty() ? front_matter_value(readme, key) : value;
  };
  Card card;
  card.license = known("license");
  card.base_model = known("base_model");
  if (card.base_model.starts_with(kSite)) card.base_model.erase(0, kSite.size());
  if (card.base_model.empty()) card.base_model = directory_name(directory);
  const bool is_address = card.base_model.find("://") != std::string::npos;
  if (const auto slash = card.base_model.find('/'); slash != std::string::npos && !is_address)
    card.author = card.base_model.substr(0, slash);
  card.created_at = card.last_modified = weights_date(weights);
  return card;
}

std::string content_uuid(const Model& model) {
  const auto hasher = make_sha256();
  hash_text(*hasher,
            to_json(model.config ? config_to_attributes(*model.config, model.card.model_type) : model.config_json));
  if (model.vocabulary) {
    for (std::size_t id = 0; id < model.vocabulary->size(); ++id) hash_text(*hasher, model.vocabulary->text(id));
  }
  std::map<std::string_view, const Tensor*> by_name;
  for (const Tensor& tensor : model.tensors()) by_name.emplace(tensor.name, &tensor);
  for (const auto& [name, tensor] : by_name) {
    const Part& data = tensor->require("data");
    hash_text(*hasher, fmt::format("{} {} {}", name, to_string(data.dtype), to_string(tensor->shape)));
    hash_samples(*hasher, *data.blob);
  }
  std::string hex = hasher->finish().substr(0, 32);
  constexpr std::string_view kVariants = "89ab";
  hex[12] = '8';  // version 8: made by the application's own rule
  hex[16] = kVariants[static_cast<unsigned char>(hex[16]) % kVariants.size()];  // RFC 9562 variant
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4), hex.substr(16, 4),
                     hex.substr(20));
}

}  // namespace poise
