#include "formats/gguf/metadata.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "bytes/checked.hpp"
#include "bytes/number_text.hpp"
#include "bytes/utf8.hpp"
#include "formats/front_matter.hpp"
#include "syntax/element_value.hpp"
#include "tokenizer/tokens/sampling_keys.hpp"
#include "tokenizer/tokens/token_types.hpp"

namespace poise::gguf {
namespace {

constexpr std::string_view kSite = "https://huggingface.co/";

struct Count {
  std::uint64_t all = 0;
  std::uint64_t shared = 0;
  std::uint64_t of_one_expert = 0;
  std::uint64_t experts = 0;  // experts in a layer
};

Count count_parameters(const std::vector<CountedTensor>& tensors) {
  Count count;
  std::uint64_t expert_sum = 0;
  std::uint64_t stacks = 0;
  for (const CountedTensor& tensor : tensors) {
    const std::uint64_t elements = element_count(tensor.shape).value_or(0);
    const std::size_t from_end = tensor.name.find(".bias") != std::string_view::npos ? 2 : 3;
    if (tensor.name.find("_exps.") != std::string_view::npos && tensor.shape.size() >= 3) {
      const std::uint64_t experts = tensor.shape[tensor.shape.size() - from_end];
      count.of_one_expert = saturating_add(count.of_one_expert, experts == 0 ? 0 : elements / experts);
      expert_sum = saturating_add(expert_sum, experts);
      ++stacks;
    } else {
      count.shared = saturating_add(count.shared, elements);
    }
    count.all = saturating_add(count.all, elements);
  }
  count.experts = stacks == 0 ? 0 : expert_sum / stacks;
  return count;
}

// Formats a number of parameters with at least two digits: "8.0B", "124M".
std::string format_parameter_count(std::uint64_t parameters) {
  struct Unit {
    double above;
    std::string_view suffix;
  };
  constexpr std::array kUnits = std::to_array<Unit>({{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {0, "K"}});
  const auto number = static_cast<double>(parameters);
  const auto* unit = std::ranges::find_if(kUnits, [&](const Unit& row) { return number > row.above; });
  const double size = number * (unit->above == 0 ? 1e-3 : 1 / unit->above);
  const double whole = std::nearbyint(size);
  const int digits = whole < 1 ? 0 : whole < 10 ? 1 : 2;
  return fmt::format("{:.{}f}{}", size, 2 - digits, unit->suffix);
}

std::string make_size_label(const Count& count) {
  if (count.all == 0) return {};
  return count.experts == 0
             ? format_parameter_count(count.all)
             : fmt::format("{}x{}", count.experts, format_parameter_count(count.shared + count.of_one_expert));
}

// Returns the name of a model's directory, or of its file without the extension; empty for names such as "model", which
// do not name the model.
std::string find_name_in_path(const std::filesystem::path& path) {
  if (path.empty()) return {};
  std::error_code ignored;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, ignored);
  const std::filesystem::path& named = real.empty() ? path : real;
  const std::filesystem::path last = named.has_filename() ? named.filename() : named.parent_path().filename();
  const std::string name = std::filesystem::is_directory(path, ignored) ? last.string() : last.stem().string();
  const bool is_usual = name == "model" || name == "pytorch_model";
  return is_usual || !is_utf8(name) ? std::string() : name;
}

std::string find_name_attribute(const Model& model) {
  const auto* text = model.attributes.get_if<std::string>("general.name");
  return text == nullptr ? std::string() : *text;
}

class GeneralWriter {
 public:
  GeneralWriter(const Model& model, const std::vector<CountedTensor>& tensors, KeyValues& out)
      : model_(model),
        card_(model.card),
        front_matter_(read_model_card(model)),
        count_(count_parameters(tensors)),
        out_(out) {}

  WrittenGeneral write() {
    write_text("type", "model");
    write_sampling();
    write_identity();
    for (const auto& [key, name] : {std::pair("source.url", "url"), std::pair("source.doi", "doi"),
                                    std::pair("source.uuid", "uuid"), std::pair("source.repo_url", "repo_url")})
      write_text(key, find_first_value({name, std::string("model_") + name}));
    write_sources("base_model", find_base_models());
    write_sources("dataset", find_values({"datasets", "dataset", "dataset_sources"}));
    write_list("tags", {"tags", "pipeline_tag"});
    write_list("languages", {"languages", "language"});
    // A reader keeps the keys above as attributes, except the first base model's address. A writer writes attributes
    // before the card's fields. In this order only that address moves when the file is read and written again.
    write_text("author", card_.author);
    write_license();
    write_text("uuid", card_.uuid);
    return {std::move(name_), std::move(losses_)};
  }

