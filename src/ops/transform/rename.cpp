// This revision renames tensors, by patterns, regular expressions and prefixes.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/number_text.hpp"
#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "ops/transform/revision.hpp"
#include "patterns/glob.hpp"
#include "patterns/regex.hpp"

namespace poise {
namespace {

constexpr std::string_view kRegex = "re:";
constexpr std::string_view kRename = "rename";  // names of options
constexpr std::string_view kStripPrefix = "strip_prefix";
constexpr std::size_t kMostNames = 20;  // at most this many names in a message

// Holds a piece of a new name: text, followed by a group of the match.
struct Piece {
  std::string text;
  std::optional<std::size_t> group = std::nullopt;  // 0: the whole match
};

// Splits a new name at its stars: the k-th star is replaced by the match of the k-th star of the pattern.
std::vector<Piece> split_at_stars(std::string_view name) {
  std::vector<Piece> pieces(1);
  for (const char c : name) {
    if (c != '*') {
      pieces.back().text += c;
      continue;
    }
    pieces.back().group = pieces.size();
    pieces.emplace_back();
  }
  return pieces;
}

// Removes the number of a group from the beginning of the text, "1" or "{12}", and returns it; std::nullopt if the text
// does not begin with one.
std::optional<std::size_t> parse_group(std::string_view& text) {
  if (text.empty()) return std::nullopt;
  if (is_ascii_digit(text.front())) {
    const auto digit = static_cast<std::size_t>(text.front() - '0');
    text.remove_prefix(1);
    return digit;
  }
  const std::size_t end = text.front() == '{' ? text.find('}') : std::string_view::npos;
  const auto number =
      end == std::string_view::npos ? std::nullopt : parse_number_text<std::size_t>(text.substr(1, end - 1));
  if (number) text.remove_prefix(end + 1);
  return number;
}

// Splits a new name at the groups "$1", "${12}" and "\1"; "$$" and "\\" are a "$" and a "\".
std::vector<Piece> split_at_groups(std::string_view name, std::string_view option) {
  std::vector<Piece> pieces(1);
  while (!name.empty()) {
    const char c = name.front();
    name.remove_prefix(1);
    if (c != '$' && c != '\\') {
      pieces.back().text += c;
    } else if (name.starts_with(c)) {
      pieces.back().text += c;
      name.remove_prefix(1);
    } else if (const auto group = parse_group(name)) {
      pieces.back().group = *group;
      pieces.emplace_back();
    } else {
      refuse_option(kRename,
                    fmt::format("\"{}\": expected the number of a group after {}, as in {}1; write {}{} for the "
                                "character",
                                option, c, c, c, c));
    }
  }
  return pieces;
}

// Holds one item of the option rename: a pattern, and the name that it gives.
class Renaming {
 public:
  // Compiles the pattern. `bytes` is the size of all names that are passed to apply().
  Renaming(const ConvertOptions::Rename& given, std::size_t bytes)
      : shown_(fmt::format("{}={}", given.pattern, given.name)), pattern_(given.pattern) {
    if (pattern_.empty()) refuse_option(kRename, fmt::format("\"{}\" has no pattern", shown_));
    std::size_t groups = 0;
    if (pattern_.starts_with(kRegex)) {
      regex_ = make_regex(std::string_view(pattern_).substr(kRegex.size()));
      groups = regex_->count_groups();
      pieces_ = split_at_groups(given.name, shown_);
      matcher_.emplace(*regex_, groups);
      matcher_->start_time_limit(bytes);
    } else {
      groups = count_glob_stars(pattern_);
      pieces_ = split_at_stars(given.name);
    }
    for (const Piece& piece : pieces_) {
      if (piece.group && *piece.group > groups)
        refuse_option(kRename, fmt::format("\"{}\": the new name uses {} {}, but the pattern has only {}", shown_,
                                           regex_ ? "group" : "star", *piece.group, groups));
    }
  }

  // Returns the new name; std::nullopt if the pattern does not match.
  std::optional<std::string> apply(std::string_view name) {
    auto renamed = regex_ ? replace_matches(name) : replace_name(name);
    is_used_ = is_used_ || renamed.has_value();
    return renamed;
  }

  bool is_used() const { return is_used_; }
  const std::string& pattern() const { return pattern_; }

 private:
  static std::unique_ptr<Regex> make_regex(std::string_view expression) {
    try {
      return std::make_unique<Regex>(expression, std::string(kRename));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_file) throw;
      throw Error(ErrorKind::bad_argument, error.message());
    }
  }

  std::optional<std::string> replace_name(std::string_view name) const {
    const auto stars = find_glob_stars(pattern_, name);
    if (!stars) return std::nullopt;
    std::string renamed;
    for (const Piece& piece : pieces_) {
      renamed += piece.text;
      if (piece.group) renamed += (*stars)[*piece.group - 1];
    }
    return renamed;
  }

