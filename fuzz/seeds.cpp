// Writes the initial corpora of the fuzz targets:
//
//   fuzz_seeds DIRECTORY FINDINGS
//
//   DIRECTORY/<target>/       seeds, one file each: small models in every format, by the library's own writers
//   DIRECTORY/<target>.dict   words of the format
//
// The files of FINDINGS, <target>-<name>.hex, are hexadecimal bytes with comments after #; they become seeds as well.
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <poise/dtype.hpp>
#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "formats/alt/layout.hpp"
#include "formats/format.hpp"
#include "formats/safetensors/safetensors.hpp"
#include "formats/ztensor/object.hpp"
#include "formats/ztensor/zt1.hpp"
#include "huggingface_seed.hpp"
#include "io/sink.hpp"
#include "pickle_seed.hpp"
#include "random_model.hpp"
#include "support/memory_output.hpp"
#include "syntax/cbor.hpp"
#include "syntax/protobuf.hpp"
#include "target.hpp"

namespace {

namespace fs = std::filesystem;
using namespace poise;

constexpr unsigned kRandomModels = 40;
constexpr std::string_view kSeparator = "\x1e";

class SeedWriter {
 public:
  explicit SeedWriter(fs::path directory) : directory_(std::move(directory)) {}

  void seed(const std::string& target, const std::string& name, fuzz::Bytes bytes) {
    fs::create_directories(directory_ / target);
    fuzz::write_file(directory_ / target / name, bytes);
  }
  void seed(const std::string& target, const std::string& name, std::string_view text) {
    seed(target, name, fuzz::bytes_of(text));
  }

  // Writes a file of a format as a seed of the format's own target, if it has one, and of the targets for files of all
  // formats.
  void file(std::string_view format, const std::string& name, fuzz::Bytes bytes) {
    const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::string full_name = fmt::format("{}-{}", format, name);
    if (const std::string target = find_own_target(format); !target.empty()) seed(target, full_name, bytes);
    seed("format", full_name, fmt::format("{}\n{}", format, text));
    seed("open_verify", full_name, bytes);
    seed("c_calls", full_name, make_program() + text);
    if (find_format_by_name(format).edit != nullptr) add_edits(full_name, text);
    formats_.emplace(format);
  }

  // Fails if a format of files has no seed.
  void expect_all_formats() const {
    for (const Format* format : list_all_formats()) {
      if (format->info.extension.empty() || formats_.contains(format->info.name)) continue;
      fuzz::report(fmt::format(
          "{} has no seed: the seeds of formats that are read and not written are made by hand, in fuzz/seeds.cpp",
          format->info.name));
    }
  }

  void write_dictionary(const std::string& target, const std::set<std::string>& words) const {
    std::string lines;
    for (const std::string& word : words) {
      lines += '"';
      for (const char c : word) lines += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      lines += "\"\n";
    }
    fuzz::write_file(directory_ / (target + ".dict"), fuzz::bytes_of(lines));
  }

 private:
  // Makes a program for c_calls: the maximum number of random calls.
  std::string make_program() {
    std::string steps(256, '\xff');
    for (std::size_t i = 1; i < steps.size(); ++i) steps[i] = static_cast<char>(random_());
    return steps;
  }

  // Writes edits that most files allow, edits that few allow, and edits that need `force`.
  void add_edits(const std::string& name, const std::string& file) {
    constexpr std::size_t kMostBytes = 9000;  // every run opens the file several times
    const bool whole = name.find("whole") != std::string::npos;
    if (!whole && (file.size() > kMostBytes || random_() % 4 != 0)) return;
    static constexpr std::array kChanges = {"general.name=a\nx.y=1\n", "llama.context_length=8\ngeneral.alignment=64\n",
                                            "!\npoise.config={}\npoise.card={\"name\": \"a\"}\n", "-poise.card\n"};
    const std::string changes = kChanges[random_() % kChanges.size()];
    seed("edit", name, static_cast<char>(changes.size()) + changes + file);
  }

  // Returns the format's own target; empty if it has none, because the target `format` reads all formats.
  static std::string find_own_target(std::string_view format) {
    static const std::map<std::string_view, std::string> kTargets = {
        {"alt", "alt"},         {"alt1", "alt"},  {"zt", "zt"},
        {"zt1", "zt"},          {"tllm", "tllm"}, {"safetensors", "safetensors"},
        {"pytorch", "pytorch"}, {"npy", "numpy"}, {"npz", "numpy"},
        {"onnx", "onnx"},       {"flax", "flax"}};
    const auto found = kTargets.find(format);
    return found == kTargets.end() ? std::string() : found->second;
  }

