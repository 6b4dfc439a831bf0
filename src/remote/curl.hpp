// Loads libcurl when a URL needs it. If the command were linked with it, its 27 libraries would take 4 MB, and half of
// the time in which the command starts.
#pragma once

#include <curl/curl.h>

namespace poise::remote {

// Points to libcurl's functions, whose names have the prefix "curl_".
struct Curl {
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_free) free;
  decltype(&::curl_getdate) getdate;
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_reset) easy_reset;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_perform) easy_perform;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
  decltype(&::curl_url) url;
  decltype(&::curl_url_cleanup) url_cleanup;
  decltype(&::curl_url_get) url_get;
  decltype(&::curl_url_set) url_set;
};

// Loads and starts libcurl in the first call, and keeps it. Throws unsupported if this machine lacks it, and io if it
// cannot start.
const Curl& load_curl();

}  // namespace poise::remote
