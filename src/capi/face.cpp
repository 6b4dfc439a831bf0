#include "capi/face.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <limits>
#include <new>
#include <system_error>
#include <thread>

#include <poise/tiny_llama.hpp>

#include "kernels/cache_type.hpp"

namespace poise::capi {
namespace {

// A number of poise_dtype is the number of DType plus one. Programs were compiled with these numbers, so both lists
// only grow at their ends.
#define POISE_SAME_NUMBER(dtype, number) static_assert(static_cast<int>(DType::dtype) + 1 == (number))
POISE_SAME_NUMBER(f64, POISE_F64);
POISE_SAME_NUMBER(f32, POISE_F32);
POISE_SAME_NUMBER(f16, POISE_F16);
POISE_SAME_NUMBER(bf16, POISE_BF16);
POISE_SAME_NUMBER(f8_e4m3, POISE_F8_E4M3);
POISE_SAME_NUMBER(f8_e5m2, POISE_F8_E5M2);
POISE_SAME_NUMBER(f8_e4m3fnuz, POISE_F8_E4M3FNUZ);
POISE_SAME_NUMBER(f8_e5m2fnuz, POISE_F8_E5M2FNUZ);
POISE_SAME_NUMBER(f8_e8m0, POISE_F8_E8M0);
POISE_SAME_NUMBER(f4_e2m1, POISE_F4_E2M1);
POISE_SAME_NUMBER(complex64, POISE_COMPLEX64);
POISE_SAME_NUMBER(complex128, POISE_COMPLEX128);
POISE_SAME_NUMBER(i64, POISE_I64);
POISE_SAME_NUMBER(i32, POISE_I32);
POISE_SAME_NUMBER(i16, POISE_I16);
POISE_SAME_NUMBER(i8, POISE_I8);
POISE_SAME_NUMBER(u64, POISE_U64);
POISE_SAME_NUMBER(u32, POISE_U32);
POISE_SAME_NUMBER(u16, POISE_U16);
POISE_SAME_NUMBER(u8, POISE_U8);
POISE_SAME_NUMBER(boolean, POISE_BOOLEAN);
POISE_SAME_NUMBER(qint8, POISE_QINT8);
POISE_SAME_NUMBER(qint4, POISE_QINT4);
static_assert(static_cast<int>(DType::unknown) == POISE_QINT4, "a new element type needs a number in poise_dtype");
#undef POISE_SAME_NUMBER

poise_status find_status(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_file: return POISE_INVALID_FILE;
    case ErrorKind::unsupported: return POISE_UNSUPPORTED;
    case ErrorKind::not_found: return POISE_NOT_FOUND;
    case ErrorKind::bad_argument: return POISE_BAD_ARGUMENT;
    case ErrorKind::io: return POISE_IO;
    case ErrorKind::cancelled: return POISE_CANCELLED;
    case ErrorKind::internal: return POISE_INTERNAL;
  }
  return POISE_INTERNAL;
}

poise_status fill_error(poise_error* error, poise_status kind, std::string_view message, std::string_view path = {},
                        std::optional<std::uint64_t> offset = {}) {
  if (error == nullptr) return kind;
  error->kind = kind;
  error->offset = offset.value_or(POISE_NO_OFFSET);
  copy_text(message, error->message);
  copy_text(path, error->path);
  return kind;
}

bool is_continuation_byte(char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) == 0x80U; }