  fs::path directory_;
  std::mt19937 random_;
  std::set<std::string, std::less<>> formats_;
};

std::vector<std::byte> write_to_memory(const Model& model, const Format& format, const WriteOptions& options) {
  MemoryOutput output("seed");
  write_model(model, format, output, options);
  return output.take();
}

// Writes a model in a format with each set of the format's options. Formats reject models that they cannot hold.
void write_model_seeds(SeedWriter& seeds, const Model& model, const Format& format, const std::string& name) {
  std::vector<WriteOptions> variants(1);
  if (format.options.align) variants[0].align = std::min<std::uint64_t>(format.options.align->usual, 4096);
  const auto vary = [&](bool honoured, auto&& change) {
    if (honoured) change(variants.emplace_back(variants[0]));
  };
  vary(format.options.zstd_level, [](WriteOptions& options) { options.zstd_level = 1; });
  vary(format.options.dialect, [](WriteOptions& options) { options.dialect = "alt.c"; });
  vary(format.options.digest, [](WriteOptions& options) { options.digest = DigestAlgorithm::none; });
  for (std::size_t i = 0; i < variants.size(); ++i) {
    try {
      seeds.file(format.info.name, fmt::format("{}-{}", name, i), write_to_memory(model, format, variants[i]));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
    }
  }
}

void write_random_seeds(SeedWriter& seeds) {
  for (unsigned number = 0; number < kRandomModels; ++number) {
    std::mt19937 random(number);
    std::vector<std::byte> bytes(2000);
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
    bytes[0] = static_cast<std::byte>(number);  // every eighth is a Tiny Llama
    seeds.seed("round_trip", fmt::format("{:02}", number), bytes);
    fuzz::Dice dice(bytes);
    const Model model = fuzz::make_random_model(dice);
    Model alone;  // for formats of one array
    if (model.size() > 0) alone.add(model.tensors().front());
    for (const Format* format : list_all_formats()) {
      if (format->prepare == nullptr || format->explain_refusal != nullptr) continue;
      write_model_seeds(seeds, model, *format, fmt::format("{:02}", number));
      write_model_seeds(seeds, alone, *format, fmt::format("{:02}-alone", number));
    }
  }
}

// Writes a model that a session can run, in every format that can hold it.
void write_whole_model(SeedWriter& seeds) {
  const Model model = fuzz::make_huggingface_model();
  for (const Format* format : list_all_formats()) {
    if (format->prepare != nullptr && format->explain_refusal == nullptr)
      write_model_seeds(seeds, model, *format, "whole");
  }
}

// Makes a file of an older zTensor, which Poise does not write: magic, a blob of four float32 at 64, its CBOR index,
// the size of that, and the magic again from 1.1 on.
std::vector<std::byte> make_older_ztensor(std::string_view magic, const Value& index) {
  const std::string manifest = cbor::encode(index);
  ByteWriter file;
  file.append_text(magic);
  file.append_zeros(ztensor::kAlignment1 - file.size());
  for (int i = 0; i < 4; ++i) file.append_f32(static_cast<float>(i));
  file.append_text(manifest);
  file.append_u64(manifest.size());
  return {file.bytes().begin(), file.bytes().end()};
}

void write_older_ztensors(SeedWriter& seeds) {
  const Value::Array shape = {2, 2};
  seeds.file("zt1", "0.1",
             make_older_ztensor(ztensor::kMagic0, Value::Array{Attributes{{"name", "x"},
                                                                          {"offset", 64},
                                                                          {"size", 16},
                                                                          {"dtype", "float32"},
                                                                          {"shape", shape},
                                                                          {"encoding", "raw"},
                                                                          {"layout", "dense"},
                                                                          {"data_endianness", "big"},
                                                                          {"checksum", "crc32c:0x00000000"}}}));
  const Attributes data{{"offset", 64}, {"size", 16}};
  const Attributes tensor{
      {"shape", shape}, {"dtype", "float32"}, {"format", "dense"}, {"components", Attributes{{"data", data}}}};
  seeds.file("zt1", "1.0",
             make_older_ztensor(
                 ztensor::kMagic1,
                 Attributes{{"version", "1.0"}, {"generator", "seeds"}, {"tensors", Attributes{{"x", tensor}}}}));
}

std::string make_number_word(std::uint64_t value, std::size_t bytes) {
  std::string word(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) word[i] = static_cast<char>(value >> (8 * i));
  return word;
}

// Writes weights of llama2.c, which Poise itself does not write: one layer of dimension 2, all zeros. Versions 0 to 2.
void write_llama2c_seeds(SeedWriter& seeds) {
  ByteWriter tokenizer;  // of three tokens
  tokenizer.append_u32(5);
  for (const std::string_view token : {"<unk>", "\n<s>\n", "a"}) {
    tokenizer.append_f32(0);
    tokenizer.append_u32(static_cast<std::uint32_t>(token.size()));
    tokenizer.append_text(token);
  }
  for (int version = 0; version < 3; ++version) {
    ByteWriter file;
    if (version > 0) {
      file.append_u32(0x616b3432);
      file.append_i32(version);
    }
    for (const int size : {2, 2, 1, 1, 1, 3, 4}) file.append_i32(size);
    if (version > 0) {
      file.append_u8(1);  // the embedding is the output matrix
      if (version == 2) file.append_i32(2);
      file.append_zeros(256 - file.size());
    }
    const std::size_t norms = 6;
    const std::size_t matrices = 6 + 4 * 4 + 3 * 4;
    const std::size_t rotary = version == 0 ? 2 * 4 : 0;
    file.append_zeros(4 * (norms + rotary) + (version == 2 ? matrices + 4 * matrices / 2 : 4 * matrices));
    seeds.file("llama2c", fmt::format("version-{}", version), file.bytes());
    ByteWriter files;
    files.append_u16(static_cast<std::uint16_t>(tokenizer.size()));
    files.append(tokenizer.bytes());
    files.append(file.bytes());
    seeds.seed("llama2c", fmt::format("version-{}", version), files.bytes());
  }
}

// Writes a model of ONNX with a tensor for each way to store elements. Poise itself does not write ONNX.
void write_onnx_seeds(SeedWriter& seeds) {
  using protobuf::MessageWriter;
  const auto tensor = [](std::string_view name, std::uint64_t type) {
    MessageWriter writer;
    writer.append_integer(1, 2);
    writer.append_integer(2, type);
    writer.append_text(8, name);
    return writer;
  };
  MessageWriter raw = tensor("raw", 1);
  raw.append_text(9, std::string(8, '\0'));
  MessageWriter listed = tensor("listed", 7);
  listed.append_text(7, "\x01\x05");
  MessageWriter elsewhere = tensor("elsewhere", 1);
  MessageWriter location;
  location.append_text(1, "location");
  location.append_text(2, "weights");
  elsewhere.append_message(13, location);
  elsewhere.append_integer(14, 1);
  MessageWriter sparse;
  sparse.append_message(1, raw);
  sparse.append_message(2, listed);
  sparse.append_integer(3, 2);
  sparse.append_integer(3, 3);
  MessageWriter value;
  value.append_text(1, "value_ints");
  value.append_text(8, "\x01\x05");
  MessageWriter constant;
  constant.append_text(2, "constant");
  constant.append_text(4, "Constant");
  constant.append_message(5, value);
  MessageWriter input;
  input.append_text(1, "x");
  for (const bool is_external : {false, true}) {
    MessageWriter graph;
    graph.append_message(1, constant);
    graph.append_text(2, "graph");
    graph.append_message(5, is_external ? elsewhere : listed);
    if (!is_external) graph.append_message(15, sparse);
    graph.append_message(11, input);
    MessageWriter model;
    model.append_integer(1, 8);
    model.append_message(7, graph);
    seeds.file("onnx", is_external ? "external" : "whole", fuzz::bytes_of(model.release()));
  }
}

// Writes a file of Flax with an array, an array in chunks, and a value of each other kind; and arrays alone.
void write_flax_seeds(SeedWriter& seeds) {
  const auto text = [](const std::string& value) { return static_cast<char>(0xa0U | value.size()) + value; };
  const auto packed = [&](const std::string& shape, const std::string& type, std::size_t bytes) {
    return "\x93" + shape + text(type) + "\xc4" + static_cast<char>(bytes) + std::string(bytes, '\1');
  };
  const auto extension = [](char type, const std::string& content) {
    return std::string("\xc7") + static_cast<char>(content.size()) + type + content;
  };
  const std::string array = extension(1, packed("\x92\x02\x03", "float32", 24));
  const std::string chunk = extension(1, packed("\x91\x03", "bfloat16", 6));
  const std::string chunked = "\x83" + text("__msgpack_chunked_array__") + "\xc3" + text("shape") + "\x82" + text("0") +
                              "\x02" + text("1") + "\x03" + text("chunks") + "\x82" + text("0") + chunk + text("1") +
                              chunk;
  const std::string values = "\x98" + extension(3, packed("\x90", "int8", 1)) +
                             extension(2, "\x92\xca\x3f\x80\x01\x01\xca\x3f\x80\x01\x01") + "\xd4\x05\x01" + "\xc0" +
                             "\xc2" + "\xcb\x3f\xf1\x01\x01\x01\x01\x01\x01" + "\xd1\xff\x01" + text("text");
  seeds.file("flax", "whole", fuzz::bytes_of("\x83" + text("w") + array + text("x") + chunked + text("y") + values));
  seeds.file("flax", "params", fuzz::bytes_of("\x81" + text("params") + "\x81" + text("w") + array));
  seeds.seed("flax", "arrays", packed("\x91\x03", "bfloat16", 6) + packed("\x91\x03", "bfloat16", 6));
}

void write_pickle_seeds(SeedWriter& seeds) {
  // A whole checkpoint is in corpus/dcp, since Poise does not write them.
  seeds.seed("dcp", "empty-dict", std::string_view("\4\0\0\0\x80\2}.", 8));
  for (const std::string type : {"FloatStorage", "HalfStorage", "ByteStorage"}) {
    seeds.seed("pytorch", "objects-" + type, fuzz::make_pickle_seed(type));
    seeds.file("pytorch", "legacy-" + type, fuzz::bytes_of(fuzz::make_legacy_checkpoint_seed(type)));
  }
}

// Writes chat templates with the constructs of published ones.
void write_template_seeds(SeedWriter& seeds) {
  seeds.seed(
      "template", "chatml",
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' "
      "+ '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}");
  seeds.seed(
      "template", "tools",
      "{%- if tools is defined and tools is not none -%}{{ tools | tojson(indent=4) }}{%- else -%}none{%- endif -%}\n"
      "{%- set ns = namespace(first=true) -%}{%- for m in messages if m.role != 'system' -%}{%- set ns.first = "
      "false -%}{%- if m.tool_calls -%}{%- for c in m.tool_calls -%}{{ c.function.name }}{%- for k, v in "
      "c.function.arguments.items() -%}{{ k ~ '=' ~ v }}{{ ',' if not loop.last }}{%- endfor -%}{%- endfor -%}"
      "{%- endif -%}{%- endfor -%}");
  seeds.seed(
      "template", "macros",
      "{% macro show(x, depth=0) %}{% if x is mapping %}{% for k, v in x|dictsort %}{{ ' ' * depth }}{{ k }}:"
      "{{ show(v, depth + 1) }}{% endfor %}{% elif x is iterable and x is not string %}{{ x|map('string')|join "
      "}}{% else %}{{ x }}{% endif %}{% endmacro %}{{ show(messages[2]) }}{% call show(1) %}{{ caller }}{% endcall %}");
  seeds.seed(
      "template", "texts",
      "{{ s.split(', ')[-1].strip()|upper }}{{ s[::-1]|title|replace('l', 'L', 1) }}{{ '%5s|%05.1f|%d' % (s, f, n) "
      "}}{{ '{:>20}{!r}{0[0]}'.format(s, n) }}{{ s|truncate(8, true) }}{% filter indent(2) %}a\nb{% endfilter %}");
  seeds.seed("template", "loops",
             "{% for x in [1, [2, [3]]] recursive %}{{ loop.depth }}{% if x is iterable %}{{ loop(x) }}{% endif %}"
             "{% endfor %}{% for i in range(9) %}{{ loop.cycle(1, 2) }}{{ loop.changed(i) }}{% if i > 3 %}{% break %}"
             "{% endif %}{% else %}x{% endfor %}{% set y %}b{% endset %}{{ y }}{% with z = 1 %}{{ z }}{% endwith %}");
}

// Writes a tokenizer for each algorithm of GGUF.
void write_gguf_tokenizer_seeds(SeedWriter& seeds) {
  const auto write = [&](const std::string& name, std::string_view keys) {
    std::string json = R"({"general.architecture":"llama")";
    for (std::string_view rest = keys; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      json += fmt::format(R"(,"tokenizer.ggml.{})", line.substr(1));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
    seeds.seed("gguf_tokenizer", name, json + "}" + std::string(kSeparator) + "ab <s>");
  };
  write("llama", R"("model":"llama"
"tokens":["<unk>","<s>","</s>","\u2581","a","b","ab","<0x0A>"]
"scores":[0,0,0,-1,-2,-3,-4,0]
"token_type":[2,3,3,1,1,1,4,6]
"bos_token_id":1
"eos_token_id":2
"unknown_token_id":0
"padding_token_id":-1
"add_space_prefix":true)");
  write("bpe", R"("model":"gpt2"
"pre":"llama-bpe"
"tokens":["a","b","ab","\u0120","<s>","</s>"]
"merges":["a b"]
"token_type":[1,1,1,1,3,4]
"bos_token_id":4
"add_bos_token":true
"add_eos_token":false)");
  write("bert", R"("model":"bert"
"tokens":["[PAD]","[UNK]","[CLS]","[SEP]","\u2581a","b","\u2581ab"]
"token_type":[3,2,3,3,1,1,1]
"cls_token_id":2
"seperator_token_id":3
"unknown_token_id":1
"normalizer.lowercase":true)");
  write("t5", R"("model":"t5"
"tokens":["<pad>","</s>","<unk>","\u2581","a","b","ab"]
"scores":[0,0,0,-2,-3,-3,-2.5]
"token_type":[3,3,2,1,1,1,1]
"remove_extra_whitespaces":true
"precompiled_charsmap":[4,0,0,0,0,0,0,0]
"add_eos_token":true)");
  write("gemma4", R"("model":"gemma4"
"tokens":["<unk>","a","b","ab","\u2581","<0x0A>","<s>"]
"scores":[0,-1,-2,-3,-4,0,0]
"merges":["a b"]
"token_type":[2,1,1,1,1,6,3])");
  // The files of a directory that Poise keeps.
  seeds.seed("gguf_tokenizer", "files",
             R"({"general.architecture":"llama","tokenizer.ggml.model":"llama",
"tokenizer.ggml.tokens":["<unk>","a"],"tokenizer.ggml.scores":[0,-1],"tokenizer.ggml.token_type":[2,1],
"tokenizer.chat_template":"{{ messages }}","tokenizer.chat_templates":["rag"],"tokenizer.chat_template.rag":"{{ 1 }}",
"poise.tokenizer_config":"{\"padding_side\":\"left\",\"chat_template\":[{\"name\":\"rag\",\"template\":\"{{ 1 }}\"}]}",
"poise.tokenizer_files":"{\"chat_template.jinja\":\"{{ 2 }}\",\"additional_chat_templates/rag.jinja\":\"{{ 1 }}\"}"})" +
                 std::string(kSeparator) + "a");
}

