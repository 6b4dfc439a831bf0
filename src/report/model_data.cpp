#include "report/model_data.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <poise/chat.hpp>
#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "family/check.hpp"
#include "family/families.hpp"
#include "formats/adapter.hpp"
#include "syntax/json_writer.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

// These limits keep the page small for any file.
constexpr std::size_t kMostKeys = 500;
constexpr std::size_t kLongestValue = 600;       // bytes
constexpr std::size_t kLongestTemplate = 65536;  // bytes
constexpr std::size_t kMostFindings = 500;

// Returns the entries of a map as [["key", "value as text"], ...].
Value::Array list_entries(const Attributes& map) {
  Value::Array rows;
  for (const auto& [key, value] : map) {
    if (rows.size() == kMostKeys) {
      rows.push_back(Value::Array{"...", fmt::format("{} more keys", map.size() - kMostKeys)});
      break;
    }
    const auto* const text = value.get_if<std::string>();
    const auto* const list = value.get_if<Value::Array>();
    const bool is_long = list != nullptr && list->size() > kLongestValue;  // the text of the list would be cut
    const Value shown = is_long ? Value::Array(list->begin(), list->begin() + kLongestValue) : value;
    rows.push_back(
        Value::Array{shorten(key, kLongestValue), shorten(text ? *text : format_python_json(shown), kLongestValue)});
  }
  return rows;
}

Value make_count_or_null(std::optional<std::uint64_t> count) { return count ? Value(*count) : Value(); }

std::optional<std::uint64_t> add_counts(std::optional<std::uint64_t> a, std::optional<std::uint64_t> b) {
  return a && b ? checked_add(*a, *b) : std::nullopt;
}

// Returns the stored types, those with most bytes first, and at most kMostKeys of them.
Value::Array list_types(const Model& model) {
  struct Sum {
    std::uint64_t tensors = 0;
    std::uint64_t elements = 0;
    std::uint64_t bytes = 0;
  };
  std::map<std::string, Sum> sums;
  for (const Tensor& tensor : model.tensors()) {
    Sum& sum = sums[shorten(describe_stored_type(tensor), kLongestValue)];
    ++sum.tensors;
    sum.elements = saturating_add(sum.elements, tensor.elements());
    sum.bytes = saturating_add(sum.bytes, tensor.size_bytes());
  }
  std::vector<std::pair<std::string, Sum>> ordered(sums.begin(), sums.end());
  std::ranges::stable_sort(ordered, std::ranges::greater(), [](const auto& entry) { return entry.second.bytes; });
  if (ordered.size() > kMostKeys) ordered.resize(kMostKeys);
  Value::Array rows;
  for (const auto& [type, sum] : ordered)
    rows.push_back(
        Attributes{{"type", type}, {"tensors", sum.tensors}, {"elements", sum.elements}, {"bytes", sum.bytes}});
  return rows;
}

Value describe_family(const Model& model) {
  const Family* const family = find_family(model.card.model_type);
  if (family == nullptr) return {};
  return Attributes{{"title", std::string(family->title)}, {"model_type", std::string(family->model_type)}};
}

}  // namespace

std::string make_report_title(const Model& model) {
  std::filesystem::path path = model.origin.path.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  const std::string name = path.filename() == "." || path.filename() == ".."
                               ? std::filesystem::absolute(path).lexically_normal().parent_path().filename().string()
                               : path.filename().string();
  return name.empty() ? "model" : shorten(name, kLongestValue);
}

