// Sends HTTP requests by libcurl, with limits on time, length and redirects, and with retries.
//
// libcurl verifies TLS certificates. A token goes only to the origin that it belongs to, even after redirects.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bytes/function_ref.hpp"

namespace poise::remote {

struct HttpOptions {
  std::string token;         // sent as "Authorization: Bearer TOKEN"; empty: none
  std::string token_origin;  // a result of find_origin(): requests to other origins have no token
  int attempts = 6;          // failed attempts before an error is reported; one that brings 64 KiB resets the count
  double first_delay = 0.5;  // seconds before the second attempt; the wait doubles with each later one
  double most_delay = 60;    // seconds; the longest wait; if a server asks for more, get_range() throws io
  long stall_seconds = 30;   // a connection without a byte for this time counts as lost
};

struct HttpResponse {
  int status = 0;
  std::string url;                         // the last one, after redirects
  std::string validator;                   // ETag, else Last-Modified; empty: neither
  std::optional<std::uint64_t> length;     // Content-Length
  std::optional<std::uint64_t> range_end;  // one after the last byte of Content-Range
  std::optional<std::uint64_t> range_begin;
  std::optional<std::uint64_t> total;  // bytes of the whole file
  bool is_encoded = false;             // Content-Encoding is not identity
  double retry_after = -1;             // seconds; negative: not stated
  std::string location;
  std::string error_text;  // X-Error-Message, with which the Hub explains a refusal
};

struct RangeRequest {
  std::string url;
  std::string redirected = {};  // where an earlier request was redirected to: tried before `url`; empty: none
  std::uint64_t begin = 0;
  std::uint64_t end = 0;                    // one after the last byte; the file may end before
  bool as_whole = false;                    // send no Range at first: servers send generated texts only whole
  std::string validator = {};               // HttpResponse::validator that the reply must have; empty: any
  std::optional<std::uint64_t> total = {};  // the size that the file must have
  std::uint64_t most_whole = std::uint64_t{64} << 20;  // bytes of a file that a server without ranges may send whole
};

// Receives the body after the reply's header was checked. Pieces arrive in order, without gaps or repetitions, even
// after several attempts.
using ReceiveBytes = FunctionRef<void(std::span<const std::byte> piece)>;

// Calls work() on this thread and on count - 1 others, or on fewer where the system refuses threads. Returns when all
// calls have ended. Requires: work() does not throw, and may run on several threads.
void run_on_threads(std::size_t count, FunctionRef<void()> work);

class HttpClient {
 public:
  explicit HttpClient(HttpOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Gets a range of a file. Continues after a cut connection. Throws bad_argument for a URL that find_origin() refuses,
  // io for a server that fails or cannot be reached, not_found for status 404 and 410, invalid_file for a file that
  // changed or a reply that contradicts itself, unsupported for a server that sends no ranges of a file above
  // `most_whole` bytes. If such a server sends a smaller file, `receive` gets all bytes from `begin` to the file's end,
  // even those after `end`, and the response has no range_begin. Thread-safe.
  HttpResponse get_range(const RangeRequest& request, const ReceiveBytes& receive) const;
  // Gets a text of at most `most_bytes`. Throws as get_range() does: unsupported for a longer text.
  std::string get_text(const std::string& url, std::uint64_t most_bytes) const;

  // Returns the number of requests that were sent, with those of redirects and retries.
  std::uint64_t requests() const { return requests_; }
  const HttpOptions& options() const { return options_; }

 private:
  class Connection;
  class Transfer;

  HttpOptions options_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Connection>> idle_;
  mutable std::atomic<std::uint64_t> requests_ = 0;
};

}  // namespace poise::remote
