// poise completion: prints scripts with which a shell completes commands, options, their values and names of tensors.
//
// The scripts are made from the option parser's own table. For the names of tensors they run the command itself, which
// takes a few milliseconds, because only headers are read.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poise/convert.hpp>
#include <poise/format.hpp>
#include <poise/model.hpp>

#include "cli/commands.hpp"
#include "cli/help.hpp"
#include "cli/text.hpp"
#include "ops/option_words.hpp"

namespace poise::cli {
namespace {

// Lists the kinds of words that a shell may offer for an argument or for an option's value.
enum class Values : std::uint8_t { none, words, files, tensors, commands };

struct Completion {
  Values values = Values::none;
  std::vector<std::string> words = {};  // empty unless `values` is Values::words
};

// Returns the alternatives of "f32|f16|bf16"; none if one of them stands for a value, as N and FILE do.
std::vector<std::string> split_choices(std::string_view type) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyz0123456789_";
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= type.size();) {
    const std::size_t end = std::min(type.find('|', begin), type.size());
    const std::string_view word = type.substr(begin, end - begin);
    const std::string_view plain = word.substr(0, word.find('['));  // "zstd" of "zstd[:LEVEL]"
    if (plain.empty() || plain.find_first_not_of(kPlain) != std::string_view::npos) return {};
    words.emplace_back(plain);
    begin = end + 1;
  }
  return words;
}

std::vector<std::string> list_written_formats() {
  std::vector<std::string> names;
  for (const FormatInfo& format : formats()) {
    if (format.writable) names.emplace_back(format.name);
  }
  return names;
}

// Returns the name of an option's or argument's value: "FILE" for "--vocab FILE".
std::string find_value_name(const CLI::Option& option) {
  return option.get_positional() ? option.get_name(true, false) : option.get_type_name();
}

// Returns true for options that take a value, and false for flags.
bool has_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

Completion find_completion(const CLI::Option& option) {
  const std::string type = find_value_name(option);
  if (!has_value(option)) return {};
  if (option.get_name() == "--quantize") return {.values = Values::words, .words = list_quantization_names()};
  if (type == "FORMAT") return {.values = Values::words, .words = list_written_formats()};
  if (type == "COMMAND") return {.values = Values::commands};
  if (type == "SHELL") return {.values = Values::words, .words = {"bash", "zsh", "fish"}};
  if (type == "ACTION") return {.values = Values::words, .words = {"extract", "convert"}};
  if (type == "COLUMN") {
    const std::vector<std::string_view> columns = list_statistics_columns();
    return {.values = Values::words, .words = {columns.begin(), columns.end()}};
  }
  if (type == "TENSOR" || type == "GLOB") return {.values = Values::tensors};
  const std::vector<std::string> words = split_choices(type);
  if (!words.empty()) return {.values = Values::words, .words = words};
  constexpr std::array kFiles = {"PATH", "MODEL", "IN",    "OUT",       "FILE",        "A",
                                 "B",    "BASE",  "OTHER", "FILE|NAME", "MODEL|lookup"};
  if (std::ranges::find(kFiles, type) != kFiles.end() || type.starts_with("PATH")) return {.values = Values::files};
  return {};
}

// Returns all names of an option with their dashes: "--output" and "-o".
std::vector<std::string> list_spellings(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<const CLI::Option*> list_options(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return !list_spellings(*option).empty(); });
}
std::vector<const CLI::Option*> list_arguments(const CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return option->get_positional(); });
}

// Returns the first clause of a description, for lists.
std::string shorten_description(std::string_view text) {
  return std::string(text.substr(0, std::min(text.find_first_of(";.("), text.find(": "))));
}

// Quotes text for the three shells. Text in '...' has no special characters, except that fish reads backslashes, which
// the texts for fish do not have. For a quotation mark, the quotes end, an escaped mark follows, and the quotes begin
// again.
std::string quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) c == '\'' ? out += "'\\''" : out += c;
  return out + "'";
}

