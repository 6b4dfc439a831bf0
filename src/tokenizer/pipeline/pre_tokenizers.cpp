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

using Made = std::unique_ptr<const PreTokenizer>;

// What to do with the runs that match.
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

Behavior behavior_of(const Fields& fields, std::string_view missing) {
  const std::string name = fields.text("behavior", missing);
  const auto* row = std::ranges::find(kBehaviors, name, &BehaviorRow::name);
  if (row == kBehaviors.end())
    fields.fail("behavior", "expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
  return row->behavior;
}

// Joins runs of a text according to a behavior. Runs are consecutive.
class Joiner {
 public:
  Joiner(Behavior behavior, PieceSink& next) : behavior_(behavior), next_(next) {}

  void begin(Piece whole) {
    whole_ = whole;
    held_ = {};
    matched_ = false;
  }

  void run(std::string_view text, bool match) {
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

  void end() { flush(); }

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
    next_.take(whole_.part(static_cast<std::size_t>(text.data() - whole_.text.data()), text.size()));
  }

  Behavior behavior_;
  PieceSink& next_;
  Piece whole_;
  std::string_view held_;  // waits for what may be joined to it
  bool matched_ = false;   // the last run was a match
};

// Cuts at the matches of a pattern.
class PatternCutter final : public Cutter {
 public:
  PatternCutter(const Pattern& pattern, Behavior behavior, bool invert, PieceSink& next)
      : matcher_(pattern), invert_(invert), joiner_(behavior, next) {}
  void allow(std::size_t bytes) override { matcher_.allow(bytes); }
  void take(Piece piece) override {
    joiner_.begin(piece);
    matcher_.for_each(piece.text, [&](std::string_view run, bool match) { joiner_.run(run, match != invert_); });
    joiner_.end();
  }

 private:
  PatternMatcher matcher_;
  bool invert_;
  Joiner joiner_;
};

class Split final : public PreTokenizer {
 public:
  explicit Split(const Fields& fields)
      : pattern_(Pattern::from(fields, "pattern")),
        behavior_(behavior_of(fields, "Isolated")),
        invert_(fields.boolean("invert", false)) {}
  Split(Pattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}
  std::unique_ptr<Cutter> start(PieceSink& next) const override {
    return std::make_unique<PatternCutter>(pattern_, behavior_, invert_, next);
  }

 private:
  Pattern pattern_;
  Behavior behavior_;
  bool invert_;
};

// Cuts at characters of a kind; each is a match.
class CharacterSplit final : public PreTokenizer {
 public:
  using Is = bool (*)(char32_t code);
  CharacterSplit(Is is, Behavior behavior) : is_(is), behavior_(behavior) {}

  std::unique_ptr<Cutter> start(PieceSink& next) const override { return std::make_unique<At>(is_, behavior_, next); }

 private:
  class At final : public Cutter {
   public:
    At(Is is, Behavior behavior, PieceSink& next) : is_(is), joiner_(behavior, next) {}
    void take(Piece piece) override {
      joiner_.begin(piece);
      std::size_t begin = 0;
      std::size_t at = 0;
      unicode::for_each(piece.text, [&](char32_t code, std::string_view bytes) {
        if (is_(code)) {
          if (begin < at) joiner_.run(piece.text.substr(begin, at - begin), false);
          joiner_.run(bytes, true);
          begin = at + bytes.size();
        }
        at += bytes.size();
      });
      if (begin < at) joiner_.run(piece.text.substr(begin), false);
      joiner_.end();
    }

   private:
    Is is_;
    Joiner joiner_;
  };

  Is is_;
  Behavior behavior_;
};

// Runs several steps in order.
class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(std::vector<Made> steps) : steps_(std::move(steps)) {}

  std::unique_ptr<Cutter> start(PieceSink& next) const override {
    auto chain = std::make_unique<Chain>(next);
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) chain->add(**step);
    return chain;
  }

 private:
  class Chain final : public Cutter {
   public:
    explicit Chain(PieceSink& next) : first_(&next) {}
    void add(const PreTokenizer& step) {
      cutters_.push_back(step.start(*first_));
      first_ = cutters_.back().get();
    }
    void allow(std::size_t bytes) override {
      for (const auto& cutter : cutters_) cutter->allow(bytes);
    }
    void take(Piece piece) override { first_->take(piece); }

   private:
    std::vector<std::unique_ptr<Cutter>> cutters_;  // in reverse order
    PieceSink* first_;
  };

  std::vector<Made> steps_;
};

