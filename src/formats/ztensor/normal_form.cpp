#include "formats/ztensor/normal_form.hpp"

#include <cstdlib>
#include <memory>
#include <new>

#include <utf8proc.h>

namespace poise::ztensor {

std::string normal_form_c(std::string_view text) {
  utf8proc_uint8_t* normal = nullptr;
  const auto bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
                   &normal, static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  if (bytes == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  if (bytes < 0) return std::string(text);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(normal, std::free);
  return {reinterpret_cast<const char*>(normal), static_cast<std::size_t>(bytes)};
}

}  // namespace poise::ztensor
