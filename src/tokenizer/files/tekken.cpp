// Reads Mistral's tekken.json; files.hpp has the form. Source: src/mistral_common/tokens/tokenizers/tekken.py of
// github.com/mistralai/mistral-common.
#include "tokenizer/files/files.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "io/source_range.hpp"
#include "model/limits.hpp"
#include "syntax/fields.hpp"
#include "syntax/json.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/tokens/byte_level.hpp"

namespace poise {
namespace {

// Files that do not list special tokens have these; the remaining special tokens are <SPECIAL_n>.
constexpr auto kTekkenSpecial = std::to_array<std::string_view>({"<unk>",
                                                                 "<s>",
                                                                 "</s>",
                                                                 "[INST]",
                                                                 "[/INST]",
                                                                 "[AVAILABLE_TOOLS]",
                                                                 "[/AVAILABLE_TOOLS]",
                                                                 "[TOOL_RESULTS]",
                                                                 "[/TOOL_RESULTS]",
                                                                 "[TOOL_CALLS]",
                                                                 "[IMG]",
                                                                 "<pad>",
                                                                 "[IMG_BREAK]",
                                                                 "[IMG_END]",
                                                                 "[PREFIX]",
                                                                 "[MIDDLE]",
                                                                 "[SUFFIX]",
                                                                 "[SYSTEM_PROMPT]",
                                                                 "[/SYSTEM_PROMPT]",
                                                                 "[TOOL_CONTENT]"});

class TekkenReader {
 public:
  explicit TekkenReader(const Source& source) : name_(source.name()) {
    check_vocabulary_size(source);
    text_ = read_text(source, source.size());
  }

  Vocabulary read() {
    walk_json_object(JsonText(text_), name_, 0, [this](std::string_view key, JsonValue& value) {
      if (key == "config") config_ = value.read_tree();
      if (key == "vocab" && !value.visit_items([this](JsonValue& item) { read_token(item); }))
        fail("vocab: expected a list", value.position());
      if (key == "special_tokens" && !value.visit_items([this](JsonValue& item) { read_special(item); })) {
        if (value.read_tree() != Value()) fail("special_tokens: expected a list", value.position());
      }
    });
    set_special_tokens();
    return make_vocabulary();
  }

 private:
  [[noreturn]] void fail(std::string_view problem, std::uint64_t offset = 0) const {
    throw Error(ErrorKind::invalid_file, fmt::format("tekken.json: {}", problem), name_, offset);
  }

  void read_token(JsonValue& item) {
    if (tokens_.size() == kMaxTokens) fail(fmt::format("vocab: more than {} tokens", kMaxTokens), item.position());
    std::optional<std::string> bytes;
    std::optional<std::uint64_t> rank;
    const std::uint64_t position = item.position();
    const bool object = item.visit_members([&](std::string_view key, JsonValue& value) {
      if (key == "rank") rank = value.read_unsigned();
      if (key != "token_bytes") return;
      if (const auto text = value.read_text()) bytes = decode_base64(*text);
    });
    if (!object || !bytes || rank != tokens_.size())
      fail(fmt::format("vocab: expected a token of rank {} with token_bytes in base64", tokens_.size()), position);
    std::string text;
    byte_level::append_encoded(text, *bytes);
    tokens_.push_back(std::move(text));
  }

  void read_special(JsonValue& item) {
    if (special_.size() == kMaxTokens)
      fail(fmt::format("special_tokens: more than {} tokens", kMaxTokens), item.position());
    std::optional<std::string> text;
    std::optional<std::uint64_t> rank;
    const std::uint64_t position = item.position();
    const bool object = item.visit_members([&](std::string_view key, JsonValue& value) {
      if (key == "rank") rank = value.read_unsigned();
      if (key != "token_str") return;
      if (const auto found = value.read_text()) text = std::string(*found);
    });
    if (!object || !text || rank != special_.size())
      fail(fmt::format("special_tokens: expected the token of rank {}", special_.size()), position);
    special_.push_back(*std::move(text));
  }

  std::uint64_t read_config_number(std::string_view key) const {
    const auto* found = get_member<std::uint64_t>(config_, key);
    if (found == nullptr || *found > kMaxTokens)
      fail(fmt::format("config.{}: expected a number up to {}", key, kMaxTokens));
    return *found;
  }

  void set_special_tokens() {
    special_count_ = read_config_number("default_num_special_tokens");
    if (special_.empty())
      special_.assign(kTekkenSpecial.begin(),
                      kTekkenSpecial.begin() +
                          static_cast<std::ptrdiff_t>(std::min<std::size_t>(special_count_, kTekkenSpecial.size())));
    if (special_.size() > special_count_)
      fail(fmt::format("special_tokens: has {} tokens, but config.default_num_special_tokens is {}", special_.size(),
                       special_count_));
    while (special_.size() < special_count_) special_.push_back(fmt::format("<SPECIAL_{}>", special_.size()));
    const std::uint64_t size = read_config_number("default_vocab_size");
    if (size < special_count_ || size - special_count_ > tokens_.size())
      fail(fmt::format("config.default_vocab_size: {}, expected {} to {}", size, special_count_,
                       special_count_ + tokens_.size()));
    tokens_.resize(size - special_count_);
  }

  std::int32_t find_special(std::string_view text) const {
    const auto found = std::ranges::find(special_, text);
    return found == special_.end() ? -1 : static_cast<std::int32_t>(found - special_.begin());
  }

  Vocabulary make_vocabulary() const {
    Vocabulary result;
    result.kind = VocabularyKind::pipeline;
    result.add_dummy_prefix = false;
    result.unk_id = find_special("<unk>");
    result.bos_id = find_special("<s>");
    result.eos_id = find_special("</s>");
    result.pad_id = find_special("<pad>");
    Value::Array added;
    Value::Array added_only;
    for (std::size_t id = 0; id < special_.size(); ++id) {
      result.add(special_[id], 0, TokenType::control);
      added_only.emplace_back(std::uint64_t{id});
      added.emplace_back(
          Attributes{{"id", std::uint64_t{id}}, {"content", special_[id]}, {"normalized", false}, {"special", true}});
    }
    for (std::size_t rank = 0; rank < tokens_.size(); ++rank)
      result.add(tokens_[rank], -static_cast<float>(rank), TokenType::normal);
    const auto* pattern = get_member<std::string>(config_, "pattern");
    if (pattern == nullptr) fail("config.pattern: expected text");
    const Attributes bytes{
        {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", false}, {"use_regex", false}};
    const Attributes split{
        {"type", "Split"}, {"pattern", Attributes{{"Regex", *pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
    const Value post = result.bos_id < 0 ? Value() : make_post_processor(result, {{result.bos_id}, {}});
    result.pipeline = {
        {"added_tokens", std::move(added)},
        {"normalizer", nullptr},
        {"pre_tokenizer", Attributes{{"type", "Sequence"}, {"pretokenizers", Value::Array{split, bytes}}}},
        {"post_processor", post},
        {"decoder", bytes},
        {"model", Attributes{{"type", "BPE"},
                             {"ignore_merges", true},
                             {"merge_by_score", true},
                             {"added_only", std::move(added_only)}}},
        {"tekken", config_}};
    return result;
  }

  std::string name_;
  std::string text_;
  Value config_;
  std::vector<std::string> tokens_;
  std::vector<std::string> special_;
  std::uint64_t special_count_ = 0;
};

}  // namespace

Vocabulary read_tekken(const Source& source) { return TekkenReader(source).read(); }

}  // namespace poise