 private:
  static std::string make_key(std::string_view name) { return fmt::format("general.{}", name); }

  void write_text(std::string_view name, std::string_view text) { out_.add_text_if_new(make_key(name), text); }

  // Returns the values of the first of these keys that the model card's front matter has.
  std::vector<std::string> find_values(std::initializer_list<std::string> keys) const {
    for (const std::string& key : keys) {
      if (std::vector<std::string> values = front_matter_.find_values(key); !values.empty()) return values;
    }
    return {};
  }
  std::string find_first_value(std::initializer_list<std::string> keys) const {
    const std::vector<std::string> values = find_values(keys);
    return values.empty() ? std::string() : values.front();
  }

  void write_sampling() {
    const Attributes generation = read_generation_config(model_);
    for (const SamplingKey& row : kSamplingKeys) {
      const std::string key = fmt::format("{}{}", kSamplingPrefix, row.gguf);
      const Value* value = generation.find(row.gguf);
      if (value == nullptr) value = generation.find(row.config);
      if (value == nullptr || out_.has(key)) continue;
      if (const auto* text = value->get_if<std::string>(); text != nullptr && row.kind == SamplingKey::Kind::text)
        out_.add_text(key, *text);
      const auto found = convert_to_double(value);
      if (!found || row.kind == SamplingKey::Kind::text) continue;
      if (row.kind == SamplingKey::Kind::number) {
        out_.add_f32(key, *found);
      } else if (*found == std::trunc(*found) && std::abs(*found) <= std::numeric_limits<std::int32_t>::max()) {
        out_.add_i32(key, static_cast<std::int32_t>(*found));
      }
    }
  }

  // Writes names, version, size and description. The description comes from the front matter. The others come from the
  // front matter, or else from the name in config.json, or else from the name of the directory or file. If none of
  // these states the size, it follows from the number of parameters.
  void write_identity() {
    std::vector<NameParts> names;
    const auto* text = model_.config_json.get_if<std::string>("_name_or_path");
    if (text != nullptr && std::ranges::count(*text, '/') <= 1) names.push_back(parse_name(*text, count_.all));
    names.push_back(parse_name(find_name_in_path(model_.origin.path), count_.all));
    const auto find_first = [&](std::initializer_list<std::string> keys, std::string NameParts::*part) {
      std::string found = find_first_value(keys);
      for (const NameParts& name : names) {
        if (found.empty()) found = name.*part;
      }
      return found;
    };
    name_ = find_first_value({"name", "model_name"});
    for (const NameParts& parts : names) {
      if (name_.empty()) name_ = make_title(parts.name);
    }
    if (out_.has(make_key("name"))) {
      name_ = find_name_attribute(model_);
    } else if (const std::string_view missing = find_missing_token(name_); !missing.empty()) {
      losses_.push_back(
          fmt::format("general.name is left out: llama.cpp cannot load a model of the name \"{}\" whose vocabulary "
                      "lacks the token {}",
                      name_, missing));
      name_.clear();
    }
    write_text("name", name_);
    write_text("version", find_first({"version", "model_version"}, &NameParts::version));
    write_text("organization", find_first({"organization", "model_organization"}, &NameParts::organization));
    write_text("finetune", find_first({"finetune", "model_finetune"}, &NameParts::finetune));
    write_text("basename", find_first({"basename", "model_basename", "model_type"}, &NameParts::basename));
    write_text("description", find_first_value({"description", "model_description"}));
    const std::string label = find_first({"size_label", "model_size_label"}, &NameParts::size_label);
    write_text("size_label", label.empty() ? make_size_label(count_) : label);
  }

  // Returns a token that llama.cpp needs for a model with such a name, but that the vocabulary lacks; empty if there is
  // none.
  std::string_view find_missing_token(const std::string& name) const {
    const std::string small = to_lower_ascii(name);
    if (!model_.vocabulary || (small.find("phi-3") == std::string::npos && small.find("phi3") == std::string::npos))
      return {};
    for (const std::string_view token : {"</s>", "<unk>", "<s>", "<|endoftext|>"}) {
      bool is_there = false;
      for (std::size_t id = 0; id < model_.vocabulary->size() && !is_there; ++id)
        is_there = model_.vocabulary->text(id) == token;
      if (!is_there) return token;
    }
    return {};
  }

