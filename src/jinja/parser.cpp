#include "jinja/parser.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "jinja/scoping.hpp"

namespace poise::jinja {
namespace {

class StatementParser {
 public:
  explicit StatementParser(std::string_view source) : in_(tokenize(source)), expressions_(in_) {}

  Body parse_template() {
    Body body = parse_statements({});
    if (!in_.is(TokenKind::end)) in_.refuse("unexpected " + in_.describe());
    return body;
  }

 private:
  using Ends = std::initializer_list<std::string_view>;
  using StatementPtr = std::unique_ptr<const Statement>;

  // Parses statements and data up to a statement whose name is in `ends`; leaves the stream there.
  Body parse_statements(Ends ends) {
    if (++depth_ > kMaxSyntaxDepth) in_.refuse("statements are nested too deeply");
    Body body;
    while (!in_.is(TokenKind::end)) {
      if (in_.is(TokenKind::block_begin)) {
        in_.next();
        if (in_.is_any_name(ends)) break;
        body.push_back(parse_statement());
        in_.expect(TokenKind::block_end, "'%}'");
      } else {
        body.push_back(parse_output());
      }
    }
    if (ends.size() > 0 && in_.is(TokenKind::end))
      in_.refuse(fmt::format("the template ends before '{}'", *(ends.end() - 1)));
    --depth_;
    return body;
  }

  // Parses the end of a statement's opening tag, and the body after it.
  Body parse_body(Ends ends) {
    in_.skip_symbol(":");
    in_.expect(TokenKind::block_end, "'%}'");
    return parse_statements(ends);
  }
  Body parse_whole_body(std::string_view end) {
    Body result = parse_body({end});
    in_.next();
    return result;
  }

  Statement make_node(StatementKind kind) const {
    Statement made;
    made.kind = kind;
    made.line = in_.current().line;
    return made;
  }
  static StatementPtr finish_node(Statement made) { return std::make_unique<const Statement>(std::move(made)); }

  StatementPtr parse_output() {
    Statement made = make_node(StatementKind::output);
    while (in_.is(TokenKind::data) || in_.is(TokenKind::variable_begin)) {
      if (in_.is(TokenKind::data)) {
        Expression data;
        data.line = in_.current().line;
        data.value = Text{in_.next().text};
        made.values.push_back(std::make_unique<const Expression>(std::move(data)));
      } else {
        in_.next();
        made.values.push_back(expressions_.parse_tuple());
        in_.expect(TokenKind::variable_end, "'}}'");
      }
    }
    if (made.values.empty()) in_.refuse("unexpected " + in_.describe());
    return finish_node(std::move(made));
  }

  StatementPtr parse_statement() {
    static const std::map<std::string_view, StatementPtr (StatementParser::*)()> kStatements = {
        {"for", &StatementParser::parse_loop},           {"if", &StatementParser::parse_branches},
        {"set", &StatementParser::parse_assign},         {"with", &StatementParser::parse_with},
        {"macro", &StatementParser::parse_macro},        {"call", &StatementParser::parse_call_block},
        {"print", &StatementParser::parse_print},        {"filter", &StatementParser::parse_filter_block},
        {"block", &StatementParser::parse_block},        {"generation", &StatementParser::parse_generation},
        {"break", &StatementParser::parse_loop_control}, {"continue", &StatementParser::parse_loop_control},
    };
    const std::string name = in_.is(TokenKind::name) ? in_.current().text : std::string();
    const auto found = kStatements.find(name);
    if (found != kStatements.end()) return (this->*found->second)();
    if (name.empty()) in_.refuse("expected the name of a statement, found " + in_.describe());
    static constexpr std::array<std::string_view, 5> kOfFiles = {"extends", "include", "import", "from", "autoescape"};
    if (std::ranges::find(kOfFiles, name) != kOfFiles.end())
      in_.refuse(fmt::format("'{}' is not supported: a chat template is one file", name));
    in_.refuse(fmt::format("there is no statement '{}'", name));
  }

  // Throws if a loop assigns to its own variable `loop`.
  void check_not_loop(const Expression& target) const {
    if (in_loops_ == 0) return;
    if (target.kind == ExpressionKind::name && target.name == "loop")
      throw SyntaxFailure("'loop' cannot be assigned to in a loop", target.line);
    for (const ExpressionPtr& part : target.operands) check_not_loop(*part);
  }

  StatementPtr parse_loop() {
    Statement made = make_node(StatementKind::loop);
    in_.next();
    ++in_loops_;
    made.target = expressions_.parse_target(false, "in");
    check_not_loop(*made.target);
    in_.expect_name("in");
    made.value = expressions_.parse_tuple(ExpressionParser::Items::without_condition, "recursive");
    if (in_.skip_name("if")) made.test = expressions_.parse_expression();
    made.is_recursive = in_.skip_name("recursive");
    ++loops_;
    made.body = parse_body({"else", "endfor"});
    --loops_;
    if (in_.next().text == "else") made.otherwise = parse_whole_body("endfor");
    --in_loops_;
    return finish_node(std::move(made));
  }

  StatementPtr parse_loop_control() {
    if (loops_ == 0) in_.refuse(fmt::format("'{}' is outside of a loop", in_.current().text));
    Statement made = make_node(in_.is_name("break") ? StatementKind::end_loop : StatementKind::next_item);
    in_.next();
    return finish_node(std::move(made));
  }

