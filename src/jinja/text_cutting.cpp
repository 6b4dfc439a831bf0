// Strips, splits, replaces, joins and pads texts.
#include <algorithm>

#include "jinja/things.hpp"

namespace poise::jinja {
namespace {

// Returns the begin and end of each run of characters other than white space.
std::vector<std::pair<std::size_t, std::size_t>> find_words(std::string_view text) {
  std::vector<std::pair<std::size_t, std::size_t>> words;
  bool in_word = false;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text, i);
    if (is_space(here.code)) {
      in_word = false;
    } else if (in_word) {
      words.back().second = here.next;
    } else {
      words.emplace_back(i, here.next);
      in_word = true;
    }
    i = here.next;
  }
  return words;
}

// Returns where a separator splits a text: at most `most` positions, in ascending order. If there are more, returns the
// first ones, or the last ones if `from_right`.
std::vector<std::size_t> find_separators(std::string_view text, std::string_view separator, std::size_t most,
                                         bool from_right) {
  std::vector<std::size_t> places;
  if (!from_right) {
    for (std::size_t at = text.find(separator); at != std::string_view::npos && places.size() < most;
         at = text.find(separator, at + separator.size())) {
      places.push_back(at);
    }
    return places;
  }
  std::size_t end = text.size();
  while (places.size() < most && end >= separator.size()) {
    const std::size_t at = text.rfind(separator, end - separator.size());
    if (at == std::string_view::npos) break;
    places.push_back(at);
    end = at;
  }
  std::ranges::reverse(places);
  return places;
}

bool is_line_end(char32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 || code == 0x2028 ||
         code == 0x2029;
}

}  // namespace

Text strip_text(const Text& text, const Text* set, Sides sides) {
  const std::vector<std::size_t> begins = find_characters(text.bytes);
  const auto is_removed = [&](std::size_t i) {
    const std::string_view character = text.view().substr(begins[i], begins[i + 1] - begins[i]);
    return set == nullptr ? is_space(decode(character, 0).code) : set->bytes.find(character) != std::string::npos;
  };
  std::size_t first = 0;
  std::size_t last = begins.size() - 1;
  if (sides != Sides::right) {
    while (first < last && is_removed(first)) ++first;
  }
  if (sides != Sides::left) {
    while (last > first && is_removed(last - 1)) --last;
  }
  return copy_part(text, begins[first], begins[last]);
}

std::vector<Object> split(const Text& text, const Text* separator, std::optional<std::int64_t> given, bool from_right) {
  const std::size_t most = given ? static_cast<std::size_t>(*given) : text.size() + 1;
  std::vector<Object> parts;
  if (separator != nullptr) {
    if (separator->empty()) fail("empty separator");
    std::size_t begin = 0;
    for (const std::size_t at : find_separators(text.view(), separator->view(), most, from_right)) {
      parts.emplace_back(copy_part(text, begin, at));
      begin = at + separator->size();
    }
    parts.emplace_back(copy_part(text, begin, text.size()));
    return parts;
  }
  const auto words = find_words(text.view());
  if (words.size() <= most) {
    for (const auto& [begin, end] : words) parts.emplace_back(copy_part(text, begin, end));
  } else if (from_right) {
    const std::size_t rest = words.size() - most;
    parts.emplace_back(copy_part(text, 0, words[rest - 1].second));
    for (std::size_t i = rest; i < words.size(); ++i)
      parts.emplace_back(copy_part(text, words[i].first, words[i].second));
  } else {
    for (std::size_t i = 0; i < most; ++i) parts.emplace_back(copy_part(text, words[i].first, words[i].second));
    parts.emplace_back(copy_part(text, words[most].first, text.size()));
  }
  return parts;
}

std::vector<Text> split_lines(const Text& text, bool with_ends) {
  std::vector<Text> lines;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text.bytes, i);
    if (is_line_end(here.code)) {
      const std::size_t end =
          here.code == '\r' && here.next < text.size() && text.bytes[here.next] == '\n' ? here.next + 1 : here.next;
      lines.push_back(copy_part(text, begin, with_ends ? end : i));
      begin = i = end;
    } else {
      i = here.next;
    }
  }
  if (begin < text.size()) lines.push_back(copy_part(text, begin, text.size()));
  return lines;
}

Text replace_text(Budget& budget, const Text& text, const Text& from, const Text& to, std::int64_t most) {
  budget.charge(2 * text.size());
  Text out;
  std::int64_t left = most;
  const auto append_new = [&] {
    budget.step();
    budget.charge(2 * to.size());
    append(out, to);
    --left;
  };
  if (from.empty()) {
    const std::vector<std::size_t> begins = find_characters(text.bytes);
    for (std::size_t i = 0; i < begins.size(); ++i) {
      if (left != 0) append_new();
      if (i + 1 < begins.size()) append(out, text, begins[i], begins[i + 1]);
    }
    return out;
  }
  std::size_t begin = 0;
  for (std::size_t at = text.bytes.find(from.bytes); at != std::string::npos && left != 0;
       at = text.bytes.find(from.bytes, begin)) {
    append(out, text, begin, at);
    append_new();
    begin = at + from.size();
  }
  append(out, text, begin, text.size());
  return out;
}

Text join_texts(Budget& budget, const Text& separator, const std::vector<Object>& items) {
  Text out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) {
      budget.charge(2 * separator.size());
      append(out, separator);
    }
    append(out, to_text(budget, items[i]));
  }
  budget.charge(out.size());
  return out;
}

Text pad_text(Budget& budget, const Text& text, std::int64_t width, const Text& fill, Sides fill_sides) {
  if (count_characters(fill.bytes) != 1) fail("The fill character must be exactly one character long");
  const auto length = static_cast<std::int64_t>(count_characters(text.bytes));
  const std::int64_t missing = std::max<std::int64_t>(0, width - length);
  budget.charge(static_cast<std::uint64_t>(missing), 2 * fill.size());
  budget.charge(2 * text.size());
  // If `missing` is odd, the extra fill goes to the left if the text's length is even, else to the right, as in
  // Python's str.center().
  const std::int64_t left = fill_sides == Sides::left    ? missing
                            : fill_sides == Sides::right ? 0
                                                         : missing / 2 + (missing & width & 1);
  Text out;
  for (std::int64_t i = 0; i < left; ++i) append(out, fill);
  append(out, text);
  for (std::int64_t i = left; i < missing; ++i) append(out, fill);
  return out;
}

Text capitalize_text(const Text& text) {
  Text out;
  if (text.empty()) return out;
  const std::size_t first = decode(text.bytes, 0).next;
  append_cased(out, text, 0, first, Case::title);
  append_cased(out, text, first, text.size(), Case::lower);
  return out;
}

bool has_case(const Text& text, Case which) {
  bool has_any = false;
  for (std::size_t i = 0; i < text.size();) {
    const Decoded here = decode(text.bytes, i);
    if (is_title(here.code) || (which == Case::lower ? is_upper(here.code) : is_lower(here.code))) return false;
    has_any |= which == Case::lower ? is_lower(here.code) : is_upper(here.code);
    i = here.next;
  }
  return has_any;
}

}  // namespace poise::jinja
