// Breaks every rule of a Hugging Face directory once (docs/formats/huggingface.md). Weights and tokenizers have
// their own tests. These break config.json and the index, and make files contradict each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>

#include <fmt/format.h>

#include <poise/diff.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/tokenizer.hpp>
#include <poise/verify.hpp>
#include <poise/weights.hpp>

#include "io/lookalikes.hpp"
#include "support/errors.hpp"
#include "support/hostile_cases.hpp"

namespace poise::hostile {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;
using Texts = std::map<std::string, std::string>;

constexpr const char* kFirst = "model-00001-of-00002.safetensors";
constexpr const char* kSecond = "model-00002-of-00002.safetensors";

// Returns a JSON object of values that are JSON already.
std::string object(const Texts& entries) {
  std::string text;
  for (const auto& [key, value] : entries) text += fmt::format("{}\"{}\":{}", text.empty() ? "" : ",", key, value);
  return "{" + text + "}";
}
std::string quoted(const std::string& text) { return "\"" + text + "\""; }

Texts config() {
  return {{"model_type", quoted("mistral")}, {"hidden_size", "2"},         {"intermediate_size", "1"},
          {"max_position_embeddings", "8"},  {"num_attention_heads", "1"}, {"num_hidden_layers", "1"},
          {"num_key_value_heads", "1"},      {"vocab_size", "4"},          {"tie_word_embeddings", "true"}};
}

using Shapes = std::map<std::string, std::vector<std::uint64_t>>;

// Returns the tensors that config() requires.
Shapes shapes() {
  const std::string layer = "model.layers.0.";
  return {{"model.embed_tokens.weight", {4, 2}},
          {layer + "input_layernorm.weight", {2}},
          {layer + "self_attn.q_proj.weight", {2, 2}},
          {layer + "self_attn.k_proj.weight", {2, 2}},
          {layer + "self_attn.v_proj.weight", {2, 2}},
          {layer + "self_attn.o_proj.weight", {2, 2}},
          {layer + "post_attention_layernorm.weight", {2}},
          {layer + "mlp.gate_proj.weight", {1, 2}},
          {layer + "mlp.up_proj.weight", {1, 2}},
          {layer + "mlp.down_proj.weight", {2, 1}},
          {"model.norm.weight", {2}}};
}

// Returns a safetensors file whose header has at least that length. Spaces fill it.
std::string safetensors(const Shapes& tensors, std::size_t header_bytes = 0) {
  Texts entries;
  std::uint64_t position = 0;
  for (const auto& [name, shape] : tensors) {
    std::uint64_t bytes = 2;
    std::string dimensions;
    for (const std::uint64_t dimension : shape) {
      bytes *= dimension;
      dimensions += fmt::format("{}{}", dimensions.empty() ? "" : ",", dimension);
    }
    entries[name] = fmt::format(R"({{"dtype":"BF16","shape":[{}],"data_offsets":[{},{}]}})", dimensions, position,
                                position + bytes);
    position += bytes;
  }
  std::string header = object(entries);
  header.resize(std::max(header.size(), header_bytes), ' ');
  return le(header.size(), 8) + header + std::string(position, '\0');
}

bool is_in_first(const std::string& name) { return name < "model.layers.0.mlp"; }

Shapes shard(bool first) {
  Shapes result;
  for (const auto& [name, shape] : shapes()) {
    if (is_in_first(name) == first) result[name] = shape;
  }
  return result;
}

Texts weight_map() {
  Texts map;
  for (const auto& [name, shape] : shapes()) map[name] = quoted(is_in_first(name) ? kFirst : kSecond);
  return map;
}

// Returns a SentencePiece model with <unk> and other pieces.
std::string tokenizer(int pieces) {
  std::string model("\x0a\x09\x0a\x05<unk>\x18\x02", 11);
  for (int i = 1; i < pieces; ++i) model += std::string("\x0a\x05\x0a\x01") + static_cast<char>('a' + i) + "\x18\x01";
  return model + "\x12\x02\x18\x02";
}

Files single() {
  return {{"config.json", object(config())},
          {"model.safetensors", safetensors(shapes())},
          {"tokenizer.model", tokenizer(4)}};
}

Files sharded() {
  return {{"config.json", object(config())},
          {"model.safetensors.index.json", object({{"weight_map", object(weight_map())}})},
          {kFirst, safetensors(shard(true))},
          {kSecond, safetensors(shard(false))},
          {"tokenizer.model", tokenizer(4)}};
}

// Replaces a file of the directory; "" removes it.
Files with(Files files, const std::string& name, const std::string& content) {
  files.erase(name);
  if (!content.empty()) files[name] = content;
  return files;
}
// Replaces a key of config.json.
Files with_config(const std::string& key, const std::string& json) {
  Texts entries = config();
  entries.erase(key);
  if (!json.empty()) entries[key] = json;
  return with(single(), "config.json", object(entries));
}
Files with_map(const std::string& tensor, const std::string& json) {
  Texts entries = weight_map();
  entries[tensor] = json;
  return with(sharded(), "model.safetensors.index.json", object({{"weight_map", object(entries)}}));
}
Files with_shape(const std::string& tensor, const std::vector<std::uint64_t>& shape) {
  Shapes tensors = shapes();
  tensors.erase(tensor);
  if (!shape.empty()) tensors[tensor] = shape;
  return with(single(), "model.safetensors", safetensors(tensors));
}

class Directory {
 public:
  explicit Directory(const Files& files)
      : path_(fs::temp_directory_path() / fmt::format("poise_hostile_directory_{}", ::getpid())) {
    fs::create_directory(path_);
    for (const auto& [name, content] : files) std::ofstream(path_ / name, std::ios::binary) << content;
  }
  ~Directory() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct DirectoryCase {
  std::string_view rule;
  Files (*files)();
  ErrorKind kind;
  std::string_view file;  // the file that the error is about; "" for the directory
  std::string_view names;
};

void expect_refused(std::initializer_list<DirectoryCase> cases) {
  for (const DirectoryCase& rule : cases) {
    SCOPED_TRACE(rule.rule);
    const Directory directory(rule.files());
    expect_run_and_verify_agree(directory.path());
    try {
      open(directory.path());
      ADD_FAILURE() << "it was opened";
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.kind()), to_string(rule.kind)) << error.what();
      EXPECT_EQ(error.path(), (rule.file.empty() ? directory.path() : directory.path() / rule.file).string())
          << error.what();
      EXPECT_THAT(error.message(), testing::HasSubstr(std::string(rule.names)));
    }
  }
}