// GPT-2's expression.
constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Maps bytes to characters.
class ByteMapper final : public Cutter {
 public:
  explicit ByteMapper(PieceSink& next) : next_(next) {}
  void take(Piece piece) override {
    buffer_.clear();
    byte_level::append(buffer_, piece.text.substr(0, piece.front));
    const std::size_t front = buffer_.size();
    byte_level::append(buffer_, piece.text.substr(piece.front));
    next_.take({buffer_, front});
  }

 private:
  PieceSink& next_;
  std::string buffer_;
};

class ByteLevel final : public PreTokenizer {
 public:
  explicit ByteLevel(const Fields& fields) : add_prefix_space_(fields.boolean("add_prefix_space", true)) {
    if (fields.boolean("use_regex", true)) pattern_.emplace(Pattern::regex(kGpt2, fields.where()));
  }
  std::unique_ptr<Cutter> start(PieceSink& next) const override { return std::make_unique<At>(*this, next); }

 private:
  class At final : public Cutter {
   public:
    At(const ByteLevel& of, PieceSink& next) : add_prefix_space_(of.add_prefix_space_), mapper_(next) {
      if (of.pattern_) cutter_.emplace(*of.pattern_, Behavior::isolated, false, mapper_);
    }
    void allow(std::size_t bytes) override {
      if (cutter_) cutter_->allow(bytes);
    }
    void take(Piece piece) override {
      if (add_prefix_space_ && !piece.text.starts_with(' ')) {
        prefixed_ = " ";
        prefixed_ += piece.text;
        piece = {prefixed_, piece.front > 0 ? piece.front + 1 : 0};
      }
      cutter_ ? cutter_->take(piece) : mapper_.take(piece);
    }

   private:
    bool add_prefix_space_;
    ByteMapper mapper_;
    std::optional<PatternCutter> cutter_;
    std::string prefixed_;
  };

  bool add_prefix_space_;
  std::optional<Pattern> pattern_;
};

class Metaspace final : public PreTokenizer {
 public:
  explicit Metaspace(const Fields& fields)
      : replacement_(fields.text("replacement", kSpaceSymbol)), split_(fields.boolean("split", true)) {
    // Older files say add_prefix_space.
    const std::string scheme =
        fields.text("prepend_scheme", fields.boolean("add_prefix_space", true) ? "always" : "never");
    const auto* row = std::ranges::find(kSchemes, scheme, &SchemeRow::name);
    if (row == kSchemes.end()) fields.fail("prepend_scheme", "expected always, never or first");
    scheme_ = row->scheme;
    if (replacement_.empty()) fields.fail("replacement", "is empty");
  }
  std::unique_ptr<Cutter> start(PieceSink& next) const override { return std::make_unique<At>(*this, next); }

 private:
  enum class Scheme { always, never, first };
  struct SchemeRow {
    std::string_view name;
    Scheme scheme;
  };
  static constexpr std::array<SchemeRow, 3> kSchemes = {
      {{"always", Scheme::always}, {"never", Scheme::never}, {"first", Scheme::first}}};

  class At final : public Cutter {
   public:
    At(const Metaspace& of, PieceSink& next) : of_(of), next_(next) {}
    void take(Piece piece) override {
      const std::string& mark = of_.replacement_;
      buffer_.clear();
      const bool marked = piece.text.starts_with(mark) || piece.text.starts_with(' ');
      if (!marked && (of_.scheme_ == Scheme::always || (of_.scheme_ == Scheme::first && piece.front > 0)))
        buffer_ = mark;
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
      if (!of_.split_) return next_.take(whole);
      // Each mark begins a piece.
      const std::string_view text = buffer_;
      for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end =
            std::min(text.find(mark, begin + (text.substr(begin).starts_with(mark) ? mark.size() : 0)), text.size());
        next_.take(whole.part(begin, end - begin));
        begin = end;
      }
    }

