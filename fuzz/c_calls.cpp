// Calls poise.h in any order. The first byte gives the length of a program, the next bytes are the program, and the
// rest is the file to open. Each step makes one call, with arguments from the following bytes: numbers of all sizes,
// handles that are NULL or not, texts. The program keeps the rules of poise.h: it uses nothing after freeing the owner.
#include <poise.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "target.hpp"

namespace {

using poise::fuzz::report;

class Program {
 public:
  Program(poise::fuzz::Bytes steps, poise::fuzz::Bytes file) : steps_(steps), file_(file) {}

  ~Program() {
    for (poise_session* session : sessions_) poise_session_free(session);
    poise_batch_free(batch_);
    drop_tokenizer();
    poise_writer_free(writer_);
    for (poise_model* model : models_) poise_model_free(model);
  }

  void run() {
    open_model();
    while (!steps_.empty()) step();
  }

 private:
  std::uint8_t byte() {
    if (steps_.empty()) return 0;
    const auto value = std::to_integer<std::uint8_t>(steps_.front());
    steps_ = steps_.subspan(1);
    return value;
  }

  // Returns a number, mostly small, sometimes the largest one.
  std::uint64_t number() {
    const std::uint8_t choice = byte();
    if (choice < 208) return choice % 8;
    if (choice < 232) return std::uint64_t{byte()} << (choice % 8 * 8);
    return UINT64_MAX - choice % 4;
  }

  const char* text() {
    static constexpr std::array<const char*, 16> kTexts = {
        "",
        "data",
        "values",
        "hidden_size",
        "model_type",
        "sliding_window",
        "scales",
        "token_embedding.weight",
        "model.norm.weight",
        "a",
        "{\"a\": 1}",
        "{\"hidden_size\": 64, \"intermediate_size\": 64, \"num_hidden_layers\": 1, \"num_attention_heads\": 4}",
        "[",
        "zt",
        "alt",
        nullptr};
    return kTexts[byte() % kTexts.size()];
  }

  template <typename Slots>
  auto& slot(Slots& slots) {
    return slots[byte() % slots.size()];
  }

  // Returns a handle, mostly one that is not NULL if there is any.
  template <typename Slots>
  auto& pick(Slots& slots) {
    auto& chosen = slot(slots);
    if (chosen != nullptr || byte() % 16 == 0) return chosen;
    const auto found = std::find_if(slots.begin(), slots.end(), [](const auto* handle) { return handle != nullptr; });
    return found == slots.end() ? chosen : *found;
  }

  // Chooses one of `count` calls with a handle: if it is NULL, mostly the first, which makes it.
  unsigned call(const void* handle, unsigned count) {
    return handle == nullptr && byte() % 16 != 0 ? 0 : byte() % count;
  }

  poise_error* error() { return byte() % 8 == 0 ? nullptr : &error_; }

  // Checks that the status of a call and its error agree.
  bool is_ok(poise_status status, const poise_error* error) {
    if (status < POISE_OK || status > POISE_INTERNAL)
      report(fmt::format("{} is not a status", static_cast<int>(status)));
    if (error != nullptr && error->kind != status) report("the error has another kind than the status");
    if (error != nullptr && std::memchr(error->message, 0, sizeof error->message) == nullptr)
      report("a message does not end with NUL");
    if (error != nullptr && (error->message[0] == '\0') != (status == POISE_OK))
      report("a failure has no message, or a success has one");
    if (status == POISE_INTERNAL || status == POISE_OUT_OF_MEMORY)
      report(fmt::format("{}: {}", poise_status_name(status), error_.message));
    return status == POISE_OK;
  }

  void drop_tokenizer() {
    poise_stream_free(stream_);
    poise_tokenizer_free(tokenizer_);
    stream_ = nullptr;
    tokenizer_ = nullptr;
  }

  void free_model() {
    poise_model*& model = slot(models_);
    poise_model_free(model);
    model = nullptr;
    attributes_ = nullptr;  // may belong to that model
    tensor_ = nullptr;
  }