constexpr auto kInvalid = ErrorKind::invalid_file;

const HostileTable kTable("huggingface", "examples/nano-mistral");

TEST(HostileHuggingFace, TheDirectoriesAreSoundBeforeTheyAreBroken) {
  for (const Files& files : {single(), sharded()}) {
    const Directory directory(files);
    const Model model = open(directory.path());
    EXPECT_EQ(model.size(), 11U);
    EXPECT_EQ(model.vocabulary->size(), 4U);
    EXPECT_TRUE(expect_run_and_verify_agree(directory.path()));
  }
}

TEST(HostileHuggingFace, Files) {
  expect_refused({
      {"config.json is there, or weights are",
       [] { return with(with(single(), "model.safetensors", ""), "config.json", ""); }, kInvalid, "",
       "missing: config.json, model.safetensors"},
      {"weights are there", [] { return with(single(), "model.safetensors", ""); }, kInvalid, "",
       "missing: model.safetensors"},
      {"weights are not a Git LFS pointer",
       [] { return with(single(), "model.safetensors", "version https://git-lfs.github.com/spec/v1\n"); }, kInvalid,
       "model.safetensors", "Git LFS pointer"},
      {"weights are not a web page", [] { return with(single(), "model.safetensors", "<!DOCTYPE html><html>"); },
       kInvalid, "model.safetensors", "HTML page"},
      {"an index is not a server's message",
       [] { return with(sharded(), "model.safetensors.index.json", R"({"error":"Invalid username"})"); }, kInvalid,
       "model.safetensors.index.json", "a server's message"},
      {"weights are not a pickle", [] { return with(single(), "model.safetensors", "\x80\x02}q\x01."); },
       ErrorKind::unsupported, "model.safetensors", "this is a pickle"},
      {"weights are not empty", [] { return with(single(), "model.safetensors", "\n"); }, kInvalid, "model.safetensors",
       "cut off"},
      {"a template is not a Git LFS pointer",
       [] { return with(single(), "chat_template.jinja", "version https://git-lfs.github.com/spec/v1\n"); }, kInvalid,
       "chat_template.jinja", "Git LFS pointer"},
      {"weights are whole", [] { return with(single(), "model.safetensors", safetensors(shapes()).substr(0, 1000)); },
       kInvalid, "model.safetensors", "the file is cut off"},
      {"a tokenizer is one", [] { return with(single(), "tokenizer.model", "no model"); }, kInvalid, "tokenizer.model",
       "SentencePiece model"},
  });
}