// A struct that may grow ends with its last field, without padding: a newer version would use the bytes of the padding,
// which older programs leave uninitialized.
#define POISE_ENDS_WITH(name, field) static_assert(offsetof(name, field) + sizeof(name::field) == sizeof(name))
POISE_ENDS_WITH(poise_progress_event, item);
POISE_ENDS_WITH(poise_finding, reserved);
POISE_ENDS_WITH(poise_format, writable);
POISE_ENDS_WITH(poise_dtype_info, bits);
POISE_ENDS_WITH(poise_open_options, reserved);
POISE_ENDS_WITH(poise_model_info, has_vocabulary);
POISE_ENDS_WITH(poise_vocabulary, normalizer);
POISE_ENDS_WITH(poise_token, type);
POISE_ENDS_WITH(poise_tensor_info, affine);
POISE_ENDS_WITH(poise_part_info, reserved);
POISE_ENDS_WITH(poise_verify_options, reserved);
POISE_ENDS_WITH(poise_verify_report, warnings);
POISE_ENDS_WITH(poise_hash_options, progress);
POISE_ENDS_WITH(poise_part_hash, sha256);
POISE_ENDS_WITH(poise_model_hash, content);
POISE_ENDS_WITH(poise_tensor_statistics, histogram_counts);
POISE_ENDS_WITH(poise_statistics_options, progress);
POISE_ENDS_WITH(poise_report_options, overwrite);
POISE_ENDS_WITH(poise_storage, shard_size);
POISE_ENDS_WITH(poise_card, uuid);
POISE_ENDS_WITH(poise_convert_options, text);
POISE_ENDS_WITH(poise_convert_report, details);
POISE_ENDS_WITH(poise_writer_options, reserved);
POISE_ENDS_WITH(poise_tensor_plan, reserved);
POISE_ENDS_WITH(poise_session_options, cancel_user);
POISE_ENDS_WITH(poise_chat_template, end);
POISE_ENDS_WITH(poise_session_info, layers);
POISE_ENDS_WITH(poise_generate_options, stop_count);
POISE_ENDS_WITH(poise_generation, last);
POISE_ENDS_WITH(poise_finished_text, reserved);
POISE_ENDS_WITH(poise_extract_lora_options, dry_run);
POISE_ENDS_WITH(poise_lora_report, details);
POISE_ENDS_WITH(poise_convert_lora_options, reserved);
POISE_ENDS_WITH(poise_delta_options, reserved);
POISE_ENDS_WITH(poise_delta_report, details);
POISE_ENDS_WITH(poise_imatrix_options, reserved);
POISE_ENDS_WITH(poise_imatrix_report, details);
POISE_ENDS_WITH(poise_fetch_options, reserved);
POISE_ENDS_WITH(poise_fetch_report, bytes_kept);
#undef POISE_ENDS_WITH

}  // namespace

poise_status report_success(poise_error* error) noexcept { return fill_error(error, POISE_OK, {}); }

poise_status report_exception(poise_error* error) noexcept {
  try {
    throw;
  } catch (const Error& failure) {
    return fill_error(error, find_status(failure.kind()), failure.message(), failure.path(), failure.offset());
  } catch (const std::bad_alloc&) {
    return fill_error(error, POISE_OUT_OF_MEMORY, "out of memory");
  } catch (const std::system_error& failure) {  // the system gives no thread, or no lock
    return fill_error(error, POISE_IO, failure.what());
  } catch (const std::exception& failure) {
    const bool no_thread = std::string_view(failure.what()).starts_with("pthread_create");  // from oneTBB
    return fill_error(error, no_thread ? POISE_IO : POISE_INTERNAL, failure.what());
  } catch (...) {
    return fill_error(error, POISE_INTERNAL, "an exception from outside Poise");
  }
}

void refuse(std::string message) { throw Error(ErrorKind::bad_argument, std::move(message)); }
void refuse_missing(std::string message) { throw Error(ErrorKind::not_found, std::move(message)); }

void check_index(std::string_view kind, std::size_t index, std::size_t count) {
  if (index >= count) refuse_missing(fmt::format("{} {} is out of range: there are {}", kind, index, count));
}

std::string_view require_text(const char* text, const char* parameter) { return &dereference(text, parameter); }

std::string_view view_text(poise_text text, const char* parameter) {
  const auto bytes = view_items(text.data, text.size, parameter);
  return {bytes.data(), bytes.size()};
}

std::optional<std::string> copy_optional_text(const char* text) {
  return text == nullptr ? std::nullopt : std::optional<std::string>(text);
}

std::vector<std::string> copy_texts(const char* const* given, std::size_t count, const char* parameter) {
  std::vector<std::string> result;
  for (const char* text : view_items(given, count, parameter)) result.emplace_back(require_text(text, parameter));
  return result;
}

poise_text lend_text(std::string_view text) {
  return text.data() == nullptr ? poise_text{"", 0} : poise_text{text.data(), text.size()};
}

poise_string copy_text_out(std::string_view text) {
  auto* data = static_cast<char*>(std::malloc(text.size() + 1));
  if (data == nullptr) throw std::bad_alloc();
  std::copy(text.begin(), text.end(), data);
  data[text.size()] = '\0';
  return {data, text.size()};
}