// Writes two deltas of a part with 70,000 elements of two bytes: two changed elements, and all bytes.
void write_delta_seeds(SeedWriter& seeds) {
  ByteWriter sparse;
  sparse.append_u32(1);
  sparse.append_u32(1);
  for (const int byte : {7, 2, 0, 0, 1, 3, 0, 0}) sparse.append_u8(static_cast<std::uint8_t>(byte));
  const auto text = [](std::span<const std::byte> bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  seeds.seed("delta", "sparse",
             R"({"version":1,"base":"00","removed":["b"],"metadata":{"poise.card":"{\"author\":\"a\"}"}})" +
                 std::string(kSeparator) + R"({"data":{"form":"sparse","word":2}})" + std::string(kSeparator) +
                 text(sparse.bytes()));
  seeds.seed("delta", "xor",
             R"({"version":1,"base":"00","order":[1,0],"attributes":[["a",1]],"attribute_types":{"a":"u8"}})" +
                 std::string(kSeparator) + R"({"data":{"form":"xor","word":2,"shuffled":true}})" +
                 std::string(kSeparator) + std::string(140'000, '\x05'));
}

// Writes sums and counts as llama-imatrix does in GGUF, and in its older format.
void write_importance_seeds(SeedWriter& seeds) {
  const auto floats = [](const std::string& name, Shape shape, const std::vector<float>& numbers) {
    ByteWriter bytes;
    for (const float number : numbers) bytes.append_f32(number);
    return make_dense(name, std::move(shape), DType::f32,
                      make_memory_blob({bytes.bytes().begin(), bytes.bytes().end()}, name));
  };
  Model model;
  model.attributes = {{"general.type", "imatrix"},
                      {"imatrix.datasets", Value::Array{"a.txt"}},
                      {"imatrix.chunk_count", 3},
                      {"imatrix.chunk_size", 512}};
  model.add(floats("blk.0.attn_q.weight.in_sum2", {1, 2}, {6, 9}));
  model.add(floats("blk.0.attn_q.weight.counts", {1, 1}, {3}));
  model.add(floats("blk.0.ffn_gate_exps.weight.in_sum2", {2, 2}, {6, 9, 1, 0}));
  model.add(floats("blk.0.ffn_gate_exps.weight.counts", {2, 1}, {3, 0}));
  seeds.seed("imatrix", "gguf", write_to_memory(model, find_format_by_name("gguf"), {}));
  ByteWriter older;
  older.append_u32(2);
  for (const std::string_view name : {"blk.0.attn_q.weight", "a"}) {
    older.append_u32(static_cast<std::uint32_t>(name.size()));
    older.append_text(name);
    older.append_u32(2);  // calls
    older.append_u32(4);
    for (int i = 0; i < 4; ++i) older.append_f32(static_cast<float>(i));
  }
  older.append_u32(7);
  older.append_u32(1);
  older.append_text("d");
  seeds.seed("imatrix", "older", older.bytes());
}

void write_text_seeds(SeedWriter& seeds) {
  seeds.seed("sentencepiece", "bpe", fuzz::make_sentencepiece_seed());
  const auto tokenizer_json = [&](std::string_view name, std::string_view rest, std::string_view text) {
    seeds.seed("tokenizer_json", std::string(name), fmt::format("{{{}}}{}{}", rest, kSeparator, text));
  };
  constexpr std::string_view kBpe =
      R"("model":{"type":"BPE","unk_token":"u","byte_fallback":true,"vocab":{"u":0,"a":1,"b":2,"ab":3,"<0x0A>":4},"merges":["a b"]},"added_tokens":[{"id":5,"content":"<s>","special":true,"lstrip":true}])";
  tokenizer_json(
      "bpe",
      fmt::format(
          R"({},"normalizer":{{"type":"Sequence","normalizers":[{{"type":"NFKC"}},{{"type":"Prepend","prepend":"b"}}]}})",
          kBpe),
      "ab <s>");
  tokenizer_json(
      "split",
      fmt::format(
          R"({},"pre_tokenizer":{{"type":"Split","pattern":{{"Regex":"[a&&[^b]]+|\s"}},"behavior":"MergedWithNext"}},"decoder":{{"type":"Strip","content":"a","start":1,"stop":1}})",
          kBpe),
      "ab ba");
  tokenizer_json(
      "unigram",
      R"("model":{"type":"Unigram","unk_id":0,"vocab":[["u",0],["a",-1],["ab",-1.5]]},"pre_tokenizer":{"type":"Metaspace"},"decoder":{"type":"Metaspace"})",
      "ab c");
  tokenizer_json(
      "word_piece",
      R"("model":{"type":"WordPiece","unk_token":"u","vocab":{"u":0,"a":1,"##b":2}},"normalizer":{"type":"BertNormalizer"},"pre_tokenizer":{"type":"BertPreTokenizer"},"post_processor":{"type":"BertProcessing","cls":["a",1],"sep":["u",0]},"decoder":{"type":"WordPiece"})",
      "Ab, ab");
  write_gguf_tokenizer_seeds(seeds);
  const std::string ranks =
      R"("vocab":[{"rank":0,"token_bytes":"YQ=="},{"rank":1,"token_bytes":"Yg=="},{"rank":2,"token_bytes":"YWI=","token_str":"ab"}])";
  seeds.seed(
      "tekken", "listed",
      fmt::format(
          R"({{"config":{{"pattern":"[a-z]+|\\s","default_vocab_size":6,"default_num_special_tokens":3}},{},"special_tokens":[{{"rank":0,"token_str":"<unk>","is_control":true}},{{"rank":1,"token_str":"<s>"}},{{"rank":2,"token_str":"</s>"}}]}}{}ab <s>b)",
          ranks, kSeparator));
  seeds.seed(
      "tekken", "usual",
      fmt::format(
          R"({{"config":{{"pattern":"\\p{{L}}+","default_vocab_size":25,"default_num_special_tokens":22,"version":"v3"}},{},"special_tokens":null}}{}ab)",
          ranks, kSeparator));
  constexpr std::string_view kIds = R"({"<|endoftext|>":0,"a":1,"b":2,"ab":3,"\u0120":4,"<s>":5})";
  const auto vocab_json = [&](std::string_view name, std::string_view config, std::string_view special_map,
                              std::string_view added) {
    seeds.seed("vocab_json", std::string(name),
               fmt::format("{}{}#version: 0.2\na b\n{}{}{}{}{}{}{}ab <s> ab", kIds, kSeparator, kSeparator, config,
                           kSeparator, special_map, kSeparator, added, kSeparator));
  };
  vocab_json("alone", "", "", "");
  vocab_json(
      "qwen2",
      R"({"tokenizer_class":"Qwen2Tokenizer","add_prefix_space":true,"added_tokens_decoder":{"5":{"content":"<s>","special":true,"lstrip":true}},"eos_token":"<s>","chat_template":"{{ x }}"})",
      "", R"({"<s>":5,"<t>":6})");
  vocab_json(
      "gpt2", R"({"tokenizer_class":"GPT2Tokenizer","add_bos_token":true,"model_max_length":1e30})",
      R"({"bos_token":{"content":"<s>","normalized":false},"unk_token":"<|endoftext|>","additional_special_tokens":["<s>"]})",
      "");
  write_template_seeds(seeds);
  const std::string config = fuzz::make_huggingface_config();
  const std::string readme = "---\nlicense: apache-2.0\nbase_model: [\"a/b\"]\n---\n# Model\n";
  const auto directory = [&](const std::string& index) {
    return fmt::format("{}{}{}{}{}{}{}", config, kSeparator, index, kSeparator, readme, kSeparator,
                       fuzz::make_sentencepiece_seed());
  };
  seeds.seed("huggingface", "single", directory({}));
  seeds.seed("huggingface", "sharded", directory(fuzz::make_huggingface_index()));
  for (const fuzz::SchemeSeed& scheme : fuzz::list_scheme_seeds())
    seeds.seed("huggingface", fmt::format("scheme-{}", scheme.name),
               fmt::format("{0}{1}{1}{1}{1}{2}{1}{3}{1}{4}", scheme.config, kSeparator, scheme.list, scheme.modelopt,
                           scheme.older));
  seeds.seed("huggingface", "defaults",
             R"({"model_type": "llama", "hidden_size": 4, "intermediate_size": 3, "num_attention_heads": 2,
 "num_key_value_heads": 1, "num_hidden_layers": 1, "rope_scaling": {"rope_type": "default", "rope_theta": 1e6}, "tie_word_embeddings": true})");
  seeds.seed(
      "recipe", "models",
      "merge_method: slerp\nbase_model: a\nmodels:\n  - model: a\n  - model: &b b\nparameters:\n  t:\n    - filter: "
      "mlp\n      value: [0, 0.5, 1]\n    - value: 0.5\ndtype: float16\n");
  seeds.seed("recipe", "slices",
             "slices: [{sources: [{model: a, layer_range: [0, 1], parameters: {weight: 1, density: .5}}]}]\n"
             "merge_method: ties\nbase_model: \"a\"\nout_dtype: ~\nlicense: >\n  mit\ntags: [x, 'y']\n");
  seeds.seed("tokenizer_files", "ids",
             fmt::format("a 4\nb 5\nab 6\n\t 7\n<eos> 3\n{}#version: 0.2\na b\nab a\n", kSeparator));
  seeds.seed("tokenizer_files", "plain", fmt::format("a\nb\n \nab\n{}a b\n", kSeparator));
}