  void open_model() {
    static constexpr std::array<const char*, 8> kNames = {"fuzz.alt", "fuzz.zt", "fuzz.tllm", "fuzz.safetensors",
                                                          "fuzz",     "",        "fuzz.bin",  nullptr};
    poise_model*& model = slot(models_);
    if (model != nullptr) return;
    poise_open_options options = POISE_OPEN_OPTIONS_INIT;
    options.io = static_cast<poise_io>(byte() % 16 == 0 ? 2 : byte() % 2);
    poise_error* const to = error();
    is_ok(poise_open_memory(file_.data(), file_.size(), kNames[byte() % kNames.size()],
                            byte() % 2 == 0 ? nullptr : &options, &model, to),
          to);
  }

  void describe() {
    const poise_model* const model = pick(models_);
    poise_error* const to = error();
    poise_model_info info = POISE_MODEL_INFO_INIT;
    poise_finding finding = POISE_FINDING_INIT;
    poise_vocabulary vocabulary = POISE_VOCABULARY_INIT;
    poise_token token = POISE_TOKEN_INIT;
    poise_merge merge;
    switch (byte() % 5) {
      case 0: is_ok(poise_model_describe(model, &info, to), to); break;
      case 1: is_ok(poise_model_warning(model, number(), &finding, to), to); break;
      case 2: is_ok(poise_model_vocabulary(model, &vocabulary, to), to); break;
      case 3: is_ok(poise_vocabulary_token(model, number(), &token, to), to); break;
      case 4: is_ok(poise_vocabulary_merge(model, number(), &merge, to), to); break;
    }
  }

  void take_attributes() {
    const poise_model* const model = pick(models_);
    poise_error* const to = error();
    switch (byte() % 4) {
      case 0: is_ok(poise_model_card(model, &attributes_, to), to); break;
      case 1: is_ok(poise_model_config(model, &attributes_, to), to); break;
      case 2: is_ok(poise_model_attributes(model, &attributes_, to), to); break;
      case 3: attributes_ = describe_tensor().attributes; break;
    }
  }

  void use_attributes() {
    poise_error* const to = error();
    if (attributes_ == nullptr) take_attributes();
    poise_text found{nullptr, 0};
    poise_value_type type = POISE_VALUE_NULL;
    poise_string json{nullptr, 0};
    poise_text words;
    poise_bytes bytes;
    std::int64_t integer = 0;
    std::uint64_t positive = 0;
    double real = 0;
    int truth = 0;
    std::size_t count = 0;
    is_ok(poise_attributes_at(attributes_, number(), &found, &type, to), to);
    const std::string key(found.data == nullptr ? "" : found.data, found.size);
    const char* const name = byte() % 2 == 0 ? key.c_str() : text();
    switch (byte() % 8) {
      case 0: is_ok(poise_attributes_count(attributes_, &count, to), to); break;
      case 1: is_ok(poise_attributes_get_boolean(attributes_, name, &truth, to), to); break;
      case 2: is_ok(poise_attributes_get_integer(attributes_, name, &integer, to), to); break;
      case 3: is_ok(poise_attributes_get_unsigned(attributes_, name, &positive, to), to); break;
      case 4: is_ok(poise_attributes_get_real(attributes_, name, &real, to), to); break;
      case 5: is_ok(poise_attributes_get_text(attributes_, name, &words, to), to); break;
      case 6: is_ok(poise_attributes_get_bytes(attributes_, name, &bytes, to), to); break;
      case 7: is_ok(poise_attributes_get_json(attributes_, name, &json, to), to); break;
    }
    poise_string_free(&json);
  }

  void take_tensor() {
    const poise_model* const model = pick(models_);
    poise_error* const to = error();
    if (byte() % 4 == 0) {
      is_ok(poise_tensor_find(model, text(), &tensor_, to), to);
    } else {
      is_ok(poise_tensor_at(model, number(), &tensor_, to), to);
    }
  }

  // Returns the description of the current tensor; zeros without one.
  poise_tensor_info describe_tensor() {
    poise_error* const to = error();
    poise_tensor_info info = POISE_TENSOR_INFO_INIT;
    is_ok(poise_tensor_describe(tensor_, &info, to), to);
    return info;
  }