void copy_text(std::string_view text, std::span<char> out) noexcept {
  std::size_t size = std::min(text.size(), out.size() - 1);
  if (size < text.size()) {
    while (size > 0 && is_continuation_byte(text[size])) --size;
  }
  std::copy_n(text.begin(), size, out.begin());
  out[size] = '\0';
}

ReadOptions make_read_options(poise_io io) {
  if (io != POISE_IO_MAP && io != POISE_IO_READ)
    refuse(fmt::format("io is {}, expected POISE_IO_MAP or POISE_IO_READ", static_cast<int>(io)));
  return {.io = io == POISE_IO_READ ? IoMode::read : IoMode::map};
}

Progress convert_progress(const poise_progress& progress) {
  if (progress.report == nullptr) return {};
  return [progress](const ProgressEvent& event) {
    const poise_progress_event c_event = {sizeof(poise_progress_event), event.done, event.total, lend_text(event.item)};
    return progress.report(progress.user, &c_event) == 0;
  };
}

void set_storage_options(const poise_storage* given, WriteOptions& options) {
  const poise_storage storage = read_options_or(given, POISE_STORAGE_INIT);
  options.dialect = copy_optional_text(storage.dialect);
  if (storage.zstd_level != 0) options.zstd_level = storage.zstd_level;
  switch (storage.digest) {
    case POISE_DIGEST_USUAL: break;
    case POISE_DIGEST_NONE: options.digest = DigestAlgorithm::none; break;
    case POISE_DIGEST_SHA256: options.digest = DigestAlgorithm::sha256; break;
    case POISE_DIGEST_XXH3: options.digest = DigestAlgorithm::xxh3; break;
    case POISE_DIGEST_CRC32C: options.digest = DigestAlgorithm::crc32c; break;
    default:
      refuse(fmt::format("digest is {}, expected one of poise_digest_algorithm", static_cast<int>(storage.digest)));
  }
  if (storage.align != 0) options.align = storage.align;
  if (storage.shard_size != 0) options.shard_size = storage.shard_size;
}

Card convert_card(const poise_card* given) {
  const poise_card card = read_options_or(given, POISE_CARD_INIT);
  const auto copy_field = [](const char* field) { return copy_optional_text(field).value_or(""); };
  return {copy_field(card.model_type), copy_field(card.base_model),    copy_field(card.author),
          copy_field(card.created_at), copy_field(card.last_modified), copy_field(card.license),
          copy_field(card.uuid)};
}

std::optional<Vocabulary> read_vocabulary_files(const char* vocab, const char* merges) {
  if (vocab == nullptr && merges == nullptr) return std::nullopt;
  return read_tiny_llama_vocabulary(require_text(vocab, "vocab"), require_text(merges, "merges"));
}

poise_dtype to_c_dtype(DType dtype) {
  return dtype == DType::unknown ? POISE_DTYPE_UNKNOWN : static_cast<poise_dtype>(static_cast<int>(dtype) + 1);
}

DType convert_dtype(poise_dtype dtype) {
  if (dtype < POISE_F64 || dtype > POISE_QINT4)
    refuse(fmt::format("dtype is {}, expected one of poise_dtype", static_cast<int>(dtype)));
  return static_cast<DType>(static_cast<int>(dtype) - 1);
}

poise_finding to_c_finding(const Finding& finding) {
  return {sizeof(poise_finding),
          lend_text(finding.message),
          lend_text(finding.path),
          finding.offset.value_or(POISE_NO_OFFSET),
          finding.severity == Severity::error ? POISE_FAULT : POISE_WARNING,
          0};
}