  void write_license() {
    const std::vector<std::string> licenses = find_values({"license"});
    const bool is_same = !licenses.empty() && licenses.front() == card_.license;
    write_text("license.name", find_first_value({"license_name"}));
    write_text("license.link", find_first_value({"license_link"}));
    write_text("license", is_same ? fmt::format("{}", fmt::join(licenses, ",")) : card_.license);
  }

  // Returns the base models in the front matter of the model card, if the first one is card.base_model, and else
  // card.base_model alone.
  std::vector<std::string> find_base_models() const {
    std::vector<std::string> models = find_values({"base_model", "base_models", "base_model_sources"});
    const auto remove_site = [](std::string_view id) { return id.starts_with(kSite) ? id.substr(kSite.size()) : id; };
    if (!models.empty() && remove_site(models.front()) == card_.base_model) return models;
    return card_.base_model.empty() ? std::vector<std::string>() : std::vector<std::string>{card_.base_model};
  }

  // Writes a list of models or data sets. Each is given as its id on Hugging Face or as an address.
  void write_sources(std::string_view what, const std::vector<std::string>& ids) {
    const std::string count_key = make_key(fmt::format("{}.count", what));
    if (ids.empty() || out_.has(count_key)) return;
    out_.add_u32(count_key, ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::string prefix = fmt::format("{}.{}.", what, i);
      std::string_view id = ids[i];
      const bool is_address = id.starts_with("http://") || id.starts_with("https://") || id.starts_with("ssh://");
      if (is_address) {
        write_text(prefix + "repo_url", id);
        const std::string_view path = id.starts_with(kSite) ? id.substr(kSite.size()) : std::string_view();
        if (std::ranges::count(path, '/') != 1 || path.starts_with('/') || path.ends_with('/')) continue;
        id = path;
      }
      const NameParts parts = parse_name(id, count_.all);
      write_text(prefix + "name", make_title(parts.name));
      write_text(prefix + "organization", make_title(parts.organization));
      write_text(prefix + "version", parts.version);
      if (is_address) continue;
      if (!parts.organization.empty()) {
        write_text(prefix + "repo_url", fmt::format("{}{}/{}", kSite, parts.organization, parts.name));
      } else {
        losses_.push_back(fmt::format("gguf names a model by its owner and its name: {} is written as \"{}\"", id,
                                      make_title(parts.name)));
      }
    }
  }

  // Writes one list with the items of all these keys of the front matter.
  void write_list(std::string_view name, std::initializer_list<std::string_view> keys) {
    std::vector<std::string> items;
    for (const std::string_view key : keys)
      std::ranges::move(front_matter_.find_values(key), std::back_inserter(items));
    const std::string key = make_key(name);
    if (items.empty() || out_.has(key)) return;
    ByteWriter& out = out_.begin_array(key, ValueType::text, items.size());
    for (const std::string& item : items) KeyValues::append_text(out, item);
  }

  const Model& model_;
  const Card& card_;
  FrontMatter front_matter_;
  Count count_;
  KeyValues& out_;
  std::string name_;
  std::vector<std::string> losses_;
};

// Writes only the card's keys. A model from a GGUF file has the other keys as attributes; a file of an unknown
// architecture needs none.
void write_card(const Card& card, KeyValues& out) {
  out.add_text_if_new("general.author", card.author);
  out.add_text_if_new("general.license", card.license);
  out.add_text_if_new("general.uuid", card.uuid);
  if (card.base_model.find('/') == std::string::npos) return;
  const bool is_address = card.base_model.find("://") != std::string::npos;
  out.add_text_if_new("general.base_model.0.repo_url", fmt::format("{}{}", is_address ? "" : kSite, card.base_model));
}

}  // namespace

WrittenGeneral write_general(const Model& model, bool is_known, const std::vector<CountedTensor>& tensors,
                             KeyValues& out) {
  WrittenGeneral written;
  if (is_known && !is_from_gguf(model)) {
    written = GeneralWriter(model, tensors, out).write();
  } else {
    written.name = find_name_attribute(model);
    write_card(model.card, out);
  }
  out.add_text_if_new(kCreatedKey, model.card.created_at);
  out.add_text_if_new(kModifiedKey, model.card.last_modified);
  return written;
}

}  // namespace poise::gguf
