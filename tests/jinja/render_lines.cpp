// Renders templates for tests/jinja/against_jinja2.py. Each line of standard input is a JSON object {"template",
// "variables"}; each line of standard output is {"text", "marks"} or {"error"}.
#include <cstdio>
#include <ctime>
#include <iostream>
#include <string>

#include <poise/error.hpp>
#include <poise/value.hpp>

#include "jinja/template.hpp"

namespace {

// Returns 2024-07-26 13:04:05, a Friday.
std::tm fixed_time() {
  std::tm now = {};
  now.tm_year = 124;
  now.tm_mon = 6;
  now.tm_mday = 26;
  now.tm_hour = 13;
  now.tm_min = 4;
  now.tm_sec = 5;
  now.tm_isdst = -1;
  std::mktime(&now);
  return now;
}

poise::Attributes render(const std::string& line) {
  const poise::Value request = poise::parse_json(line, "standard input");
  const poise::Attributes& fields = *request.get_if<poise::Attributes>();
  std::vector<poise::jinja::Variable> variables;
  for (const auto& [name, value] : *fields.get_if<poise::Attributes>("variables"))
    variables.push_back({name, value, name != "bos_token" && name != "eos_token"});
  try {
    const poise::jinja::Template source(*fields.get_if<std::string>("template"), "template");
    const poise::jinja::Text text = source.render(variables, {.now = fixed_time});
    std::string marks;
    for (std::size_t i = 0; i < text.size(); ++i) marks += poise::jinja::is_input(text, i) ? '1' : '0';
    return {{"text", text.bytes}, {"marks", marks}};
  } catch (const poise::Error& error) {
    return {{"error", std::string(error.what())}};
  }
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) std::cout << poise::to_json(render(line)) << '\n';
  return std::cout.good() ? 0 : 1;
}
