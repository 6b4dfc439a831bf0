#include "tokenizer/gguf/pre_tokenizers.hpp"

#include <algorithm>

namespace poise {
namespace {

template <std::size_t kCount>
using List = std::array<std::string_view, kCount>;

constexpr List<1> kGpt2 = {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"};
constexpr List<2> kStarcoder = {R"(\p{N})", kGpt2[0]};
constexpr List<1> kLlama3 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr List<1> kQwen2 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr List<1> kQwen35 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr List<1> kUfakzeka = {R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr List<1> kJais2 = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})"};
constexpr List<1> kTekken = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr List<1> kGpt4o = {
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr List<2> kTinyAya = {R"(\d{1,3}(?=(?:\d{3})*\b))", kGpt4o[0]};
constexpr List<2> kYoutu = {
    "[\\x{AC00}-\\x{D7A3}\\x{3131}-\\x{318E}]+|[\\x{FF01}\\x{2026}\\x{201C}\\x{201D}\\x{2018}\\x{2019}\\x{2014}\\x{"
    "FF1A}\\x{FF1B}\\x{FF0C}\\x{3001}-\\x{303F}"
    "\\x{FE30}-\\x{FE4F}]+|[\\x{3105}-\\x{312F}]+|[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+",
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr List<6> kDeepSeekLlm = {
    R"([\r\n])",
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376})"
    R"(\x{377}\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-)"
    R"(\x{556}\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"
    R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})"
    R"(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126})"
    R"(\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B})"
    R"(\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787}\x{A78B}-)"
    R"(\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F}\x{104B0}-)"
    R"(\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)",
    "\\s?[!-/:-~\\x{FF01}-\\x{FF0F}\\x{FF1A}-\\x{FF5E}\\x{2018}-\\x{201F}\\x{3000}-\\x{3002}]+",
    R"(\s+$)",
    "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+",
    R"(\p{N}+)"};
constexpr List<5> kDeepSeekCoder = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                    "[\\x{4E00}-\\x{9FA5}\\x{800}-\\x{4E00}\\x{AC00}-\\x{D7FF}]+", R"(\p{N})"};
constexpr std::string_view kDeepSeek3Words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kIdeographsAndKana = "[\\x{4E00}-\\x{9FA5}\\x{3040}-\\x{309F}\\x{30A0}-\\x{30FF}]+";
constexpr List<3> kDeepSeek3 = {R"(\p{N}{1,3})", kIdeographsAndKana, kDeepSeek3Words};
constexpr List<4> kSpark25 = {
    R"(\p{N}{1,3})", kIdeographsAndKana,
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)",
    R"(\p{N})"};
constexpr List<3> kAfmoe = {R"(\p{Nd}{1,3}(?=(?:\p{Nd}{3})*(?!\p{Nd})))",
                            "[\\x{4E00}-\\x{9FFF}\\x{3400}-\\x{4DBF}\\x{8C48}-\\x{FAFF}\\x{3040}-\\x{309F}\\x{30A0}-"
                            "\\x{30FF}\\x{FF65}-\\x{FF9F}\\x{2F00}-\\x{2FDF}\\x{E40}-\\x{E7F}"
                            "\\x{E80}-\\x{EFF}\\x{1780}-\\x{17FF}\\x{1000}-\\x{109F}\\x{AA60}-\\x{AA7F}\\x{A9E0}-\\x{"
                            "A9FF}\\x{AC00}-\\x{D7AF}\\x{1100}-\\x{11FF}]+",
                            kDeepSeek3Words};
constexpr List<3> kFalcon = {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2[0], "[0-9][0-9][0-9]"};
constexpr List<4> kDefault = {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2[0], R"(\p{N}+)", "[0-9][0-9][0-9]"};
constexpr List<1> kBloom = {R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)"};
constexpr List<2> kViking = {kBloom[0], R"(\p{N})"};
constexpr List<6> kChameleon = {"<sentinel:[0-9]+>",       "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z",
                                R"(([\t\n]|    |  ))",     R"(\p{N})",
                                R"([\p{P}!-/:-@\[-`{-~])", kGpt2[0]};