  void use_tensor() {
    poise_error* const to = error();
    if (tensor_ == nullptr) take_tensor();
    const poise_part* part = nullptr;
    poise_part_info info = POISE_PART_INFO_INIT;
    poise_bytes bytes{nullptr, 0};
    if (!is_ok(poise_tensor_part(tensor_, text(), &part, to), to))
      is_ok(poise_tensor_part_at(tensor_, number(), &part, to), to);
    is_ok(poise_part_describe(part, &info, to), to);
    if (is_ok(poise_part_map(part, &bytes, to), to) && bytes.size > 0) touch(bytes);
    const std::size_t size = number() % 4096;
    std::vector<char> out(size);
    is_ok(poise_part_read(part, number(), out.data(), size, to), to);
  }

  // Reads lent bytes, so that AddressSanitizer checks that they exist.
  static void touch(poise_bytes bytes) {
    const auto* data = static_cast<const volatile char*>(bytes.data);
    (void)data[0];
    (void)data[bytes.size - 1];
  }

  void decode() {
    poise_error* const to = error();
    if (tensor_ == nullptr) take_tensor();
    const auto dtype = static_cast<poise_dtype>(byte() % 32);
    const std::uint64_t count = number();
    const std::size_t size = byte() % 4 == 0 ? static_cast<std::size_t>(number() % 4096)
                                             : static_cast<std::size_t>(count % 1024) * (dtype == POISE_F32 ? 4 : 2);
    std::vector<char> out(size);
    is_ok(poise_tensor_decode(tensor_, dtype, number(), count, out.data(), size, to), to);
  }

  void hash() {
    const poise_model* const model = pick(models_);
    poise_error* const to = error();
    poise_model_hash hash = POISE_MODEL_HASH_INIT;
    poise_hash_options options = POISE_HASH_OPTIONS_INIT;
    options.progress = {stop_sometimes, this};
    if (!is_small(model)) return;
    is_ok(poise_hash(model, byte() % 2 == 0 ? nullptr : &options, nullptr, nullptr, &hash, to), to);
  }

  static int stop_sometimes(void* user, const poise_progress_event*) {
    return static_cast<Program*>(user)->byte() % 4 == 0;
  }

  // Returns true if the model decodes to few enough bytes to read all of them.
  bool is_small(const poise_model* model) {
    const poise_tensor* tensor = nullptr;
    std::uint64_t left = poise::fuzz::kMostBytes;
    for (std::size_t i = 0; poise_tensor_at(model, i, &tensor, nullptr) == POISE_OK; ++i) {
      if (!is_small(tensor, left)) return false;
    }
    return true;
  }

  // Does the same for a tensor. Subtracts its bytes from `left`.
  static bool is_small(const poise_tensor* tensor, std::uint64_t& left) {
    const poise_part* part = nullptr;
    poise_part_info info = POISE_PART_INFO_INIT;
    for (std::size_t i = 0; poise_tensor_part_at(tensor, i, &part, nullptr) == POISE_OK; ++i) {
      if (poise_part_describe(part, &info, nullptr) != POISE_OK || info.decoded_size > left) return false;
      left -= info.decoded_size;
    }
    return true;
  }

  void tokenize() {
    poise_error* const to = error();
    poise_tokens tokens{nullptr, 0};
    poise_string decoded{nullptr, 0};
    poise_text piece;
    switch (call(tokenizer_, 5)) {
      case 0:
        drop_tokenizer();
        is_ok(poise_tokenizer_create(pick(models_), &tokenizer_, to), to);
        break;
      case 1: {
        const char* const words = text();
        if (is_ok(poise_tokenizer_encode(tokenizer_, words, words == nullptr ? 0 : std::strlen(words), &tokens, to),
                  to)) {
          is_ok(poise_tokenizer_decode(tokenizer_, tokens.data, tokens.count, &decoded, to), to);
        }
        break;
      }
      case 2:
        poise_stream_free(stream_);
        stream_ = nullptr;
        is_ok(poise_stream_create(tokenizer_, &stream_, to), to);
        break;
      case 3: is_ok(poise_stream_add(stream_, token(), &piece, to), to); break;
      case 4: is_ok(poise_stream_finish(stream_, &piece, to), to); break;
    }
    poise_tokens_free(&tokens);
    poise_string_free(&decoded);
  }

