// Tests of written Hugging Face directories: their contents and losses. The command tests have the rest.
#include "formats/huggingface/write.hpp"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/convert.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>

#include "family/config_json.hpp"
#include "family/families.hpp"
#include "formats/huggingface/adapter.hpp"
#include "formats/registry.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"
#include "support/model_files.hpp"

namespace poise::huggingface {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Model example() { return open(source_directory() / "examples" / "nano-mistral"); }

void add_numbers(Model& model, const std::string& name, Shape shape, DType dtype) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(*packed_bytes(dtype, *element_count(shape))));
  model.add(make_dense(name, std::move(shape), dtype, make_memory_blob(std::move(bytes), name)));
}

// Makes a model of an unknown family, with a vocabulary in the terms of a GGUF file's metadata.
Model described() {
  Model model;
  model.card = {.model_type = "frob",
                .base_model = "a/b",
                .author = "c",
                .created_at = "2020-01-02",
                .last_modified = "",
                .license = "mit",
                .uuid = "u"};
  model.config_json = {{"model_type", "frob"}, {"torch_dtype", "float16"}, {"x", 1}};
  model.attributes = {{"tokenizer.ggml.model", "gpt2"},
                      {"tokenizer.ggml.pre", "qwen2"},
                      {"tokenizer.ggml.tokens", Value::Array{"a", "b", "ab", "<s>", "<e>"}},
                      {"tokenizer.ggml.token_type", Value::Array{1, 1, 1, 3, 3}},
                      {"tokenizer.ggml.merges", Value::Array{"a b"}},
                      {"tokenizer.ggml.eos_token_id", 3},
                      {"tokenizer.ggml.eot_token_id", 4},
                      {"general.name", "Frob"}};
  add_numbers(model, "big", {4, 4}, DType::bf16);
  add_numbers(model, "small", {2}, DType::f32);
  return model;
}

std::string text_of(const support::Files& files, const std::string& name) { return support::to_string(files.at(name)); }

std::vector<std::string> losses(const Model& model) { return losses_of(model, kHuggingFace, {}); }

TEST(HuggingFaceWrite, HasTheVocabularyThatAttributesDescribe) {
  const Model model = described();
  const support::Files files = support::written_files(model, find_format_by_name("huggingface"));
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
                                 "tokenizer_config.json"));
  EXPECT_EQ(parse_json(text_of(files, "generation_config.json"), ""),
            Value(Attributes{{"eos_token_id", Value::Array{3, 4}}}));
  const support::TemporaryDirectory directory;
  const Model reread = support::read(files, directory.path());
  ASSERT_TRUE(reread.vocabulary);
  EXPECT_EQ(reread.vocabulary->kind, VocabularyKind::pipeline);
  EXPECT_EQ(reread.vocabulary->eos_id, 3);
  EXPECT_EQ(reread.card, model.card);
  EXPECT_EQ(*reread.config_json.find("torch_dtype"), Value("bfloat16"));  // that of most bytes
  EXPECT_EQ(*reread.attributes.find("general.name"), Value("Frob"));
  EXPECT_EQ(reread.attributes.find("tokenizer.ggml.tokens"), nullptr);
  EXPECT_EQ(*reread.attributes.find("tokenizer.ggml.eot_token_id"), Value("4"));
  EXPECT_EQ(*reread.attributes.find("format"), Value("pt"));  // which transformers asks for
  EXPECT_THAT(losses(model), ElementsAre(HasSubstr("tokenizer.ggml.eot_token_id becomes JSON text"),
                                         HasSubstr("does not know its class for a frob")));
}

// transformers' generate() stops at the ids of these files, and samples as generation_config.json says.
TEST(HuggingFaceWrite, HasTheSpecialIdsAndSamplingOfAFile) {
  Model model = described();
  model.attributes.set("tokenizer.ggml.bos_token_id", 2);
  model.attributes.erase("tokenizer.ggml.eot_token_id");
  model.attributes.set("general.sampling.temp", 0.7);
  model.attributes.set("general.sampling.penalty_repeat", 1.1);
  model.attributes.set("general.sampling.top_k", 40);
  for (const char* format : {"gguf-v3", "alt-v2", "alt-v1"}) {
    model.origin.format = format;
    const support::Files files = support::written_files(model, find_format_by_name("huggingface"));
    EXPECT_EQ(parse_json(text_of(files, "generation_config.json"), ""), Value(Attributes{{"do_sample", true},
                                                                                         {"top_k", 40},
                                                                                         {"temperature", 0.7},
                                                                                         {"repetition_penalty", 1.1},
                                                                                         {"bos_token_id", 2},
                                                                                         {"eos_token_id", 3}}));
    EXPECT_EQ(text_of(files, "model.safetensors").find("general.sampling"), std::string::npos);
  }
}