constexpr List<2> kSuperBpe = {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"};
constexpr List<1> kBailingMoe = {
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr List<1> kSeedCoder = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr List<1> kExaoneMoe = {
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"};
constexpr List<2> kLaguna = {R"([^\n]+|[\n]+)", kQwen2[0]};
constexpr List<2> kMiniCpm5 = {
    R"(\p{N}{1,3})",
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr List<1> kKimiK2 = {
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr List<1> kGraniteMulti = {
    R"([^\r\n\p{L}\p{N}]?((?=[\p{L}\p{M}])([^a-z]))*((?=[\p{L}\p{M}])([^A-Z]))+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?((?=[\p{L}\p{M}])([^a-z]))+((?=[\p{L}\p{M}])([^A-Z]))*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
constexpr List<1> kLinesOnly = {R"([^\n]+|[\n]+)"};

constexpr std::array kPreTokenizers = std::to_array<GgufPreTokenizer>({
    {.names = {"default"}, .expressions = kDefault},
    {.names = {"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "jina-v1-en", "jina-v2-code",
               "roberta-bpe", "gigachat", "a.x-4.0", "mellum", "modern-bert", "exaone4", "mpt", "olmo", "jais",
               "trillion", "granite-docling"},
     .expressions = kGpt2},
    {.names = {"starcoder", "refact", "command-r", "smollm", "codeshell", "exaone", "minerva-7b", "mellum2"},
     .expressions = kStarcoder},
    {.names = {"llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2",
               "jina-v5-nano"},
     .expressions = kLlama3,
     .ignore_merges = true,
     .adds_bos = true},
    {.names = {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"}, .expressions = kLlama3},
    {.names = {"jais-2"}, .expressions = kJais2},
    {.names = {"qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2", "hunyuan", "solar-open",
               "grok-2"},
     .expressions = kQwen2},
    {.names = {"qwen35"}, .expressions = kQwen35},
    {.names = {"ufakzeka"}, .expressions = kUfakzeka},
    {.names = {"seed-coder"}, .expressions = kSeedCoder},
    {.names = {"exaone-moe"}, .expressions = kExaoneMoe},
    {.names = {"laguna"}, .expressions = kLaguna},
    {.names = {"minicpm5"}, .expressions = kMiniCpm5, .ignore_merges = true},
    {.names = {"deepseek-llm"}, .expressions = kDeepSeekLlm},
    {.names = {"deepseek-coder"}, .expressions = kDeepSeekCoder},
    {.names = {"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, .expressions = kDeepSeek3},
    {.names = {"spark2_5"}, .expressions = kSpark25},
    {.names = {"afmoe"}, .expressions = kAfmoe},
    {.names = {"falcon"}, .expressions = kFalcon},
    {.names = {"poro-chat", "bloom", "gpt3-finnish"}, .expressions = kBloom},
    {.names = {"viking"}, .expressions = kViking},
    {.names = {"chameleon"}, .expressions = kChameleon, .adds_bos = true},
    {.names = {"tekken"}, .expressions = kTekken, .ignore_merges = true, .adds_bos = true},
    {.names = {"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, .expressions = kGpt4o},
    {.names = {"tiny_aya", "cohere2moe"}, .expressions = kTinyAya},
    {.names = {"youtu"}, .expressions = kYoutu, .ignore_merges = true},
    {.names = {"kimi-k2"}, .expressions = kKimiK2},
    {.names = {"superbpe"}, .expressions = kSuperBpe},
    {.names = {"bailingmoe", "bailingmoe2", "llada-moe"}, .expressions = kBailingMoe},
    {.names = {"granite-embed-multi-97m"}, .expressions = kGraniteMulti, .ignore_merges = true},
    {.names = {"gemma4", "granite-embed-multi-311m"},
     .expressions = kLinesOnly,
     .adds_bos = true,
     .always_bos = true,
     .byte_level = false},
    {.names = {"sarvam-moe"}, .expressions = kLinesOnly, .byte_level = false},
});

}  // namespace

std::span<const GgufPreTokenizer> list_gguf_pre_tokenizers() { return kPreTokenizers; }

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) {
  const auto* found = std::ranges::find_if(kPreTokenizers, [&](const GgufPreTokenizer& row) {
    return std::ranges::find(row.names, name) != row.names.end();
  });
  return found == kPreTokenizers.end() ? nullptr : found;
}

}  // namespace poise