  std::int32_t token() { return static_cast<std::int32_t>(static_cast<std::uint32_t>(number())); }

  void run_session() {
    poise_session*& session = pick(sessions_);
    poise_error* const to = error();
    poise_session_info info = POISE_SESSION_INFO_INIT;
    const float* logits = nullptr;
    std::size_t count = 0;
    std::array<std::int32_t, 4> tokens{};
    std::array<double, 4> scores{};
    for (std::int32_t& each : tokens) each = token();
    switch (call(session, 7)) {
      case 0: {
        poise_session_options options = POISE_SESSION_OPTIONS_INIT;
        options.threads = 1;
        options.context = byte() % 2 == 0 ? 0 : number();
        poise_session_free(session);
        session = nullptr;
        is_ok(poise_session_create(pick(models_), &options, &session, to), to);
        break;
      }
      case 1: is_ok(poise_session_describe(session, &info, to), to); break;
      case 2: is_ok(poise_session_feed(session, tokens.data(), byte() % 5, to), to); break;
      case 3:
        if (is_ok(poise_session_logits(session, &logits, &count, to), to)) touch({logits, count * sizeof(float)});
        break;
      case 4: {
        poise_generate_options options = POISE_GENERATE_OPTIONS_INIT;
        options.max_tokens = byte() % 4;
        options.temperature = static_cast<float>(byte() % 3) / 2;
        options.stop_id = token();
        poise_generation generation = POISE_GENERATION_INIT;
        is_ok(poise_session_generate(session, &options, nullptr, nullptr, &generation, to), to);
        break;
      }
      case 5: is_ok(poise_session_reset(session, to), to); break;
      case 6: is_ok(poise_session_log_probabilities(session, tokens.data(), byte() % 5, scores.data(), to), to); break;
    }
  }

  void run_batch() {
    poise_error* const to = error();
    std::array<std::int32_t, 4> tokens{};
    for (std::int32_t& each : tokens) each = token();
    std::size_t count = 0;
    switch (call(batch_, 5)) {
      case 0: {
        poise_session_options options = POISE_SESSION_OPTIONS_INIT;
        options.threads = 1;
        options.context = byte() % 2 == 0 ? 0 : number();
        poise_batch_free(batch_);
        batch_ = nullptr;
        is_ok(poise_batch_create(pick(models_), &options, &batch_, to), to);
        break;
      }
      case 1: {
        poise_generate_options options = POISE_GENERATE_OPTIONS_INIT;
        options.max_tokens = byte() % 4;
        options.temperature = static_cast<float>(byte() % 3) / 2;
        options.stop_id = token();
        is_ok(poise_batch_add(batch_, tokens.data(), byte() % 5, &options, &count, to), to);
        break;
      }
      case 2: is_ok(poise_batch_step(batch_, &count, to), to); break;
      case 3: is_ok(poise_batch_count(batch_, &count, to), to); break;
      case 4: {
        poise_finished_text text = POISE_FINISHED_TEXT_INIT;
        if (!is_ok(poise_batch_finished(batch_, number(), &text, to), to)) break;
        if (text.token_count > 0) touch({text.tokens, text.token_count * sizeof(std::int32_t)});
        if (text.text.size > 0) touch({text.text.data, text.text.size});
        break;
      }
    }
  }

  static int fill(void*, std::uint64_t offset, void* out, std::size_t size) {
    std::memset(out, 0, size);
    return offset > 1U << 20 ? 1 : 0;
  }

  // Returns the name of a format, or NULL.
  const char* choose_format_name() {
    poise_format format = POISE_FORMAT_INIT;
    if (poise_format_at(byte() % 16, &format, nullptr) != POISE_OK) return nullptr;
    format_.assign(format.name.data, format.name.size);
    return format_.c_str();
  }

