// Helps the C calls: turns exceptions into a status and the caller's poise_error, converts values between C++ and C,
// and checks the options that a caller has filled in.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include <poise.h>
#include <poise/convert.hpp>
#include <poise/dtype.hpp>
#include <poise/error.hpp>
#include <poise/format.hpp>
#include <poise/model.hpp>
#include <poise/progress.hpp>
#include <poise/session.hpp>
#include <poise/tokenizer.hpp>

namespace poise::capi {

// Clears the caller's error, and returns POISE_OK.
poise_status report_success(poise_error* error) noexcept;
// Writes the exception that is being handled into the caller's error, and returns its status.
poise_status report_exception(poise_error* error) noexcept;

// Runs the body of a C call. Turns its exceptions into a status and the caller's error.
template <typename Action>
poise_status catch_errors(poise_error* error, Action&& action) noexcept {
  try {
    action();
  } catch (...) {
    return report_exception(error);
  }
  return report_success(error);
}

// Throws bad_argument with this message.
[[noreturn]] void refuse(std::string message);
// Throws not_found with this message.
[[noreturn]] void refuse_missing(std::string message);
// Throws not_found unless there is a `kind` of that index: "token 7 is out of range: there are 5".
void check_index(std::string_view kind, std::size_t index, std::size_t count);

// Returns the object that a pointer points to. Throws bad_argument naming the parameter when it is NULL.
template <typename T>
T& dereference(T* pointer, const char* parameter) {
  if (pointer == nullptr) refuse(fmt::format("{} is NULL", parameter));
  return *pointer;
}

// Returns a view of the caller's `count` items. Throws bad_argument for NULL, unless `count` is 0.
template <typename T>
std::span<T> view_items(T* pointer, std::size_t count, const char* parameter) {
  if (count > 0) dereference(pointer, parameter);
  return {pointer, count};
}

// Each function returns a view of the caller's text. Throws bad_argument, naming the parameter, if it is NULL; the
// second function allows NULL for a size of 0.
std::string_view require_text(const char* text, const char* parameter);
std::string_view view_text(poise_text text, const char* parameter);
// Returns a copy of the caller's text; std::nullopt for NULL.
std::optional<std::string> copy_optional_text(const char* text);

// Returns copies of the caller's `count` texts. Throws bad_argument, naming the parameter, for NULL.
std::vector<std::string> copy_texts(const char* const* given, std::size_t count, const char* parameter);

// Returns a text that borrows the bytes.
poise_text lend_text(std::string_view text);
// Copies a text to memory that poise_string_free() frees. Throws bad_alloc.
poise_string copy_text_out(std::string_view text);

// Fills a char array of a struct. A text that does not fit is cut at the end of a character.
void copy_text(std::string_view text, std::span<char> out) noexcept;

// Gives the size of a struct when its layout became stable. A struct that grows gets a row here, so that programs that
// are older than its last fields still work.
template <typename Struct>
constexpr std::size_t kFirstSize = sizeof(Struct);
template <>
inline constexpr std::size_t kFirstSize<poise_convert_options> = offsetof(poise_convert_options, strip_prefix);
template <>
inline constexpr std::size_t kFirstSize<poise_session_options> = offsetof(poise_session_options, exact);
template <>
inline constexpr std::size_t kFirstSize<poise_generate_options> = offsetof(poise_generate_options, min_p);
template <>
inline constexpr std::size_t kFirstSize<poise_session_info> = offsetof(poise_session_info, hidden_size);

// Returns the size that a caller gives for a struct. Throws bad_argument for a size below kFirstSize, or above 4096.
template <typename Struct>
std::size_t check_size(const Struct& given) {
  static_assert(std::is_trivially_copyable_v<Struct> && offsetof(Struct, size) == 0);
  constexpr std::size_t kMost = 4096;
  if (given.size >= kFirstSize<Struct> && given.size <= kMost) return given.size;
  refuse(
      fmt::format("the size of a struct is {}, expected {}; begin with its initializer", given.size, sizeof(Struct)));
}

// Returns the struct that the caller has filled in. Fields that an older program lacks come from `usual`. Fields of a
// newer program that are unknown here must be zero, and so must reserved ones.
template <typename Struct>
Struct read_struct(const Struct& given, const std::type_identity_t<Struct>& usual) {
  const std::size_t size = check_size(given);
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (reinterpret_cast<const char*>(&given)[i] != 0)
      refuse("a struct has fields that this version of Poise does not know; set them to 0");
  }
  Struct known = usual;
  std::memcpy(&known, &given, std::min(size, sizeof(Struct)));
  known.size = sizeof(Struct);
  if constexpr (requires { known.reserved; }) {
    if (known.reserved != 0) refuse(fmt::format("reserved is {}, expected 0", known.reserved));
  }
  return known;
}

// Returns the options that the caller has filled in, as read_struct() does; `usual` for NULL.
template <typename Options>
Options read_options_or(const Options* given, const std::type_identity_t<Options>& usual) {
  return given == nullptr ? usual : read_struct(*given, usual);
}

