// Two files that define different types under one name violate the one definition rule: the linker keeps one type's
// functions for both, without a word. Types in unnamed namespaces and in functions are the file's own, so they may
// repeat a name.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/directories.hpp"

namespace {

namespace fs = std::filesystem;

bool is_word(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

// Returns words, "::", and other characters one by one; without comments, literals and lines of the preprocessor.
std::vector<std::string> tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  bool starts_line = true;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const auto skip_to = [&](std::string_view end, std::size_t from) {
      const std::size_t found = text.find(end, i + from);
      i = found == std::string_view::npos ? text.size() : found + end.size();
    };
    if (rest.front() == '\n') {
      starts_line = true;
      ++i;
    } else if (rest.front() == ' ') {
      ++i;
    } else if (rest.front() == '#' && starts_line) {
      while (i < text.size() && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
    } else if (rest.starts_with("//")) {
      skip_to("\n", 0);
      starts_line = true;
    } else if (rest.starts_with("/*")) {
      skip_to("*/", 2);
    } else if (rest.starts_with("R\"")) {
      const std::size_t open = text.find('(', i);
      skip_to(std::string(")").append(text.substr(i + 2, open - i - 2)) + "\"", 2);
      tokens.emplace_back("literal");
    } else if (rest.front() == '"' || (rest.front() == '\'' && (i == 0 || !is_word(text[i - 1])))) {
      const char quote = rest.front();
      for (++i; i < text.size() && text[i] != quote; ++i) {
        if (text[i] == '\\') ++i;
      }
      ++i;
      tokens.emplace_back("literal");
    } else {
      starts_line = false;
      std::size_t size = 0;
      while (size < rest.size() && (is_word(rest[size]) || (size > 0 && rest[size] == '\'' && is_word(rest.front()))))
        ++size;
      if (size == 0) size = rest.starts_with("::") ? 2 : 1;
      tokens.emplace_back(rest.substr(0, size));
      i += size;
    }
  }
  return tokens;
}

// Finds the types that a file defines for all files of a program, by their qualified names.
class TypeFinder {
 public:
  explicit TypeFinder(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {}

  std::vector<std::string> find() {
    for (at_ = 0; at_ < tokens_.size();) {
      const std::string& token = tokens_[at_];
      if (token == "template") {
        ++at_;
        if (is("<")) skip_angles();
      } else if (token == "namespace") {
        open_namespace();
      } else if (token == "class" || token == "struct" || token == "union" || token == "enum") {
        open_type(token == "enum");
      } else {
        if (token == "{") scopes_.push_back({});  // a function, an initializer, extern "C"
        if (token == "}" && !scopes_.empty()) scopes_.pop_back();
        ++at_;
      }
    }
    return std::move(types_);
  }

 private:
  struct Scope {
    std::string name = {};
    bool is_shared = false;  // its types are those of all files
  };

  bool is(std::string_view token) const { return at_ < tokens_.size() && tokens_[at_] == token; }

  // Reads from "<" to behind its ">". "->" and comparisons do not occur in such places.
  std::string skip_angles() {
    std::string text;
    int depth = 0;
    do {
      depth += is("<") ? 1 : is(">") ? -1 : 0;
      text += tokens_[at_++];
    } while (depth > 0 && at_ < tokens_.size());
    return text;
  }

  // Reads "a", "a::b", "a<int>::b"; empty if there is none.
  std::string name() {
    std::string name;
    while (at_ < tokens_.size() && (is_word(tokens_[at_].front()) || is("::") || (is("<") && !name.empty()))) {
      if (!name.empty() && is_word(tokens_[at_].front()) && is_word(name.back())) break;
      name += is("<") ? skip_angles() : tokens_[at_++];
    }
    return name;
  }

  bool is_shared() const { return scopes_.empty() || scopes_.back().is_shared; }

  void open_namespace() {
    ++at_;
    const std::string opened = name();
    if (is("{")) {
      scopes_.push_back({opened, is_shared() && !opened.empty()});
      ++at_;
    }
  }

  void open_type(bool is_enum) {
    ++at_;
    if (is_enum && (is("class") || is("struct"))) ++at_;
    if (is("alignas")) {
      while (!is(")")) ++at_;
      ++at_;
    }
    const std::string opened = name();
    if (is("final")) ++at_;
    if (is(":")) {
      while (at_ < tokens_.size() && !is("{") && !is(";")) ++at_;
    }
    if (!is("{")) return;  // a declaration
    std::string qualified;
    for (const Scope& scope : scopes_) qualified += scope.name + (scope.name.empty() ? "" : "::");
    if (is_shared() && !opened.empty()) types_.push_back(qualified + opened);
    scopes_.push_back({opened, is_shared() && !opened.empty() && !is_enum});
    ++at_;
  }

  std::vector<std::string> tokens_;
  std::size_t at_ = 0;
  std::vector<Scope> scopes_;
  std::vector<std::string> types_;
};

std::vector<std::string> types_in(std::string_view text) { return TypeFinder(tokens_of(text)).find(); }

TEST(TypeNames, FinderKnowsScopes) {
  using ::testing::ElementsAre;
  EXPECT_THAT(types_in("namespace a::b { struct X { enum class E { one }; }; namespace { struct X {}; } class X; }"),
              ElementsAre("a::b::X", "a::b::X::E"));
  EXPECT_THAT(types_in("template <class T> class V final : B<T> {}; template <> struct V<int> {}; struct s t{};"),
              ElementsAre("V", "V<int>"));
  EXPECT_THAT(types_in("void f() { struct Local {}; } /* struct A {}; */ enum E : int { e }; struct V::W {};"),
              ElementsAre("E", "V::W"));
  EXPECT_THAT(types_in("const char c = '{'; auto s = \"struct Y {\"; auto r = R\"x(struct Z {)x\"; int n = 1'000;\n"
                       "#define M struct P {\nunion U { int i; };"),
              ElementsAre("U"));
}

TEST(TypeNames, NoTypeIsDefinedTwice) {
  std::map<std::string, std::vector<std::string>> files_of;
  const fs::path root = poise::source_directory();
  std::size_t types = 0;
  for (const char* folder : {"src", "include", "python/src"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      if (extension != ".hpp" && extension != ".cpp" && extension != ".h") continue;
      for (const std::string& type : types_in(poise::support::contents(entry.path()))) {
        files_of[type].push_back(fs::relative(entry.path(), root).string());
        ++types;
      }
    }
  }
  EXPECT_GT(types, 500U);
  for (const auto& [type, files] : files_of)
    EXPECT_EQ(files.size(), 1U) << type << " is defined in " << ::testing::PrintToString(files);
}

}  // namespace