  void write() {
    poise_error* const to = error();
    const poise_model* const from = pick(models_);
    switch (call(writer_, 10)) {
      case 0: {
        poise_writer_options options = POISE_WRITER_OPTIONS_INIT;
        options.overwrite = 1;
        poise_storage storage = POISE_STORAGE_INIT;
        storage.zstd_level = byte() % 4 == 0 ? 1 : 0;
        storage.digest = static_cast<poise_digest_algorithm>(byte() % 7);
        options.storage = byte() % 4 == 0 ? nullptr : &storage;
        poise_writer_free(writer_);
        writer_ = nullptr;
        const auto path = poise::fuzz::get_scratch_directory() / "written";
        is_ok(poise_writer_create(path.c_str(), choose_format_name(), &options, &writer_, to), to);
        break;
      }
      case 1: is_ok(poise_writer_set_metadata(writer_, from, to), to); break;
      case 2: is_ok(poise_writer_set_config(writer_, text(), to), to); break;
      case 3: is_ok(poise_writer_set_attributes(writer_, text(), to), to); break;
      case 4: {
        poise_vocabulary vocabulary = POISE_VOCABULARY_INIT;
        vocabulary.kind = static_cast<poise_vocabulary_kind>(byte() % 4);
        vocabulary.bos_id = token();
        vocabulary.unk_id = 0;
        vocabulary.add_dummy_prefix = 1;
        is_ok(poise_writer_set_vocabulary(writer_, &vocabulary, to), to);
        break;
      }
      case 5: {
        const char* const words = text();
        poise_token added = POISE_TOKEN_INIT;
        added.text = {words, words == nullptr ? 0 : std::strlen(words)};
        added.type = static_cast<poise_token_type>(byte() % 10);
        is_ok(poise_writer_add_token(writer_, &added, to), to);
        break;
      }
      case 6: {
        const poise_merge merge = {{"a", 1}, {"b", 1}};
        is_ok(poise_writer_add_merge(writer_, &merge, to), to);
        break;
      }
      case 7: {
        const std::array<std::uint64_t, 2> dims = {number(), number()};
        poise_tensor_plan plan = POISE_TENSOR_PLAN_INIT;
        plan.name = text();
        plan.dtype = static_cast<poise_dtype>(byte() % 32);
        plan.rank = byte() % 3;
        plan.dims = dims.data();
        plan.affine = {static_cast<float>(byte()) - 8, 0, static_cast<float>(byte() % 3), byte() % 2};
        plan.fill = fill;
        is_ok(poise_writer_add_tensor(writer_, &plan, to), to);
        break;
      }
      case 8:
        if (std::uint64_t left = poise::fuzz::kMostBytes; tensor_ == nullptr || is_small(tensor_, left))
          is_ok(poise_writer_copy_tensor(writer_, tensor_, to), to);
        break;
      case 9: is_ok(poise_writer_finish(writer_, to), to); break;
    }
  }

  void step() {
    switch (byte() % 17) {
      case 0: return free_model();
      case 1:
      case 2: return open_model();
      case 3: return describe();
      case 4: return take_attributes();
      case 5: return use_attributes();
      case 6:
      case 7: return take_tensor();
      case 8: return use_tensor();
      case 9: return decode();
      case 10: return hash();
      case 11: return tokenize();
      case 12:
      case 13: return run_session();
      case 14:
      case 15: return write();
      case 16: return run_batch();
    }
  }

  poise::fuzz::Bytes steps_;
  poise::fuzz::Bytes file_;
  poise_error error_{};
  std::string format_;
  std::array<poise_model*, 3> models_{};
  std::array<poise_session*, 2> sessions_{};
  poise_batch* batch_ = nullptr;
  poise_tokenizer* tokenizer_ = nullptr;
  poise_stream* stream_ = nullptr;
  poise_writer* writer_ = nullptr;
  const poise_attributes* attributes_ = nullptr;
  const poise_tensor* tensor_ = nullptr;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto input = poise::fuzz::bytes_of(data + 1, size - 1);
  const std::size_t length = std::min<std::size_t>(data[0], input.size());
  const std::vector<std::byte> file(input.begin() + static_cast<std::ptrdiff_t>(length),
                                    input.end());  // a block of exactly that size
  poise::fuzz::expect_sound(3 * size, [&] { Program(input.first(length), file).run(); });
  return 0;
}
