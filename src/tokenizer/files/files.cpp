#include "tokenizer/files/files.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <poise/error.hpp>
#include <poise/tokenizer.hpp>

#include "io/directory.hpp"
#include "io/lookalikes.hpp"
#include "io/source_range.hpp"
#include "model/limits.hpp"
#include "syntax/fields.hpp"
#include "syntax/json.hpp"
#include "tokenizer/gguf/pre_tokenizers.hpp"
#include "tokenizer/pipeline/special_around.hpp"
#include "tokenizer/pipeline/steps.hpp"
#include "tokenizer/sentencepiece/model.hpp"
#include "tokenizer/sentencepiece/normalizer.hpp"
#include "tokenizer/tokens/byte_level.hpp"
#include "tokenizer/tokens/listed_tokens.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{256} << 20;

// Finds and reads the tokenizer files of one directory.
class Files {
 public:
  using Has = std::function<bool(std::string_view name)>;

  // Requires: the container and `open` outlive this.
  Files(const Container& directory, const OpenFile& open, std::uint64_t rows = kMaxTokens)
      : directory_(directory.path()),
        has_([&](std::string_view name) { return directory.has_file(name); }),
        templates_(find_additional_templates(directory)),
        open_(open),
        rows_(rows) {}
  Files(Has has, std::vector<std::string> templates, const OpenFile& open, std::uint64_t rows)
      : has_(std::move(has)), templates_(std::move(templates)), open_(open), rows_(rows) {}

  const fs::path& directory() const { return directory_; }
  bool has(std::string_view name) const { return has_(name); }
  SourcePtr open(std::string_view name) const { return open_(name); }
  const std::vector<std::string>& additional_templates() const { return templates_; }

  std::string read_config(std::string_view name) const { return read_config_text(*open(name)); }
  // Reads a file as text; refuses a Git LFS pointer.
  std::string read_any_text(std::string_view name) const {
    const SourcePtr source = open(name);
    refuse_git_lfs_pointer(*source);
    return read_config_text(*source);
  }

  // Reads a JSON object. Returns an empty one if the file is missing.
  JsonFile read_object(std::string_view name) const {
    const std::string path = (directory_ / name).string();
    if (!has(name)) return {path};
    Value value = parse_json(read_config(name), path);
    if (value.get_if<Attributes>() == nullptr) throw Error(ErrorKind::invalid_file, "JSON: expected an object", path);
    return {path, std::move(value).take<Attributes>()};
  }

  // Returns the tokens that `config` and added_tokens.json list, for a vocabulary of `size` tokens in another file.
  // Leaves out those for which the model has no rows.
  Value::Array list_other_tokens(const JsonFile& config, const std::vector<std::string>& special, std::size_t size) {
    Value::Array tokens = read_listed_tokens(config, read_object("added_tokens.json"), special);
    const auto has_row = [&](const Value& token) {
      return read_listed_id(token) < std::max<std::uint64_t>(rows_, size);
    };
    const auto end = std::ranges::find_if_not(tokens, has_row);  // the tokens are sorted by id
    for (auto token = end; token != tokens.end(); ++token) left_out_.push_back(read_listed_text(*token));
    tokens.erase(end, tokens.end());
    return tokens;
  }
  std::vector<std::string> release_left_out() { return std::move(left_out_); }

 private:
  static std::string read_config_text(const Source& source) {
    if (source.size() > kMaxConfigBytes)
      throw Error(ErrorKind::invalid_file,
                  fmt::format("the file has {} bytes, at most {} are read", source.size(), kMaxConfigBytes),
                  source.name());
    return read_text(source, source.size());
  }

  fs::path directory_;
  Has has_;
  std::vector<std::string> templates_;
  const OpenFile& open_;
  std::uint64_t rows_;
  std::vector<std::string> left_out_;
};

// Sets the special ids, the chat template and the kept configuration, as `config` (tokenizer_config.json) and
// special_tokens_map.json state them. `bos` is the text of BOS if neither names one; "": none.
void apply_config(Vocabulary& vocabulary, const Attributes& config, const Attributes& special_map,
                  std::string_view bos = {}) {
  Attributes named = add_special_names(config, special_map);
  if (!bos.empty() && named.find("bos_token") == nullptr) named.set("bos_token", bos);
  apply_tokenizer_config(vocabulary, named);
  vocabulary.tokenizer_config = config;
  vocabulary.tokenizer_config.erase("chat_template");
}