   private:
    const Metaspace& of_;
    PieceSink& next_;
    std::string buffer_;
  };

  std::string replacement_;
  bool split_;
  Scheme scheme_ = Scheme::always;
};

class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(const Fields& fields) : length_(fields.unsigned_integer("length", 5)) {
    if (length_ == 0) fields.fail("length", "is 0");
  }
  std::unique_ptr<Cutter> start(PieceSink& next) const override { return std::make_unique<At>(length_, next); }

 private:
  class At final : public Cutter {
   public:
    At(std::uint64_t length, PieceSink& next) : length_(length), next_(next) {}
    void take(Piece piece) override {
      std::uint64_t characters = 0;
      std::size_t begin = 0;
      std::size_t at = 0;
      unicode::for_each(piece.text, [&](char32_t, std::string_view bytes) {
        at += bytes.size();
        if (++characters < length_) return;
        emit(piece, begin, at);
        begin = at;
        characters = 0;
      });
      if (begin < at) emit(piece, begin, at);
    }

   private:
    void emit(Piece piece, std::size_t begin, std::size_t end) { next_.take(piece.part(begin, end - begin)); }

    std::uint64_t length_;
    PieceSink& next_;
  };

  std::uint64_t length_;
};

bool is_bert_punctuation(char32_t code) {
  if (code < 0x80)
    return (code >= '!' && code <= '/') || (code >= ':' && code <= '@') || (code >= '[' && code <= '`') ||
           (code >= '{' && code <= '~');
  return unicode::is_punctuation(code);
}

using Row = StepRow<PreTokenizer>;

Made digits(const Fields& fields) {
  const bool individual = fields.boolean("individual_digits", false);
  return std::make_unique<CharacterSplit>(unicode::is_number, individual ? Behavior::isolated : Behavior::contiguous);
}

Made punctuation(const Fields& fields) {
  return std::make_unique<CharacterSplit>(is_bert_punctuation, behavior_of(fields, "Isolated"));
}

Made whitespace_split(const Fields&) {
  return std::make_unique<CharacterSplit>(unicode::is_white_space, Behavior::removed);
}

// Words, and runs that are neither word nor space.
Made whitespace(const Fields& fields) {
  constexpr std::string_view kExpression =
      R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+|[^\s\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+)";
  return std::make_unique<Split>(Pattern::regex(kExpression, fields.where()), Behavior::removed, true);
}

// Drops spaces before the first run, as Hugging Face's library does.
Made scripts(const Fields& fields) {
  return std::make_unique<Split>(Pattern::regex(script_runs(), fields.where()), Behavior::removed, true);
}

Made bert(const Fields&) {
  std::vector<Made> all;
  all.push_back(std::make_unique<CharacterSplit>(unicode::is_white_space, Behavior::removed));
  all.push_back(std::make_unique<CharacterSplit>(is_bert_punctuation, Behavior::isolated));
  return std::make_unique<Sequence>(std::move(all));
}

Made delimiter(const Fields& fields) {
  if (fields.required_text("delimiter").empty()) fields.fail("delimiter", "is empty");
  return std::make_unique<Split>(Pattern::from(fields, "delimiter"), Behavior::removed, false);
}

constexpr std::array kRows = std::to_array<Row>({
    {"ByteLevel", make_step<PreTokenizer, ByteLevel>},
    {"Split", make_step<PreTokenizer, Split>},
    {"Metaspace", make_step<PreTokenizer, Metaspace>},
    {"Whitespace", whitespace},
    {"WhitespaceSplit", whitespace_split},
    {"Punctuation", punctuation},
    {"Digits", digits},
    {"BertPreTokenizer", bert},
    {"CharDelimiterSplit", delimiter},
    {"FixedLength", make_step<PreTokenizer, FixedLength>},
    {"UnicodeScripts", scripts},
});

}  // namespace
}  // namespace poise::pre_tokenizers

namespace poise {

std::unique_ptr<const PreTokenizer> make_pre_tokenizer(const Fields& fields) {
  std::size_t steps = 0;
  return make_steps<pre_tokenizers::Sequence>(std::span<const pre_tokenizers::Row>(pre_tokenizers::kRows),
                                              "pretokenizers", fields, steps);
}

}  // namespace poise
