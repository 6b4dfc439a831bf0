#include "tokenizer/pipeline/steps.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "tokenizer/pipeline/charsmap.hpp"
#include "tokenizer/pipeline/fields.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/unicode.hpp"

namespace poise::normalizers {
namespace {

using Made = std::unique_ptr<const Normalizer>;

// A normalizer may make a text of n bytes kMostGrowth * n + kAlwaysAllowed bytes long; more growth is an attack.
constexpr std::size_t kMostGrowth = 64;
constexpr std::size_t kAlwaysAllowed = 1 << 20;

[[noreturn]] void refuse_growth(std::size_t bytes, std::size_t most) {
  throw Error(ErrorKind::unsupported,
              fmt::format("tokenizer: normalizer: it makes the text too long: {} bytes, at most {}", bytes, most));
}

class Sequence final : public Normalizer {
 public:
  explicit Sequence(std::vector<Made> steps) : steps_(std::move(steps)) {}
  void apply(FrontedText& text) const override {
    const std::size_t most = kAlwaysAllowed + kMostGrowth * text.text.size();
    for (const Made& step : steps_) {
      step->apply(text);
      if (text.text.size() > most) refuse_growth(text.text.size(), most);
    }
  }

 private:
  std::vector<Made> steps_;
};

using Function = std::string (*)(std::string_view text);

// Applies a function that changes each character on its own. So the new front is what the function makes of the old
// one.
void apply_by_character(Function function, FrontedText& text) {
  text.front = function(std::string_view(text.text).substr(0, text.front)).size();
  text.text = function(text.text);
}

// Wraps a function as a normalizer.
class Simple final : public Normalizer {
 public:
  explicit Simple(Function function) : function_(function) {}
  void apply(FrontedText& text) const override { apply_by_character(function_, text); }

 private:
  Function function_;
};

// Converts to a normal form. As in Hugging Face's library, the new front has as many characters as the normal form of
// the old one.
class NormalForm final : public Normalizer {
 public:
  explicit NormalForm(unicode::Form form) : form_(form) {}
  void apply(FrontedText& text) const override {
    std::size_t characters = 0;
    unicode::for_each_character(unicode::to_normal_form(std::string_view(text.text).substr(0, text.front), form_),
                                [&](char32_t, std::string_view) { ++characters; });
    text.text = unicode::to_normal_form(text.text, form_);
    text.front = 0;
    for (; characters > 0 && text.front < text.text.size(); --characters)
      text.front += unicode::decode(text.text, text.front).bytes;
  }

 private:
  unicode::Form form_;
};

template <typename Keep>
std::string keep_characters(std::string_view text, Keep&& keep) {
  std::string result;
  result.reserve(text.size());
  unicode::for_each_character(text, [&](char32_t code, std::string_view bytes) {
    if (keep(code)) result += bytes;
  });
  return result;
}

class Bert final : public Normalizer {
 public:
  explicit Bert(const Fields& fields)
      : clean_(fields.read_boolean("clean_text", true)),
        chinese_(fields.read_boolean("handle_chinese_chars", true)),
        lower_(fields.read_boolean("lowercase", true)),
        strip_(fields.read_boolean("strip_accents", lower_)) {}

  void apply(FrontedText& text) const override {
    if (clean_) apply_by_character(clean_text, text);
    if (chinese_) apply_by_character(separate_ideographs, text);
    if (strip_) {
      NormalForm(unicode::Form::nfd).apply(text);
      apply_by_character(remove_accents, text);
    }
    if (lower_) apply_by_character(unicode::to_lower_case, text);
  }

 private:
  static std::string remove_accents(std::string_view text) {
    return keep_characters(text, [](char32_t code) { return code < 0x80 || !unicode::is_nonspacing_mark(code); });
  }

  static std::string clean_text(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    unicode::for_each_character(text, [&](char32_t code, std::string_view bytes) {
      if (unicode::is_white_space(code) &&
          (code == '\t' || code == '\n' || code == '\r' || !unicode::is_control_or_format(code))) {
        result += ' ';
      } else if (code != 0xFFFD && !unicode::is_control_or_format(code)) {
        result += bytes;
      }
    });
    return result;
  }

  // Puts a space on each side of an ideograph, so that each becomes a word.
  static std::string separate_ideographs(std::string_view text) {
    std::string result;
    result.reserve(text.size());
    unicode::for_each_character(text, [&](char32_t code, std::string_view bytes) {
      if (unicode::is_ideograph(code)) {
        (result += ' ').append(bytes) += ' ';
      } else {
        result += bytes;
      }
    });
    return result;
  }

  bool clean_;
  bool chinese_;
  bool lower_;
  bool strip_;
};

class Strip final : public Normalizer {
 public:
  explicit Strip(const Fields& fields)
      : left_(fields.read_boolean("strip_left", true)), right_(fields.read_boolean("strip_right", true)) {}
  void apply(FrontedText& fronted) const override {
    std::string& text = fronted.text;
    std::size_t begin = SIZE_MAX;
    std::size_t end = 0;
    std::size_t at = 0;
    unicode::for_each_character(text, [&](char32_t code, std::string_view bytes) {
      if (!unicode::is_white_space(code)) {
        begin = std::min(begin, at);
        end = at + bytes.size();
      }
      at += bytes.size();
    });
    if (begin == SIZE_MAX) begin = end = left_ ? text.size() : 0;
    if (right_) text.resize(std::max(begin, end));
    if (!left_) return;
    text.erase(0, begin);
    fronted.front -= std::min(fronted.front, begin);
  }