void write_dictionaries(const SeedWriter& seeds) {
  std::map<std::string, std::set<std::string>> words;
  for (const auto& row : safetensors::kElementTypes) words["safetensors"].insert(std::string(row.name));
  for (const auto& row : ztensor::kSpellings0) words["zt"].insert(std::string(row.text));
  for (const auto& row : ztensor::kSpellings1) words["zt"].insert(std::string(row.text));
  for (const auto& row : ztensor::kSpellings2)
    words["zt"].insert({std::string(row.text.storage), std::string(row.text.logical)});
  for (const auto& section : alt::kSections)
    words["alt"].insert(make_number_word(static_cast<std::uint64_t>(section.marker), 8));
  for (const std::int64_t marker : {alt::kStartV2, alt::kStartAltc, alt::kEndMarker})
    words["alt"].insert(make_number_word(static_cast<std::uint64_t>(marker), 8));
  words["alt"].insert({"<0x00>", "<unk>", "model.layers.0.", "model.embed_tokens.weight",
                       make_number_word(INT32_MAX, 4), make_number_word(UINT32_MAX, 4)});
  words["safetensors"].insert({"\"dtype\":", "\"shape\":[", "\"data_offsets\":[0,", "\"__metadata__\":{", "poise.card",
                               "poise.config", "poise.vocabulary", "18446744073709551615", "4294967296"});
  words["zt"].insert({"ZTEN1000",
                      "ZTEN0001",
                      "\x89ZT2\r\n\x1a\n",
                      "version",
                      "attributes",
                      "objects",
                      "tensors",
                      "generator",
                      "shape",
                      "format",
                      "layout",
                      "components",
                      "parts",
                      "dtype",
                      "type",
                      "offset",
                      "length",
                      "size",
                      "blob",
                      "shards",
                      "shard",
                      "digest",
                      "encoding",
                      "decoded_length",
                      "uncompressed_length",
                      "data_endianness",
                      "checksum",
                      "raw",
                      "zstd",
                      "zt.zstd-seekable/1",
                      "dense",
                      "sparse_csr",
                      "sparse_coo",
                      "quantized_group",
                      "zt.sparse_csr/1",
                      "zt.sparse_coo/1",
                      "zt.quant_group/1",
                      "zt.mx/1",
                      "gguf.q4_0/1",
                      "values",
                      "indices",
                      "indptr",
                      "coords",
                      "packed_weight",
                      "scales",
                      "zeros",
                      "bits",
                      "group_size",
                      "packing",
                      "8_per_i32",
                      "axis",
                      "poise.affine",
                      "poise.card",
                      "poise.config",
                      "poise.vocabulary",
                      "sha256:",
                      "crc32c:0x",
                      "xxh3:",
                      "\x1b\xff\xff\xff\xff\xff\xff\xff\xff",
                      "\xbf",
                      "\x9f",
                      "\xff",
                      "\xf6",
                      make_number_word(0xfd2fb528, 4),
                      make_number_word(0x184d2a5e, 4),
                      make_number_word(0x8f92eab1, 4)});
  words["tllm"].insert(
      {"MLLT", "TLLM", make_number_word(INT32_MAX, 4), make_number_word(1, 4), make_number_word(1, 8)});
  words["sentencepiece"].insert({"\x0a", "\x12\x02\x18\x02", "\x1a", "\x2a", "\x15", "\x18\x06", "<0x00>", "<unk>",
                                 "<s>", "</s>", "<pad>", "identity", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"});
  for (const auto& [key, value] : config_to_attributes(Config{}, "mistral"))
    words["huggingface"].insert(fmt::format("\"{}\":", key));
  words["huggingface"].insert({"\x1e",
                               "\"weight_map\":{",
                               "\"rope_scaling\":{",
                               "\"rope_parameters\":{",
                               "\"type\":",
                               "\"default\"",
                               "\"llama\"",
                               "\"mistral\"",
                               "null",
                               "true",
                               "1e400",
                               "-1",
                               "2147483648",
                               "model-00001-of-00002.safetensors",
                               "---\n",
                               "license: ",
                               "base_model:\n- ",
                               "config.json",
                               "\"quantization_config\":{",
                               "\"quant_method\":",
                               "\"gptq\"",
                               "\"awq\"",
                               "\"compressed-tensors\"",
                               "\"torchao\"",
                               "@m.weight {\"_type\": \"Int4Tensor\", \"_data\": {\"block_size\": [1, 16]}}\n",
                               "m._weight_qdata i8 01fe 8 32\n",
                               "\"bits\":",
                               "\"group_size\":",
                               "\"modules_to_not_convert\":[",
                               "m.scales f16 003c 2 8\n",
                               ".weight_zero_point i32 00 ",
                               ".g_idx i32 00000000 32\n",
                               " bf16 803f ",
                               " i64 ff "});
  words["recipe"].insert({"merge_method: ", "models:\n", "- model: ", "layer_range: [0, 2]", "parameters:\n",
                          "slices:\n", "sources:\n", "filter: ", "value: ", "&a ", "*a", "|-\n", "!!str ",
                          "dtype: ", "tokenizer_source: union"});
  words["tokenizer_json"].insert({"\x1e", "\"type\":\"Sequence\"", "\"ByteLevel\"", "\"Replace\"", "\"Precompiled\"",
                                  "\"Digits\"", "\"Fuse\"", "\"CTC\"", "\"TemplateProcessing\"",
                                  "\"merge_by_score\":true", "\"ignore_merges\":true", "\\p{L}",
                                  "(?i:", "\"normalized\":true"});
  words["gguf_tokenizer"].insert({"\x1e", "\"poise.tokenizer_files\"", "additional_chat_templates/x.jinja", "\"gpt2\"",
                                  "\"gemma4\"", "\"no_vocab\"", "\"tokenizer.ggml.pre\":\"qwen2\"", "\"deepseek-llm\"",
                                  "\"tekken\"", "\"default\"", "\"gpt-4o\"", "<0x00>",
                                  "\"tokenizer.chat_template\":", "\"general.name\":\"phi-3\"", "\\u2581", "\\u0120"});
  words["tekken"].insert({"\x1e", "\"config\":{", "\"vocab\":[", "\"special_tokens\":[", "\"rank\":",
                          "\"token_bytes\":\"", "\"token_str\":", "\"is_control\":", "\\\\p{L}", "gICA", "null"});
  words["vocab_json"].insert({"\x1e", "#version: 0.2\n", "\"tokenizer_class\":", "\"CodeGenTokenizer\"",
                              "\"added_tokens_decoder\":{", "\"content\":", "\"bos_token\":", "\"unk_token\":null",
                              "\"special\":true", "\\u0120", "\"chat_template\":[{\"name\":\"default\",\"template\":"});
  words["template"].insert({"{{ ",
                            " }}",
                            "{% ",
                            " %}",
                            "{#",
                            "#}",
                            "{%- ",
                            " -%}",
                            "{%+",
                            "for m in messages",
                            "endfor",
                            "if ",
                            "elif ",
                            "else",
                            "endif",
                            "set x = ",
                            "endset",
                            "macro f(a, b=1)",
                            "endmacro",
                            "call f()",
                            "endcall",
                            "filter upper",
                            "endfilter",
                            "with y = ",
                            "endwith",
                            "recursive",
                            "loop(",
                            "loop.changed(",
                            "loop.cycle(",
                            "namespace(",
                            "raise_exception(",
                            "caller()",
                            "kwargs",
                            "varargs",
                            "|tojson(indent=2)",
                            "|map(attribute='role')",
                            "|selectattr('role', '==', ",
                            "|groupby('role')",
                            "|sort",
                            "|join",
                            "|list",
                            "|dictsort",
                            "|round",
                            "|format(",
                            "|indent",
                            ".split(",
                            ".replace(",
                            ".items()",
                            ".format(",
                            "[::-1]",
                            "[1:]",
                            " is defined",
                            " is mapping",
                            " ~ ",
                            " ** ",
                            " // ",
                            " % ",
                            " not in ",
                            "messages",
                            "tools",
                            "range(",
                            "'%s'",
                            "'{:>5}'",
                            "{% raw %}",
                            "{% endraw %}",
                            "{% generation %}",
                            "{% endgeneration %}",
                            "{% break %}",
                            "strftime_now('%Y')",
                            "\\u00e9"});
  words["imatrix"].insert({"GGUF", ".in_sum2", ".counts", "imatrix.datasets", "imatrix.chunk_count",
                           make_number_word(INT32_MAX, 4), make_number_word(UINT32_MAX, 4), make_number_word(1, 8),
                           make_number_word(30, 4)});
  words["delta"].insert({"\x1e", "\"version\":1", "\"removed\":", "\"order\":", "\"metadata\":", "\"attributes\":",
                         "sparse", "xor", "\"word\":", "\"shuffled\":true", "poise.config", "poise.vocabulary"});
  words["edit"].insert({"\n", "!\n", "=", "-general.architecture\n", "general.name=", "general.alignment", "split.no",
                        "poise.config", "poise.card", "poise.vocabulary", "tokenizer.ggml.model", "llama.block_count=",
                        "GGUF", "ZTEN1000", "true", "-1", "1e400", make_number_word(4, 4), make_number_word(9, 4)});
  words["tokenizer_files"].insert({"\x1e", "#version: ", "<unk>", "<pad> 1", "<eos>", " 4294967295", "\r\n"});
  words["llama2c"] = {"24ka", make_number_word(1, 4), make_number_word(2, 4), make_number_word(UINT32_MAX, 4),
                      "<0x0A>"};
  words["numpy"] = {"\x93NUMPY\x01",  "\x93NUMPY\x02", "\x93NUMPY\x03", "'descr':",   "'fortran_order':",
                    "'shape':",       "True",          "False",         "(1,)",       "(2, 3)",
                    "'<f4'",          "'>c16'",        "'|b1'",         "'<U1'",      "'|S1'",
                    "[('a', '<f4')]", "PK\x01\x02",    "PK\x03\x04",    "PK\x05\x06", "PK\x06\x06",
                    "PK\x06\x07",     "PK\x07\x08",    ".npy"};
  words["onnx"] = {"location",  "offset",   "length",
                   "weights",   "\x0a\x01", "\x10\x07",
                   "\x12\x04",  "\x1a\x04", "\x22\x04",
                   "\x2a\x04",  "\x32\x04", "\x3a\x04",
                   "\x42\x01w", "\x4a\x08", "\x52\x08",
                   "\x5a\x04",  "\x6a\x04", "\x70\x01",
                   "\x7a\x04",  "Constant", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"};
  words["flax"] = {"\xb9__msgpack_chunked_array__",
                   "\xa5shape",
                   "\xa6"
                   "chunks",
                   "\xa6params",
                   "\xa7"
                   "float32",
                   "\xa8"
                   "bfloat16",
                   "\xad"
                   "float8_e4m3fn",
                   "\xa4"
                   "bool",
                   "\xc7",
                   "\xc8",
                   "\xc9",
                   "\xd8\x01",
                   "\x93",
                   "\x92",
                   "\x81",
                   "\xdc",
                   "\xdd",
                   "\xde",
                   "\xdf",
                   "\xc4",
                   "\xc6",
                   "\xcf\xff\xff\xff\xff\xff\xff\xff\xff"};
  words["pytorch"] = {"ctorch._utils\n_rebuild_tensor_v2\n",
                      "ctorch._utils\n_rebuild_tensor_v3\n",
                      "ctorch._utils\n_rebuild_parameter\n",
                      "ctorch._utils\n_rebuild_sparse_tensor\n",
                      "ctorch._utils\n_rebuild_sparse_csr_tensor\n",
                      "ctorch._utils\n_rebuild_qtensor\n",
                      "ctorch._tensor\n_rebuild_from_type_v2\n",
                      "ctorch\nHalfStorage\n",
                      "ctorch\nQInt8Storage\n",
                      "ctorch.storage\nUntypedStorage\n",
                      "ctorch\nbfloat16\n",
                      "ctorch\nSize\n",
                      "ctorch.serialization\n_get_layout\n",
                      "ctorch\nper_tensor_affine\n",
                      "cnumpy.core.multiarray\nscalar\n",
                      "c_codecs\nencode\n",
                      "ccollections\nOrderedDict\n",
                      "cbuiltins\nset\n",
                      "cos\nsystem\n",
                      "_metadata",
                      "state_dict",
                      ")R",
                      "}(",
                      "](",
                      "tR",
                      "\x85R",
                      "q\x01",
                      "h\x01",
                      "\x94",
                      "\x93",
                      "\x8c\x01",
                      "\x8a\x08",
                      "\x8b\xff\xff\xff\x7f",
                      "PK\x05\x06"};
  words["open_verify"] = words["zt"];
  words["open_verify"].insert(words["alt"].begin(), words["alt"].end());
  words["c_calls"] = words["open_verify"];
  words["format"] = words["open_verify"];
  for (const Format* format : list_all_formats()) words["format"].insert(fmt::format("{}\n", format->info.name));
  words["round_trip"] = {make_number_word(UINT32_MAX, 4)};
  for (auto& [target, list] : words) {
    list.erase("");
    seeds.write_dictionary(target, list);
  }
}

std::string from_hex(std::istream& lines, const fs::path& path) {
  std::string digits;
  for (std::string line; std::getline(lines, line);) {
    for (const char c : line.substr(0, line.find('#'))) {
      if (std::isxdigit(static_cast<unsigned char>(c)) != 0) digits += c;
    }
  }
  if (digits.empty() || digits.size() % 2 != 0)
    fuzz::report(fmt::format("{}: expected pairs of hexadecimal digits", path.string()));
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

void write_findings(SeedWriter& seeds, const fs::path& findings) {
  if (!fs::exists(findings)) return;  // git keeps no empty folder
  for (const auto& entry : fs::directory_iterator(findings)) {
    if (entry.path().extension() != ".hex") continue;
    const std::string name = entry.path().stem().string();
    std::ifstream lines(entry.path());
    seeds.seed(name.substr(0, name.find('-')), "finding-" + name, from_hex(lines, entry.path()));
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::fputs("usage: fuzz_seeds DIRECTORY FINDINGS\n", stderr);
    return 2;
  }
  try {
    SeedWriter seeds(arguments[1]);
    write_random_seeds(seeds);
    write_whole_model(seeds);
    write_older_ztensors(seeds);
    write_llama2c_seeds(seeds);
    write_pickle_seeds(seeds);
    write_onnx_seeds(seeds);
    write_flax_seeds(seeds);
    write_text_seeds(seeds);
    write_importance_seeds(seeds);
    write_delta_seeds(seeds);
    write_findings(seeds, arguments[2]);
    write_dictionaries(seeds);
    seeds.expect_all_formats();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