TEST(HuggingFaceWrite, KeepsAVocabularyThatItCannotRead) {
  Model model = described();
  model.attributes.set("tokenizer.ggml.pre", "frob-bpe");
  EXPECT_THAT(losses(model), Contains(HasSubstr("no tokenizer files can be written for the vocabulary: "
                                                "tokenizer.ggml.pre: the pre-tokenizer \"frob-bpe\" is not known")));
  const support::Files files = support::written_files(model, find_format_by_name("huggingface"));
  EXPECT_FALSE(files.contains("tokenizer.json"));
  EXPECT_THAT(text_of(files, "model.safetensors"), HasSubstr("tokenizer.ggml.tokens"));
}

// Older GGUF files lack vocab_size, because the embedding implies it; transformers needs the key.
TEST(HuggingFaceWrite, HasTheNumberOfTokens) {
  Model model = example();
  model.config->vocab_size = 0;
  model.config_json = {};
  const Value config = parse_json(
      text_of(support::written_files(model, find_format_by_name("huggingface")), "config.json"), "config.json");
  EXPECT_EQ(*config.get_if<Attributes>()->find("vocab_size"), Value(std::uint64_t{960}));
}

// A file of another format has hyperparameters only, without text_config.
TEST(HuggingFaceWrite, NestsTheKeysOfFamiliesWithSeveralModels) {
  for (const auto& [type, text] : {std::pair("mistral3", "mistral"), std::pair("gemma3", "gemma3_text")}) {
    SCOPED_TRACE(type);
    Model model = example();
    model.card.model_type = type;
    model.config_json = {};
    if (type == std::string("gemma3")) model = Model(model.header());
    const Config config = *model.config;
    if (model.size() == 0) {
      for (const auto& tensor : find_family_or_llama(model).tensors.list_all(*model.config))
        add_numbers(model, tensor.name, tensor.shape, DType::f32);
    }
    const Value json = parse_json(
        text_of(support::written_files(model, find_format_by_name("huggingface")), "config.json"), "config.json");
    const Attributes& keys = *json.get_if<Attributes>();
    EXPECT_EQ(*keys.find("model_type"), Value(type));
    EXPECT_EQ(keys.find("hidden_size"), nullptr);
    const auto* inner = keys.get_if<Attributes>("text_config");
    ASSERT_NE(inner, nullptr);
    EXPECT_EQ(*inner->find("model_type"), Value(text));
    EXPECT_EQ(*inner->find("hidden_size"), Value(128));
    Model reread;
    parse_config(reread, keys, "config.json");
    EXPECT_EQ(reread.config, config);
  }
}

TEST(HuggingFaceWrite, KeepsTensorsThatAreLargerThanAShard) {
  const Model model = example();
  WriteOptions options;
  options.shard_size = 1;
  const support::Files files = support::written_files(model, find_format_by_name("huggingface"), options);
  EXPECT_TRUE(files.contains("model-00039-of-00039.safetensors"));
  EXPECT_EQ(prepare(model, options).plan().bytes, [&] {
    std::uint64_t sum = 0;
    for (const auto& [name, bytes] : files) sum += bytes.size();
    return sum;
  }());
}

TEST(HuggingFaceWrite, RefusesIncompleteModels) {
  const auto refusal = [](const Model& model) {
    const Error error = support::error_of([&] { (void)prepare(model, WriteOptions{}); });
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    return error.message();
  };
  Model bare;
  add_numbers(bare, "x", {1}, DType::f32);
  EXPECT_THAT(refusal(bare), HasSubstr("has no configuration"));
  Model empty;
  empty.card.model_type = "llama";
  empty.config = example().config;
  EXPECT_THAT(refusal(empty), HasSubstr("has no tensors"));
  add_numbers(empty, "x", {1}, DType::f32);
  EXPECT_THAT(refusal(empty), HasSubstr("is missing"));
}

// Makes an adapter of one matrix in the form of zTensor and safetensors files.
Model thin_matrices() {
  Model model;
  model.attributes = {{"adapter_config", R"({"peft_type": "LORA", "r": 1, "base_model_name_or_path": "a/base"})"}};
  add_numbers(model, "base_model.model.q_proj.lora_A.weight", {1, 4}, DType::f32);
  add_numbers(model, "base_model.model.q_proj.lora_B.weight", {4, 1}, DType::f32);
  return model;
}