std::string quote_words(const std::vector<std::string>& words) {
  return quote(fmt::format("{}", fmt::join(words, " ")));
}

std::vector<const CLI::App*> list_commands(const CLI::App& app) { return app.get_subcommands({}); }

std::vector<std::string> list_command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : list_commands(app)) names.push_back(command->get_name());
  return names;
}

// Returns an action of the bash script, in which $model is the first argument that is a file or directory.
std::string make_bash_action(const Completion& completion, const CLI::App& app) {
  switch (completion.values) {
    case Values::words: return fmt::format("_poise_words {}", quote_words(completion.words));
    case Values::commands: return fmt::format("_poise_words {}", quote_words(list_command_names(app)));
    case Values::tensors: return "_poise_tensors";
    case Values::files: return "_poise_files";
    case Values::none: break;
  }
  return ":";
}

// Begins the bash script: helper functions, and the first lines of _poise(), the function that completes. compgen -W
// expands its words as the shell does, so it gets only words of Poise, and never names from files. Bash splits words at
// colons and completes what follows the last one, so _poise() joins them, and _poise_trim() cuts the completions.
constexpr std::string_view kBashFunctions =
    R"sh(# Completion of poise in bash: eval "$(poise completion bash)" in ~/.bashrc.
_poise_trim() {
  case $COMP_WORDBREAKS in *:*) COMPREPLY=("${COMPREPLY[@]#"${cur%"${cur##*:}"}"}") ;; esac
}
_poise_words() { COMPREPLY+=($(compgen -W "$1" -- "$cur")); _poise_trim; }
_poise_files() { compopt -o default 2>/dev/null; COMPREPLY=(); }
_poise_unquote() {
  REPLY=$1
  case $REPLY in \'* | \"*) REPLY=${REPLY:1} REPLY=${REPLY%[\'\"]} ;; *) REPLY=${REPLY//\\/} ;; esac
}
_poise_tensors() {
  local name REPLY
  [ -n "$model" ] || return
  _poise_unquote "$cur"
  while IFS= read -r name; do
    [[ $name == "$REPLY"* ]] || continue
    case $cur in
      \'*) [[ $name == *\'* ]] || COMPREPLY+=("$name") ;;
      \"*) [[ $name == *[\"\$\`\\!]* ]] || COMPREPLY+=("$name") ;;
      *) COMPREPLY+=("$(printf %q "$name")") ;;
    esac
  done < <(poise completion tensors "$model" 2>/dev/null)
  case $cur in \'* | \"*) ;; *) _poise_trim ;; esac
}
_poise() {
  local cur prev command model i n=0 REPLY
  local -a words
  words[0]=poise
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    if ((n > 1)) && [[ ${COMP_WORDS[i]} == :* || ${words[n]} == *: ]]; then
      words[n]+=${COMP_WORDS[i]}
    else
      words[++n]=${COMP_WORDS[i]}
    fi
  done
  cur=${words[n]} prev=${words[n - 1]} command=${words[1]} model=
  COMPREPLY=()
  for ((i = 2; i < n; ++i)); do
    _poise_unquote "${words[i]}"
    case $REPLY in -*) ;; *) if [ -e "$REPLY" ]; then model=$REPLY; break; fi ;; esac
  done
)sh";

