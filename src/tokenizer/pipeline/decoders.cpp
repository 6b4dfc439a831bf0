#include "tokenizer/pipeline/steps.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "tokenizer/pipeline/fields.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/unicode.hpp"

namespace poise::decoders {
namespace {

// Collects the parts of each token, for steps that need whole tokens.
class WholeTokens : public DecodeSink {
 public:
  explicit WholeTokens(DecodeSink& next) : next_(next) {}

  void accept(std::string_view text, bool begins, bool ends) final {
    if (begins && ends) return accept_token(text);
    if (begins) part_.clear();
    part_ += text;
    if (ends) accept_token(part_);
  }
  void finish() override {
    is_first_ = true;
    next_.finish();
  }

 protected:
  virtual void accept_token(std::string_view text) = 0;
  void emit(std::string_view text) { next_.accept(text, true, true); }
  // Returns true when called for the first time in a text.
  bool is_first_call() { return std::exchange(is_first_, false); }
  DecodeSink& next_;

 private:
  std::string part_;
  bool is_first_ = true;
};

class Replace final : public WholeTokens {
 public:
  struct Options {
    explicit Options(const Fields& fields)
        : pattern(std::make_shared<const Pattern>(Pattern::read(fields, "pattern"))),
          content(fields.require_text("content")) {}
    std::shared_ptr<const Pattern> pattern;
    std::string content;
  };
  Replace(const Options& options, DecodeSink& next)
      : WholeTokens(next), options_(options), matcher_(*options_.pattern) {}
  void finish() override {
    grown_ = 0;
    WholeTokens::finish();
  }

 private:
  // The largest growth of a text in bytes. Without a limit, a chain of steps could turn one letter into a text of any
  // length.
  static constexpr std::size_t kMostGrowth = std::size_t{16} << 20;

  void accept_token(std::string_view text) override {
    result_.clear();
    matcher_.start_time_limit(text.size());
    const std::size_t most = text.size() + (kMostGrowth - grown_);
    matcher_.for_each_run(text, [&](std::string_view run, bool match) {
      result_ += match ? std::string_view(options_.content) : run;
      if (result_.size() > most) {
        throw Error(ErrorKind::unsupported,
                    fmt::format("tokenizer: decoder: Replace makes a text longer by more than {} bytes", kMostGrowth));
      }
    });
    if (result_.size() > text.size()) grown_ += result_.size() - text.size();
    emit(result_);
  }

  Options options_;
  PatternMatcher matcher_;
  std::string result_;
  std::size_t grown_ = 0;
};

struct None {
  explicit None(const Fields&) {}
};

// Decodes "<0x0A>" to a byte. A run of bytes that is invalid UTF-8 becomes one U+FFFD for each byte.
class ByteFallback final : public WholeTokens {
 public:
  using Options = None;
  ByteFallback(const Options&, DecodeSink& next) : WholeTokens(next) {}
  void finish() override {
    flush();
    next_.finish();
  }

 private:
  void accept_token(std::string_view text) override {
    if (const auto byte = parse_byte_token(text)) {
      bytes_ += *byte;
    } else {
      flush();
      emit(text);
    }
  }

  static std::optional<char> parse_byte_token(std::string_view text) {
    if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
    const int high = parse_hex_digit(text[3]);
    const int low = parse_hex_digit(text[4]);
    if (high < 0 || low < 0) return std::nullopt;
    return static_cast<char>(static_cast<unsigned char>(high * 16 + low));
  }

  void flush() {
    if (bytes_.empty()) return;
    const std::string bytes = std::exchange(bytes_, {});
    if (is_utf8(bytes)) return emit(bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) emit(kReplacementCharacter);
  }

  std::string bytes_;
};

// Joins all tokens into one.
class Fuse final : public DecodeSink {
 public:
  using Options = None;
  Fuse(const Options&, DecodeSink& next) : next_(next) {}
  void accept(std::string_view text, bool, bool) override {
    next_.accept(text, !begun_, false);
    begun_ = true;
  }
  void finish() override {
    if (begun_) next_.accept({}, false, true);
    begun_ = false;
    next_.finish();
  }

 private:
  DecodeSink& next_;
  bool begun_ = false;
};

// Removes the text `content` from the beginning of each token, at most `start` times, and from its end, at most `stop`
// times.
class Strip final : public DecodeSink {
 public:
  struct Options {
    explicit Options(const Fields& fields)
        : content(fields.read_text("content", " ")),
          start(fields.read_unsigned("start", 0)),
          stop(fields.read_unsigned("stop", 0)) {
      if (content.empty()) fields.fail("content", "is empty");
    }
    std::string content;
    std::uint64_t start;
    std::uint64_t stop;
  };
  Strip(const Options& options, DecodeSink& next) : options_(options), next_(next) {}