// Returns lengths of headers that make a safetensors file begin like a file of another kind.
std::vector<std::size_t> misleading_lengths() {
  constexpr std::size_t kShortest = 600;  // of a shard of the model above
  constexpr std::size_t kMost = 100'000'000;
  std::vector<std::string> starts = {"PK\x03\x04"};
  for (const Lookalike& lookalike : list_lookalikes()) {
    for (const char* before : {"", "\n", " "}) starts.push_back(before + std::string(lookalike.start));
  }
  std::vector<std::size_t> lengths;
  for (const std::string& start : starts) {
    if (start.size() > 4) continue;  // longer than all headers
    std::size_t length = 0;
    for (std::size_t i = 0; i < start.size(); ++i) length |= std::size_t{static_cast<unsigned char>(start[i])} << 8 * i;
    for (; length < kShortest; length += std::size_t{1} << 8 * start.size()) {
    }
    if (length <= kMost) lengths.push_back(length);
  }
  return lengths;
}

TEST(HostileHuggingFace, SoundShardsMayBeginAsOtherFilesDo) {
  const std::vector<std::size_t> lengths = misleading_lengths();
  EXPECT_THAT(lengths, testing::IsSupersetOf({0x280U, 0x8b1fU, 0x4034b50U}));  // a pickle's, gzip's, a zip archive's
  for (const std::size_t length : lengths) {
    SCOPED_TRACE(length);
    const Directory shards(with(sharded(), kFirst, safetensors(shard(true), length)));
    EXPECT_EQ(open(shards.path()).size(), 11U);
    const Directory whole(with(single(), "model.safetensors", safetensors(shapes(), length)));
    EXPECT_EQ(open(whole.path()).size(), 11U);
    EXPECT_EQ(open(whole.path() / "model.safetensors").size(), 11U);
    // The error must describe a safetensors file.
    const Directory cut(with(single(), "model.safetensors", safetensors(shapes(), length).substr(0, length + 20)));
    EXPECT_THAT(support::error_of([&] { open(cut.path()); }).message(), testing::HasSubstr("the file is cut off"));
  }
}

// The file begins with a line feed and the length of the first piece, which is the first byte of a pickle.
TEST(HostileHuggingFace, SoundTokenizersMayBeginAsOtherFilesDo) {
  std::string piece("\x0a\xf8\x01", 3);  // its text, of 248 bytes
  piece += std::string(248, 'p') + std::string("\x15\0\0\x80\xbf", 5);
  ASSERT_EQ(piece.size(), 256U);
  std::string model = std::string("\x0a\x80\x02", 3) + piece + tokenizer(3);
  const Directory directory(with(single(), "tokenizer.model", model));
  EXPECT_EQ(open(directory.path()).vocabulary->size(), 4U);
  EXPECT_EQ(read_vocabulary(directory.path())->size(), 4U);
}

