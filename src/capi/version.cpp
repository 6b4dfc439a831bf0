// The names of things.
#include "capi/face.hpp"

using namespace poise::capi;

const char* poise_version(void) { return POISE_VERSION; }

const char* poise_status_name(poise_status status) {
  switch (status) {
    case POISE_OK: return "ok";
    case POISE_INVALID_FILE: return "invalid_file";
    case POISE_UNSUPPORTED: return "unsupported";
    case POISE_NOT_FOUND: return "not_found";
    case POISE_BAD_ARGUMENT: return "bad_argument";
    case POISE_IO: return "io";
    case POISE_CANCELLED: return "cancelled";
    case POISE_OUT_OF_MEMORY: return "out_of_memory";
    case POISE_INTERNAL: return "internal";
  }
  return "unknown";
}

void poise_string_free(poise_string* string) {
  if (string == nullptr) return;
  std::free(string->data);
  *string = {nullptr, 0};
}

void poise_tokens_free(poise_tokens* tokens) {
  if (tokens == nullptr) return;
  std::free(tokens->data);
  *tokens = {nullptr, 0};
}

poise_status poise_format_at(size_t index, poise_format* format, poise_error* error) {
  return guard(error, [&] {
    const auto all = poise::formats();
    if (index >= all.size()) no_such(fmt::format("format {}: there are {}", index, all.size()));
    const poise::FormatInfo& info = all[index];
    give_struct(format, "format",
                {sizeof(poise_format), lend(info.name), lend(info.description), lend(info.extension), info.readable,
                 info.writable});
  });
}

poise_status poise_dtype_describe(poise_dtype dtype, poise_dtype_info* out, poise_error* error) {
  return guard(error, [&] {
    const poise::DTypeInfo& row = poise::info(dtype_from(dtype));
    give_struct(out, "info", {sizeof(poise_dtype_info), lend(row.name), row.bits});
  });
}
