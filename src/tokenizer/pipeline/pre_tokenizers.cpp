#include "tokenizer/pipeline/steps.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tokenizer/pipeline/fields.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/unicode.hpp"

namespace poise::pre_tokenizers {
namespace {

// Chooses how the matches of a pattern become pieces.
enum class Behavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };

struct BehaviorRow {
  std::string_view name;
  Behavior behavior;
};
constexpr std::array kBehaviors = std::to_array<BehaviorRow>({
    {"Removed", Behavior::removed},
    {"Isolated", Behavior::isolated},
    {"MergedWithPrevious", Behavior::merged_with_previous},
    {"MergedWithNext", Behavior::merged_with_next},
    {"Contiguous", Behavior::contiguous},
});

Behavior parse_behavior(const Fields& fields, std::string_view missing) {
  const std::string name = fields.read_text("behavior", missing);
  const auto* row = std::ranges::find(kBehaviors, name, &BehaviorRow::name);
  if (row == kBehaviors.end())
    fields.fail("behavior", "expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
  return row->behavior;
}

// Joins consecutive runs of a text according to a behavior.
class Joiner {
 public:
  Joiner(Behavior behavior, PieceSink& next) : behavior_(behavior), next_(next) {}

  void begin_piece(Piece whole) {
    whole_ = whole;
    held_ = {};
    matched_ = false;
  }

  void add_run(std::string_view text, bool match) {
    switch (behavior_) {
      case Behavior::removed:
        if (!match) emit(text);
        return;
      case Behavior::isolated: return emit(text);
      case Behavior::merged_with_previous:
        if (match && !matched_) {
          append(text);
        } else {
          flush();
          held_ = text;
        }
        break;
      case Behavior::merged_with_next:
        if (!match && matched_) {
          append(text);
        } else {
          flush();
          held_ = text;
        }
        break;
      case Behavior::contiguous:
        if (!held_.empty() && match == matched_) {
          append(text);
        } else {
          flush();
          held_ = text;
        }
        break;
    }
    matched_ = match;
  }

  void end_piece() { flush(); }

 private:
  void append(std::string_view text) {
    held_ = held_.empty() ? text : std::string_view(held_.data(), held_.size() + text.size());
  }
  void flush() {
    if (!held_.empty()) emit(held_);
    held_ = {};
  }
  void emit(std::string_view text) {
    if (text.empty()) return;
    next_.accept(whole_.part(static_cast<std::size_t>(text.data() - whole_.text.data()), text.size()));
  }

  Behavior behavior_;
  PieceSink& next_;
  Piece whole_;
  std::string_view held_;  // waits, because the next run may join it
  bool matched_ = false;   // true if the last run was a match
};

// Cuts at the matches of a pattern. With `invert`, the texts between the matches count as matches.
class PatternCutter final : public Cutter {
 public:
  PatternCutter(const Pattern& pattern, Behavior behavior, bool invert, PieceSink& next)
      : matcher_(pattern), invert_(invert), joiner_(behavior, next) {}
  void start_time_limit(std::size_t bytes) override { matcher_.start_time_limit(bytes); }
  void accept(Piece piece) override {
    joiner_.begin_piece(piece);
    matcher_.for_each_run(piece.text,
                          [&](std::string_view run, bool match) { joiner_.add_run(run, match != invert_); });
    joiner_.end_piece();
  }

 private:
  PatternMatcher matcher_;
  bool invert_;
  Joiner joiner_;
};

PreTokenizer make_pattern_split(Pattern pattern, Behavior behavior, bool invert) {
  return [shared = std::make_shared<const Pattern>(std::move(pattern)), behavior, invert](PieceSink& next) {
    return std::make_unique<PatternCutter>(*shared, behavior, invert, next);
  };
}

using IsKind = bool (*)(char32_t code);

// Cuts at the characters of a kind; each is a match by itself.
class CharacterCutter final : public Cutter {
 public:
  CharacterCutter(IsKind is_kind, Behavior behavior, PieceSink& next) : is_kind_(is_kind), joiner_(behavior, next) {}
  void accept(Piece piece) override {
    joiner_.begin_piece(piece);
    std::size_t begin = 0;
    std::size_t at = 0;
    unicode::for_each_character(piece.text, [&](char32_t code, std::string_view bytes) {
      if (is_kind_(code)) {
        if (begin < at) joiner_.add_run(piece.text.substr(begin, at - begin), false);
        joiner_.add_run(bytes, true);
        begin = at + bytes.size();
      }
      at += bytes.size();
    });
    if (begin < at) joiner_.add_run(piece.text.substr(begin), false);
    joiner_.end_piece();
  }

 private:
  IsKind is_kind_;
  Joiner joiner_;
};

PreTokenizer make_character_split(IsKind is_kind, Behavior behavior) {
  return [is_kind, behavior](PieceSink& next) { return std::make_unique<CharacterCutter>(is_kind, behavior, next); };
}

// Runs the steps of a Sequence, or of BertPreTokenizer, in order.
class Chain final : public Cutter {
 public:
  Chain(const std::vector<PreTokenizer>& steps, PieceSink& next) : first_(&next) {
    for (auto step = steps.rbegin(); step != steps.rend(); ++step)
      first_ = cutters_.emplace_back((*step)(*first_)).get();
  }
  void start_time_limit(std::size_t bytes) override {
    for (const auto& cutter : cutters_) cutter->start_time_limit(bytes);
  }
  void accept(Piece piece) override { first_->accept(piece); }

 private:
  std::vector<std::unique_ptr<Cutter>> cutters_;  // in reverse order, because each passes its results to the next one
  PieceSink* first_;
};

PreTokenizer make_chain(std::vector<PreTokenizer> steps) {
  return [all = std::move(steps)](PieceSink& next) { return std::make_unique<Chain>(all, next); };
}

// This is the regular expression of GPT-2.
constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Writes pieces in the alphabet of byte_level.hpp.
class ByteMapper final : public Cutter {
 public:
  explicit ByteMapper(PieceSink& next) : next_(next) {}
  void accept(Piece piece) override {
    buffer_.clear();
    byte_level::append_encoded(buffer_, piece.text.substr(0, piece.front));
    const std::size_t front = buffer_.size();
    byte_level::append_encoded(buffer_, piece.text.substr(piece.front));
    next_.accept({buffer_, front});
  }

 private:
  PieceSink& next_;
  std::string buffer_;
};

class ByteLevel final : public Cutter {
 public:
  struct Options {
    explicit Options(const Fields& fields) : add_prefix_space(fields.read_boolean("add_prefix_space", true)) {
      if (fields.read_boolean("use_regex", true))
        pattern = std::make_shared<const Pattern>(Pattern::compile(kGpt2, fields.where()));
    }
    bool add_prefix_space;
    std::shared_ptr<const Pattern> pattern;  // null: texts are not cut
  };
  ByteLevel(const Options& options, PieceSink& next) : options_(options), mapper_(next) {
    if (options_.pattern) cutter_.emplace(*options_.pattern, Behavior::isolated, false, mapper_);
  }
  void start_time_limit(std::size_t bytes) override {
    if (cutter_) cutter_->start_time_limit(bytes);
  }
  void accept(Piece piece) override {
    if (options_.add_prefix_space && !piece.text.starts_with(' ')) {
      prefixed_ = " ";
      prefixed_ += piece.text;
      piece = {prefixed_, piece.front > 0 ? piece.front + 1 : 0};
    }
    cutter_ ? cutter_->accept(piece) : mapper_.accept(piece);
  }

 private:
  Options options_;
  ByteMapper mapper_;
  std::optional<PatternCutter> cutter_;
  std::string prefixed_;
};

class Metaspace final : public Cutter {
 public:
  struct Options {
    explicit Options(const Fields& fields)
        : replacement(fields.read_text("replacement", kSpaceSymbol)),
          split(fields.read_boolean("split", true)),
          // Older files have add_prefix_space instead of prepend_scheme.
          scheme(
              fields.read_text("prepend_scheme", fields.read_boolean("add_prefix_space", true) ? "always" : "never")) {
      if (scheme != "always" && scheme != "never" && scheme != "first")
        fields.fail("prepend_scheme", "expected always, never or first");
      if (replacement.empty()) fields.fail("replacement", "is empty");
    }
    std::string replacement;
    bool split;
    std::string scheme;  // "always", "never" or "first": when the replacement is put in front of a piece
  };
  Metaspace(const Options& options, PieceSink& next) : options_(options), next_(next) {}
  void accept(Piece piece) override {
    const std::string& mark = options_.replacement;
    buffer_.clear();
    const bool marked = piece.text.starts_with(mark) || piece.text.starts_with(' ');
    if (!marked && (options_.scheme == "always" || (options_.scheme == "first" && piece.front > 0))) buffer_ = mark;
    const auto spaces = static_cast<std::size_t>(std::ranges::count(piece.text.substr(0, piece.front), ' '));
    const std::size_t front = piece.front == 0 ? 0 : buffer_.size() + piece.front - spaces + spaces * mark.size();
    for (std::string_view rest = piece.text; !rest.empty();) {
      const std::size_t space = std::min(rest.find(' '), rest.size());
      buffer_ += rest.substr(0, space);
      if (space == rest.size()) break;
      buffer_ += mark;
      rest.remove_prefix(space + 1);
    }
    const Piece whole{buffer_, front};
    if (!options_.split) return next_.accept(whole);
    // Each space symbol begins a piece.
    const std::string_view text = buffer_;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end =
          std::min(text.find(mark, begin + (text.substr(begin).starts_with(mark) ? mark.size() : 0)), text.size());
      next_.accept(whole.part(begin, end - begin));
      begin = end;
    }
  }

 private:
  Options options_;
  PieceSink& next_;
  std::string buffer_;
};

class FixedLength final : public Cutter {
 public:
  struct Options {
    explicit Options(const Fields& fields) : length(fields.read_unsigned("length", 5)) {
      if (length == 0) fields.fail("length", "is 0");
    }
    std::uint64_t length;
  };
  FixedLength(const Options& options, PieceSink& next) : length_(options.length), next_(next) {}
  void accept(Piece piece) override {
    std::uint64_t characters = 0;
    std::size_t begin = 0;
    std::size_t at = 0;
    unicode::for_each_character(piece.text, [&](char32_t, std::string_view bytes) {
      at += bytes.size();
      if (++characters < length_) return;
      next_.accept(piece.part(begin, at - begin));
      begin = at;
      characters = 0;
    });
    if (begin < at) next_.accept(piece.part(begin, at - begin));
  }

