// These templates follow the documentation of the models' makers:
//
//   chatml                     github.com/openai/openai-python, its description of ChatML
//   llama2, llama3             llama.com/docs, "Model Cards & Prompt formats"
//   mistral, mistral-v3,       docs.mistral.ai and mistral-common: versions 1 and 3 with SentencePiece, which puts a
//   mistral-tekken             space before text, and version 3 with Tekken, which does not
//   gemma                      ai.google.dev/gemma/docs, "Formatting and system instructions"
//   phi3, phi4                 huggingface.co/microsoft, the models' cards
//   zephyr                     huggingface.co/HuggingFaceH4/zephyr-7b-beta
//   vicuna                     github.com/lm-sys/FastChat, version 1.1 of the weights
//   alpaca                     github.com/tatsu-lab/stanford_alpaca
//   command-r                  docs.cohere.com, "Prompting Command R"
//   granite                    ibm.com/granite/docs
//
// Forms without a place for the system's message put it before the first question.
#include "chat/built_in_templates.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include <poise/chat.hpp>

namespace poise {
namespace {

// These sources join texts by `~`, since `+` fails where the vocabulary has no EOS. Special tokens that a message
// spells stay plain text (jinja/text.hpp).
constexpr std::string_view kChatml =
    R"({% for m in messages %}{{ '<|im_start|>' ~ m.role ~ '\n' ~ m.content ~ '<|im_end|>\n' }}{% endfor %})"
    R"({% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %})";

constexpr std::string_view kLlama3 =
    R"({% for m in messages %})"
    R"({{ '<|start_header_id|>' ~ m.role ~ '<|end_header_id|>\n\n' ~ m.content | trim ~ '<|eot_id|>' }})"
    R"({% endfor %})"
    R"({% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %})";

// Goes in front of sources that use `turns`. Sets `system`, the system's message, and `turns`, the other messages, and
// rejects roles other than user and assistant in these.
constexpr std::string_view kSystemAndTurns =
    R"({% set has_system = messages and messages[0].role == 'system' %})"
    R"({% set system = messages[0].content if has_system else '' %})"
    R"({% set turns = messages[1:] if has_system else messages %})"
    R"({% for m in turns if m.role not in ['user', 'assistant'] %})"
    R"({{ raise_exception('this template has the roles user and assistant, and system for the first message; found ')"
    R"( ~ m.role) }}{% endfor %})";

constexpr std::string_view kLlama2 =
    R"({% for m in turns %}{% if m.role == 'user' %})"
    R"({{ (bos_token if not loop.first) ~ '[INST] ' }})"
    R"({{ '<<SYS>>\n' ~ system ~ '\n<</SYS>>\n\n' if loop.first and system }}{{ m.content | trim ~ ' [/INST]' }})"
    R"({% else %}{{ ' ' ~ m.content | trim ~ ' ' ~ eos_token }}{% endif %}{% endfor %})";

constexpr std::string_view kMistral =
    R"({% for m in turns %}{% if m.role == 'user' %})"
    R"({{ '[INST] ' ~ (system ~ '\n\n' if loop.first and system) ~ m.content ~ ' [/INST]' }})"
    R"({% else %}{{ ' ' ~ m.content ~ eos_token }}{% endif %}{% endfor %})";

constexpr std::string_view kMistralV3 =
    R"({% for m in turns %}{% if m.role == 'user' %})"
    R"({{ '[INST] ' ~ (system ~ '\n\n' if loop.first and system) ~ m.content ~ '[/INST]' }})"
    R"({% else %}{{ ' ' ~ m.content ~ eos_token }}{% endif %}{% endfor %})";

constexpr std::string_view kMistralTekken =
    R"({% for m in turns %}{% if m.role == 'user' %})"
    R"({{ '[INST]' ~ (system ~ '\n\n' if loop.first and system) ~ m.content ~ '[/INST]' }})"
    R"({% else %}{{ m.content ~ eos_token }}{% endif %}{% endfor %})";

constexpr std::string_view kGemma =
    R"({% for m in turns %}{{ '<start_of_turn>' ~ ('model' if m.role == 'assistant' else 'user') ~ '\n' }})"
    R"({{ system | trim ~ '\n\n' if loop.first and system }}{{ m.content | trim ~ '<end_of_turn>\n' }}{% endfor %})"
    R"({% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %})";

constexpr std::string_view kPhi3 =
    R"({{ '<|system|>\n' ~ system ~ '<|end|>\n' if system }})"
    R"({% for m in turns %}{{ '<|assistant|>\n' if m.role == 'assistant' else '<|user|>\n' }})"
    R"({{ m.content ~ '<|end|>\n' }}{% endfor %})"
    R"({% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %})";

constexpr std::string_view kPhi4 =
    R"({% for m in messages %}{{ '<|im_start|>' ~ m.role ~ '<|im_sep|>' ~ m.content ~ '<|im_end|>' }}{% endfor %})"
    R"({% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% endif %})";

constexpr std::string_view kZephyr =
    R"({{ '<|system|>\n' ~ system ~ eos_token ~ '\n' if system }})"
    R"({% for m in turns %}{{ '<|assistant|>\n' if m.role == 'assistant' else '<|user|>\n' }})"
    R"({{ m.content ~ eos_token ~ '\n' }}{% endfor %})"
    R"({% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %})";

constexpr std::string_view kVicuna =
    R"({{ system if system else 'A chat between a curious user and an artificial intelligence assistant. )"
    R"(The assistant gives helpful, detailed, and polite answers to the user\'s questions.' }}{{ ' ' }})"
    R"({% for m in turns %}{{ 'USER: ' ~ m.content ~ ' ' if m.role == 'user' )"
    R"(else 'ASSISTANT: ' ~ m.content ~ eos_token }}{% endfor %})"
    R"({% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %})";

constexpr std::string_view kAlpaca =
    R"({{ system if system else 'Below is an instruction that describes a task. )"
    R"(Write a response that appropriately completes the request.' }}{{ '\n\n' }})"
    R"({% for m in turns %}{{ '### Instruction:\n' ~ m.content ~ '\n\n' if m.role == 'user' )"
    R"(else '### Response:\n' ~ m.content ~ eos_token ~ '\n\n' }}{% endfor %})"
    R"({% if add_generation_prompt %}{{ '### Response:\n' }}{% endif %})";

constexpr std::string_view kCommandR =
    R"({% if system %}{{ '<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>' ~ system ~ '<|END_OF_TURN_TOKEN|>' }}{% endif %})"
    R"({% for m in turns %}{{ '<|START_OF_TURN_TOKEN|>' }})"
    R"({{ '<|CHATBOT_TOKEN|>' if m.role == 'assistant' else '<|USER_TOKEN|>' }})"
    R"({{ m.content | trim ~ '<|END_OF_TURN_TOKEN|>' }}{% endfor %})"
    R"({% if add_generation_prompt %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' }}{% endif %})";

constexpr std::string_view kGranite =
    R"({% for m in messages %})"
    R"({{ '<|start_of_role|>' ~ m.role ~ '<|end_of_role|>' ~ m.content ~ '<|end_of_text|>\n' }}{% endfor %})"
    R"({% if add_generation_prompt %}{{ '<|start_of_role|>assistant<|end_of_role|>' }}{% endif %})";

constexpr std::array<std::string_view, 2> kChatmlTexts = {"<|im_start|>", "<|im_end|>"};
constexpr std::array<std::string_view, 3> kLlama3Texts = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
constexpr std::array<std::string_view, 2> kMistralTexts = {"[INST]", "[/INST]"};
constexpr std::array<std::string_view, 2> kGemmaTexts = {"<start_of_turn>", "<end_of_turn>"};
constexpr std::array<std::string_view, 3> kPhi3Texts = {"<|user|>", "<|assistant|>", "<|end|>"};
constexpr std::array<std::string_view, 3> kPhi4Texts = {"<|im_start|>", "<|im_sep|>", "<|im_end|>"};
constexpr std::array<std::string_view, 4> kCommandRTexts = {"<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>",
                                                            "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>"};
constexpr std::array<std::string_view, 3> kGraniteTexts = {"<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"};

constexpr auto kBuiltIn = std::to_array<BuiltInTemplate>({
    {"chatml", kChatml, "<|im_end|>", kChatmlTexts},
    {"llama2", kLlama2, "", {}},
    {"llama3", kLlama3, "<|eot_id|>", kLlama3Texts},
    {"mistral", kMistral, "", {}},
    {"mistral-v3", kMistralV3, "", kMistralTexts},
    {"mistral-tekken", kMistralTekken, "", kMistralTexts},
    {"gemma", kGemma, "<end_of_turn>", kGemmaTexts},
    {"phi3", kPhi3, "<|end|>", kPhi3Texts},
    {"phi4", kPhi4, "<|im_end|>", kPhi4Texts},
    {"zephyr", kZephyr, "", {}},
    {"vicuna", kVicuna, "", {}},
    {"alpaca", kAlpaca, "", {}},
    {"command-r", kCommandR, "<|END_OF_TURN_TOKEN|>", kCommandRTexts},
    {"granite", kGranite, "<|end_of_text|>", kGraniteTexts},
});

}  // namespace

std::span<const BuiltInTemplate> get_built_in_templates() { return kBuiltIn; }

std::vector<BuiltInTemplateInfo> list_built_in_templates() {
  std::vector<BuiltInTemplateInfo> all;
  for (const BuiltInTemplate& row : kBuiltIn) all.push_back({row.name, row.end});
  return all;
}

const BuiltInTemplate* find_built_in_template(std::string_view name) {
  const auto* const found = std::ranges::find(kBuiltIn, name, &BuiltInTemplate::name);
  return found == kBuiltIn.end() ? nullptr : found;
}

std::string make_built_in_source(const BuiltInTemplate& built_in, const Tokenizer& tokenizer) {
  const std::vector<TokenId> around = tokenizer.encode_with_special("");
  const TokenId bos = tokenizer.vocabulary().bos_id;
  const bool begins_with_bos = bos >= 0 && !around.empty() && around.front() == bos;
  std::string source = begins_with_bos ? "{{ bos_token }}" : "";
  if (built_in.source.find("in turns") != std::string_view::npos) source += kSystemAndTurns;
  return source += built_in.source;
}

}  // namespace poise
