#include "model/card.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "io/extents.hpp"

namespace poise {
namespace {

// Parses the fields of a date from front to back.
class DateText {
 public:
  explicit DateText(std::string_view text) : rest_(text) {}

  bool at_end() const { return rest_.empty(); }

  bool skip_one_of(std::string_view characters) {
    if (rest_.empty() || characters.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Parses exactly `digits` digits; std::nullopt if there are fewer.
  std::optional<int> parse_number(std::size_t digits) {
    const std::string_view text = rest_.substr(0, digits);
    if (text.size() != digits || text.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
    rest_.remove_prefix(digits);
    int number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  // Parses two digits. Returns false if they are missing, or their number is above `most`.
  bool parse_two_digits(int most) {
    const auto number = parse_number(2);
    return number && *number <= most;
  }

  void skip_digits() { rest_.remove_prefix(std::min(rest_.find_first_not_of("0123456789"), rest_.size())); }

 private:
  std::string_view rest_;
};

bool parse_day(DateText& fields) {
  const auto year = fields.parse_number(4);
  if (!year || !fields.skip_one_of("-")) return false;
  const auto month = fields.parse_number(2);
  if (!month || !fields.skip_one_of("-")) return false;
  const auto day = fields.parse_number(2);
  return day && std::chrono::year_month_day(std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                            std::chrono::day(static_cast<unsigned>(*day)))
                    .ok();
}

// Parses "HH:MM" or "HH:MM:SS", perhaps with a fraction, and perhaps "Z", "+HH", "-HHMM" or "+HH:MM".
bool parse_time(DateText& fields) {
  if (!fields.parse_two_digits(23) || !fields.skip_one_of(":") || !fields.parse_two_digits(59)) return false;
  if (fields.skip_one_of(":")) {
    if (!fields.parse_two_digits(60)) return false;  // 60: a leap second
    if (fields.skip_one_of(".,")) fields.skip_digits();
  }
  if (fields.skip_one_of("Zz") || !fields.skip_one_of("+-")) return true;
  if (!fields.parse_two_digits(23)) return false;
  fields.skip_one_of(":");
  return fields.at_end() || fields.parse_two_digits(59);
}

void check_utf8(std::string_view name, const std::string& value) {
  if (is_utf8(value)) return;
  throw Error(ErrorKind::bad_argument, fmt::format("{}: \"{}\" is not UTF-8", name, value));
}

void normalize_date(std::string_view name, std::string& value) {
  if (value.empty()) return;
  auto day = extract_day(value);
  if (!day)
    throw Error(ErrorKind::bad_argument,
                fmt::format("{}: \"{}\": expected YYYY-MM-DD or a timestamp that begins with it", name, value));
  value = *std::move(day);
}

}  // namespace

std::optional<std::string> extract_day(std::string_view text) {
  constexpr std::size_t kDay = std::string_view("YYYY-MM-DD").size();
  DateText fields(text);
  if (!parse_day(fields)) return std::nullopt;
  const bool whole = fields.at_end() || (fields.skip_one_of("Tt ") && parse_time(fields) && fields.at_end());
  return whole ? std::optional<std::string>(text.substr(0, kDay)) : std::nullopt;
}

std::span<const CardField> list_card_fields() {
  static constexpr auto kFields = std::to_array<CardField>({{"model_type", &Card::model_type},
                                                            {"base_model", &Card::base_model},
                                                            {"author", &Card::author},
                                                            {"created_at", &Card::created_at},
                                                            {"last_modified", &Card::last_modified},
                                                            {"license", &Card::license},
                                                            {"uuid", &Card::uuid}});
  return kFields;
}

std::vector<std::string> list_empty_card_fields(const Card& card) {
  std::vector<std::string> names;
  for (const CardField& field : list_card_fields()) {
    if ((card.*field.text).empty()) names.emplace_back(field.name);
  }
  return names;
}

Card normalize_card(Card card) {
  check_utf8("model_type", card.model_type);
  check_utf8("base_model", card.base_model);
  check_utf8("author", card.author);
  check_utf8("license", card.license);
  check_utf8("uuid", card.uuid);
  normalize_date("created_at", card.created_at);
  normalize_date("last_modified", card.last_modified);
  return card;
}

void warn_of_unknown_types(const Model& model, bool (*is_known_layout)(std::string_view),
                           std::vector<Finding>& findings) {
  const auto report = [&](const Tensor& tensor, const std::string& what, const Part* part) {
    const Place place = part == nullptr ? Place() : find_place(*part->blob);
    findings.push_back(
        {Severity::warning,
         fmt::format("tensor {}: {} is not known to this version of Poise: its elements were not checked", tensor.name,
                     what),
         place.offset ? place.path : model.origin.path.string(), place.offset, std::string(tensor.name)});
  };
  for (const Tensor& tensor : model.tensors()) {
    if (tensor.layout.is_carried() && !is_known_layout(tensor.layout.name()))
      report(tensor, fmt::format("the layout \"{}\"", tensor.layout.name()),
             tensor.parts.empty() ? nullptr : &tensor.parts.front());
    for (const Part& part : tensor.parts) {
      if (part.dtype == DType::unknown)
        report(tensor, fmt::format("{}: the type \"{}\"", part.role, part.type_name()), &part);
    }
  }
}

}  // namespace poise
