#include "tokenizer/gguf/vocabulary.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/utf8.hpp"
#include "model/limits.hpp"
#include "syntax/fields.hpp"
#include "tokenizer/gguf/pre_tokenizers.hpp"
#include "tokenizer/gguf/texts.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/listed_tokens.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise {
namespace {

constexpr std::string_view kLlama = "llama";
constexpr std::string_view kDefaultPre = "default";  // the pre-tokenizer of files that do not name one

[[noreturn]] void refuse(ErrorKind kind, const std::string& problem) { throw Error(kind, "tokenizer.ggml." + problem); }

// These functions describe parts of a pipeline as tokenizer.json spells them.
Attributes describe_split(std::string_view regex) {
  return {{"type", "Split"}, {"pattern", Attributes{{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}};
}
Attributes describe_replace(std::string_view pattern, std::string_view content) {
  return {{"type", "Replace"}, {"pattern", Attributes{{"String", pattern}}}, {"content", content}};
}
Attributes describe_sequence(const char* key, Value::Array parts) {
  return {{"type", "Sequence"}, {key, std::move(parts)}};
}
Attributes describe_byte_level() {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
}

// Describes a decoder that turns U+2581 into spaces and <0x00> into bytes. `prefix` is true if encoding puts a space in
// front.
Attributes describe_space_decoder(bool prefix) {
  Value::Array steps = {describe_replace(kSpaceSymbol, " "), Attributes{{"type", "ByteFallback"}},
                        Attributes{{"type", "Fuse"}}};
  if (prefix) steps.emplace_back(Attributes{{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return describe_sequence("decoders", std::move(steps));
}

// Appends steps that remove white space at both ends, and all but one of several spaces.
void append_space_removal(Value::Array& steps) {
  steps.emplace_back(Attributes{{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}});
  steps.emplace_back(Attributes{{"type", "Replace"}, {"pattern", Attributes{{"Regex", " {2,}"}}}, {"content", " "}});
}

class Maker {
 public:
  explicit Maker(GgufTokenizer& gguf) : gguf_(gguf) {}

  Vocabulary make();

  void convert_llama() {
    const bool prefix = gguf_.add_space_prefix.value_or(true);
    Value::Array steps;
    if (gguf_.remove_extra_whitespaces.value_or(false)) append_space_removal(steps);
    if (prefix) steps.emplace_back(Attributes{{"type", "Prepend"}, {"prepend", kSpaceSymbol}});
    steps.emplace_back(describe_replace(" ", kSpaceSymbol));
    normalizer_ = describe_sequence("normalizers", std::move(steps));
    model_ = {{"type", "BPE"}, {"byte_fallback", true}, {"fuse_unk", true}, {"merge_by_score", true}};
    if (const auto unknown = gguf_.unknown_token_id)
      model_.set("unk_token", gguf_.tokens[static_cast<std::size_t>(*unknown)]);
    decoder_ = describe_space_decoder(prefix);
    set_around(gguf_.add_bos_token.value_or(true) ? gguf_.bos_token_id : std::nullopt,
               gguf_.add_eos_token.value_or(false) ? gguf_.eos_token_id : std::nullopt);
  }

  void convert_gpt2() { convert_bpe(gguf_.pre); }
  void convert_gemma4() { convert_bpe("gemma4"); }

  void convert_bert() {
    normalizer_ = {{"type", "BertNormalizer"},
                   {"clean_text", true},
                   {"handle_chinese_chars", true},
                   {"strip_accents", gguf_.strip_accents ? Value(*gguf_.strip_accents) : Value()},
                   {"lowercase", gguf_.lowercase.value_or(true)}};
    pre_tokenizer_ = {{"type", "BertPreTokenizer"}};
    // GGUF marks the tokens that begin a word; tokenizer.json marks the other tokens.
    for (std::size_t id = 0; id < gguf_.tokens.size(); ++id) {
      std::string& token = gguf_.tokens[id];
      const bool control =
          id < gguf_.token_type.size() && gguf_.token_type[id] == find_token_type_number(TokenType::control);
      if (token.starts_with(kSpaceSymbol)) {
        token.erase(0, kSpaceSymbol.size());
      } else if (!control && (!token.starts_with('[') || !token.ends_with(']'))) {
        token.insert(0, "##");
      }
    }
    if (!gguf_.unknown_token_id)
      refuse(ErrorKind::invalid_file, "unknown_token_id: expected the id of a token, because bert needs it");
    const auto unknown = static_cast<std::size_t>(*gguf_.unknown_token_id);
    model_ = {{"type", "WordPiece"},
              {"unk_token", gguf_.tokens[unknown]},
              {"continuing_subword_prefix", "##"},
              {"max_input_chars_per_word", 100}};
    decoder_ = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
    set_around(gguf_.cls_token_id ? gguf_.cls_token_id : std::optional(gguf_.bos_token_id.value_or(kBertCls)),
               gguf_.seperator_token_id.value_or(kBertSep));
  }

  // finish_sentencepiece() does the rest.
  void convert_t5() { kind_ = VocabularyKind::sentencepiece_unigram; }

 private:
  static constexpr std::int32_t kBertCls = 101;  // llama.cpp's default
  static constexpr std::int32_t kBertSep = 102;

  void convert_bpe(std::string_view name) {
    const GgufPreTokenizer* row = find_gguf_pre_tokenizer(name.empty() ? kDefaultPre : name);
    if (row == nullptr) refuse(ErrorKind::unsupported, fmt::format("pre: the pre-tokenizer \"{}\" is not known", name));
    Value::Array steps;
    for (const std::string_view expression : row->expressions) steps.emplace_back(describe_split(expression));
    if (row->byte_level) {
      steps.emplace_back(describe_byte_level());
      decoder_ = describe_byte_level();
    } else {
      normalizer_ = describe_replace(" ", kSpaceSymbol);
      decoder_ = describe_space_decoder(false);
    }
    pre_tokenizer_ = describe_sequence("pretokenizers", std::move(steps));
    model_ = {{"type", "BPE"},
              {"byte_fallback", !row->byte_level},
              {"ignore_merges", row->ignore_merges},
              {"skip_unknown_merges", true}};
    const bool adds_bos = row->always_bos || gguf_.add_bos_token.value_or(row->adds_bos);
    if (adds_bos) set_default(gguf_.bos_token_id, find_default_gguf_ids(gguf_.model, gguf_.pre).bos_id);
    set_around(adds_bos ? gguf_.bos_token_id : std::nullopt,
               gguf_.add_eos_token.value_or(false) ? gguf_.eos_token_id : std::nullopt);
    read_merges();
  }

  void read_merges() {
    if (gguf_.merges.size() > kMaxMerges)
      refuse(ErrorKind::invalid_file,
             fmt::format("merges: expected at most {}, found {}", kMaxMerges, gguf_.merges.size()));
    merges_.reserve(gguf_.merges.size(), 0);
    for (const std::string_view merge : gguf_.merges) {
      const std::size_t space = merge.find(' ', 1);
      if (space == std::string_view::npos)
        refuse(ErrorKind::invalid_file, fmt::format("merges: \"{}\" has no space", merge));
      merges_.emplace_back(merge.substr(0, space), merge.substr(space + 1));
    }
  }

  // Sets the special tokens that go before and after a text.
  void set_around(std::optional<std::int32_t> before, std::optional<std::int32_t> after) {
    for (const auto& id : {before, after}) {
      if (id) check_id("a special token", *id);
    }
    if (before) around_.before = {*before};
    if (after) around_.after = {*after};
  }

  void check_id(std::string_view what, std::int32_t id) const {
    if (id >= 0 && static_cast<std::size_t>(id) < gguf_.tokens.size()) return;
    refuse(ErrorKind::invalid_file,
           fmt::format("tokens: {} has the id {}, but there are {} tokens", what, id, gguf_.tokens.size()));
  }

  // Sets an absent id to its default, if the vocabulary has a token with the default id.
  void set_default(std::optional<std::int32_t>& id, std::int32_t usual) {
    if (!id && usual >= 0 && static_cast<std::size_t>(usual) < gguf_.tokens.size()) id = usual;
  }
  void set_default_ids() {
    const SpecialIds usual = find_default_gguf_ids(gguf_.model, gguf_.pre);
    if (gguf_.model == kLlama) set_default(gguf_.bos_token_id, usual.bos_id);  // convert_bpe() sets that of gpt2
    set_default(gguf_.eos_token_id, usual.eos_id);
    set_default(gguf_.unknown_token_id, usual.unk_id);
  }

  void check_lists() const {
    const std::size_t size = gguf_.tokens.size();
    if (!gguf_.scores.empty() && gguf_.scores.size() != size) {
      refuse(ErrorKind::invalid_file,
             fmt::format("scores: expected {}, one for each token, found {}", size, gguf_.scores.size()));
    }
    if (!gguf_.token_type.empty() && gguf_.token_type.size() != size) {
      refuse(ErrorKind::invalid_file,
             fmt::format("token_type: expected {}, one for each token, found {}", size, gguf_.token_type.size()));
    }
    for (const auto& id : {gguf_.bos_token_id, gguf_.eos_token_id, gguf_.unknown_token_id, gguf_.padding_token_id}) {
      if (id) check_id("a special token", *id);
    }
  }

  Vocabulary finish_sentencepiece(Vocabulary vocabulary) const;

  GgufTokenizer& gguf_;
  VocabularyKind kind_ = VocabularyKind::pipeline;
  Attributes normalizer_;
  Attributes pre_tokenizer_;
  Attributes model_;
  SpecialAround around_;
  Attributes decoder_;
  MergeList merges_;
};

struct VocabularyMaker {
  std::string_view name;
  void (Maker::*convert)();
};
constexpr std::array kVocabularyMakers = std::to_array<VocabularyMaker>({{kLlama, &Maker::convert_llama},
                                                                         {"gpt2", &Maker::convert_gpt2},
                                                                         {"bert", &Maker::convert_bert},
                                                                         {"t5", &Maker::convert_t5},
                                                                         {"gemma4", &Maker::convert_gemma4}});

Vocabulary Maker::make() {
  check_lists();
  set_default_ids();
  const auto* algorithm = std::ranges::find(kVocabularyMakers, gguf_.model, &VocabularyMaker::name);
  if (algorithm == kVocabularyMakers.end())
    refuse(ErrorKind::unsupported, fmt::format("model: the algorithm \"{}\" is not known", gguf_.model));
  (this->*algorithm->convert)();
  Vocabulary vocabulary;
  vocabulary.kind = kind_;
  vocabulary.add_dummy_prefix = false;
  vocabulary.bos_id = gguf_.bos_token_id.value_or(-1);
  vocabulary.eos_id = gguf_.eos_token_id.value_or(-1);
  vocabulary.unk_id = gguf_.unknown_token_id.value_or(-1);
  vocabulary.pad_id = gguf_.padding_token_id.value_or(-1);
  vocabulary.merges = std::move(merges_);
  vocabulary.chat_template = std::move(gguf_.chat_template);
  vocabulary.tokenizer_config = std::move(gguf_.tokenizer_config);
  vocabulary.files = std::move(gguf_.files);
  vocabulary.reserve(gguf_.tokens.size(), 0);
  for (std::size_t id = 0; id < gguf_.tokens.size(); ++id) {
    const auto numbered =
        gguf_.token_type.empty() ? std::nullopt : find_token_type(static_cast<std::uint64_t>(gguf_.token_type[id]));
    const TokenType type = numbered.value_or(TokenType::normal);
    vocabulary.add(gguf_.tokens[id], gguf_.scores.empty() ? 0 : gguf_.scores[id],
                   kind_ == VocabularyKind::pipeline ? type : choose_special_token_type(type, vocabulary, id));
  }
  Value::Array added = find_gguf_added_tokens(vocabulary, gguf_.general_name);
  if (kind_ != VocabularyKind::pipeline) {
    if (!added.empty()) vocabulary.pipeline.set("added_tokens", std::move(added));
    return finish_sentencepiece(std::move(vocabulary));
  }
  const auto make_part_value = [](Attributes& map) { return map.empty() ? Value() : Value(std::move(map)); };
  vocabulary.pipeline = {
      {"added_tokens", std::move(added)},
      {"normalizer", make_part_value(normalizer_)},
      {"pre_tokenizer", make_part_value(pre_tokenizer_)},
      {"post_processor", around_ == SpecialAround() ? Value() : make_post_processor(vocabulary, around_)},
      {"decoder", make_part_value(decoder_)},
      {"model", std::move(model_)}};
  return vocabulary;
}

Vocabulary Maker::finish_sentencepiece(Vocabulary vocabulary) const {
  if (!gguf_.precompiled_charsmap.empty()) vocabulary.normalizer = "precompiled";
  set_normalizer(vocabulary, {.charsmap = gguf_.precompiled_charsmap,
                              .add_dummy_prefix = gguf_.add_space_prefix.value_or(false),
                              .remove_extra_whitespaces = gguf_.remove_extra_whitespaces.value_or(false)});
  set_special_around(vocabulary, gguf_.add_bos_token.value_or(false), gguf_.add_eos_token.value_or(true));
  return vocabulary;
}

bool is_phi3(std::string_view general_name) {
  const std::string name = to_lower_ascii(general_name);
  return name.find("phi-3") != std::string::npos || name.find("phi3") != std::string::npos;
}

}  // namespace

SpecialIds find_default_gguf_ids(std::string_view model, std::string_view pre) {
  struct Row {
    std::string_view model;
    SpecialIds ids;
  };
  constexpr std::array kRows = std::to_array<Row>({{kLlama, {.bos_id = 1, .eos_id = 2, .unk_id = 0}},
                                                   {"gpt2", {.bos_id = 11, .eos_id = 11}},
                                                   {"bert", {.unk_id = 100}},
                                                   {"t5", {.eos_id = 1, .unk_id = 2}}});
  const auto* row = std::ranges::find(kRows, model, &Row::model);
  SpecialIds ids = row == kRows.end() ? SpecialIds() : row->ids;
  if (pre == "glm4" || pre == "chatglm-bpe") ids.bos_id = -1;
  return ids;
}

bool is_found_in_prompts(std::optional<TokenType> type) {
  return type && *type != TokenType::normal && *type != TokenType::unused && *type != TokenType::byte;
}

bool consumes_space_in_gguf(std::string_view text, const std::string& general_name) {
  return is_phi3(general_name) && text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
}

Value::Array find_gguf_added_tokens(const Vocabulary& vocabulary, const std::string& general_name) {
  Value::Array added;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.text(id);
    const TokenType type = vocabulary.type(id);
    if (text.empty() || !is_found_in_prompts(type)) continue;
    added.emplace_back(
        make_listed_token(id, text, type != TokenType::user_defined, consumes_space_in_gguf(text, general_name)));
  }
  return added;
}

bool has_gguf_tokenizer(const Attributes& attributes) {
  return attributes.find("tokenizer.ggml.tokens") != nullptr && attributes.find("tokenizer.ggml.model") != nullptr;
}

std::optional<GgufTokenizer> read_gguf_tokenizer(const Attributes& attributes) {
  if (!has_gguf_tokenizer(attributes)) return std::nullopt;
  GgufTokenizer gguf;
  const Fields fields(attributes, "attributes");
  const auto make_key = [](std::string_view name) { return fmt::format("tokenizer.ggml.{}", name); };
  const auto read_list = [&](std::string_view name, auto&& read) {
    const Value::Array* items = fields.find_array(make_key(name));
    for (std::size_t i = 0; items != nullptr && i < items->size(); ++i) {
      if (!read((*items)[i])) fields.fail(make_key(name), fmt::format("item {} has the wrong type", i));
    }
  };
  const auto make_text_reader = [](std::vector<std::string>& to) {
    return [&to](const Value& item) {
      const auto* text = item.get_if<std::string>();
      if (text != nullptr) to.push_back(*text);
      return text != nullptr;
    };
  };
  // A file may name a special token that it does not have; the reader of GGUF warns.
  const auto read_id = [&](std::string_view name) -> std::optional<std::int32_t> {
    const auto* number = fields.get_if<std::uint64_t>(make_key(name));
    if (number == nullptr || *number >= gguf.tokens.size()) return std::nullopt;
    return static_cast<std::int32_t>(*number);
  };
  const auto read_boolean_key = [&](std::string_view name) { return fields.read_boolean(make_key(name)); };
  gguf.model = fields.read_text(make_key("model"), "");
  gguf.pre = fields.read_text(make_key("pre"), "");
  if (const auto* name = fields.get_if<std::string>("general.name")) gguf.general_name = *name;
  read_list("tokens", make_text_reader(gguf.tokens));
  read_list("merges", make_text_reader(gguf.merges));
  read_list("scores", [&](const Value& item) {
    const auto* number = item.get_if<double>();
    if (number != nullptr) gguf.scores.push_back(static_cast<float>(*number));
    return number != nullptr;
  });
  read_list("token_type", [&](const Value& item) {
    const auto* number = item.get_if<std::uint64_t>();
    gguf.token_type.push_back(number != nullptr && *number < 100 ? static_cast<std::int32_t>(*number) : 0);
    return true;
  });
  read_list("precompiled_charsmap", [&](const Value& item) {
    const auto* byte = item.get_if<std::uint64_t>();
    const auto* negative = item.get_if<std::int64_t>();
    if (byte == nullptr && negative == nullptr) return false;
    gguf.precompiled_charsmap +=
        static_cast<char>(byte != nullptr ? static_cast<std::int64_t>(*byte & 0xFF) : *negative);
    return true;
  });
  gguf.bos_token_id = read_id("bos_token_id");
  gguf.eos_token_id = read_id("eos_token_id");
  gguf.unknown_token_id = read_id("unknown_token_id");
  gguf.padding_token_id = read_id("padding_token_id");
  gguf.seperator_token_id = read_id("seperator_token_id");
  gguf.cls_token_id = read_id("cls_token_id");
  gguf.add_bos_token = read_boolean_key("add_bos_token");
  gguf.add_eos_token = read_boolean_key("add_eos_token");
  gguf.add_space_prefix = read_boolean_key("add_space_prefix");
  gguf.remove_extra_whitespaces = read_boolean_key("remove_extra_whitespaces");
  gguf.lowercase = read_boolean_key("normalizer.lowercase");
  gguf.strip_accents = read_boolean_key("normalizer.strip_accents");
  GgufTexts other = read_gguf_texts({attributes.begin(), attributes.end()}, {});
  gguf.chat_template = std::move(other.chat_template);
  gguf.tokenizer_config = std::move(other.tokenizer_config);
  gguf.files = std::move(other.files);
  return gguf;
}

bool is_gguf_tokenizer_key(std::string_view key) {
  return is_gguf_text_key(key) || std::ranges::find(kGgufTokenizerKeys, key) != kGgufTokenizerKeys.end();
}

std::optional<Vocabulary> make_vocabulary(const Model& model) {
  if (model.vocabulary) return model.vocabulary;
  auto gguf = read_gguf_tokenizer(model.attributes);
  if (!gguf) return std::nullopt;
  return make_vocabulary(*std::move(gguf));
}

Vocabulary make_vocabulary(GgufTokenizer gguf) { return Maker(gguf).make(); }

}  // namespace poise