// Keeps the other tokenizer files in the vocabulary, so that other formats can store them, and reads their chat
// templates. Keeps tokenizer_config.json only if its values alone do not reproduce it.
void read_other_files(Vocabulary& vocabulary, const Files& files) {
  const auto keep_file = [&](std::string_view name) {
    if (files.has(name)) vocabulary.files.set(std::string(name), files.read_any_text(name));
  };
  keep_file(kChatTemplate);
  std::ranges::for_each(files.additional_templates(), keep_file);
  keep_file(kChatTemplateJson);
  keep_file(kSpecialTokensMap);
  const bool has_other_template = read_kept_template(vocabulary.files) != Value();
  if (has_other_template) {
    if (vocabulary.chat_template != Value()) keep_file(kTokenizerConfig);
    vocabulary.chat_template = read_kept_template(vocabulary.files);
  } else if (vocabulary.chat_template == Value()) {
    const JsonFile file = files.read_object(kChatTemplateJson);
    if (const Value* found = file.object.find("chat_template")) vocabulary.chat_template = *found;
  }
  if (files.has(kTokenizerConfig)) {
    UnheldNumbers numbers;
    (void)parse_json(files.read_config(kTokenizerConfig), std::string(kTokenizerConfig), numbers);
    if (!numbers.wide_integers.empty()) keep_file(kTokenizerConfig);
  }
  if (const std::string problem = find_problem_with_files(vocabulary.files); !problem.empty())
    throw Error(ErrorKind::invalid_file, problem, files.directory().string());
}

constexpr std::string_view kEndOfText = "<|endoftext|>";

// Returns true if a tokenizer.model is in the format of OpenAI's tiktoken, as in Llama 3: each line has a token in
// base64 and its rank, "IQ== 0".
bool is_tiktoken(const Source& source) {
  constexpr std::uint64_t kMostBytes = 1024;
  const std::string start = read_text(source, std::min(source.size(), kMostBytes));
  const std::string_view line = std::string_view(start).substr(0, start.find('\n'));
  const std::size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos) return false;
  const std::string_view rank = line.substr(space + 1, line.find_last_not_of('\r') - space);
  return !rank.empty() && rank.find_first_not_of("0123456789") == std::string_view::npos &&
         decode_base64(line.substr(0, space)).has_value();
}

Vocabulary read_sentencepiece_file(const Source& source) {
  try {
    return read_sentencepiece(source);
  } catch (const Error&) {
    if (!is_tiktoken(source)) throw;
    throw Error(
        ErrorKind::invalid_file,
        "expected a SentencePiece model, found a vocabulary of OpenAI's tiktoken. Add the model's tokenizer.json, "
        "which Poise reads instead",
        source.name(), 0);
  }
}

// Reads tokenizer.model and the files next to it. By default, BOS goes in front of texts, and no EOS after them.
Vocabulary read_sentencepiece_files(Files& files, std::string_view name) {
  Vocabulary vocabulary = read_sentencepiece_file(*files.open(name));
  const JsonFile config = files.read_object(kTokenizerConfig);
  JsonFile special_map = files.read_object(kSpecialTokensMap);
  const std::vector<std::string> special = collect_special_texts(config, special_map);
  add_listed_tokens(vocabulary, files.list_other_tokens(config, special, vocabulary.size()), config.path);
  for (const NamedToken& named : kNamedTokens) special_map.object.erase(named.key);
  const SpecialIds of_model = vocabulary.special_ids();
  apply_config(vocabulary, config.object, special_map.object);
  if (vocabulary.special_ids() != of_model) {
    vocabulary = change_token_types(
        vocabulary, [&](std::size_t id) { return choose_special_token_type(vocabulary.type(id), vocabulary, id); });
  }
  if (vocabulary.add_dummy_prefix && !read_flag(config.object, "legacy", true)) set_prepend_first(vocabulary);
  set_special_around(vocabulary, read_flag(config.object, "add_bos_token", true),
                     read_flag(config.object, "add_eos_token", false));
  return vocabulary;
}