  // Replaces every match in the name.
  std::optional<std::string> replace_matches(std::string_view name) {
    if (!is_utf8(name)) return std::nullopt;
    std::string renamed;
    std::size_t done = 0;
    std::size_t begin = 0;
    std::size_t end = 0;
    bool matches = false;
    for (matcher_->begin_text(name); matcher_->find_next(begin, end); done = end) {
      matches = true;
      renamed += name.substr(done, begin - done);
      for (const Piece& piece : pieces_) {
        renamed += piece.text;
        if (!piece.group) continue;
        renamed += *piece.group == 0 ? name.substr(begin, end - begin) : matcher_->find_group(*piece.group);
      }
    }
    if (!matches) return std::nullopt;
    return renamed += name.substr(done);
  }

  std::string shown_;
  std::string pattern_;
  std::vector<Piece> pieces_;
  std::unique_ptr<const Regex> regex_;  // null if the pattern is a shell pattern
  std::optional<RegexMatcher> matcher_;
  bool is_used_ = false;
};

// Holds the name of a tensor, and the last option that changed it; empty: none, or add_prefix.
struct NewName {
  std::string text;
  std::string_view option = {};
};

// Computes the new names of tensors, one after the other.
class NewNames {
 public:
  NewNames(const Model& model, const ConvertOptions& options) : strip_(options.strip_prefix), add_(options.add_prefix) {
    std::size_t bytes = 0;
    for (const Tensor& tensor : model.tensors()) bytes += tensor.name.size() + tensor.name_in_file().size();
    for (const ConvertOptions::Rename& rename : options.rename) renamings_.emplace_back(rename, bytes);
  }

  NewName make_name(const Tensor& tensor) {
    NewName name{tensor.name};
    if (!strip_.empty() && name.text.starts_with(strip_)) {
      name = {name.text.substr(strip_.size()), kStripPrefix};
      has_stripped_ = true;
    }
    // The first pattern that matches counts.
    for (Renaming& renaming : renamings_) {
      auto renamed = renaming.apply(name.text);
      if (!renamed && tensor.file_name) renamed = renaming.apply(*tensor.file_name);
      if (!renamed) continue;
      name = {*std::move(renamed), kRename};
      break;
    }
    name.text.insert(0, add_);
    if (name.text.empty() && !name.option.empty())
      refuse_option(name.option, fmt::format("the new name of tensor {} is empty", tensor.name));
    return name;
  }

  void require_all_used() const {
    if (!strip_.empty() && !has_stripped_)
      refuse_option(kStripPrefix, fmt::format("no tensor's name begins with \"{}\"", strip_));
    std::vector<std::string> unused;
    for (const Renaming& renaming : renamings_) {
      if (!renaming.is_used()) unused.push_back(fmt::format("\"{}\"", renaming.pattern()));
    }
    if (unused.empty()) return;
    refuse_option(kRename, fmt::format("{} no tensor: {} (the first pattern that matches a name counts)",
                                       unused.size() == 1 ? "a pattern renames" : "patterns rename",
                                       list_names(unused, kMostNames)));
  }

 private:
  const std::string& strip_;
  const std::string& add_;
  std::vector<Renaming> renamings_;
  bool has_stripped_ = false;
};

// Lists the tensors that would get the same name.
struct NameSources {
  std::vector<std::string> tensors;
  bool is_renamed = false;  // true if a pattern has renamed one of them
};

// Throws bad_argument if several tensors would get the same name.
void require_distinct(const std::map<std::string, NameSources>& sources) {
  std::vector<std::string> collisions;
  std::string_view option = kStripPrefix;
  for (const auto& [name, from] : sources) {
    if (from.tensors.size() == 1) continue;
    collisions.push_back(fmt::format("{} (from {})", name, list_names(from.tensors)));
    if (from.is_renamed) option = kRename;
  }
  if (collisions.empty()) return;
  refuse_option(option,
                fmt::format("several tensors would have {}: {}",
                            collisions.size() == 1 ? "one name" : fmt::format("each of {} names", collisions.size()),
                            list_names(collisions, kMostNames)));
}

}  // namespace

void rename_tensors(Revision& revision, const ConvertOptions& options) {
  if (options.rename.empty() && options.strip_prefix.empty() && options.add_prefix.empty()) return;
  NewNames names(revision.model, options);
  std::map<std::string, NameSources> sources;
  std::vector<std::string> changes;
  std::vector<std::string> renamed;
  for (const Tensor& tensor : revision.model.tensors()) {
    NewName name = names.make_name(tensor);
    NameSources& from = sources[name.text];
    from.tensors.push_back(tensor.name);
    from.is_renamed = from.is_renamed || name.option == kRename;
    if (name.text != tensor.name) changes.push_back(fmt::format("{} becomes {}", tensor.name, name.text));
    renamed.push_back(std::move(name.text));
  }
  names.require_all_used();
  require_distinct(sources);
  if (changes.empty()) return;
  std::size_t next = 0;
  revision.change_tensors([&](Tensor& tensor) {
    tensor.name = std::move(renamed[next++]);
    return true;
  });
  revision.changes.push_back(fmt::format(
      "{} another name: {}", changes.size() == 1 ? "1 tensor has" : fmt::format("{} tensors have", changes.size()),
      list_names(changes, 1)));
}

}  // namespace poise
