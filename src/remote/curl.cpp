#include "remote/curl.hpp"

#include <string>

#include <dlfcn.h>
#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise::remote {
namespace {

constexpr const char* kLibrary = "libcurl.so.4";  // the soname, unchanged since 2006

[[noreturn]] void refuse_library(const char* problem) {
  throw Error(ErrorKind::unsupported,
              fmt::format("cannot load {}, which reads from servers: {}; install Debian's package libcurl4", kLibrary,
                          problem == nullptr ? "unknown error" : problem));
}

template <typename Function>
void find_function(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr) refuse_library(::dlerror());
}

Curl load_library() {
  void* const library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse_library(::dlerror());
  Curl curl{};
  find_function(library, "curl_global_init", curl.global_init);
  find_function(library, "curl_free", curl.free);
  find_function(library, "curl_getdate", curl.getdate);
  find_function(library, "curl_easy_init", curl.easy_init);
  find_function(library, "curl_easy_cleanup", curl.easy_cleanup);
  find_function(library, "curl_easy_reset", curl.easy_reset);
  find_function(library, "curl_easy_setopt", curl.easy_setopt);
  find_function(library, "curl_easy_perform", curl.easy_perform);
  find_function(library, "curl_easy_strerror", curl.easy_strerror);
  find_function(library, "curl_slist_append", curl.slist_append);
  find_function(library, "curl_slist_free_all", curl.slist_free_all);
  find_function(library, "curl_url", curl.url);
  find_function(library, "curl_url_cleanup", curl.url_cleanup);
  find_function(library, "curl_url_get", curl.url_get);
  find_function(library, "curl_url_set", curl.url_set);
  if (const CURLcode code = curl.global_init(CURL_GLOBAL_DEFAULT); code != CURLE_OK)
    throw Error(ErrorKind::io, fmt::format("cannot start libcurl: {}", curl.easy_strerror(code)));
  return curl;
}

}  // namespace

const Curl& load_curl() {
  static const Curl curl = load_library();
  return curl;
}

}  // namespace poise::remote
