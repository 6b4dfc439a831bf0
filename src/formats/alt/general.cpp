#include "formats/alt/general.hpp"

#include "model/card.hpp"

namespace poise::alt {
namespace {

// YYYY-MM-DD; of an ISO 8601 timestamp, the day.
std::string read_date(FileReader& reader, std::string_view field) {
  const std::uint64_t at = reader.bytes().position();
  std::string text = reader.text(field);
  const auto day = day_of(text);
  if (!day || *day == text) return text;
  reader.warn(field, "expected YYYY-MM-DD, found a timestamp", at);
  return *day;
}

}  // namespace

Card read_general(FileReader& reader) {
  Card card;
  card.model_type = reader.text("model_type");
  card.base_model = reader.text("base_model");
  card.author = reader.text("author");
  card.created_at = read_date(reader, "created_at");
  card.last_modified = read_date(reader, "last_modified");
  card.license = reader.text("license");
  card.uuid = reader.text("uuid");
  return card;
}

}  // namespace poise::alt
