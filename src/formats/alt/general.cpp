#include "formats/alt/general.hpp"

#include <cctype>
#include <string_view>

namespace poise::alt {
namespace {

constexpr std::string_view kDatePattern = "dddd-dd-dd";

bool begins_with_date(std::string_view text) {
  if (text.size() < kDatePattern.size()) return false;
  for (std::size_t i = 0; i < kDatePattern.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (kDatePattern[i] == 'd' ? !digit : text[i] != kDatePattern[i]) return false;
  }
  return true;
}

// YYYY-MM-DD; of an ISO 8601 timestamp, the day.
std::string read_date(FileReader& reader, std::string_view field) {
  const std::uint64_t at = reader.bytes().position();
  std::string text = reader.text(field);
  const std::size_t day = kDatePattern.size();
  if (!begins_with_date(text) || text.size() == day || (text[day] != 'T' && text[day] != ' ')) return text;
  reader.warn(field, "expected YYYY-MM-DD, found a timestamp", at);
  return text.substr(0, day);
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