namespace {

// convert_cache_type() needs the same numbers in poise_cache_type and CacheType.
static_assert(static_cast<int>(CacheType::f32) == POISE_CACHE_F32);
static_assert(static_cast<int>(CacheType::f16) == POISE_CACHE_F16);
static_assert(static_cast<int>(CacheType::q8) == POISE_CACHE_Q8);

std::optional<CacheType> convert_cache_type(poise_cache_type given) {
  if (given == POISE_CACHE_DEFAULT) return std::nullopt;
  std::string expected;
  for (const CacheTypeRow& row : list_cache_types()) {
    const auto number = static_cast<int>(row.type);
    if (number == given) return row.type;
    expected += fmt::format("{}{} ({})", expected.empty() ? "" : ", ", number, row.name);
  }
  refuse(fmt::format("cache is {}, expected one of {}, {} (default)", static_cast<int>(given), expected,
                     static_cast<int>(POISE_CACHE_DEFAULT)));
}

// Returns the number of threads, at most UINT_MAX, which sessions reject as too large.
unsigned limit_threads(std::uint64_t given) {
  return static_cast<unsigned>(std::min<std::uint64_t>(given, std::numeric_limits<unsigned>::max()));
}

}  // namespace

poise_tokens copy_tokens_out(std::span<const TokenId> tokens) {
  auto* data = static_cast<std::int32_t*>(std::malloc(std::max<std::size_t>(tokens.size_bytes(), 1)));
  if (data == nullptr) throw std::bad_alloc();
  std::copy(tokens.begin(), tokens.end(), data);
  return {data, tokens.size()};
}

std::string_view view_input(const char* text, std::size_t size) { return view_text({text, size}, "text"); }

SessionOptions read_session_options(const poise_session_options* given) {
  const poise_session_options from = read_options_or(given, POISE_SESSION_OPTIONS_INIT);
  SessionOptions options = {.threads = limit_threads(from.threads),
                            .context = static_cast<std::size_t>(from.context),
                            .exact = from.exact != 0,
                            .cache = convert_cache_type(from.cache)};
  if (from.draft != nullptr && from.draft_lookup != 0)
    refuse("draft and draft_lookup exclude each other; set one of them");
  if (from.draft_lookup != 0) options.draft.emplace();
  if (from.draft != nullptr) options.draft = {.model = load_weights(from.draft->model)};
  return options;
}

GenerateOptions read_generate_options(const poise_generate_options* given) {
  const poise_generate_options from = read_options_or(given, POISE_GENERATE_OPTIONS_INIT);
  GenerateOptions options;
  options.max_tokens = static_cast<std::size_t>(from.max_tokens);
  options.sampling = {.temperature = from.temperature,
                      .top_k = from.top_k,
                      .top_p = from.top_p,
                      .seed = from.seed,
                      .min_p = from.min_p,
                      .repetition_penalty = from.repetition_penalty,
                      .presence_penalty = from.presence_penalty,
                      .frequency_penalty = from.frequency_penalty};
  for (const poise_logit_bias& bias : view_items(from.logit_bias, from.logit_bias_count, "logit_bias"))
    options.sampling.logit_bias.emplace_back(bias.token, bias.bias);
  for (const poise_text& stop : view_items(from.stop, from.stop_count, "stop"))
    options.stop.emplace_back(view_text(stop, "stop"));
  if (from.stop_id >= 0) options.stop_id = from.stop_id;
  options.ignore_eos = from.ignore_eos != 0;
  return options;
}

Cancel::Cancel(const poise_session_options* options) {
  const poise_session_options from = read_options_or(options, POISE_SESSION_OPTIONS_INIT);
  asked_ = from.cancel;
  user_ = from.cancel_user;
}

void Cancel::run(const std::function<void(const std::stop_token& stop)>& work) const {
  if (asked_ == nullptr) return work({});
  if (asked_(user_) != 0) throw Error(ErrorKind::cancelled, "cancelled");
  constexpr auto kBetweenAsks = std::chrono::milliseconds(20);
  std::stop_source source;
  const std::jthread watch([&](const std::stop_token& ends) {
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, ends, kBetweenAsks, [&] { return ends.stop_requested(); })) {
      if (asked_(user_) == 0) continue;
      source.request_stop();
      return;
    }
  });
  work(source.get_token());
}

poise_stop_reason to_c_reason(StopReason reason) {
  switch (reason) {
    case StopReason::end_of_text: return POISE_STOP_END_OF_TEXT;
    case StopReason::max_tokens: return POISE_STOP_MAX_TOKENS;
    case StopReason::context_full: return POISE_STOP_CONTEXT_FULL;
    case StopReason::callback: return POISE_STOP_CALLBACK;
    case StopReason::stop_text: return POISE_STOP_TEXT;
  }
  return POISE_STOP_CALLBACK;
}

}  // namespace poise::capi
