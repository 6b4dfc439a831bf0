#include "syntax/yaml.hpp"

#include <algorithm>
#include <istream>
#include <map>
#include <set>
#include <streambuf>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <poise/error.hpp>

#include "bytes/short_text.hpp"

namespace poise {
namespace {

constexpr std::size_t kMostNodes = 100'000;
constexpr std::size_t kMostDepth = 32;

std::size_t get_line(const YAML::Mark& mark) { return static_cast<std::size_t>(std::max(mark.line, 0)) + 1; }

[[noreturn]] void fail(const std::string& path, std::size_t line, std::string_view problem) {
  throw Error(ErrorKind::invalid_file, fmt::format("line {}: {}", line, problem), path);
}

std::size_t count_nodes(const YamlNode& node) {
  std::size_t count = 1;
  for (const YamlNode& item : node.items) count += count_nodes(item);
  return count;
}

std::size_t measure_depth(const YamlNode& node) {
  std::size_t depth = 0;
  for (const YamlNode& item : node.items) depth = std::max(depth, measure_depth(item));
  return depth + 1;
}

// Makes a tree from the parser's events.
class TreeMaker final : public YAML::EventHandler {
 public:
  explicit TreeMaker(const std::string& path) : path_(path) {}

  YamlNode release() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add_node(mark, anchor, {.kind = YamlNode::Kind::null});
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    add_node(mark, anchor, {.kind = YamlNode::Kind::scalar, .text = value, .is_plain = tag == "?"});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) fail(path_, get_line(mark), "an alias stands inside the node that it names");
    charge_nodes(mark, count_nodes(found->second));
    if (open_.size() + measure_depth(found->second) > kMostDepth) fail_depth(get_line(mark));
    YamlNode copy = found->second;
    copy.line = get_line(mark);
    add_to_parent(std::move(copy));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin_container(mark, anchor, YamlNode::Kind::list);
  }
  void OnSequenceEnd() override { end_container(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin_container(mark, anchor, YamlNode::Kind::map);
  }
  void OnMapEnd() override { end_container(); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor;
    bool has_key = false;
    std::set<std::string, std::less<>> keys = {};
  };

  [[noreturn]] void fail_depth(std::size_t line) const {
    fail(path_, line, fmt::format("lists and maps are more than {} deep", kMostDepth));
  }

  void charge_nodes(const YAML::Mark& mark, std::size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > kMostNodes) fail(path_, get_line(mark), fmt::format("there are more than {} values", kMostNodes));
  }

  void add_node(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode node) {
    charge_nodes(mark, 1);
    node.line = get_line(mark);
    keep_anchor(anchor, node);
    add_to_parent(std::move(node));
  }

  void begin_container(const YAML::Mark& mark, YAML::anchor_t anchor, YamlNode::Kind kind) {
    charge_nodes(mark, 1);
    if (open_.size() == kMostDepth) fail_depth(get_line(mark));
    open_.push_back({{.kind = kind, .line = get_line(mark)}, anchor});
  }

  void end_container() {
    Open done = std::move(open_.back());
    open_.pop_back();
    keep_anchor(done.anchor, done.node);
    add_to_parent(std::move(done.node));
  }

  void keep_anchor(YAML::anchor_t anchor, const YamlNode& node) {
    if (anchor == 0) return;
    nodes_ += count_nodes(node);
    anchors_[anchor] = node;
  }

  // Adds a complete node to the innermost open container, or makes it the root.
  void add_to_parent(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else if (!std::exchange(parent.has_key, !parent.has_key)) {
      if (node.kind != YamlNode::Kind::scalar) fail(path_, node.line, "a key of a map is not text");
      if (!parent.keys.insert(node.text).second)
        fail(path_, node.line, fmt::format("the key \"{}\" appears twice", shorten(node.text, 60)));
      parent.node.keys.push_back({std::move(node.text), node.line});
    } else {
      parent.node.items.push_back(std::move(node));
    }
  }

  const std::string& path_;
  YamlNode root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  std::size_t nodes_ = 0;
};

// Lets a stream read a text without a copy.
class TextBuffer final : public std::streambuf {
 public:
  explicit TextBuffer(std::string_view text) {
    char* const begin = const_cast<char*>(text.data());  // a get area is not written to
    setg(begin, begin, begin + text.size());
  }
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  const auto found = std::ranges::find(keys, key, &YamlKey::text);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

YamlNode parse_yaml(std::string_view text, const std::string& path) {
  if (text.size() > kMostYamlBytes)
    throw Error(ErrorKind::invalid_file,
                fmt::format("the text has {} bytes, and at most {} are read as YAML", text.size(), kMostYamlBytes),
                path);
  TextBuffer buffer(text);
  std::istream stream(&buffer);
  TreeMaker maker(path);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(maker)) return {};
    TreeMaker next(path);
    if (parser.HandleNextDocument(next)) fail(path, 1, "there are several documents");
  } catch (const YAML::Exception& error) {
    fail(path, get_line(error.mark), error.msg);
  }
  return maker.release();
}

}  // namespace poise
