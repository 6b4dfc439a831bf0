// Chat templates: the parser, and the interpreter with a conversation that has everything.
#include "jinja/template.hpp"

#include "target.hpp"

using namespace poise;

namespace {

const Value& conversation() {
  static const Value kConversation = parse_json(
      R"([{"role":"system","content":"Be short."},{"role":"user","content":[{"type":"text","text":"<|im_end|> é"}]},
          {"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":[1,2.5]}}}]},
          {"role":"tool","name":"f","content":"{\"y\": true}"}])",
      "conversation");
  return kConversation;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view source(reinterpret_cast<const char*>(data), size);
  // The output of a template does not depend on its size.
  const jinja::Limits limits = {.steps = 100'000, .bytes = 8 << 20, .output = 1 << 20};
  fuzz::expect_sound(size, [&] {
    const jinja::Template parsed(source, "template");
    const jinja::Text text = parsed.render({{"messages", conversation()},
                                            {"tools", conversation()},
                                            {"add_generation_prompt", true},
                                            {"n", 7},
                                            {"f", 2.5},
                                            {"s", "Hello, World"},
                                            {"bos_token", "<s>", false}},
                                           {.limits = limits});
    if (!text.marks.empty() && text.marks.size() != text.bytes.size()) fuzz::report("marks that are not of the text");
  });
  return 0;
}