Vocabulary read_tokenizer_json_files(Files& files, std::string_view name) {
  Vocabulary vocabulary = read_tokenizer_json(*files.open(name));
  apply_config(vocabulary, files.read_object(kTokenizerConfig).object, files.read_object(kSpecialTokensMap).object);
  return vocabulary;
}

Vocabulary read_tekken_file(Files& files, std::string_view name) { return read_tekken(*files.open(name)); }

const TokenizerClass& find_class(const JsonFile& config) {
  const auto name = Fields(config.object, "", config.path).read_text("tokenizer_class");
  if (!name) return *find_tokenizer_class("");
  const TokenizerClass* row = name->empty() ? nullptr : find_tokenizer_class(*name);
  if (row != nullptr) return *row;
  throw Error(
      ErrorKind::unsupported,
      fmt::format(
          "tokenizer_class: Poise does not know how a \"{}\" splits texts; add a tokenizer.json, which describes it",
          *name),
      config.path);
}

// Reads GPT-2's files, and the special tokens that the files next to them list. <|endoftext|> is always special.
Vocabulary read_gpt2_files(Files& files, std::string_view name) {
  const JsonFile config = files.read_object(kTokenizerConfig);
  const JsonFile special_map = files.read_object(kSpecialTokensMap);
  const TokenizerClass& row = find_class(config);
  Gpt2Options options{
      .add_prefix_space = read_flag(config.object, "add_prefix_space", false),
      .normalizer = row.normalizer,
      .expression = row.pre.empty() ? std::string_view() : find_gguf_pre_tokenizer(row.pre)->expressions.front(),
      .special = collect_special_texts(config, special_map)};
  if (std::ranges::find(options.special, kEndOfText) == options.special.end()) options.special.emplace_back(kEndOfText);
  options.added = files.list_other_tokens(config, options.special, 0);
  const SourcePtr merges = files.open("merges.txt");
  refuse_git_lfs_pointer(*merges);  // the lines of such a pointer look like merges: two texts each
  Vocabulary vocabulary = read_vocab_and_merges(*files.open(name), *merges, options);
  apply_config(vocabulary, config.object, special_map.object, row.bos);
  if (read_flag(config.object, "add_bos_token", false)) set_special_around(vocabulary, true, false);
  return vocabulary;
}

struct FileKind {
  std::string_view name;
  std::string_view ending;  // how other names of such a file may end
  Vocabulary (*read)(Files& files, std::string_view name);
};

constexpr std::array kFileKinds = std::to_array<FileKind>({
    {"tokenizer.model", ".model", read_sentencepiece_files},
    {"tokenizer.json", "tokenizer.json", read_tokenizer_json_files},
    {"tekken.json", "tekken.json", read_tekken_file},
    {"vocab.json", "vocab.json", read_gpt2_files},
});

// Returns the number of tokens of the directory's model: vocab_size of config.json, or else of its text_config;
// std::nullopt if it is missing or 0.
std::optional<std::size_t> count_model_rows(const Files& files) {
  const JsonFile config = files.read_object("config.json");
  const auto* text = config.object.get_if<Attributes>("text_config");
  const auto* rows = config.object.get_if<std::uint64_t>("vocab_size");
  if (rows == nullptr) rows = get_member<std::uint64_t>(text, "vocab_size");
  return rows == nullptr || *rows == 0 ? std::nullopt : std::optional(static_cast<std::size_t>(*rows));
}

// Reads a directory's tokenizer if `name` is empty; else the file of that name and its neighbours.
std::optional<Vocabulary> read_files(const Container& folder, const std::string& name, const OpenFile& open) {
  if (name.empty()) {
    auto found = read_tokenizer_files(folder, open, kMaxTokens);
    if (!found) return std::nullopt;
    const auto rows = count_model_rows(Files(folder, open));
    return rows ? keep_first_tokens(std::move(found->vocabulary), *rows) : std::move(found->vocabulary);
  }
  if (!folder.has(name)) return std::nullopt;
  const auto* row =
      std::ranges::find_if(kFileKinds, [&](const FileKind& file_kind) { return name.ends_with(file_kind.ending); });
  const bool is_json = name.ends_with(".json") && row == kFileKinds.end() && looks_like_tokenizer_json(*open(name));
  if (row == kFileKinds.end() && !is_json) return std::nullopt;
  Files files(folder, open);
  Vocabulary vocabulary = is_json ? read_tokenizer_json_files(files, name) : row->read(files, name);
  read_other_files(vocabulary, files);
  drop_usual_config(vocabulary);
  return vocabulary;
}

}  // namespace