TEST(HostileHuggingFace, ConfigJson) {
  expect_refused({
      {"it is JSON", [] { return with(single(), "config.json", "{\"model_type\": mistral}"); }, kInvalid, "config.json",
       "JSON"},
      {"it is an object", [] { return with(single(), "config.json", "[1]"); }, kInvalid, "config.json",
       "JSON: expected an object"},
      {"a key stands once", [] { return with(single(), "config.json", R"({"hidden_size":2,"hidden_size":4})"); },
       kInvalid, "config.json", "the key \"hidden_size\" appears twice"},
      {"nesting is bounded",
       [] { return with(single(), "config.json", R"({"a":)" + std::string(1000, '[') + std::string(1000, ']') + "}"); },
       kInvalid, "config.json", "nested deeper than 64"},
      {"model_type is text", [] { return with_config("model_type", "7"); }, kInvalid, "config.json",
       "model_type: expected text"},
      {"hidden_size is there", [] { return with_config("hidden_size", ""); }, kInvalid, "config.json",
       "hidden_size: missing"},
      {"hidden_size is not null", [] { return with_config("hidden_size", "null"); }, kInvalid, "config.json",
       "hidden_size: missing"},
      {"hidden_size is a number", [] { return with_config("hidden_size", quoted("2")); }, kInvalid, "config.json",
       "hidden_size: expected an integer"},
      {"hidden_size is whole", [] { return with_config("hidden_size", "2.5"); }, kInvalid, "config.json",
       "hidden_size: expected an integer"},
      {"hidden_size has 32 bits", [] { return with_config("hidden_size", "4294967298"); }, kInvalid, "config.json",
       "hidden_size: expected an integer of 32 bits"},
      {"hidden_size is positive", [] { return with_config("hidden_size", "-2"); }, kInvalid, "", "hidden_size is -2"},
      {"intermediate_size is there", [] { return with_config("intermediate_size", ""); }, kInvalid, "config.json",
       "intermediate_size: missing"},
      {"num_attention_heads is there", [] { return with_config("num_attention_heads", ""); }, kInvalid, "config.json",
       "num_attention_heads: missing"},
      {"there are heads", [] { return with_config("num_attention_heads", "0"); }, kInvalid, "",
       "num_attention_heads is 0"},
      {"num_hidden_layers is there", [] { return with_config("num_hidden_layers", ""); }, kInvalid, "config.json",
       "num_hidden_layers: missing"},
      {"there are as many layers as tensors at most", [] { return with_config("num_hidden_layers", "65536"); },
       kInvalid, "", "num_hidden_layers is 65536"},
      {"layers are a sane number", [] { return with_config("num_hidden_layers", "2147483647"); }, kInvalid, "",
       "num_hidden_layers is 2147483647"},
      {"heads can be shared", [] { return with_config("num_key_value_heads", "3"); }, kInvalid, "",
       "not a multiple of num_key_value_heads 3"},
      {"head_dim is positive", [] { return with_config("head_dim", "-1"); }, kInvalid, "", "head_dim is -1"},
      {"rope_theta is a number", [] { return with_config("rope_theta", "[1]"); }, kInvalid, "config.json",
       "rope_theta: expected a number"},
      {"rope_theta is positive", [] { return with_config("rope_theta", "0"); }, kInvalid, "", "rope_theta is 0"},
      {"rope_theta fits a float", [] { return with_config("rope_theta", "1e300"); }, kInvalid, "config.json",
       "rope_theta: 1e+300 is not a finite number of 32 bits"},
      {"rms_norm_eps is not negative", [] { return with_config("rms_norm_eps", "-1e-5"); }, kInvalid, "",
       "rms_norm_eps is -1e-05"},
      {"tie_word_embeddings is a boolean", [] { return with_config("tie_word_embeddings", "1"); }, kInvalid,
       "config.json", "tie_word_embeddings: expected true or false"},
      {"hidden_act is text", [] { return with_config("hidden_act", "1"); }, kInvalid, "config.json",
       "hidden_act: expected text"},
      {"rope_scaling is an object", [] { return with_config("rope_scaling", "2"); }, kInvalid, "config.json",
       "rope_scaling: expected an object"},
  });
}

// These files next to config.json describe a quantization.
TEST(HostileHuggingFace, QuantizationFiles) {
  constexpr auto kModelOpt = "hf_quant_config.json";
  constexpr auto kOlder = "quantize_config.json";
  constexpr auto kOfAwq = "quant_config.json";
  expect_refused({
      {"it is JSON", [] { return with(single(), kModelOpt, "{\"quantization\": FP8}"); }, kInvalid, kModelOpt, "JSON"},
      {"it is an object", [] { return with(single(), kOlder, "[4]"); }, kInvalid, kOlder, "JSON: expected an object"},
      {"a key stands once", [] { return with(single(), kOfAwq, R"({"w_bit":4,"w_bit":8})"); }, kInvalid, kOfAwq,
       "the key \"w_bit\" appears twice"},
      {"nesting is bounded",
       [] { return with(single(), kOlder, R"({"a":)" + std::string(1000, '[') + std::string(1000, ']') + "}"); },
       kInvalid, kOlder, "nested deeper than 64"},
      {"quantization is an object", [] { return with(single(), kModelOpt, R"({"quantization":"FP8"})"); }, kInvalid,
       kModelOpt, "quantization: expected an object"},
      {"quantization is not null", [] { return with(single(), kModelOpt, R"({"quantization":null})"); }, kInvalid,
       kModelOpt, "quantization: expected an object"},
      {"quant_algo is text", [] { return with(single(), kModelOpt, R"({"quantization":{"quant_algo":["FP8"]}})"); },
       kInvalid, kModelOpt, "quant_algo: expected text"},
      {"quant_method is text", [] { return with(single(), kOlder, R"({"quant_method":4,"bits":4})"); }, kInvalid,
       kOlder, "quant_method: expected text"},
  });
}

