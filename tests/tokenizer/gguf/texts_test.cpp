// The texts of tokenizer_config.json in GGUF's keys. The keys are those of llama.cpp's gguf-py
// (GGUFWriter.add_chat_template).
#include "tokenizer/gguf/texts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poise/error.hpp>

#include "support/errors.hpp"

namespace poise {
namespace {

Value item(const char* name, const char* text) { return Attributes{{"name", name}, {"template", text}}; }

// Makes the keys, and checks that they are read back.
Attributes keys_of(const Value& chat_template, const Attributes& config = {}) {
  Attributes keys = make_gguf_chat_template(chat_template);
  if (const std::string text = format_gguf_tokenizer_config(chat_template, config); !text.empty())
    keys.set(std::string(kGgufTokenizerConfig), text);
  return keys;
}
GgufTexts read(const Attributes& keys) { return read_gguf_texts({keys.begin(), keys.end()}, "test.gguf"); }

TEST(GgufTexts, HaveOneTemplateOrSeveral) {
  EXPECT_EQ(keys_of("{{ x }}"), (Attributes{{"tokenizer.chat_template", "{{ x }}"}}));
  EXPECT_EQ(keys_of(Value::Array{item("default", "d"), item("tool_use", "t"), item("rag", "r")}),
            (Attributes{{"tokenizer.chat_template", "d"},
                        {"tokenizer.chat_template.tool_use", "t"},
                        {"tokenizer.chat_template.rag", "r"},
                        {"tokenizer.chat_templates", Value::Array{"tool_use", "rag"}}}));
  EXPECT_TRUE(keys_of({}).empty());
}

TEST(GgufTexts, ComeBack) {
  const std::vector<Value> all = {
      Value(), "{{ x }}", Value::Array{}, Value::Array{item("default", "d")},
      Value::Array{item("default", "d"), item("tool_use", "t")}, Value::Array{item("tool_use", "t"), item("rag", "r")},
      // GGUF's keys cannot hold these: an order, other characters, a repeated name, an object.
      Value::Array{item("rag", "r"), item("default", "d")}, Value::Array{item("tool-use", "t")},
      Value::Array{item("a", "1"), item("a", "2")},
      Value::Array{Attributes{{"name", "default"}, {"template", "d"}, {"version", 2}}}, Attributes{{"default", "d"}}};
  for (const Value& chat_template : all) {
    SCOPED_TRACE(to_json(chat_template));
    const Attributes config = {{"padding_side", "left"}, {"model_max_length", 1e30}};
    const GgufTexts reread = read(keys_of(chat_template, config));
    EXPECT_EQ(reread.chat_template, chat_template);
    EXPECT_EQ(reread.tokenizer_config, config);
  }
}

TEST(GgufTexts, TakeAnEditedKey) {
  Attributes keys = keys_of(Value::Array{item("rag", "r"), item("default", "d")});
  keys.set("tokenizer.chat_template", "edited");
  EXPECT_EQ(read(keys).chat_template, Value(Value::Array{item("default", "edited"), item("rag", "r")}));
}

TEST(GgufTexts, CarryOtherFiles) {
  const Attributes files = {{"chat_template.jinja", "{{ x }}\n"}, {"additional_chat_templates/rag.jinja", "r"}};
  EXPECT_EQ(read({{"poise.tokenizer_files", format_gguf_tokenizer_files(files)}}).files, files);
  EXPECT_EQ(format_gguf_tokenizer_files({}), "");
  for (const char* text : {"[1]", "{", R"({"../x": "y"})", R"({"chat_template.jinja": 1})"}) {
    const Error error = support::error_of([&] { read({{"poise.tokenizer_files", text}}); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_THAT(error.what(), testing::HasSubstr("poise.tokenizer_files"));
  }
}

TEST(GgufTexts, AreRefusedUnlessTheyAreAnObject) {
  for (const char* text : {"[1]", "{", ""}) {
    const Error error = support::error_of([&] { read({{"poise.tokenizer_config", text}}); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_file);
    EXPECT_THAT(error.what(), testing::HasSubstr("test.gguf"));
  }
}

}  // namespace
}  // namespace poise