// Fills the caller's struct up to its size. Fields of a newer program that are unknown here become zero.
template <typename Struct>
void copy_struct_out(Struct* out, const char* parameter, const Struct& value) {
  const std::size_t size = check_size(dereference(out, parameter));
  auto* bytes = reinterpret_cast<char*>(out);
  const std::size_t known = std::min(size, sizeof(Struct));
  std::memcpy(bytes + sizeof size, reinterpret_cast<const char*>(&value) + sizeof size, known - sizeof size);
  std::memset(bytes + known, 0, size - known);
}

// Returns options that read files in this way. Throws bad_argument for an invalid number.
ReadOptions make_read_options(poise_io io);
// Returns a callback that calls progress.report; empty if that is NULL.
Progress convert_progress(const poise_progress& progress);
// Sets the options that the caller has chosen; none for NULL. Throws bad_argument for an invalid number.
void set_storage_options(const poise_storage* storage, WriteOptions& options);
// Returns the card with the caller's fields; an empty one for NULL.
Card convert_card(const poise_card* card);
// Reads vocab.txt and merges.txt; std::nullopt when both are NULL. Throws bad_argument when only one of them is NULL.
std::optional<Vocabulary> read_vocabulary_files(const char* vocab, const char* merges);

// Returns the C constant of an element type.
poise_dtype to_c_dtype(DType dtype);
// Returns the element type of a C constant. Throws bad_argument for POISE_DTYPE_UNKNOWN and invalid numbers.
DType convert_dtype(poise_dtype dtype);

// Returns a finding that borrows the texts.
poise_finding to_c_finding(const Finding& finding);

// Copies tokens to memory that poise_tokens_free() frees. Throws bad_alloc.
poise_tokens copy_tokens_out(std::span<const TokenId> tokens);
// Returns a view of the parameter `text`. Throws bad_argument for NULL, unless `size` is 0.
std::string_view view_input(const char* text, std::size_t size);

// Each function returns the caller's options, or the defaults for NULL. Throws bad_argument for invalid fields, and for
// fields that exclude each other; the first function also throws what load_weights() throws for a draft.
SessionOptions read_session_options(const poise_session_options* given);
GenerateOptions read_generate_options(const poise_generate_options* given);

// Stops long computations of a session or batch when poise_session_options.cancel requests it.
class Cancel {
 public:
  // Requires: read_session_options() has accepted `options`.
  explicit Cancel(const poise_session_options* options);

  // Runs the work with a stop token. Calls the callback once before the work, on this thread, and then on another
  // thread every 20 ms; a result other than 0 requests the stop. Throws cancelled, and what the work throws.
  void run(const std::function<void(const std::stop_token& stop)>& work) const;

 private:
  int (*asked_)(void* user) = nullptr;
  void* user_ = nullptr;
};

poise_stop_reason to_c_reason(StopReason reason);

}  // namespace poise::capi

// These structs are handles of poise.h; poise_batch and poise_writer are in runtime.cpp and writer.cpp.
// poise_attributes is never defined: a pointer to one points to an object of poise::Attributes.

// Holds a part of a tensor, with texts that calls lend.
struct poise_part {
  const poise_tensor* tensor = nullptr;
  const poise::Part* part = nullptr;
  std::optional<poise::Stored> location;
  std::string digest;  // empty: none
};

// Refers to a tensor of a model by its index, and holds the handles of its parts, which are made on first use.
struct poise_tensor {
  const poise_model* model = nullptr;
  std::size_t index = 0;
  mutable std::once_flag once;
  mutable std::vector<poise_part> parts;
};

// Holds a model, its handles of tensors, and maps that calls lend.
struct poise_model {
  explicit poise_model(poise::Model model);

  // Each function returns an object of the model. Throws not_found if the model does not have it.
  const poise_tensor& tensor(std::size_t index) const;
  const poise_tensor& tensor(std::string_view name) const;
  const poise::Vocabulary& vocabulary() const;

  poise::Model model;
  poise::Attributes card;
  poise::Attributes config;

 private:
  std::unique_ptr<poise_tensor[]> tensors_;
  std::unordered_map<std::string_view, std::size_t> indices_;  // the keys view the tensors' names in place
};

struct poise_tokenizer {
  poise::Tokenizer tokenizer;
};

struct poise_stream {
  explicit poise_stream(const poise::Tokenizer& tokenizer) : stream(tokenizer) {}
  poise::TextStream stream;
  std::string text;  // the text that the last call lent
};

struct poise_session {
  poise::Session session;
  poise::capi::Cancel cancel;
};

namespace poise::capi {

// Returns the C handle of attributes.
inline const poise_attributes* lend_attributes(const Attributes& attributes) {
  return reinterpret_cast<const poise_attributes*>(&attributes);
}
// Returns the attributes of a handle. Throws bad_argument for NULL.
inline const Attributes& require_attributes(const poise_attributes* attributes) {
  return *reinterpret_cast<const Attributes*>(&dereference(attributes, "attributes"));
}

// Returns the tensor of a handle. Throws bad_argument for NULL.
inline const Tensor& require_tensor(const poise_tensor* tensor) {
  const poise_tensor& handle = dereference(tensor, "tensor");
  return handle.model->model.tensors()[handle.index];
}

}  // namespace poise::capi