TEST(HostileHuggingFace, QuantizationFilesThatDescribeNoTensorAreNamed) {
  for (const char* text : {R"({"quantization":{"quant_algo":"FP8"}})", R"({"quant_algo":"NVFP4"})",
                           R"({"quantization":{"quant_algo":"no such"}})"}) {
    SCOPED_TRACE(text);
    const Directory directory(with(single(), "hf_quant_config.json", text));
    const Model model = open(directory.path());
    EXPECT_EQ(model.config_json.find("quantization_config"), nullptr);
    ASSERT_EQ(model.warnings.size(), 1U);
    EXPECT_THAT(model.warnings[0].message, testing::HasSubstr("describes quantized matrices, but the directory has"));
  }
  // This quantizes only the cache of keys and values.
  for (const char* text : {"{}", R"({"quantization":{}})", R"({"quantization":{"quant_algo":null}})"}) {
    const Directory directory(with(single(), "hf_quant_config.json", text));
    EXPECT_TRUE(open(directory.path()).warnings.empty()) << text;
  }
  // A method that Poise does not know stays: run refuses it.
  const Directory other(with(single(), "quantize_config.json", R"({"quant_method":"marlin","bits":4})"));
  EXPECT_NE(open(other.path()).config_json.find("quantization_config"), nullptr);
}

TEST(HostileHuggingFace, LongQuantizationSettingsAreCutInWarnings) {
  const std::string config = R"({"quant_method":"modelopt","quant_algo":"FP8"})";
  Files files = with_config("quantization_config", config);
  const std::string algorithm(1 << 20, 'x');
  files = with(files, "hf_quant_config.json", fmt::format(R"({{"quantization":{{"quant_algo":"{}"}}}})", algorithm));
  const Directory directory(with(files, "quantize_config.json", R"({"bits":{"a":[1,2]},"quant_method":"gptq"})"));
  const Model model = open(directory.path());
  ASSERT_EQ(model.warnings.size(), 2U);
  for (const Finding& warning : model.warnings) EXPECT_LT(warning.message.size(), 300U);
  EXPECT_THAT(model.warnings[0].message,
              testing::HasSubstr("config.json and hf_quant_config.json differ: quant_algo is fp8 and xxx"));
  EXPECT_THAT(model.warnings[1].message, testing::HasSubstr("quant_method is modelopt and gptq; config.json is used"));
}

// A model that cannot run can be opened, verified and written in every format that does not interpret the
// configuration, with all its keys.
TEST(HostileHuggingFace, ConfigurationsThatCannotBeRunAreKept) {
  struct ConfigCase {
    const char* key;
    std::string json;
    bool known;  // is it a family whose hyperparameters are known?
  };
  const ConfigCase cases[] = {{"model_type", "", true},
                              {"model_type", quoted("falcon"), false},
                              {"hidden_act", quoted("gelu"), true},
                              {"rope_scaling", R"({"type":"linear","factor":2})", true},
                              {"attention_bias", "true", true},
                              {"mlp_bias", "true", true},
                              {"partial_rotary_factor", "0.5", true},
                              {"quantization_config", R"({"quant_method":"gptq"})", true}};
  for (const ConfigCase& config_case : cases) {
    SCOPED_TRACE(std::string(config_case.key) + " " + config_case.json);
    const Directory directory(with_config(config_case.key, config_case.json));
    const Model model = open(directory.path());
    EXPECT_EQ(model.size(), 11U);
    EXPECT_EQ(model.config.has_value(), config_case.known);
    const Value* value = model.config_json.find(config_case.key);
    ASSERT_EQ(value != nullptr, !config_case.json.empty());
    if (value != nullptr) {
      EXPECT_EQ(to_json(*value), config_case.json);
    }
    EXPECT_EQ(verify(directory.path()).errors(), 0U);
    expect_run_and_verify_agree(directory.path());
    for (const char* format : {"zt", "zt1", "safetensors"}) {
      const fs::path file = directory.path() / fmt::format("again.{}", format);
      save(model, file, format);
      const Model reread = open(file);
      const DiffReport difference = diff(model, reread);
      EXPECT_EQ(difference.fields.size() + difference.tensors.size(), 0U) << format;
      EXPECT_EQ(reread.config, model.config) << format;
      fs::remove(file);
    }
  }
}

