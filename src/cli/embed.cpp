// poise embed: prints a vector for each text.
#include <span>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/embedder.hpp>
#include <poise/error.hpp>

#include "cli/advice.hpp"
#include "cli/commands.hpp"
#include "cli/model_options.hpp"
#include "cli/standard_input.hpp"
#include "cli/text.hpp"
#include "cli/values.hpp"
#include "runtime/weights.hpp"

namespace poise::cli {
namespace {

struct EmbedArguments {
  ModelOptions model;
  std::string text = "-";
  std::vector<TokenId> tokens;
  bool lines = false;
  EmbedOptions embed;
  SessionOptions session;
};

using Tokens = std::vector<TokenId>;

class Embed {
 public:
  explicit Embed(const EmbedArguments& options)
      : options_(options),
        weights_(options.model.load(options.model.open_model(false))),
        embedder_(weights_, options.embed, options.session) {}

  void execute() {
    if (options_.lines) return print_lines();
    print_vectors({options_.tokens.empty() ? encode_text() : options_.tokens});
  }

 private:
  Tokens encode_text() const {
    if (options_.text == "-") return encode_input(TextInput().read_all(), "standard input");
    return weights_->tokenizer().encode_with_special(options_.text);
  }

  void print_lines() {
    constexpr std::size_t kTogether = 64;
    TextLines lines;
    std::vector<Tokens> texts;
    while (const auto text = lines.read_next()) {
      texts.push_back(encode_input(*text, lines.name()));
      if (texts.size() == kTogether) print_vectors(std::exchange(texts, {}));
    }
    print_vectors(texts);
  }

  // Encodes a text of the input. Errors show `name`, such as "line 3 of the input"; the embedder would name the text by
  // its index in the batch.
  Tokens encode_input(const std::string& text, const std::string& name) const {
    Tokens tokens = weights_->tokenizer().encode_with_special(text);
    if (tokens.empty()) throw Error(ErrorKind::invalid_file, "the text has no tokens, so it has no vector", name);
    if (const std::size_t context = find_context(*weights_, options_.session); tokens.size() > context) {
      throw Error(ErrorKind::invalid_file,
                  fmt::format("{} tokens do not fit the context of {} tokens", tokens.size(), context), name);
    }
    return tokens;
  }

  // Prints a line for each text: the JSON object {"embedding", "tokens"}.
  void print_vectors(const std::vector<Tokens>& texts) {
    const std::vector<float> all = embedder_.embed(texts);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto vector = std::span(all).subspan(i * embedder_.size(), embedder_.size());
      print_now(fmt::format("{{\"embedding\":[{}],\"tokens\":{}}}\n", fmt::join(vector, ","), texts[i].size()));
    }
  }

  const EmbedArguments& options_;
  std::shared_ptr<const Weights> weights_;
  Embedder embedder_;
};

}  // namespace

void add_embed_command(CLI::App& app) {
  auto options = std::make_shared<EmbedArguments>();
  CLI::App* command = app.add_subcommand("embed", "Print the vector of a text");
  command->add_option("PATH", options->model.path, "A model file or directory")->required();
  auto* text = command
                   ->add_option("TEXT", options->text,
                                "The text, with the special tokens that `poise tokenize` shows; - is standard input")
                   ->capture_default_str();
  auto* lines = command->add_flag(
      "--jsonl", options->lines,
      "Read one JSON string per line from standard input, and print one {\"embedding\", \"tokens\"} per line");
  add_parsed_option(*command, "--tokens", "IDS", "Token ids in place of a text: 1,2,3",
                    [options](const std::string& ids) { options->tokens = parse_tokens("--tokens", ids); })
      ->excludes(lines)
      ->excludes(text);
  add_choice_option(*command, "--pooling", options->embed.pooling,
                    std::vector<std::pair<std::string_view, Pooling>>{{"last", Pooling::last}, {"mean", Pooling::mean}},
                    "Use the hidden state of the last token, or the mean over all tokens")
      ->default_str("last");
  add_number_option(
      *command, "--layer", options->embed.layer,
      "The layer whose hidden states are used; 0 is the embedding (default: the last layer, after the final norm)");
  command->add_flag("--normalize", options->embed.normalize, "Divide the vector by its length");
  add_session_options(*command, options->session);
  add_model_options(*command, options->model);
  command->callback([options] {
    refuse_text_with_jsonl(options->lines, options->text);
    add_path_to_errors(options->model.path, [&] { Embed(*options).execute(); });
  });
}

}  // namespace poise::cli
