#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include <poise/convert.hpp>
#include <poise/edit.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/verify.hpp>

#include "formats/gguf/gguf_file.hpp"
#include "support/bytes.hpp"
#include "support/directories.hpp"
#include "support/errors.hpp"

namespace poise {
namespace {

using namespace gguf_test;
using testing::AllOf;
using testing::HasSubstr;

class GgufEdit : public testing::Test {
 protected:
  GgufEdit() { store(file_of(entries(), tensors()).bytes()); }

  static std::vector<Entry> entries() {
    return {text_entry("general.name", "old"),
            u32_entry("a.number", 7),
            {"a.flag", kBool, "\x01"},
            f32_entry("a.float", 0.5F),
            array_entry("a.list", kI32, {number(1, 4)})};
  }
  static std::vector<TensorEntry> tensors() {
    return {{"w", {4}, 0, std::string(16, 'w')}, {"x", {2}, 26, std::string(8, 'x')}};
  }

  void store(const std::string& bytes) const {
    std::ofstream(path(), std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  std::string load() const { return support::contents(path()); }
  std::filesystem::path path() const { return directory_ / "m.gguf"; }

  std::string refusal(const AttributeChanges& changes) const {
    const std::string before = load();
    const Error error = support::error_of([&] { edit(path(), changes); });
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
    EXPECT_EQ(load(), before);
    return error.message();
  }

 private:
  support::TemporaryDirectory directory_;
};

TEST_F(GgufEdit, TakesNumbersOfTheKeysType) {
  const EditReport report = edit(path(), {.set = {{"a.number", std::uint64_t{12}},
                                                  {"a.float", 3},
                                                  {"a.flag", false},
                                                  {"z.number", std::uint64_t{5}},
                                                  {"z.real", 0.25}},
                                          .erase = {}});
  EXPECT_EQ(report.added, (std::vector<std::string>{"z.number", "z.real"}));
  const std::vector<Entry> expected = {text_entry("general.name", "old"),
                                       u32_entry("a.number", 12),
                                       {"a.flag", kBool, std::string("\0", 1)},
                                       f32_entry("a.float", 3.0F),
                                       array_entry("a.list", kI32, {number(1, 4)}),
                                       u32_entry("z.number", 5),
                                       f32_entry("z.real", 0.25F)};
  EXPECT_EQ(load(), file_of(expected, tensors()).bytes());
}

TEST_F(GgufEdit, RefusesNumbersOfAnotherType) {
  EXPECT_EQ(refusal({.set = {{"a.number", -1}}, .erase = {}}), "a.number: expected a value of type u32, found -1");
  EXPECT_EQ(refusal({.set = {{"a.number", 0.5}}, .erase = {}}), "a.number: expected a value of type u32, found 0.5");
  EXPECT_EQ(refusal({.set = {{"a.number", true}}, .erase = {}}), "a.number: expected a value of type u32, found true");
  EXPECT_EQ(refusal({.set = {{"a.flag", 1}}, .erase = {}}), "a.flag: expected a value of type bool, found 1");
  EXPECT_EQ(refusal({.set = {{"a.float", 1e300}}, .erase = {}}), "a.float: expected a value of type f32, found 1e+300");
  EXPECT_EQ(refusal({.set = {{"general.name", 3}}, .erase = {}}),
            "general.name: expected a value of type text, found 3");
}

// Lists are given as lists, and as the JSON text of the command. llama.cpp's converter writes tags as a list of texts.
TEST_F(GgufEdit, TakesListsOfTheKeysType) {
  edit(path(), {.set = {{"a.list", Value::Array{5, -6}}, {"general.tags", R"(["a", "b\nc"])"}}, .erase = {}});
  std::vector<Entry> expected = entries();
  expected[4] = array_entry("a.list", kI32, {number(5, 4), number(0xfffffffa, 4)});
  expected.push_back(array_entry("general.tags", kText, {text("a"), text("b\nc")}));
  EXPECT_EQ(load(), file_of(expected, tensors()).bytes());
  edit(path(), {.set = {{"a.list", "[]"}, {"general.tags", Value::Array{"x"}}}, .erase = {}});
  expected[4] = array_entry("a.list", kI32, {});
  expected[5] = array_entry("general.tags", kText, {text("x")});
  EXPECT_EQ(load(), file_of(expected, tensors()).bytes());
  EXPECT_EQ(refusal({.set = {{"general.tags", "a"}}, .erase = {}}),
            "general.tags: expected a list of type [text] as JSON, such as [\"a\", \"b\"], found \"a\"");
  EXPECT_EQ(refusal({.set = {{"general.languages", "en"}}, .erase = {}}),
            "general.languages: expected a list of type [text] as JSON, such as [\"a\", \"b\"], found \"en\"");
  EXPECT_EQ(refusal({.set = {{"a.list", 7}}, .erase = {}}),
            "a.list: expected a list of type [i32] as JSON, such as [1, 2], found 7");
  EXPECT_EQ(refusal({.set = {{"a.list", "[1.5]"}}, .erase = {}}),
            "a.list: expected a value of type [i32], found \"[1.5]\"");
  EXPECT_EQ(refusal({.set = {{"a.list", "[4294967296]"}}, .erase = {}}),
            "a.list: expected a value of type [i32], found \"[4294967296]\"");
  EXPECT_EQ(refusal({.set = {{"general.tags", Value::Array{"a", 1}}}, .erase = {}}),
            "general.tags: expected a value of type [text], found [\"a\",1]");
}

// Integers, and numbers that float32 does not have, become float32.
TEST_F(GgufEdit, TakesNumbersForListsOfFloats) {
  store(file_of({array_entry("a.list", kF32, {number(0, 4)})}, tensors()).bytes());
  edit(path(), {.set = {{"a.list", "[1, 0.1]"}}, .erase = {}});
  EXPECT_EQ(load(),
            file_of({array_entry("a.list", kF32, {number(0x3f800000, 4), number(0x3dcccccd, 4)})}, tensors()).bytes());
}

// Unchanged entries keep their bytes, and keys keep their types.
TEST_F(GgufEdit, ChangesOnlyTheGivenEntries) {
  edit(path(), {.set = {{"general.name", "a new, longer name of the model"},
                        {"a.number", "4000000000"},
                        {"a.float", "-2.25"},
                        {"z.new", "text"}},
                .erase = {"a.flag"}});
  const std::vector<Entry> expected = {text_entry("general.name", "a new, longer name of the model"),
                                       u32_entry("a.number", 4000000000U), f32_entry("a.float", -2.25F),
                                       array_entry("a.list", kI32, {number(1, 4)}), text_entry("z.new", "text")};
  EXPECT_EQ(load(), file_of(expected, tensors()).bytes());
}

// llama.cpp does not load files whose keys have another type. Source: src/llama-model.cpp and gguf-py, v0.5.0.
TEST_F(GgufEdit, NewKeysHaveTheTypeThatLlamaCppRequires) {
  store(file_of({text_entry("general.architecture", "zebra"), u32_entry("zebra.block_count", 0)}, tensors()).bytes());
  edit(path(), {.set = {{"tokenizer.ggml.add_bos_token", "false"},
                        {"tokenizer.ggml.eot_token_id", "7"},
                        {"tokenizer.ggml.pre", "default"},
                        {"zebra.rope.scaling.factor", "4"},
                        {"zebra.rope.scaling.type", "linear"},
                        {"zebra.rope.dimension_count", "64"},
                        {"zebra.attention.causal", "true"},
                        {"zebra.attention.q_lora_rank", "8"},
                        {"zebra.attention.sliding_window_pattern", "[true]"},
                        {"zebra.rope.dimension_sections", "[2, 1]"},
                        {"tokenizer.ggml.normalizer.lowercase", "false"},
                        {"tokenizer.chat_templates", R"(["a"])"},
                        {"general.sampling.top_k", "20"},
                        {"general.sampling.temp", "0.5"},
                        {"general.base_model.count", "1"},
                        {"adapter.lora.alpha", "16"},
                        {"horse.context_length", "7"}},
                .erase = {}});
  const std::vector<Entry> expected = {text_entry("general.architecture", "zebra"),
                                       u32_entry("zebra.block_count", 0),
                                       {"tokenizer.ggml.add_bos_token", kBool, std::string(1, '\0')},
                                       u32_entry("tokenizer.ggml.eot_token_id", 7),
                                       text_entry("tokenizer.ggml.pre", "default"),
                                       f32_entry("zebra.rope.scaling.factor", 4),
                                       text_entry("zebra.rope.scaling.type", "linear"),
                                       u32_entry("zebra.rope.dimension_count", 64),
                                       {"zebra.attention.causal", kBool, "\x01"},
                                       u32_entry("zebra.attention.q_lora_rank", 8),
                                       array_entry("zebra.attention.sliding_window_pattern", kBool, {"\x01"}),
                                       array_entry("zebra.rope.dimension_sections", kI32, {number(2, 4), number(1, 4)}),
                                       {"tokenizer.ggml.normalizer.lowercase", kBool, std::string(1, '\0')},
                                       array_entry("tokenizer.chat_templates", kText, {text("a")}),
                                       {"general.sampling.top_k", kI32, number(20, 4)},
                                       f32_entry("general.sampling.temp", 0.5F),
                                       u32_entry("general.base_model.count", 1),
                                       f32_entry("adapter.lora.alpha", 16),
                                       text_entry("horse.context_length", "7")};
  EXPECT_EQ(load(), file_of(expected, tensors()).bytes());
  EXPECT_THAT(refusal({.set = {{"zebra.context_length", "many"}}, .erase = {}}), HasSubstr("a number of type u32"));
}

// The number of heads determines the order of a matrix's rows.
TEST_F(GgufEdit, RefusesValuesThatTensorsDoNotFit) {
  store(file_of({text_entry("general.architecture", "llama"), u32_entry("llama.attention.head_count", 2),
                 u32_entry("llama.block_count", 1), u32_entry("llama.embedding_length", 4),
                 u32_entry("llama.feed_forward_length", 4), u32_entry("llama.context_length", 8)},
                {{"blk.0.attn_q.weight", {4, 4}, 0, std::string(64, 'q')}})
            .bytes());
  EXPECT_THAT(refusal({.set = {{"llama.attention.head_count", "3"}}, .erase = {}}),
              AllOf(HasSubstr("nothing is changed: Poise could not open the edited file"), HasSubstr("attn_q")));
  edit(path(),
       {.set = {{"llama.attention.head_count", "1"}, {"general.name", "a name that moves the data"}}, .erase = {}});
  EXPECT_EQ(open(path()).size(), 1U);
}

// Each key determines the number of tensors, or their size.
TEST_F(GgufEdit, RefusesSizesThatTensorsDoNotFit) {
  convert(source_directory() / "examples/nano-mistral", path(), {.write = {.overwrite = true}});
  for (const auto& [key, text] : {std::pair<std::string, std::string>{"llama.block_count", "3"},
                                  {"llama.block_count", "5"},
                                  {"llama.attention.head_count", "8"},
                                  {"llama.attention.head_count_kv", "4"},
                                  {"llama.vocab_size", "961"},
                                  {"llama.embedding_length", "64"}}) {
    SCOPED_TRACE(key);
    EXPECT_THAT(refusal({.set = {{key, text}}, .erase = {}}), HasSubstr("nothing is changed: "));
  }
  for (const std::string key :
       {"llama.block_count", "llama.attention.head_count", "llama.feed_forward_length", "general.architecture",
        "tokenizer.ggml.tokens", "llama.context_length", "llama.attention.sliding_window"}) {
    SCOPED_TRACE(key);
    EXPECT_THAT(refusal({.set = {}, .erase = {key}}), HasSubstr("nothing is changed: "));
  }
  EXPECT_THAT(refusal({.set = {}, .erase = {"tokenizer.ggml.tokens"}}), HasSubstr("would lose its vocabulary"));
  EXPECT_THAT(refusal({.set = {}, .erase = {"general.architecture"}}),
              HasSubstr("Poise could not open the edited file: gguf: general.architecture is missing"));
  EXPECT_THAT(refusal({.set = {{"general.architecture", "foo"}}, .erase = {}}),
              HasSubstr("gguf: general.architecture is \"foo\", which Poise does not know"));
  EXPECT_THAT(refusal({.set = {{"general.architecture", "qwen2"}}, .erase = {}}),
              HasSubstr("gguf: there is no qwen2.embedding_length"));
  for (const std::string key : {"poise.config", "poise.tokenizer_config"})
    EXPECT_THAT(refusal({.set = {{key, "junk"}}, .erase = {}}),
                HasSubstr("not open the edited file: " + key + ": JSON: "));
  EXPECT_EQ(verify(path()).errors(), 0U);
  edit(path(), {.set = {{"llama.vocab_size", "961"}}, .erase = {}, .force = true});
  EXPECT_GT(verify(path()).errors(), 0U);
}

// Readers take llama.cpp's default for an id that no token has, or that is deleted.
TEST_F(GgufEdit, RefusesToLoseSpecialTokens) {
  convert(source_directory() / "examples/nano-mistral", path(), {.write = {.overwrite = true}});
  const std::string bos = "tokenizer.ggml.bos_token_id";
  EXPECT_EQ(refusal({.set = {{bos, "100000"}}, .erase = {}}),
            "nothing is changed: " + bos + " would be 100000, but the vocabulary has 960 tokens");
  EXPECT_EQ(refusal({.set = {{bos, std::uint64_t{960}}}, .erase = {}}),
            "nothing is changed: " + bos + " would be 960, but the vocabulary has 960 tokens");
  const std::string end = "tokenizer.ggml.eot_token_id";
  EXPECT_EQ(refusal({.set = {{end, "960"}}, .erase = {}}),
            "nothing is changed: " + end + " would be 960, but the vocabulary has 960 tokens");
  EXPECT_EQ(refusal({.set = {{end, std::uint64_t{1000}}}, .erase = {}}),
            "nothing is changed: " + end + " would be 1000, but the vocabulary has 960 tokens");
  edit(path(), {.set = {{bos, "5"}, {end, "959"}}, .erase = {}});
  EXPECT_EQ(open(path()).vocabulary->bos_id, 5);
  EXPECT_EQ(refusal({.set = {}, .erase = {bos}}),
            "nothing is changed: the id of the vocabulary's BOS token would change from 5 to 1");
  edit(path(), {.set = {{bos, "100000"}}, .erase = {}, .force = true});
  EXPECT_EQ(open(path()).vocabulary->bos_id, 1);
  edit(path(), {.set = {}, .erase = {bos}});  // the default is the same
  EXPECT_EQ(open(path()).vocabulary->bos_id, 1);
  edit(path(), {.set = {{end, "958"}}, .erase = {}});
}

// GPT-2 has a learned position for each token of its context.
TEST_F(GgufEdit, RefusesMorePositionsThanAGpt2Has) {
  const auto zeros = [](std::uint64_t count) { return std::string(4 * count, '\0'); };
  std::vector<TensorEntry> all = {{"token_embd.weight", {4, 3}, 0, zeros(12)},
                                  {"position_embd.weight", {4, 8}, 0, zeros(32)},
                                  {"output_norm.weight", {4}, 0, zeros(4)},
                                  {"output_norm.bias", {4}, 0, zeros(4)}};
  const auto add = [&](const std::string& name, std::uint64_t columns, std::uint64_t rows) {
    all.push_back({"blk.0." + name + ".weight", {columns, rows}, 0, zeros(columns * rows)});
    all.push_back({"blk.0." + name + ".bias", {rows}, 0, zeros(rows)});
  };
  add("attn_qkv", 4, 12);
  add("attn_output", 4, 4);
  add("ffn_up", 4, 16);
  add("ffn_down", 16, 4);
  for (const std::string name :
       {"blk.0.attn_norm.weight", "blk.0.attn_norm.bias", "blk.0.ffn_norm.weight", "blk.0.ffn_norm.bias"})
    all.push_back({name, {4}, 0, zeros(4)});
  store(file_of({text_entry("general.architecture", "gpt2"), u32_entry("gpt2.context_length", 8),
                 u32_entry("gpt2.embedding_length", 4), u32_entry("gpt2.block_count", 1),
                 u32_entry("gpt2.feed_forward_length", 16), u32_entry("gpt2.attention.head_count", 2)},
                all)
            .bytes());
  ASSERT_EQ(verify(path()).errors(), 0U);
  EXPECT_THAT(refusal({.set = {{"gpt2.context_length", "16"}}, .erase = {}}),
              AllOf(HasSubstr("the edited file would fail verify"), HasSubstr("transformer.wpe.weight")));
}

// Programs read attributes only from the first part.
TEST_F(GgufEdit, RefusesAPartThatIsNotTheFirst) {
  const support::TemporaryDirectory directory;
  const auto part = [&](std::uint64_t part_number) {
    const auto file = directory / ("m-0000" + std::to_string(part_number + 1) + "-of-00002.gguf");
    support::put(file, file_of({text_entry("general.name", "old"),
                                {"split.no", kU16, number(part_number, 2)},
                                {"split.count", kU16, number(2, 2)}},
                               {{"t" + std::to_string(part_number), {1}, 0, std::string(4, '\0')}})
                           .bytes());
    return file;
  };
  const auto first = part(0);
  const auto second = part(1);
  const std::string before = support::contents(second);
  const Error error = support::error_of([&] { edit(second, {.set = {{"general.name", "new"}}, .erase = {}}); });
  EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
  EXPECT_EQ(error.message(),
            "this is part 2 of 2, and programs read attributes only from part 1: edit m-00001-of-00002.gguf");
  EXPECT_EQ(support::contents(second), before);
  edit(first, {.set = {{"general.name", "new"}}, .erase = {}});
  EXPECT_EQ(*open(first).attributes.find("general.name"), Value("new"));
}

// The other parts are found by the name of the first one.
TEST_F(GgufEdit, RefusesACopyOfAPart) {
  const support::TemporaryDirectory directory;
  for (const std::uint64_t part : {0U, 1U}) {
    support::put(directory / ("m-0000" + std::to_string(part + 1) + "-of-00002.gguf"),
                 file_of({text_entry("general.name", "old"),
                          {"split.no", kU16, number(part, 2)},
                          {"split.count", kU16, number(2, 2)}},
                         part == 0 ? std::vector<TensorEntry>() : tensors())
                     .bytes());
  }
  const auto first = directory / "m-00001-of-00002.gguf";
  const AttributeChanges changes = {.set = {{"general.name", "new"}}, .erase = {}};
  for (const char* name : {"copy.gguf", "n-00001-of-00002.gguf"}) {
    const Error error = support::error_of([&] { edit_copy(first, directory / name, changes); });
    EXPECT_EQ(error.kind(), ErrorKind::bad_argument);
    EXPECT_THAT(error.message(), HasSubstr("Poise could not open the edited file: "));
    EXPECT_FALSE(std::filesystem::exists(directory / name));
  }
  edit_copy(first, {}, changes);
  EXPECT_EQ(*open(first).attributes.find("general.name"), Value("new"));
}

TEST_F(GgufEdit, LeavesTensorsInPlaceWhereTheHeaderKeepsItsSize) {
  const auto number_of_file = [&] {
    struct stat status {};
    EXPECT_EQ(::stat(path().c_str(), &status), 0);
    return status.st_ino;
  };
  const auto file = number_of_file();
  const EditReport report = edit(path(), {.set = {{"a.number", "258"}, {"general.name", "new"}}, .erase = {}});
  EXPECT_EQ(report.way, EditReport::Way::in_place);
  EXPECT_EQ(number_of_file(), file);
  std::vector<Entry> expected = entries();
  expected[0] = text_entry("general.name", "new");
  expected[1] = u32_entry("a.number", 258);
  EXPECT_EQ(load(), file_of(expected, tensors()).bytes());
  EXPECT_EQ(edit(path(), {.set = {{"a.number", "258"}}, .erase = {}}).bytes, 0U);
}

// For every length of a name, either the padding absorbs the difference or a new file is written, and both give the
// same bytes.
TEST_F(GgufEdit, GivesTheSameBytesEitherWay) {
  for (std::size_t length = 0; length < 70; ++length) {
    const std::string name(length, 'n');
    const std::size_t size = load().size();
    const bool in_place = edit(path(), {.set = {{"general.name", name}}, .erase = {}}).way == EditReport::Way::in_place;
    std::vector<Entry> expected = entries();
    expected[0] = text_entry("general.name", name);
    ASSERT_EQ(load(), file_of(expected, tensors()).bytes()) << length;
    EXPECT_EQ(in_place, load().size() == size) << length;
  }
}

TEST_F(GgufEdit, AnInterruptedEditIsRefusedUntilTheNextEdit) {
  const std::string before = load();
  std::string after = before;
  after.replace(before.find("old"), 3, "new");
  std::string mixed = before;
  mixed.replace(before.find("old"), 2, "ne");
  const std::size_t at = before.find("old");
  std::string undo = std::string("poise undo 1\n\0\0\0", 16) + number(at, 8) + number(3, 8) + "oldnew";
  const auto undo_file = path().parent_path() / ".m.gguf.poise-undo";
  const auto leave = [&](const std::string& content) {
    store(content);
    std::ofstream(undo_file, std::ios::binary).write(undo.data(), static_cast<std::streamsize>(undo.size()));
  };
  for (const std::string& whole : {before, after}) {  // nothing is lost yet, or all is there
    leave(whole);
    EXPECT_NO_THROW(open(path()));
    edit(path(), {.set = {{"a.number", "7"}}, .erase = {}});
    EXPECT_EQ(load(), whole);
    EXPECT_FALSE(std::filesystem::exists(undo_file));
  }
  leave(mixed);
  EXPECT_THAT(support::error_of([&] { open(path()); }).message(), HasSubstr("an edit of this file was interrupted"));
  EXPECT_EQ(load(), mixed);
  EXPECT_NO_THROW(open(support::source(mixed, path())));  // bytes in memory have no undo file
  edit(path(), {.set = {{"a.number", "7"}}, .erase = {}});
  EXPECT_EQ(load(), before);
  EXPECT_FALSE(std::filesystem::exists(undo_file));
  // If other bytes are in the file, or the undo file is for another file, nothing is rolled back.
  for (const std::string& content :
       {std::string("poise undo 1\n\0\0\0", 16) + number(at, 8) + number(3, 8) + "oxdnxw",
        std::string("poise undo 1\n\0\0\0", 16) + number(~0ULL, 8) + number(3, 8) + "oldnew",
        std::string("poise undo 1\n\0\0\0", 16) + number(at, 8) + number(~0ULL, 8) + "oldnew", std::string("poise"),
        std::string()}) {
    undo = content;
    leave(mixed);
    EXPECT_NO_THROW(open(path()));
    edit(path(), {.set = {{"a.number", "7"}}, .erase = {}});
    EXPECT_EQ(load(), mixed);
    EXPECT_FALSE(std::filesystem::exists(undo_file));
  }
}

// Poise reads poise.config instead.
TEST_F(GgufEdit, RefusesChangesThatOnlyLlamaCppWouldSee) {
  store(file_of({text_entry("general.architecture", "llama"), u32_entry("llama.context_length", 64),
                 u32_entry("llama.embedding_length", 8), u32_entry("llama.block_count", 0),
                 u32_entry("llama.feed_forward_length", 4), u32_entry("llama.attention.head_count", 2),
                 text_entry("llama.rope.scaling.type", "linear"), f32_entry("llama.rope.scaling.factor", 2),
                 text_entry("poise.config", R"({"rope_scaling": {"type": "linear", "factor": 2.0}})")},
                {})
            .bytes());
  EXPECT_THAT(refusal({.set = {{"llama.rope.scaling.factor", "4"}}, .erase = {}}),
              HasSubstr("poise.config has the old value, which takes precedence for Poise"));
  EXPECT_NO_THROW(edit(path(), {.set = {{"llama.rope.scaling.factor", "2"}}, .erase = {}}));
  edit(path(), {.set = {{"llama.rope.scaling.factor", "4"}}, .erase = {}, .force = true});
  EXPECT_NO_THROW(edit(path(), {.set = {{"llama.rope.scaling.factor", "2"}}, .erase = {}, .force = true}));
  edit(path(), {.set = {{"llama.context_length", "32"}}, .erase = {}});
  edit(path(), {.set = {{"llama.rope.scaling.factor", "4"}}, .erase = {"poise.config"}});
  EXPECT_EQ(*open(path()).config_json.find("rope_scaling"),
            Value(Attributes{{"rope_type", "linear"}, {"factor", 4.0}}));
}

TEST_F(GgufEdit, RefusesValuesOfAnotherType) {
  EXPECT_THAT(refusal({.set = {{"a.number", "-1"}}, .erase = {}}),
              HasSubstr("a.number: expected a number of type u32, found \"-1\""));
  EXPECT_THAT(refusal({.set = {{"a.flag", "yes"}}, .erase = {}}),
              HasSubstr("a.flag: expected true or false, found \"yes\""));
  EXPECT_THAT(refusal({.set = {{"a.list", "1"}}, .erase = {}}), HasSubstr("expected a list of type [i32]"));
  EXPECT_THAT(refusal({.set = {{"general.alignment", "64"}}, .erase = {}}),
              HasSubstr("general.alignment cannot be edited, because it places the tensors"));
  EXPECT_THAT(refusal({.set = {}, .erase = {"no.such"}}), HasSubstr("there is no attribute \"no.such\""));
  EXPECT_THAT(refusal({}), HasSubstr("expected an attribute to set or delete"));
}

}  // namespace
}  // namespace poise