TEST(HostileHuggingFace, TensorsOfAFamilyThatIsNotKnownAreAllKept) {
  Files files = with_config("model_type", quoted("falcon"));
  Shapes tensors = shapes();
  tensors["lm_head.weight"] = {4, 2};
  tensors["layers.0.rotary_emb.inv_freq"] = {1};
  const Directory directory(with(files, "model.safetensors", safetensors(tensors)));
  const Model model = open(directory.path());
  EXPECT_EQ(model.size(), 13U);
  for (const char* format : {"alt", "alt1"}) {
    try {
      save(model, directory.path() / "x.alt", format);
      ADD_FAILURE() << "it was written";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_THAT(error.message(), testing::HasSubstr("this one's model_type is \"falcon\""));
    }
  }
}

TEST(HostileHuggingFace, Index) {
  constexpr auto kIndex = "model.safetensors.index.json";
  expect_refused({
      {"it is JSON", [] { return with(sharded(), kIndex, "{"); }, kInvalid, kIndex, "JSON"},
      {"it has a weight_map", [] { return with(sharded(), kIndex, "{}"); }, kInvalid, kIndex,
       "weight_map: expected an object"},
      {"weight_map is an object", [] { return with(sharded(), kIndex, R"({"weight_map":[]})"); }, kInvalid, kIndex,
       "weight_map: expected an object"},
      {"a tensor stands once", [] { return with(sharded(), kIndex, R"({"weight_map":{"a":"b","a":"b"}})"); }, kInvalid,
       kIndex, "the key \"a\" appears twice"},
      {"a shard is a name", [] { return with_map("model.norm.weight", "2"); }, kInvalid, kIndex,
       "model.norm.weight: expected a file name"},
      {"a name is not empty", [] { return with_map("model.norm.weight", quoted("")); }, kInvalid, kIndex,
       "not a plain file name"},
      {"a name is not the directory", [] { return with_map("model.norm.weight", quoted(".")); }, kInvalid, kIndex,
       "\".\" is not a plain file name"},
      {"a name is not the one above", [] { return with_map("model.norm.weight", quoted("..")); }, kInvalid, kIndex,
       "\"..\" is not a plain file name"},
      {"a name is not a relative path", [] { return with_map("model.norm.weight", quoted("../x.safetensors")); },
       kInvalid, kIndex, "not a plain file name"},
      {"a name is not an absolute path", [] { return with_map("model.norm.weight", quoted("/etc/passwd")); }, kInvalid,
       kIndex, "\"/etc/passwd\" is not a plain file name"},
      {"a name has no backslash", [] { return with_map("model.norm.weight", quoted("a\\\\b")); }, kInvalid, kIndex,
       "not a plain file name"},
      {"a name has no NUL", [] { return with_map("model.norm.weight", quoted("a\\u0000b")); }, kInvalid, kIndex,
       "not a plain file name"},
      {"a shard is there", [] { return with(sharded(), kSecond, ""); }, ErrorKind::not_found, kIndex,
       "model-00002-of-00002.safetensors (9 tensors)"},
      {"a shard holds the tensors that the index lists there", [] { return with_map("more", quoted(kFirst)); },
       kInvalid, kIndex, "model-00001-of-00002.safetensors lacks more, which the index lists there"},
      {"a shard holds nothing else", [] { return with_map("model.norm.weight", quoted(kFirst)); }, kInvalid, kIndex,
       "model-00002-of-00002.safetensors holds model.norm.weight, which the index does not list there"},
      {"a tensor lies in one shard", [] { return with(sharded(), kFirst, safetensors(shapes())); }, kInvalid, kSecond,
       "appears twice"},
  });
}