  void accept(std::string_view text, bool begins, bool ends) override {
    const std::string& content = options_.content;
    if (begins) {
      left_ = options_.start;
      held_ = 0;
      begun_ = false;
    }
    for (; left_ > 0 && text.starts_with(content); --left_) text.remove_prefix(content.size());
    if (!text.empty()) left_ = 0;
    // Holds back copies of `content` at the end, since they may be the end of the token.
    std::uint64_t tail = 0;
    std::string_view front = text;
    while (tail < options_.stop && front.ends_with(content)) {
      front.remove_suffix(content.size());
      ++tail;
    }
    std::string out;
    if (!front.empty()) {
      for (; held_ > 0; --held_) out += content;
      out += front;
    }
    held_ += tail;
    for (; held_ > options_.stop; --held_) out += content;
    next_.accept(out, !begun_, ends);
    begun_ = true;
    if (ends) held_ = 0;
  }
  void finish() override { next_.finish(); }

 private:
  Options options_;
  DecodeSink& next_;
  std::uint64_t left_ = 0;  // how often `content` may still be removed from the front
  std::uint64_t held_ = 0;  // how many copies of `content` are held back
  bool begun_ = false;
};

// Decodes characters that stand for bytes; invalid bytes become U+FFFD.
class ByteLevel final : public WholeTokens {
 public:
  using Options = None;
  ByteLevel(const Options&, DecodeSink& next) : WholeTokens(next) {}
  void finish() override {
    std::string text;
    unicode::append_lossy(text, bytes_, true);
    bytes_.clear();
    if (begun_ || !text.empty()) next_.accept(text, !begun_, true);
    begun_ = false;
    next_.finish();
  }

 private:
  // Decodes a token. A token with a character outside the alphabet stays as it is.
  void accept_token(std::string_view text) override {
    const std::size_t before = bytes_.size();
    bool plain = false;
    unicode::for_each_character(text, [&](char32_t code, std::string_view) {
      const int byte = byte_level::find_byte(code);
      plain = plain || byte < 0;
      bytes_ += static_cast<char>(static_cast<unsigned char>(byte & 0xFF));
    });
    if (plain) bytes_.replace(before, std::string::npos, text);
    std::string out;
    const std::size_t held = unicode::append_lossy(out, bytes_, false);
    bytes_.erase(0, bytes_.size() - held);
    next_.accept(out, !begun_, false);
    begun_ = true;
  }

  std::string bytes_;  // the bytes of an incomplete character
  bool begun_ = false;
};

// Decodes `replacement` (by default U+2581) to a space. In the first token, drops it if encoding puts a space in front
// of texts.
class Metaspace final : public WholeTokens {
 public:
  struct Options {
    explicit Options(const Fields& fields)
        : replacement(fields.read_text("replacement", kSpaceSymbol)),
          prefixed(fields.read_text("prepend_scheme",
                                    fields.read_boolean("add_prefix_space", true) ? "always" : "never") != "never") {
      if (replacement.empty()) fields.fail("replacement", "is empty");
    }
    std::string replacement;
    bool prefixed;
  };
  Metaspace(const Options& options, DecodeSink& next) : WholeTokens(next), options_(options) {}

 private:
  void accept_token(std::string_view text) override {
    const bool drops_spaces = is_first_call() && options_.prefixed;
    std::string out;
    for (std::size_t at = text.find(options_.replacement); at != std::string_view::npos;
         at = text.find(options_.replacement)) {
      out += text.substr(0, at);
      if (!drops_spaces) out += ' ';
      text.remove_prefix(at + options_.replacement.size());
    }
    emit(out += text);
  }

  Options options_;
};

std::string replace_all(std::string_view text, std::string_view what, std::string_view with) {
  std::string result;
  for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what)) {
    (result += text.substr(0, at)) += with;
    text.remove_prefix(at + what.size());
  }
  return result += text;
}

// Removes the spaces that a tokenizer of English words inserts, and contracts "do not", as Hugging Face's library does.
std::string remove_odd_spaces(std::string text) {
  constexpr auto kRules = std::to_array<std::pair<std::string_view, std::string_view>>({{" .", "."},
                                                                                        {" ?", "?"},
                                                                                        {" !", "!"},
                                                                                        {" ,", ","},
                                                                                        {" ' ", "'"},
                                                                                        {" n't", "n't"},
                                                                                        {" 'm", "'m"},
                                                                                        {" do not", " don't"},
                                                                                        {" 's", "'s"},
                                                                                        {" 've", "'ve"},
                                                                                        {" 're", "'re"}});
  for (const auto& [what, with] : kRules) text = replace_all(text, what, with);
  return text;
}