std::string make_bash_script(const CLI::App& app) {
  std::string out(kBashFunctions);
  out += fmt::format("  if [ \"$n\" -eq 1 ]; then _poise_words {}; return; fi\n",
                     quote(fmt::format("--help --version {}", fmt::join(list_command_names(app), " "))));
  out += "  case \"$command $prev\" in\n";
  for (const CLI::App* command : list_commands(app)) {
    for (const CLI::Option* option : list_options(*command)) {
      if (!has_value(*option)) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : list_spellings(*option))
        patterns.push_back(quote(command->get_name() + " " + name));
      out += fmt::format("    {}) {}; return ;;\n", fmt::join(patterns, " | "),
                         make_bash_action(find_completion(*option), app));
    }
  }
  out += "  esac\n  case \"$command $cur\" in\n";
  for (const CLI::App* command : list_commands(app)) {
    std::vector<std::string> names;
    for (const CLI::Option* option : list_options(*command)) {
      const std::vector<std::string> spellings = list_spellings(*option);
      names.insert(names.end(), spellings.begin(), spellings.end());
    }
    out += fmt::format("    {}-*) _poise_words {}; return ;;\n", quote(command->get_name() + " "), quote_words(names));
  }
  out += "  esac\n  case $command in\n";
  for (const CLI::App* command : list_commands(app)) {
    const std::vector<const CLI::Option*> arguments = list_arguments(*command);
    const bool has_tensors = std::ranges::any_of(
        arguments, [](const CLI::Option* argument) { return find_completion(*argument).values == Values::tensors; });
    const Completion first = arguments.empty() ? Completion() : find_completion(*arguments.front());
    const std::string later = has_tensors ? "if [ -n \"$model\" ]; then _poise_tensors; return; fi; " : "";
    out += fmt::format("    {}) {}{} ;;\n", command->get_name(), later, make_bash_action(first, app));
  }
  return out + "  esac\n}\ncomplete -F _poise poise\n";
}

// Escapes the characters that have a meaning in _arguments of zsh.
std::string escape_for_zsh(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string make_zsh_action(const Completion& completion, const CLI::App& app) {
  switch (completion.values) {
    case Values::words: {
      std::vector<std::string> words;
      for (const std::string& word : completion.words) words.push_back(escape_for_zsh(word));
      return fmt::format("({})", fmt::join(words, " "));
    }
    case Values::commands: return fmt::format("({})", fmt::join(list_command_names(app), " "));
    case Values::tensors: return "_poise_tensors";
    case Values::files: return "_files";
    case Values::none: break;
  }
  return " ";
}

constexpr std::string_view kZshFunctions = R"sh(#compdef poise
# Completion of poise in zsh: a file _poise in a directory of $fpath, or eval "$(poise completion zsh)" in ~/.zshrc.
_poise_tensors() {
  local word model
  local -a names
  for word in ${(Q)words[2,-1]}; do [[ $word != -* && -e $word ]] && { model=$word; break }; done
  [[ -n $model ]] && names=(${(f)"$(poise completion tensors $model 2>/dev/null)"}) && compadd -a names
}
_poise() {
  local curcontext=$curcontext state line
  local -a commands
  commands=(
)sh";
constexpr std::string_view kZshCommands = R"sh(  )
  _arguments -C '(-h --help)'{-h,--help}'[print help]' '--version[print the version]' '1: :->command' '*:: :->rest'
  case $state in
    command) _describe command commands ;;
    rest)
      case $words[1] in
)sh";
constexpr std::string_view kZshEnd = R"sh(      esac ;;
  esac
}
if [[ $funcstack[1] == _poise ]]; then _poise "$@"; else compdef _poise poise; fi
)sh";

std::string make_zsh_script(const CLI::App& app) {
  std::string out(kZshFunctions);
  for (const CLI::App* command : list_commands(app)) {
    const std::string description = shorten_description(command->get_description());
    out += fmt::format("    {}\n", quote(fmt::format("{}:{}", command->get_name(), escape_for_zsh(description))));
  }
  out += kZshCommands;
  for (const CLI::App* command : list_commands(app)) {
    out += fmt::format("        {}) _arguments", command->get_name());
    for (const CLI::Option* option : list_options(*command)) {
      for (const std::string& name : list_spellings(*option)) {
        std::string spec = fmt::format("*{}[{}]", name, escape_for_zsh(shorten_description(option->get_description())));
        if (has_value(*option))
          spec += fmt::format(":{}:{}", escape_for_zsh(find_value_name(*option)),
                              make_zsh_action(find_completion(*option), app));
        out += fmt::format(" \\\n          {}", quote(spec));
      }
    }
    for (const CLI::Option* argument : list_arguments(*command)) {
      const std::string spec = fmt::format(":{}:{}", escape_for_zsh(find_value_name(*argument)),
                                           make_zsh_action(find_completion(*argument), app));
      out += fmt::format(" \\\n          {}", quote(spec));
    }
    out += " ;;\n";
  }
  out += kZshEnd;
  return out;
}