TEST(HostileHuggingFace, FilesThatContradictEachOther) {
  expect_refused({
      {"no tensor is missing", [] { return with_shape("model.norm.weight", {}); }, kInvalid, "",
       "tensor model.norm.weight is missing"},
      {"the embedding has the rows",
       [] {
         return with_shape("model.embed_tokens.weight", {3, 2});
       },
       kInvalid, "", "model.embed_tokens.weight"},
      {"a matrix has the right shape",
       [] {
         return with_shape("model.layers.0.mlp.up_proj.weight", {2, 1});
       },
       kInvalid, "", "mlp.up_proj.weight"},
      {"a norm is a vector",
       [] {
         return with_shape("model.norm.weight", {1, 2});
       },
       kInvalid, "", "model.norm.weight"},
      {"a layer exists",
       [] {
         return with_shape("model.layers.1.mlp.up_proj.weight", {1, 2});
       },
       kInvalid, "", "belongs to layer 1, but num_hidden_layers is 1"},
      {"the output matrix is there", [] { return with_config("tie_word_embeddings", "false"); }, kInvalid, "",
       "tensor lm_head.weight is missing"},
  });
}

TEST(HostileHuggingFace, AllInconsistenciesAreListed) {
  const Directory directory(with_config("hidden_size", "3"));
  try {
    open(directory.path());
    ADD_FAILURE() << "it was opened";
  } catch (const Error& error) {
    for (const auto& [name, shape] : shapes()) EXPECT_THAT(error.message(), testing::HasSubstr(name));
  }
}

// llama.cpp's converter leaves such tokens out with a warning, too.
TEST(HostileHuggingFace, ListedTokensWithoutARowAreLeftOutWithAWarning) {
  const auto opened = [](const std::string& name, const std::string& content) {
    return open(Directory(with(single(), name, content)).path());
  };
  const std::string added = R"({"[PAD]": 4, "<go>": 9, "<x>": 3})";
  const Model model = opened("added_tokens.json", added);
  EXPECT_EQ(model.vocabulary->size(), 4U);
  EXPECT_EQ(model.vocabulary->text(3), "<x>");
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_THAT(model.warnings.front().message, testing::HasSubstr("vocab_size is 4: 2 tokens that"));
  EXPECT_THAT(model.warnings.front().message, testing::HasSubstr("the first is [PAD]"));
  EXPECT_EQ(opened("tokenizer_config.json", R"({"added_tokens_decoder": {"4": {"content": "<go>"}}})").warnings.size(),
            1U);
  EXPECT_EQ(opened("tokenizer_config.json", R"({"added_tokens_decoder": {"3": {"content": "<go>"}}})").warnings.size(),
            0U);
}

// The model opens and runs with a warning. No encoded text has the token without a row.
TEST(HostileHuggingFace, TokensWithoutARowAreNeverUsed) {
  const Directory directory(with(single(), "tokenizer.model", tokenizer(5)));
  const Model model = open(directory.path());
  ASSERT_EQ(model.warnings.size(), 1U);
  EXPECT_EQ(model.warnings.front().message,
            "the vocabulary has 5 tokens, but model.embed_tokens.weight only 4 rows: tokens from 4 on are never used");
  EXPECT_EQ(verify(directory.path()).errors(), 0U);
  EXPECT_EQ(verify(directory.path()).warnings(), 1U);
  EXPECT_EQ(model.vocabulary->size(), 5U) << "kept for conversions";
  const auto weights = load_weights(model);
  EXPECT_EQ(weights->tokenizer().vocabulary().size(), 4U);
  EXPECT_THAT(weights->tokenizer().encode("d"), testing::ElementsAre(0, 3));  // the unknown token is the space
  EXPECT_THAT(weights->tokenizer().encode("e"), testing::ElementsAre(0));
  EXPECT_EQ(read_vocabulary(directory.path())->size(), 4U) << "poise tokenize agrees";
}

// Flips only one bit of each byte, because opening a directory takes long.
TEST(HostileHuggingFace, FlippedBitsOfConfigAndIndex) {
  for (const std::string name : {"config.json", "model.safetensors.index.json"}) {
    const Files files = sharded();
    const Directory directory(files);
    const std::string whole = files.at(name);
    for (std::size_t byte = 0; byte < whole.size(); ++byte) {
      std::string flipped = whole;
      flipped[byte] = static_cast<char>(static_cast<unsigned char>(flipped[byte]) ^ 1U << byte % 8);
      std::ofstream(directory.path() / name, std::ios::binary) << flipped;
      expect_run_and_verify_agree(directory.path());
      try {
        EXPECT_EQ(open(directory.path()).size(), 11U) << byte;
      } catch (const Error& error) {
        const bool allowed = error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported ||
                             error.kind() == ErrorKind::not_found;
        EXPECT_TRUE(allowed) << byte << ": " << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace poise::hostile