  StatementPtr parse_branches() {
    Statement made = make_node(StatementKind::branches);
    in_.next();
    while (true) {
      ExpressionPtr test = expressions_.parse_tuple(ExpressionParser::Items::without_condition);
      made.branches.push_back({std::move(test), parse_body({"elif", "else", "endif"})});
      const std::string end = in_.next().text;
      if (end == "elif") continue;
      if (end == "else") made.branches.push_back({nullptr, parse_whole_body("endif")});
      return finish_node(std::move(made));
    }
  }

  StatementPtr parse_assign() {
    Statement made = make_node(StatementKind::assign);
    in_.next();
    made.target = expressions_.parse_target(true);
    check_not_loop(*made.target);
    if (in_.skip_symbol("=")) {
      made.value = expressions_.parse_tuple();
      return finish_node(std::move(made));
    }
    made.kind = StatementKind::assign_block;
    made.value = expressions_.parse_block_filters(false);
    made.body = parse_whole_body("endset");
    return finish_node(std::move(made));
  }

  StatementPtr parse_with() {
    Statement made = make_node(StatementKind::with);
    in_.next();
    while (!in_.is(TokenKind::block_end)) {
      if (!made.targets.empty()) in_.expect_symbol(",");
      Expression target;
      target.kind = ExpressionKind::name;
      target.line = in_.current().line;
      target.name = in_.expect(TokenKind::name, "a name").text;
      made.targets.push_back(std::make_unique<const Expression>(std::move(target)));
      in_.expect_symbol("=");
      made.values.push_back(expressions_.parse_expression());
    }
    made.body = parse_whole_body("endwith");
    return finish_node(std::move(made));
  }

  void parse_signature(Statement& made) {
    std::set<std::string> names;
    in_.expect_symbol("(");
    while (!in_.is_symbol(")")) {
      if (!made.parameters.empty()) in_.expect_symbol(",");
      if (!names.insert(in_.current().text).second)
        in_.refuse(fmt::format("two parameters are called '{}'", in_.current().text));
      Parameter parameter = {in_.expect(TokenKind::name, "the name of a parameter").text, nullptr};
      if (in_.skip_symbol("=")) {
        parameter.otherwise = expressions_.parse_expression();
      } else if (!made.parameters.empty() && made.parameters.back().otherwise) {
        in_.refuse("a parameter without a default follows one that has a default");
      }
      made.parameters.push_back(std::move(parameter));
    }
    in_.expect_symbol(")");
  }

  // Parses the body of a macro or call block, and finds the special parameters that it uses. A `break` in the body
  // cannot end a loop around it.
  void parse_macro_body(Statement& made, std::string_view end) {
    const unsigned loops = std::exchange(loops_, 0);
    made.body = parse_whole_body(end);
    loops_ = loops;
    const auto uses_parameter = [&](std::string_view name) {
      return std::ranges::find(made.parameters, name, &Parameter::name) == made.parameters.end() &&
             uses_name(made, name);
    };
    made.takes_caller = uses_parameter("caller");
    made.takes_keywords = uses_parameter("kwargs");
    made.takes_more = uses_parameter("varargs");
  }

  StatementPtr parse_macro() {
    Statement made = make_node(StatementKind::macro);
    in_.next();
    made.name = in_.expect(TokenKind::name, "the name of a macro").text;
    parse_signature(made);
    parse_macro_body(made, "endmacro");
    return finish_node(std::move(made));
  }

  StatementPtr parse_call_block() {
    Statement made = make_node(StatementKind::call_block);
    in_.next();
    if (in_.is_symbol("(")) parse_signature(made);
    made.value = expressions_.parse_expression();
    if (made.value->kind != ExpressionKind::call) in_.refuse("expected a call");
    parse_macro_body(made, "endcall");
    return finish_node(std::move(made));
  }

  StatementPtr parse_filter_block() {
    Statement made = make_node(StatementKind::filter_block);
    in_.next();
    made.value = expressions_.parse_block_filters(true);
    made.body = parse_whole_body("endfilter");
    return finish_node(std::move(made));
  }

  StatementPtr parse_print() {
    Statement made = make_node(StatementKind::output);
    in_.next();
    while (!in_.is(TokenKind::block_end)) {
      if (!made.values.empty()) in_.expect_symbol(",");
      made.values.push_back(expressions_.parse_expression());
    }
    return finish_node(std::move(made));
  }

  StatementPtr parse_block() {
    Statement made = make_node(StatementKind::scope);
    in_.next();
    made.name = in_.expect(TokenKind::name, "the name of a block").text;
    if (!blocks_.insert(made.name).second) in_.refuse(fmt::format("two blocks are called '{}'", made.name));
    in_.skip_name("scoped");
    made.body = parse_whole_body("endblock");
    in_.skip_name(made.name);
    return finish_node(std::move(made));
  }

  StatementPtr parse_generation() {
    Statement made = make_node(StatementKind::scope);
    in_.next();
    made.body = parse_whole_body("endgeneration");
    return finish_node(std::move(made));
  }

  TokenStream in_;
  ExpressionParser expressions_;
  unsigned depth_ = 0;
  unsigned loops_ = 0;     // loops that a break here may end
  unsigned in_loops_ = 0;  // loops around this place, even those around an enclosing macro
  std::set<std::string> blocks_;
};

}  // namespace

Body parse(std::string_view source) { return StatementParser(source).parse_template(); }

}  // namespace poise::jinja