 private:
  bool left_;
  bool right_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(const Fields& fields) : prefix_(fields.require_text("prepend")) {}
  // Adds text in front, which belongs to the character after it.
  void apply(FrontedText& text) const override {
    if (text.text.empty()) return;
    text.text.insert(0, prefix_);
    if (text.front > 0) text.front += prefix_.size();
  }

 private:
  std::string prefix_;
};

class Replace final : public Normalizer {
 public:
  explicit Replace(const Fields& fields)
      : pattern_(Pattern::read(fields, "pattern")), content_(fields.require_text("content")) {}
  // Replaces text. The replacement belongs to the last replaced character.
  void apply(FrontedText& fronted) const override {
    const std::string& text = fronted.text;
    const std::size_t most = kAlwaysAllowed + kMostGrowth * text.size();
    std::string result;
    result.reserve(text.size() + text.size() / 2);
    std::size_t seen = 0;
    std::size_t front = 0;
    PatternMatcher matcher(pattern_);
    matcher.start_time_limit(text.size());
    matcher.for_each_run(text, [&](std::string_view run, bool match) {
      result += match ? std::string_view(content_) : run;
      if (result.size() > most) refuse_growth(result.size(), most);
      if (match) {
        seen += run.size();
        if (seen <= fronted.front) front = result.size();
      } else {
        if (seen < fronted.front) front = result.size() - run.size() + std::min(run.size(), fronted.front - seen);
        seen += run.size();
      }
    });
    fronted = {std::move(result), front};
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(const Fields& fields)
      : map_(CharsMap::read_base64(fields.read_text("precompiled_charsmap", ""))) {}
  void apply(FrontedText& text) const override {
    const std::size_t front = map_.measure_front(text.text, text.front);
    text.text = map_.apply_to_graphemes(text.text);
    text.front = front;
  }

 private:
  CharsMap map_;
};

std::string apply_nmt(std::string_view text) {
  const auto is_gone = [](char32_t code) {
    return (code >= 0x01 && code <= 0x08) || code == 0x0B || (code >= 0x0E && code <= 0x1F) || code == 0x7F ||
           code == 0x8F || code == 0x9F;
  };
  const auto is_space = [](char32_t code) {
    return code == 0x09 || code == 0x0A || code == 0x0C || code == 0x0D || code == 0x1680 ||
           (code >= 0x200B && code <= 0x200F) || code == 0x2028 || code == 0x2029 || code == 0x2581 || code == 0xFEFF ||
           code == 0xFFFD;
  };
  std::string result;
  result.reserve(text.size());
  unicode::for_each_character(text, [&](char32_t code, std::string_view bytes) {
    if (!is_gone(code)) result += is_space(code) ? std::string_view(" ") : bytes;
  });
  return result;
}

using Row = StepRow<Made>;

template <typename Kind>
Made make_kind(const Fields& fields) {
  return std::make_unique<Kind>(fields);
}

Made make_sequence(std::vector<Made> steps) { return std::make_unique<Sequence>(std::move(steps)); }

template <Function kFunction>
Made make_simple(const Fields&) {
  return std::make_unique<Simple>(kFunction);
}

template <unicode::Form kForm>
Made make_form(const Fields&) {
  return std::make_unique<NormalForm>(kForm);
}
std::string strip_accents(std::string_view text) {
  return keep_characters(text, [](char32_t code) { return code < 0x80 || !unicode::is_mark(code); });
}
std::string to_byte_level(std::string_view text) {
  std::string result;
  byte_level::append_encoded(result, text);
  return result;
}

constexpr std::array kRows = std::to_array<Row>({
    {"BertNormalizer", make_kind<Bert>},
    {"NFC", make_form<unicode::Form::nfc>},
    {"NFD", make_form<unicode::Form::nfd>},
    {"NFKC", make_form<unicode::Form::nfkc>},
    {"NFKD", make_form<unicode::Form::nfkd>},
    {"Lowercase", make_simple<unicode::to_lower_case>},
    {"Strip", make_kind<Strip>},
    {"StripAccents", make_simple<strip_accents>},
    {"Prepend", make_kind<Prepend>},
    {"Replace", make_kind<Replace>},
    {"ByteLevel", make_simple<to_byte_level>},
    {"Nmt", make_simple<apply_nmt>},
    {"Precompiled", make_kind<Precompiled>},
});

}  // namespace
}  // namespace poise::normalizers

namespace poise {

FrontedText Normalizer::apply_with_front(std::string_view text) const {
  FrontedText fronted{std::string(text), text.empty() ? 0 : unicode::decode(text, 0).bytes};
  apply(fronted);
  return fronted;
}

std::unique_ptr<const Normalizer> make_normalizer(const Fields& fields) {
  std::size_t steps = 0;
  return make_steps(std::span<const normalizers::Row>(normalizers::kRows), "normalizers", normalizers::make_sequence,
                    fields, steps);
}

}  // namespace poise
