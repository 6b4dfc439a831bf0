// poise tokenize: prints the tokens of a text, of lines of JSON, or of a conversation.
#include <cerrno>
#include <cstdio>
#include <system_error>

#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/tokenizer.hpp>

#include "cli/advice.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/options.hpp"
#include "cli/standard_input.hpp"
#include "cli/text.hpp"
#include "family/check.hpp"
#include "tokenizer/gguf/vocabulary.hpp"
#include "tokenizer/pipeline/steps.hpp"

namespace poise::cli {
namespace {

struct TokenizeArguments {
  std::string path;
  std::string text = "-";
  ReadOptions read;
  TokenizerPaths tokenizer;
  ConversationOptions conversation;
  bool json = false;
  bool lines = false;
  bool no_special = false;
};

class Tokenize {
 public:
  explicit Tokenize(const TokenizeArguments& options) : options_(options), tokenizer_(load_vocabulary()) {}

  void execute() {
    if (options_.lines) return print_lines();
    if (options_.conversation.is_given()) return print_conversation();
    const std::string text = options_.text == "-" ? TextInput().read_all() : options_.text;
    if (options_.json) return print(make_json(text) + "\n");
    print_table(text);
  }

 private:
  Vocabulary load_vocabulary() const {
    if (auto given = options_.tokenizer.read()) return *std::move(given);
    if (!is_stream_or_url(options_.path)) {
      if (auto found = read_vocabulary(options_.path, options_.read.io)) return *std::move(found);
    }
    const Model model = open_runnable_model(options_.path, options_.read, true);
    if (auto found = make_vocabulary(model)) {
      const std::size_t rows = count_embedded_tokens(model).value_or(found->size());
      return keep_first_tokens(*std::move(found), rows);
    }
    throw Error(ErrorKind::unsupported, "has no vocabulary; name a tokenizer file, or a directory with one",
                options_.path);
  }

  std::vector<TokenId> encode(std::string_view text) const {
    return options_.no_special ? tokenizer_.encode(text) : tokenizer_.encode_with_special(text);
  }

  std::string make_json(std::string_view text) const {
    const std::vector<TokenId> ids = encode(text);
    Value::Array pieces;
    for (const TokenId id : ids) pieces.emplace_back(tokenizer_.piece(id));
    return to_json(Attributes{{"ids", Value::Array(ids.begin(), ids.end())},
                              {"pieces", std::move(pieces)},
                              {"text", tokenizer_.decode(ids, SpecialTokens::shown)}});
  }

  void print_conversation() const {
    const ChatText chat = read_chat_text(options_.conversation, tokenizer_);
    if (!options_.json) return print(chat.text);
    const std::vector<TokenId> ids = tokenizer_.encode(chat);
    print(to_json(Attributes{{"text", chat.text}, {"ids", Value::Array(ids.begin(), ids.end())}}) + "\n");
  }

  void print_table(std::string_view text) const {
    Table table({"id", "piece"}, {true, false});
    for (const TokenId id : encode(text)) table.add({std::to_string(id), make_printable(tokenizer_.piece(id))});
    print(table.text());
  }

  void print_lines() const {
    TextLines lines;
    while (const auto text = lines.read_next()) {
      print(make_json(*text) + "\n");
      // A program may wait for the answer to its line before it writes the next one.
      if (!lines.has_next() && std::fflush(stdout) != 0) throw std::system_error(errno, std::generic_category());
    }
  }

  static void print(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size())
      throw std::system_error(errno, std::generic_category());
  }

  const TokenizeArguments& options_;
  Tokenizer tokenizer_;
};

}  // namespace

void add_tokenize_command(CLI::App& app) {
  auto options = std::make_shared<TokenizeArguments>();
  CLI::App* command = app.add_subcommand("tokenize", "Show the tokens of a text");
  command
      ->add_option("PATH", options->path,
                   "A model, a directory with tokenizer files, or one such file: tokenizer.json, tokenizer.model, ...")
      ->required();
  auto* text = command->add_option("TEXT", options->text, "The text; - is standard input")->capture_default_str();
  auto* json = command->add_flag(
      "--json", options->json,
      "Print {\"ids\", \"pieces\", \"text\"}; \"text\" is what the ids decode to, with special tokens");
  auto* lines = command
                    ->add_flag("--jsonl", options->lines,
                               "Read one JSON string per line from standard input, and print one such object per line")
                    ->excludes(json);
  auto* no_special =
      command->add_flag("--no-special", options->no_special,
                        "Add no BOS, EOS or other special tokens; those that the text contains are still found");
  add_conversation_options(*command, options->conversation, true)
      ->excludes(lines)
      ->excludes(text)
      ->excludes(no_special);
  command->get_option("--parse-special")->needs(json);  // it changes only the ids, which only --json prints
  add_tokenizer_options(*command, options->tokenizer);
  add_io_option(*command, options->read);
  command->callback([options] {
    refuse_text_with_jsonl(options->lines, options->text);
    add_path_to_errors(options->path, [&] { Tokenize(*options).execute(); });
  });
}

}  // namespace poise::cli