class WordPiece final : public WholeTokens {
 public:
  struct Options {
    explicit Options(const Fields& fields)
        : prefix(fields.read_text("prefix", "##")), cleanup(fields.read_boolean("cleanup", true)) {}
    std::string prefix;
    bool cleanup;
  };
  WordPiece(const Options& options, DecodeSink& next) : WholeTokens(next), options_(options) {}

 private:
  void accept_token(std::string_view text) override {
    std::string out;
    if (is_first_call()) {
      out = text;
    } else if (text.starts_with(options_.prefix)) {
      out = text.substr(options_.prefix.size());
    } else {
      (out = " ") += text;
    }
    emit(options_.cleanup ? remove_odd_spaces(std::move(out)) : out);
  }

  Options options_;
};

// Decodes the suffix that ends a word to a space. Drops it in the last token.
class Bpe final : public WholeTokens {
 public:
  struct Options {
    explicit Options(const Fields& fields) : suffix(fields.read_text("suffix", "</w>")) {
      if (suffix.empty()) fields.fail("suffix", "is empty");
    }
    std::string suffix;
  };
  Bpe(const Options& options, DecodeSink& next) : WholeTokens(next), options_(options) {}
  void finish() override {
    if (held_) emit(replace_all(*held_, options_.suffix, ""));
    held_.reset();
    next_.finish();
  }

 private:
  void accept_token(std::string_view text) override {
    if (held_) emit(replace_all(*held_, options_.suffix, " "));
    held_ = text;
  }

  Options options_;
  std::optional<std::string> held_;  // the text of the last token so far, with its suffix
};

class Ctc final : public WholeTokens {
 public:
  struct Options {
    explicit Options(const Fields& fields)
        : pad(fields.read_text("pad_token", "<pad>")),
          delimiter(fields.read_text("word_delimiter_token", "|")),
          cleanup(fields.read_boolean("cleanup", true)) {
      if (delimiter.empty()) fields.fail("word_delimiter_token", "is empty");
    }
    std::string pad;
    std::string delimiter;
    bool cleanup;
  };
  Ctc(const Options& options, DecodeSink& next) : WholeTokens(next), options_(options) {}
  void finish() override {
    last_.reset();
    next_.finish();
  }

 private:
  void accept_token(std::string_view text) override {
    if (last_ == text) return;
    last_ = text;
    std::string out = options_.pad.empty() ? std::string(text) : replace_all(text, options_.pad, "");
    if (options_.cleanup) out = replace_all(remove_odd_spaces(std::move(out)), options_.delimiter, " ");
    if (!out.empty()) emit(out);
  }

  Options options_;
  std::optional<std::string> last_;
};

// Puts a space between tokens, as Hugging Face's library does for files without a decoder.
class SpaceBetween final : public WholeTokens {
 public:
  using Options = None;
  SpaceBetween(const Options&, DecodeSink& next) : WholeTokens(next) {}

 private:
  void accept_token(std::string_view text) override {
    emit(is_first_call() ? std::string(text) : " " + std::string(text));
  }
};

// Runs the steps of a Sequence in order.
class Chain final : public DecodeSink {
 public:
  Chain(const std::vector<Decoder>& steps, DecodeSink& next) : first_(&next) {
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) first_ = sinks_.emplace_back((*step)(*first_)).get();
  }
  void accept(std::string_view text, bool begins, bool ends) override { first_->accept(text, begins, ends); }
  void finish() override { first_->finish(); }

 private:
  std::vector<std::unique_ptr<DecodeSink>> sinks_;  // in reverse order, because each passes its results to the next one
  DecodeSink* first_;
};

Decoder make_chain(std::vector<Decoder> steps) {
  return [all = std::move(steps)](DecodeSink& next) { return std::make_unique<Chain>(all, next); };
}

using Row = StepRow<Decoder>;

constexpr std::array kRows = std::to_array<Row>({
    {"ByteLevel", make_step<Decoder, ByteLevel>},
    {"Replace", make_step<Decoder, Replace>},
    {"ByteFallback", make_step<Decoder, ByteFallback>},
    {"Fuse", make_step<Decoder, Fuse>},
    {"Strip", make_step<Decoder, Strip>},
    {"Metaspace", make_step<Decoder, Metaspace>},
    {"WordPiece", make_step<Decoder, WordPiece>},
    {"BPEDecoder", make_step<Decoder, Bpe>},
    {"CTC", make_step<Decoder, Ctc>},
});

}  // namespace
}  // namespace poise::decoders

namespace poise {

Decoder make_pipeline_decoder(const Fields& fields) {
  std::size_t steps = 0;
  return make_steps(std::span<const decoders::Row>(decoders::kRows), "decoders", decoders::make_chain, fields, steps);
}

Decoder make_space_decoder() { return make_step<Decoder, decoders::SpaceBetween>(Fields({}, "")); }

}  // namespace poise