Attributes describe_model(const Model& model) {
  std::optional<std::uint64_t> elements = 0;
  std::optional<std::uint64_t> bytes = 0;
  for (const Tensor& tensor : model.tensors()) {
    elements = add_counts(elements, tensor.elements());
    bytes = add_counts(bytes, tensor.size_bytes());
  }
  Attributes data{{"title", make_report_title(model)},
                  {"format", model.origin.format},
                  {"size", model.origin.size},
                  {"files", model.origin.files.size()},
                  {"recipe", model.origin.recipe},
                  {"tensors", model.size()},
                  {"elements", make_count_or_null(elements)},
                  {"bytes", make_count_or_null(bytes)},
                  {"family", describe_family(model)},
                  {"types", list_types(model)},
                  {"card", list_entries(card_to_attributes(model.card))},
                  {"config", list_entries(whole_config(model))},
                  {"attributes", list_entries(model.attributes)}};
  if (model.config) {
    data.set("sizes", Attributes{{"layers", model.config->num_hidden_layers},
                                 {"hidden", model.config->hidden_size},
                                 {"inner", model.config->intermediate_size},
                                 {"heads", model.config->num_attention_heads},
                                 {"kv_heads", model.config->num_key_value_heads},
                                 {"context", model.config->max_position_embeddings}});
  }
  if (const auto adapter = parse_adapter(model, nullptr))
    data.set("adapter", list_entries(summarize_adapter(*adapter)));
  if (model.vocabulary) {
    const Vocabulary& vocabulary = *model.vocabulary;
    data.set("vocabulary", Attributes{{"size", vocabulary.size()},
                                      {"bos_id", vocabulary.bos_id},
                                      {"eos_id", vocabulary.eos_id},
                                      {"pad_id", vocabulary.pad_id},
                                      {"unk_id", vocabulary.unk_id},
                                      {"merges", vocabulary.merges.size()}});
  }
  return data;
}

Attributes describe_findings(const VerifyReport& report) {
  Value::Array findings;
  for (const Finding& finding : report.faults) {
    if (findings.size() == kMostFindings) break;
    const std::string file = finding.path.empty() ? "" : std::filesystem::path(finding.path).filename().string();
    findings.push_back(Attributes{{"severity", finding.severity == Severity::error ? "error" : "warning"},
                                  {"message", shorten(finding.message, kLongestValue)},
                                  {"tensor", shorten(finding.tensor, kLongestValue)},
                                  {"file", shorten(file, kLongestValue)},
                                  {"offset", make_count_or_null(finding.offset)}});
  }
  return {{"errors", report.errors()},
          {"warnings", report.warnings()},
          {"digests", report.digests + report.file_digests + report.checksums},
          {"has_digests", report.has_digests},
          {"more", report.faults.size() - findings.size()},
          {"findings", findings}};
}

namespace {

constexpr std::string_view kSystemMessage = R"({"role": "system", "content": "You answer in one sentence."},)";
constexpr std::string_view kMessages = R"(
  {"role": "user", "content": "Which animal has the longest neck?"},
  {"role": "assistant", "content": "The giraffe."},
  {"role": "user", "content": "And the shortest?"})";

// Cuts the text into runs that come alternately from the template and from messages.
Value::Array split_by_origin(const ChatText& text) {
  Value::Array runs;
  const std::string& from = text.from_messages;
  for (std::size_t begin = 0; begin < text.text.size();) {
    const char kind = from.empty() ? '\0' : from[begin];
    std::size_t end = begin + 1;
    while (end < text.text.size() && (from.empty() || from[end] == kind)) ++end;
    runs.push_back(Attributes{{"text", text.text.substr(begin, end - begin)}, {"message", kind == 1}});
    begin = end;
  }
  return runs;
}

}  // namespace

Value describe_chat(const Model& model) {
  if (!model.vocabulary || !has_chat_template(*model.vocabulary)) return {};
  const Value& own = model.vocabulary->chat_template;
  const auto* const text = own.get_if<std::string>();
  Attributes data{{"template", shorten(text ? *text : to_json(own, 2), kLongestTemplate)}};
  try {
    const ChatTemplate chat(*model.vocabulary);
    // Some templates refuse a system message.
    for (const std::string_view system : {kSystemMessage, std::string_view()}) {
      const std::string messages = fmt::format("[{}{}]", system, kMessages);
      data.set("messages", parse_json(messages, "example"));
      try {
        data.set("text", split_by_origin(chat.render(parse_conversation(messages, "example"))));
        data.erase("problem");
        break;
      } catch (const Error& error) {
        data.set("problem", shorten(error.message(), kLongestValue));
      }
    }
  } catch (const Error& error) {
    data.set("problem", shorten(error.message(), kLongestValue));
  }
  return data;
}

}  // namespace poise
