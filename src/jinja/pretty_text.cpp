// The filter pprint: Python's pprint.pformat() with lines of 80 columns.
#include <algorithm>

#include "jinja/filters.hpp"
#include "jinja/text_methods.hpp"

namespace poise::jinja {
namespace {

constexpr std::int64_t kWidth = 80;

std::int64_t length(const Text& text) { return static_cast<std::int64_t>(count_characters(text.bytes)); }

// As Python's str(type(object)) orders it.
std::string type_order(const Object& object) {
  return object.text() != nullptr && object.text()->is_markup ? "markupsafe.Markup" : type_name(object);
}

// Python's order of keys: those without an order by their types.
bool comes_first(Budget& budget, const Object& left, const Object& right) {
  if (left.is_undefined()) fail_undefined(left);
  if (right.is_undefined()) fail_undefined(right);
  try {
    return is_less(budget, left, right);
  } catch (const Failure& failure) {
    if (failure.kind != FailureKind::runtime) throw;
    budget.step(100);
    return type_order(left) < type_order(right);
  }
}

std::vector<Dict::Entry> sorted_entries(Budget& budget, const Dict& dict) {
  budget.charge(dict.entries().size(), sizeof(Dict::Entry));
  std::vector<Dict::Entry> entries = dict.entries();
  std::stable_sort(entries.begin(), entries.end(), [&](const Dict::Entry& left, const Dict::Entry& right) {
    return comes_first(budget, left.first, right.first);
  });
  return entries;
}

bool is_plain_sequence(const Object& object) {
  const auto* const tuple = object.get_if<Tuple>();
  return object.is<List>() || (tuple != nullptr && !tuple->items->is_group);
}

class PrettyText {
 public:
  explicit PrettyText(Budget& budget) : budget_(budget) {}

  // `allowance`: what follows the object in its last line.
  void put(const Object& object, std::int64_t indent, std::int64_t allowance, unsigned level) {
    Text line;
    append_line(line, object);
    if (length(line) <= kWidth - indent - allowance) {
      append(out_, line);
    } else if (const auto* dict = object.get_if<DictPtr>()) {
      put_entries(**dict, indent, allowance, level + 1);
    } else if (is_plain_sequence(object)) {
      put_items(object, indent, allowance, level + 1);
    } else if (object.text() != nullptr && !object.text()->is_markup) {
      put_text(*object.text(), indent, allowance, level + 1);
    } else {
      append(out_, line);
    }
  }

  Text take() { return std::move(out_); }

 private:
  // repr() with sorted keys.
  void append_line(Text& out, const Object& object) {
    budget_.step();
    if (const auto* dict = object.get_if<DictPtr>()) {
      append(out, "{");
      bool is_first = true;
      for (const auto& [key, value] : sorted_entries(budget_, **dict)) {
        if (!is_first) append(out, ", ");
        is_first = false;
        append_line(out, key);
        append(out, ": ");
        append_line(out, value);
      }
      append(out, "}");
    } else if (is_plain_sequence(object)) {
      const std::vector<Object>& items = *object.sequence();
      append(out, object.is<List>() ? "[" : "(");
      for (std::size_t i = 0; i < items.size(); ++i) {
        if (i > 0) append(out, ", ");
        append_line(out, items[i]);
      }
      append(out, object.is<List>() ? "]" : items.size() == 1 ? ",)" : ")");
    } else {
      append_repr(budget_, out, object);
    }
  }

  void begin_line(std::int64_t indent, std::string_view end_of_last) {
    budget_.charge(static_cast<std::uint64_t>(indent), 2);
    append(out_, end_of_last);
    append(out_, "\n" + std::string(static_cast<std::size_t>(indent), ' '));
  }

  void put_entries(const Dict& dict, std::int64_t indent, std::int64_t allowance, unsigned level) {
    const std::vector<Dict::Entry> entries = sorted_entries(budget_, dict);
    append(out_, "{");
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) begin_line(indent + 1, ",");
      Text key;
      append_line(key, entries[i].first);
      append(out_, key);
      append(out_, ": ");
      put(entries[i].second, indent + 1 + length(key) + 2, i + 1 == entries.size() ? allowance + 1 : 1, level);
    }
    append(out_, "}");
  }

  void put_items(const Object& object, std::int64_t indent, std::int64_t allowance, unsigned level) {
    const std::vector<Object>& items = *object.sequence();
    const std::string_view end = object.is<List>() ? "]" : items.size() == 1 ? ",)" : ")";
    append(out_, object.is<List>() ? "[" : "(");
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) begin_line(indent + 1, ",");
      const bool is_last = i + 1 == items.size();
      put(items[i], indent + 1, is_last ? allowance + static_cast<std::int64_t>(end.size()) : 1, level);
    }
    append(out_, end);
  }

  // Several quoted texts, one a line, which Python puts together.
  void put_text(const Text& text, std::int64_t indent, std::int64_t allowance, unsigned level) {
    if (level == 1) {
      ++indent;
      ++allowance;
    }
    const std::vector<Text> lines = lines_of(text, true);
    std::vector<Text> chunks;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const std::int64_t last_allowance = i + 1 == lines.size() ? allowance : 0;
      Text whole = quoted(lines[i]);
      if (length(whole) <= kWidth - indent - last_allowance) {
        chunks.push_back(std::move(whole));
      } else {
        put_words(lines[i], kWidth - indent, last_allowance, chunks);
      }
    }
    const bool has_brackets = level == 1 && chunks.size() > 1;
    if (has_brackets) append(out_, "(");
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      if (i > 0) begin_line(indent, "");
      append(out_, chunks[i]);
    }
    if (has_brackets) append(out_, ")");
  }

  // As many words with the white space behind them in a chunk as fit.
  void put_words(const Text& line, std::int64_t width, std::int64_t allowance, std::vector<Text>& chunks) {
    std::size_t begin = 0;
    std::size_t end = 0;
    while (end < line.size()) {
      const std::size_t next = end_of_word(line.view(), end);
      if (next == line.size()) width -= allowance;
      if (length(quoted(part(line, begin, next))) > width) {
        if (end > begin) chunks.push_back(quoted(part(line, begin, end)));
        begin = end;
      }
      end = next;
    }
    if (end > begin) chunks.push_back(quoted(part(line, begin, end)));
  }

  // Where the white space behind a word ends.
  static std::size_t end_of_word(std::string_view line, std::size_t at) {
    bool in_space = false;
    while (at < line.size()) {
      const Decoded here = decode(line, at);
      if (is_space(here.code)) {
        in_space = true;
      } else if (in_space) {
        break;
      }
      at = here.next;
    }
    return at;
  }

  Text quoted(const Text& text) {
    budget_.step();
    budget_.charge(2 * text.size());
    Text out;
    append_repr(out, text);
    return out;
  }

  Budget& budget_;
  Text out_;
};

}  // namespace

Object filter_pprint(Interpreter& in, const Object& value, Parameters& given) {
  given.finish();
  PrettyText text(in.budget());
  text.put(value, 0, 0, 0);
  return text.take();
}

}  // namespace poise::jinja
