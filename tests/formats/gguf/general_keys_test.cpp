// Tests of the keys "general.*". The expected values were computed by gguf-py of llama.cpp v0.5.0: Metadata.load(),
// Metadata.get_model_id_components(), Metadata.id_to_title() and gguf.size_label() of these inputs.
#include "formats/gguf/metadata.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include <poise/format.hpp>

#include "formats/registry.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/model_files.hpp"

namespace poise::gguf {
namespace {

using testing::ElementsAre;

struct Row {
  std::string_view id;
  std::uint64_t parameters;
  NameParts parts;  // organization, name, basename, finetune, version, size_label
};

TEST(GgufGeneralKeys, PartsOfNames) {
  for (const Row& row : std::array{
           Row{"Mixtral-8x7B-Instruct-v0.1",
               46702792704,
               {"", "Mixtral-8x7B-Instruct-v0.1", "Mixtral", "Instruct", "v0.1", "8x7B"}},
           Row{"Meta-Llama-3.1-8B-Instruct",
               8030261248,
               {"", "Meta-Llama-3.1-8B-Instruct", "Meta-Llama-3.1", "Instruct", "", "8B"}},
           Row{"nano-mistral", 958592, {"", "nano-mistral", "", "", "", ""}},
           Row{"Qwen2.5-0.5B-Instruct-GGUF",
               494032768,
               {"", "Qwen2.5-0.5B-Instruct-GGUF", "Qwen2.5", "Instruct-GGUF", "", "0.5B"}},
           Row{"gpt2-medium", 354823168, {"", "gpt2-medium", "gpt2", "", "", "medium"}},
           Row{"bloom-7b1", 7069016064, {"", "bloom-7b1", "bloom", "", "", "7.1B"}},
           Row{"Yi-34B-200K", 34388917248, {"", "Yi-34B-200K", "Yi", "200k", "", "34B"}},
           Row{"phi-3-mini-128k-instruct",
               3821079552,
               {"", "phi-3-mini-128k-instruct", "phi-3", "128k-instruct", "", "mini"}},
           Row{"gemma-2-2b-it", 2614341888, {"", "gemma-2-2b-it", "gemma-2", "it", "", "2B"}},
           Row{"stabilityai/stablelm-2-12b-chat",
               12143185920,
               {"stabilityai", "stablelm-2-12b-chat", "stablelm-2", "chat", "", "12B"}},
           Row{"Hermes-2-Pro-Llama-3-8B",
               8030261248,
               {"", "Hermes-2-Pro-Llama-3-8B", "Hermes-2-Pro-Llama-3", "", "", "8B"}},
           Row{"a fine model", 10, {"", "a fine model", "", "", "", ""}},
           Row{"./x-1b", 1, {"", "x-1b", "x", "1b", "", ""}},
           Row{"Q4_K_M-test", 9, {"", "Q4_K_M-test", "", "test", "", ""}},
           Row{"Foo-xl-v2", 9, {"", "Foo-xl-v2", "Foo", "", "v2", "xl"}},
           Row{"Foo-XL-1_5b-fp16", 1500000000, {"", "Foo-XL-1_5b-fp16", "Foo-XL", "", "", "1.5B"}},
           Row{"Jamba-A3B-iter5", 0, {"", "Jamba-A3B-iter5", "Jamba", "", "iter5", "A3B"}},
           Row{"v1", 0, {"", "v1", "", "", "v1", ""}},
           Row{"-a--b-", 0, {"", "-a--b-", "", "", "", ""}},
           Row{"Wizard-3-2", 0, {"", "Wizard-3-2", "Wizard", "", "3-2", ""}},
       }) {
    SCOPED_TRACE(row.id);
    const NameParts found = parse_name(row.id, row.parameters);
    EXPECT_EQ(found.organization, row.parts.organization);
    EXPECT_EQ(found.name, row.parts.name);
    EXPECT_EQ(found.basename, row.parts.basename);
    EXPECT_EQ(found.finetune, row.parts.finetune);
    EXPECT_EQ(found.version, row.parts.version);
    EXPECT_EQ(found.size_label, row.parts.size_label);
  }
}

TEST(GgufGeneralKeys, Titles) {
  EXPECT_EQ(make_title("nano-mistral"), "Nano Mistral");
  EXPECT_EQ(make_title("Llama-3.1-8B"), "Llama 3.1 8B");
  EXPECT_EQ(make_title("v1.5-beta"), "v1.5 Beta");
  EXPECT_EQ(make_title("a_b.c1d"), "A_B.C1D");
  EXPECT_EQ(make_title("gpt2"), "Gpt2");
  EXPECT_EQ(make_title("3b-x"), "3b X");
  EXPECT_EQ(make_title("iPhone"), "iPhone");
  EXPECT_EQ(make_title("  x--y "), "X Y");
}

std::string label_of(const std::vector<CountedTensor>& tensors) {
  Model model;
  KeyValues out;
  (void)write_general(model, true, tensors, out);
  const std::string bytes = support::to_string({out.bytes().begin(), out.bytes().end()});
  const std::string key = "general.size_label";
  const std::size_t at = bytes.find(key);
  if (at == std::string::npos) return {};
  const auto length = static_cast<unsigned char>(bytes[at + key.size() + 4]);
  return bytes.substr(at + key.size() + 12, length);
}

TEST(GgufGeneralKeys, SizeLabels) {
  EXPECT_EQ(label_of({{"a", {958'592}}}), "959K");
  EXPECT_EQ(label_of({{"a", {8'030'261'248}}}), "8.0B");
  EXPECT_EQ(label_of({{"a", {62'219'904, 2}}}), "124M");
  EXPECT_EQ(label_of({{"a", {999}}}), "1.0K");
  EXPECT_EQ(label_of({{"a", {95}}}), "0.10K");
  EXPECT_EQ(label_of({{"a", {9'960'000}}}), "10M");
  EXPECT_EQ(label_of({{"a", {1'000'000}}}), "1000K");
  EXPECT_EQ(label_of({{"a", {1'000'000'000'001}}}), "1.0T");
  EXPECT_EQ(label_of({{"a", {1'605'636'096}}, {"blk.0.ffn_up_exps.weight", {8, 5'637'144'576, 1}}}), "8x7.2B");
  EXPECT_EQ(label_of({}), "");
}

// Makes a copy of the example with another card, in a directory of that name.
std::filesystem::path put_directory(const support::TemporaryDirectory& parent, const std::string& name,
                                    const std::string& card) {
  const std::filesystem::path directory = parent / name;
  std::filesystem::copy(source_directory() / "examples" / "nano-mistral", directory);
  std::filesystem::remove(directory / "README.md");
  if (!card.empty()) support::put(directory / "README.md", card);
  return directory;
}

// Returns the keys "general.*" of its GGUF file, as JSON with their types.
std::vector<std::string> general_keys(const std::filesystem::path& directory) {
  const Model model = open(directory);
  const auto file = Source::from_memory(support::written(model, kGguf), "x.gguf");
  std::vector<std::string> keys;
  for (const MetadataKey& key : kGguf.list_keys({"x.gguf", file})) {
    if (!key.key.starts_with("general.") || key.key == "general.quantization_version") continue;
    keys.push_back(key.key.substr(8) + " " + key.type + " " + to_json(key.value));
  }
  std::ranges::sort(keys);
  return keys;
}

constexpr std::string_view kWholeCard = R"(---
license: [apache-2.0, mit]
license_name: apache-and-mit
license_link: https://example.com/license
language:
- en
- "de"
tags: [tiny, "a, b"]
pipeline_tag: text-generation
model_creator: A. Nyone
base_model:
- mistralai/Mistral-7B-v0.1
- https://huggingface.co/org/Other-13B-chat
- gpt2
datasets:
- roneneldan/TinyStories
description: A small model.
---
# Nano
)";

// The keys and types that Metadata.load() and set_gguf_meta_model() write, and file_type, which the converter adds.
TEST(GgufGeneralKeys, AreThoseOfTheCardAndTheName) {
  const support::TemporaryDirectory parent;
  const auto directory = put_directory(parent, "Nano-Mistral-1M-Chat-v0.2", std::string(kWholeCard));
  support::put(directory / "generation_config.json",
               R"({"temperature": 0.7, "top_k": 40, "top_p": 1, "repetition_penalty": 1.1, "do_sample": true})");
  EXPECT_THAT(
      general_keys(directory),
      ElementsAre("architecture text \"llama\"", "author text \"A. Nyone\"",
                  "base_model.0.name text \"Mistral 7B v0.1\"", "base_model.0.organization text \"Mistralai\"",
                  "base_model.0.repo_url text \"https://huggingface.co/mistralai/Mistral-7B-v0.1\"",
                  "base_model.0.version text \"v0.1\"", "base_model.1.name text \"Other 13B Chat\"",
                  "base_model.1.organization text \"Org\"",
                  "base_model.1.repo_url text \"https://huggingface.co/org/Other-13B-chat\"",
                  "base_model.2.name text \"Gpt2\"", "base_model.count u32 3", "basename text \"Nano-Mistral\"",
                  "dataset.0.name text \"TinyStories\"", "dataset.0.organization text \"Roneneldan\"",
                  "dataset.0.repo_url text \"https://huggingface.co/roneneldan/TinyStories\"", "dataset.count u32 1",
                  "description text \"A small model.\"", "file_type u32 32", "finetune text \"Chat\"",
                  "languages text[2] [\"en\",\"de\"]", "license text \"apache-2.0,mit\"",
                  "license.link text \"https://example.com/license\"", "license.name text \"apache-and-mit\"",
                  "name text \"Nano Mistral 1M Chat v0.2\"", "sampling.penalty_repeat f32 1.1", "sampling.temp f32 0.7",
                  "sampling.top_k i32 40", "sampling.top_p f32 1.0", "size_label text \"1M\"",
                  "tags text[3] [\"tiny\",\"a, b\",\"text-generation\"]", "type text \"model\"",
                  "version text \"v0.2\""));
}

// llama-vocab.cpp finds these tokens with at(), which throws if they are missing.
TEST(GgufGeneralKeys, ANameThatLlamaCppCannotLoadIsLeftOut) {
  Model model;
  model.origin.path = "phi3-tiny.zt";
  model.vocabulary.emplace();
  for (const char* token : {"<unk>", "<s>", "</s>"}) model.vocabulary->add(token, 0, TokenType::control);
  KeyValues out;
  const WrittenGeneral written = write_general(model, true, {}, out);
  EXPECT_FALSE(out.has("general.name"));
  EXPECT_THAT(written.losses, ElementsAre("general.name is left out: llama.cpp cannot load a model of the name \"Phi3 "
                                          "Tiny\" whose vocabulary lacks the token <|endoftext|>"));
  model.vocabulary->add("<|endoftext|>", 0, TokenType::control);
  KeyValues whole;
  EXPECT_EQ(write_general(model, true, {}, whole).name, "Phi3 Tiny");
}

// Base model, date, author and uuid stay missing, because no file states them.
TEST(GgufGeneralKeys, NoValueIsInvented) {
  const support::TemporaryDirectory parent;
  const auto directory = put_directory(parent, "myfolder", "");
  EXPECT_THAT(general_keys(directory),
              ElementsAre("architecture text \"llama\"", "file_type u32 32", "name text \"Myfolder\"",
                          "size_label text \"935K\"", "type text \"model\""));
  Card card;
  card.model_type = "mistral";
  EXPECT_EQ(open(directory).card, card);
  // The date of a file is not the model's date. So two copies give the same bytes.
  const std::vector<std::byte> file = support::written(open(directory), kGguf);
  EXPECT_EQ(support::to_string(file).find("poise.created_at"), std::string::npos);
  std::filesystem::last_write_time(directory / "model.safetensors", std::filesystem::file_time_type::min());
  EXPECT_EQ(support::written(open(directory), kGguf), file);
}

}  // namespace
}  // namespace poise::gguf