std::vector<std::string> find_additional_templates(const Container& directory) {
  std::vector<std::string> names;
  for (const std::string& file : directory.list_names(kAdditionalTemplates)) {
    std::string name = fmt::format("{}/{}", kAdditionalTemplates, file);
    if (is_additional_template(name) && directory.has_file(name)) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> list_tokenizer_files() {
  std::vector<std::string> names;
  for (const FileKind& row : kFileKinds) names.emplace_back(row.name);
  return names;
}

namespace {

std::optional<DirectoryVocabulary> read_first_kind(Files files) {
  const auto* row = std::ranges::find_if(kFileKinds, [&](const FileKind& file_kind) {
    if (!files.has(file_kind.name)) return false;
    // A tokenizer.json next to a file of tiktoken has the same tokens and more settings.
    return file_kind.read != read_sentencepiece_files || !files.has("tokenizer.json") ||
           !is_tiktoken(*files.open(file_kind.name));
  });
  if (row == kFileKinds.end()) return std::nullopt;
  Vocabulary vocabulary = row->read(files, row->name);
  read_other_files(vocabulary, files);
  drop_usual_config(vocabulary);
  return DirectoryVocabulary{std::move(vocabulary), files.release_left_out()};
}

}  // namespace

std::optional<DirectoryVocabulary> read_tokenizer_files(const Container& directory, const OpenFile& open,
                                                        std::uint64_t rows) {
  return read_first_kind(Files(directory, open, rows));
}

std::optional<DirectoryVocabulary> read_tokenizer_files(std::span<const DirectoryFile> files, std::uint64_t rows) {
  const auto find = [&](std::string_view name) { return std::ranges::find(files, name, &DirectoryFile::name); };
  const OpenFile open = [&](std::string_view name) {
    const auto found = find(name);
    if (found == files.end()) throw Error(ErrorKind::not_found, fmt::format("there is no {}", name));
    return found->source;
  };
  std::vector<std::string> templates;
  for (const DirectoryFile& file : files) {
    if (is_additional_template(file.name)) templates.push_back(file.name);
  }
  return read_first_kind(
      Files([&](std::string_view name) { return find(name) != files.end(); }, std::move(templates), open, rows));
}

std::optional<Vocabulary> read_vocabulary(const fs::path& path, IoMode io) {
  std::error_code ignored;
  const bool is_directory = fs::is_directory(path, ignored);
  const auto folder = open_container(ContainerKind::directory, is_directory ? path : path.parent_path(), nullptr, io);
  std::vector<SourcePtr> opened;
  try {
    return read_files(*folder, is_directory ? "" : path.filename().string(),
                      [&](std::string_view name) { return opened.emplace_back(folder->open(name)); });
  } catch (const Error& error) {
    if (const SourcePtr source = find_refused_source(error, opened)) refuse_lookalike(*source);
    throw;
  }
}

namespace {

constexpr std::array kTokenizerClasses = std::to_array<TokenizerClass>({
    {.name = "", .normalizer = "", .pre = "", .bos = "<|endoftext|>"},
    {.name = "GPT2Tokenizer", .normalizer = "", .pre = "", .bos = "<|endoftext|>"},
    {.name = "RobertaTokenizer", .normalizer = "", .pre = "", .bos = "<s>"},
    {.name = "BartTokenizer", .normalizer = "", .pre = "", .bos = "<s>"},
    {.name = "Qwen2Tokenizer", .normalizer = "NFC", .pre = "qwen2", .bos = ""},
});

}  // namespace

const TokenizerClass* find_tokenizer_class(std::string_view name) {
  constexpr std::string_view kFast = "Fast";
  if (name.size() > kFast.size() && name.ends_with(kFast)) name.remove_suffix(kFast.size());
  const auto* row = std::ranges::find(kTokenizerClasses, name, &TokenizerClass::name);
  return row == kTokenizerClasses.end() ? nullptr : row;
}

}  // namespace poise