TEST(HuggingFaceWrite, AdaptersKeepTheirCards) {
  Model model = thin_matrices();
  model.card.author = "c";
  model.card.license = "mit";
  model.card.base_model = "a/base";
  const support::TemporaryDirectory directory;
  const support::Files files = support::written_files(model, find_format_by_name("huggingface"));
  EXPECT_EQ(support::read(files, directory.path()).card, model.card);
  EXPECT_THAT(losses(model), IsEmpty());
  model.card.base_model = "another";
  const support::TemporaryDirectory changed;
  EXPECT_EQ(support::read(support::written_files(model, find_format_by_name("huggingface")), changed.path()).card,
            model.card);
  model.card = {};
  model.card.base_model = "a/base";
  EXPECT_THAT(text_of(support::written_files(model, find_format_by_name("huggingface")), "adapter_model.safetensors"),
              Not(HasSubstr("poise.card")));
  model.vocabulary = example().vocabulary;
  EXPECT_THAT(losses(model), ElementsAre(HasSubstr("the vocabulary is left out")));
}

TEST(HuggingFaceWrite, ReportsAnInvalidConfigurationOfAnAdapter) {
  Model model = thin_matrices();
  for (const char* text : {R"({"r": 1,})", "1", "no JSON"}) {
    model.attributes.set("adapter_config", text);
    const Error error = support::error_of([&] { (void)prepare(model, WriteOptions{}); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_THAT(error.message(), HasSubstr("adapter_config: JSON"));
    const auto found = read_peft_adapter(model, nullptr);
    ASSERT_TRUE(found);
    EXPECT_THAT(found->faults, ElementsAre(HasSubstr("adapter_config: JSON")));
  }
  model.attributes.erase("adapter_config");
  EXPECT_FALSE(read_peft_adapter(model, nullptr));
}

// Python writes NaN and Infinity; Poise reads them from a directory's file, too.
TEST(HuggingFaceWrite, AnAdaptersConfigurationMayHaveNumbersOfPython) {
  Model model = thin_matrices();
  model.attributes.set("adapter_config", R"({"peft_type": "LORA", "r": 1, "lora_alpha": 2, "lora_dropout": NaN})");
  const auto found = read_peft_adapter(model, nullptr);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->faults, IsEmpty());
  EXPECT_EQ(found->alpha, 2);
  EXPECT_THAT(found->deviations, Contains("adapter_config: NaN is not JSON: it is replaced with null"));
}

TEST(HuggingFaceWrite, OtherAdaptersAreMergedFirst) {
  Model model;
  model.attributes = {{"general.type", "adapter"}, {"adapter.type", "lora"}};
  model.origin.format = "gguf";
  model.origin.path = "a.gguf";
  add_numbers(model, "blk.0.attn_q.weight.lora_a", {1, 4}, DType::f32);
  add_numbers(model, "blk.0.attn_q.weight.lora_b", {4, 1}, DType::f32);
  const Error error = support::error_of([&] { (void)prepare(model, WriteOptions{}); });
  EXPECT_THAT(error.message(), HasSubstr("merge it into the base model first"));
  EXPECT_EQ(error.remedies(), (std::vector<Remedy>{{Remedy::Kind::lora, "a.gguf", {}}}));
}

TEST(HuggingFaceWrite, LeavesNothingWhenItIsCancelled) {
  const support::TemporaryDirectory directory;
  WriteOptions options;
  options.shard_size = 500'000;
  options.progress = [](const ProgressEvent& step) { return step.done < step.total / 2; };
  EXPECT_EQ(support::error_of([&] { save(example(), directory / "out", "huggingface", options); }).kind(),
            ErrorKind::cancelled);
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(HuggingFaceWrite, SavesByTheNameOfADirectory) {
  const support::TemporaryDirectory directory;
  EXPECT_EQ(save(example(), directory / "out/").format, "huggingface");
  EXPECT_EQ(open(directory / "out").origin.format, "huggingface");
  WriteOptions overwrite;
  overwrite.overwrite = true;
  EXPECT_EQ(save(example(), directory / "out", overwrite).format, "huggingface");
}

TEST(HuggingFaceWrite, ReplacesModelsAlone) {
  EXPECT_EQ(explain_refusal_to_replace({"config.json"}), "");
  EXPECT_EQ(explain_refusal_to_replace({"README.md", "model-00001-of-00002.safetensors", "tokenizer.model"}), "");
  EXPECT_THAT(explain_refusal_to_replace({"README.md", "LICENSE"}),
              HasSubstr("neither config.json nor a safetensors file"));
  EXPECT_THAT(explain_refusal_to_replace({"config.json", "pytorch_model.bin"}), HasSubstr("holds pytorch_model.bin"));
  EXPECT_THAT(explain_refusal_to_replace({"config.json", "train.py"}), HasSubstr("holds train.py"));
}

}  // namespace
}  // namespace poise::huggingface