constexpr std::string_view kFishFunctions =
    R"sh(# Completion of poise in fish: poise completion fish > ~/.config/fish/completions/poise.fish
function __poise_tensors
    for word in (commandline -opc)[3..-1]
        if not string match -q -- '-*' $word; and test -e $word
            poise completion tensors $word 2>/dev/null
            return
        end
    end
end
complete -c poise -n __fish_use_subcommand -f -s h -l help -d 'Print help'
complete -c poise -n __fish_use_subcommand -f -l version -d 'Print the version'
)sh";

// Returns fish's option -a with the words that it offers; empty if it offers files or no words.
std::string make_fish_words(const Completion& completion, const CLI::App& app) {
  switch (completion.values) {
    case Values::words: return " -a " + quote_words(completion.words);
    case Values::commands: return " -a " + quote_words(list_command_names(app));
    case Values::tensors: return " -a '(__poise_tensors)'";
    case Values::files:
    case Values::none: break;
  }
  return {};
}

std::string make_fish_script(const CLI::App& app) {
  std::string out(kFishFunctions);
  for (const CLI::App* command : list_commands(app)) {
    const std::string& name = command->get_name();
    out += fmt::format("complete -c poise -n __fish_use_subcommand -f -a {} -d {}\n", name,
                       quote(shorten_description(command->get_description())));
    const std::string prefix = fmt::format("complete -c poise -n '__fish_seen_subcommand_from {}'", name);
    for (const CLI::Option* option : list_options(*command)) {
      out += prefix;
      for (const std::string& letter : option->get_snames()) out += " -s " + letter;
      for (const std::string& word : option->get_lnames()) out += " -l " + word;
      if (has_value(*option)) {
        const Completion completion = find_completion(*option);
        out += (completion.values == Values::files ? " -r -F" : " -x") + make_fish_words(completion, app);
      }
      out += fmt::format(" -d {}\n", quote(shorten_description(option->get_description())));
    }
    for (const CLI::Option* argument : list_arguments(*command)) {
      const std::string words = make_fish_words(find_completion(*argument), app);
      if (!words.empty()) out += fmt::format("{} -f{}\n", prefix, words);
    }
  }
  return out;
}

void print_tensor_names(const std::string& path) {
  const Model model = open(path);
  std::string out;
  for (const Tensor& tensor : model.tensors()) out += make_printable(tensor.name) + "\n";
  print_now(out);
}

}  // namespace

void add_completion_command(CLI::App& app) {
  struct Arguments {
    std::string shell;
    std::string model;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("completion", "Print a script that completes poise in bash, zsh or fish");
  command->add_option("SHELL", arguments->shell, "bash, zsh or fish; tensors prints the names of MODEL's tensors")
      ->required();
  command->add_option("MODEL", arguments->model, "Model file or directory, for tensors");
  command->callback([&app, arguments] {
    const std::string& shell = arguments->shell;
    if ((shell == "tensors") == arguments->model.empty())
      throw Error(ErrorKind::bad_argument, shell == "tensors" ? "completion tensors needs a model"
                                                              : fmt::format("completion {} takes no model", shell));
    if (shell == "tensors") return print_tensor_names(arguments->model);
    if (shell == "bash") return print_now(make_bash_script(app));
    if (shell == "zsh") return print_now(make_zsh_script(app));
    if (shell == "fish") return print_now(make_fish_script(app));
    throw Error(ErrorKind::bad_argument,
                fmt::format("SHELL is \"{}\", expected bash, zsh or fish", make_printable(shell)));
  });
}

}  // namespace poise::cli
