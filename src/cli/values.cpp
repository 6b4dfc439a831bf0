#include "cli/values.hpp"

#include "cli/text.hpp"

namespace poise::cli {

void refuse(std::string_view option, std::string_view text, std::string_view expected) {
  throw CLI::ValidationError(std::string(option), fmt::format("\"{}\": expected {}", make_printable(text), expected));
}

std::vector<TokenId> parse_tokens(std::string_view option, std::string_view text) {
  std::vector<TokenId> tokens;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const auto token = parse_number_text<TokenId>(text.substr(begin, end - begin));
    if (!token || *token < 0) refuse(option, text, "token ids with commas between them");
    tokens.push_back(*token);
    begin = end + 1;
  }
  return tokens;
}

std::string find_long_name(const std::string& names) { return names.substr(names.rfind(',') + 1); }

CLI::Option* add_parsed_option(CLI::App& command, const std::string& names, const std::string& type,
                               const std::string& description,
                               const std::function<void(const std::string& text)>& parse) {
  return command.add_option_function<std::string>(names, parse, description)->type_name(type);
}

CLI::Option* add_parsed_list_option(CLI::App& command, const std::string& names, const std::string& type,
                                    const std::string& description,
                                    const std::function<void(const std::string& text)>& parse) {
  const auto parse_all = [parse](const std::vector<std::string>& texts) { std::ranges::for_each(texts, parse); };
  return command.add_option_function<std::vector<std::string>>(names, parse_all, description)->type_name(type);
}

CLI::Option* add_size_option(CLI::App& command, const std::string& names, std::optional<std::uint64_t>& value,
                             const std::string& description) {
  const auto set = [name = find_long_name(names), &value](const std::string& text) {
    value = parse_size(text);
    if (value.value_or(0) == 0) refuse(name, text, kSizeExpected);
  };
  return add_parsed_option(command, names, "SIZE", description, set);
}

CLI::Validator make_nonempty_check() {
  return CLI::Validator([](const std::string& text) { return std::string(text.empty() ? "the value is empty" : ""); },
                        "");
}

CLI::Validator make_text_check() {
  const auto find_fault = [](const std::string& text) {
    if (text.empty()) return std::string("the value is empty");
    return is_utf8(text) ? std::string() : fmt::format("\"{}\": expected UTF-8", make_printable(text));
  };
  return CLI::Validator(find_fault, "");
}

}  // namespace poise::cli