 private:
  std::uint64_t length_;
  PieceSink& next_;
};

bool is_bert_punctuation(char32_t code) {
  if (code < 0x80)
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
           (code >= '{' && code <= '~');
  return unicode::is_punctuation(code);
}

using Row = StepRow<PreTokenizer>;

PreTokenizer make_split(const Fields& fields) {
  return make_pattern_split(Pattern::read(fields, "pattern"), parse_behavior(fields, "Isolated"),
                            fields.read_boolean("invert", false));
}

PreTokenizer make_digits(const Fields& fields) {
  const bool individual = fields.read_boolean("individual_digits", false);
  return make_character_split(unicode::is_number, individual ? Behavior::isolated : Behavior::contiguous);
}

PreTokenizer make_punctuation(const Fields& fields) {
  return make_character_split(is_bert_punctuation, parse_behavior(fields, "Isolated"));
}

PreTokenizer make_whitespace_split(const Fields&) {
  return make_character_split(unicode::is_white_space, Behavior::removed);
}

// Cuts into words, and runs that are neither words nor spaces.
PreTokenizer make_whitespace(const Fields& fields) {
  constexpr std::string_view kExpression =
      R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+|[^\s\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+)";
  return make_pattern_split(Pattern::compile(kExpression, fields.where()), Behavior::removed, true);
}

// Cuts into runs of one script. Drops spaces and characters without a script before the first run.
PreTokenizer make_scripts(const Fields& fields) {
  return make_pattern_split(Pattern::compile(make_script_run_expression(), fields.where()), Behavior::removed, true);
}

PreTokenizer make_bert(const Fields&) {
  return make_chain({make_character_split(unicode::is_white_space, Behavior::removed),
                     make_character_split(is_bert_punctuation, Behavior::isolated)});
}

PreTokenizer make_delimiter(const Fields& fields) {
  if (fields.require_text("delimiter").empty()) fields.fail("delimiter", "is empty");
  return make_pattern_split(Pattern::read(fields, "delimiter"), Behavior::removed, false);
}

constexpr std::array kRows = std::to_array<Row>({
    {"ByteLevel", make_step<PreTokenizer, ByteLevel>},
    {"Split", make_split},
    {"Metaspace", make_step<PreTokenizer, Metaspace>},
    {"Whitespace", make_whitespace},
    {"WhitespaceSplit", make_whitespace_split},
    {"Punctuation", make_punctuation},
    {"Digits", make_digits},
    {"BertPreTokenizer", make_bert},
    {"CharDelimiterSplit", make_delimiter},
    {"FixedLength", make_step<PreTokenizer, FixedLength>},
    {"UnicodeScripts", make_scripts},
});

}  // namespace
}  // namespace poise::pre_tokenizers

namespace poise {

PreTokenizer make_pre_tokenizer(const Fields& fields) {
  std::size_t steps = 0;
  return make_steps(std::span<const pre_tokenizers::Row>(pre_tokenizers::kRows), "pretokenizers",
                    pre_tokenizers::make_chain, fields, steps);
}

}  // namespace poise
