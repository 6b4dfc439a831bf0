// Helpers of every C call: they turn exceptions into a status and the caller's poise_error, and C++ values into C ones,
// and check the options that a caller has filled in.
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

poise_status succeed(poise_error* error) noexcept;
// Requires: an exception is being handled.
poise_status fail(poise_error* error) noexcept;

// Runs the body of a C call.
template <typename Action>
poise_status guard(poise_error* error, Action&& action) noexcept {
  try {
    action();
  } catch (...) {
    return fail(error);
  }
  return succeed(error);
}

[[noreturn]] void refuse(std::string message);          // bad_argument
[[noreturn]] void refuse_missing(std::string message);  // not_found
// Throws not_found unless there is a `kind` of that index: "token 7 is out of range: there are 5".
void check_index(std::string_view kind, std::size_t index, std::size_t count);

// Returns the object that a pointer points to. Throws bad_argument naming the parameter when it is NULL.
template <typename T>
T& at(T* pointer, const char* parameter) {
  if (pointer == nullptr) refuse(fmt::format("{} is NULL", parameter));
  return *pointer;
}

// Returns `count` items from a caller; NULL is valid only for zero items.
template <typename T>
std::span<T> view_items(T* pointer, std::size_t count, const char* parameter) {
  if (count > 0) at(pointer, parameter);
  return {pointer, count};
}

std::string_view require_text(const char* text, const char* parameter);
std::string_view view(poise_text text, const char* parameter);
std::optional<std::string> copy_optional_text(const char* text);

poise_text lend(std::string_view text);
poise_string copy_text_out(std::string_view text);  // throws bad_alloc

// Fills a char array of a struct; cuts text that does not fit between two characters.
void copy_text(std::string_view text, std::span<char> out) noexcept;

// Gives the size of a struct in version 0.2, the first with a stable layout. A struct that grows gets a row here, so
// that programs that are older than its last fields still work.
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

// Returns the size that a caller gives for a struct: at least its first size, and at most the size that this library
// has.
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
      refuse("a struct has fields that this version of Poise does not know");
  }
  Struct known = usual;
  std::memcpy(&known, &given, std::min(size, sizeof(Struct)));
  known.size = sizeof(Struct);
  if constexpr (requires { known.reserved; }) {
    if (known.reserved != 0) refuse(fmt::format("reserved is {}, expected 0", known.reserved));
  }
  return known;
}

// Returns the same for options; NULL means the usual ones.
template <typename Options>
Options read_options_or(const Options* given, const std::type_identity_t<Options>& usual) {
  return given == nullptr ? usual : read_struct(*given, usual);
}

// Fills the caller's struct up to its size. Fields of a newer program that are unknown here become zero.
template <typename Struct>
void copy_struct_out(Struct* out, const char* parameter, const Struct& value) {
  const std::size_t size = check_size(at(out, parameter));
  auto* bytes = reinterpret_cast<char*>(out);
  const std::size_t known = std::min(size, sizeof(Struct));
  std::memcpy(bytes + sizeof size, reinterpret_cast<const char*>(&value) + sizeof size, known - sizeof size);
  std::memset(bytes + known, 0, size - known);
}

ReadOptions read_options(poise_io io);
Progress progress_from(const poise_progress& progress);
// These two accept NULL, which sets no option and no field.
void set_storage(const poise_storage* storage, WriteOptions& options);
Card card_from(const poise_card* card);
// Reads vocab.txt and merges.txt; std::nullopt when both are NULL.
std::optional<Vocabulary> read_vocabulary_files(const char* vocab, const char* merges);

poise_dtype to_c_dtype(DType dtype);
// Throws bad_argument for unknown types and invalid numbers.
DType dtype_from(poise_dtype dtype);

// Borrows the texts.
poise_finding to_c_finding(const Finding& finding);

// Conversions between C and C++ for sessions and batches: texts, tokens, options and reasons.

// Copies tokens to memory that poise_tokens_free() frees. Throws bad_alloc.
poise_tokens copy_tokens_out(std::span<const TokenId> tokens);
std::string_view view_input(const char* text, std::size_t size);

// Return the usual options for NULL. Throw bad_argument for fields that make no sense.
SessionOptions read_session_options(const poise_session_options* given);
GenerateOptions read_generate_options(const poise_generate_options* given);

// Stops long computations of a session or batch if a C program wants them to end: its `cancel`.
class Cancel {
 public:
  // Requires: read_session_options() has accepted them.
  explicit Cancel(const poise_session_options* options);

  // Runs the work with a token that is stopped when the program wants that. It is asked before, on this thread, and
  // then on another one. Throws cancelled, and what the work throws.
  void run(const std::function<void(const std::stop_token& stop)>& work) const;

 private:
  int (*asked_)(void* user) = nullptr;
  void* user_ = nullptr;
};

poise_stop_reason to_c_reason(StopReason reason);

}  // namespace poise::capi

// The handles of poise.h. poise_attributes is never defined: a pointer to one is a pointer to the C++ object.

struct poise_part {
  const poise_tensor* tensor = nullptr;
  const poise::Part* part = nullptr;
  std::optional<poise::Stored> location;
  std::string digest;  // empty: none
};

// Holds a tensor in its model, and its parts, made on first use.
struct poise_tensor {
  const poise_model* model = nullptr;
  std::size_t index = 0;
  mutable std::once_flag once;
  mutable std::vector<poise_part> parts;
};

struct poise_model {
  explicit poise_model(poise::Model model);

  // These throw not_found.
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
  std::string text;  // the last one handed out
};

struct poise_session {
  poise::Session session;
  poise::capi::Cancel cancel;
};

namespace poise::capi {

inline const poise_attributes* c_attributes(const Attributes& attributes) {
  return reinterpret_cast<const poise_attributes*>(&attributes);
}
inline const Attributes& require_attributes(const poise_attributes* attributes) {
  return *reinterpret_cast<const Attributes*>(&at(attributes, "attributes"));
}

// Returns the tensor of a handle.
inline const Tensor& require_tensor(const poise_tensor* tensor) {
  const poise_tensor& handle = at(tensor, "tensor");
  return handle.model->model.tensors()[handle.index];
}

}  // namespace poise::capi
