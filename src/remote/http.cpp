#include "remote/http.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "bytes/number_text.hpp"
#include "bytes/short_text.hpp"
#include "bytes/utf8.hpp"
#include "remote/curl.hpp"
#include "remote/url.hpp"

namespace poise::remote {
namespace {

constexpr int kMostRedirects = 10;
constexpr std::size_t kMostHeaderBytes = 256 << 10;  // the headers of a reply, with those of interim replies
constexpr std::size_t kMostShown = 200;              // bytes of a server's text in a message
constexpr long kConnectSeconds = 20;
constexpr std::uint64_t kProgress = 64 << 10;  // an attempt that brings this many bytes resets the count of failures
constexpr std::string_view kLastModified = "Last-Modified: ";

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// Returns true if another attempt may succeed.
bool is_temporary_status(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

bool is_temporary_failure(CURLcode code) {
  constexpr std::array kCodes = {CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT, CURLE_PARTIAL_FILE,
                                 CURLE_OPERATION_TIMEDOUT,   CURLE_GOT_NOTHING,     CURLE_SEND_ERROR,
                                 CURLE_RECV_ERROR,           CURLE_HTTP2,           CURLE_HTTP2_STREAM,
                                 CURLE_SSL_CONNECT_ERROR};
  return std::ranges::find(kCodes, code) != kCodes.end();
}

// Parses "bytes 0-99/1000", in which "*" may stand for the range or the total. Returns false for other texts, and for a
// range that ends after the total.
bool parse_content_range(std::string_view text, HttpResponse& response) {
  if (!to_lower_ascii(text).starts_with("bytes")) return false;
  text = trim_ascii_spaces(text.substr(5));
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view total = text.substr(slash + 1);
  if (total != "*") {
    response.total = parse_number_text<std::uint64_t>(total);
    if (!response.total) return false;
  }
  const std::string_view range = text.substr(0, slash);
  if (range == "*") return true;
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return false;
  const auto first = parse_number_text<std::uint64_t>(range.substr(0, dash));
  const auto last = parse_number_text<std::uint64_t>(range.substr(dash + 1));
  if (!first || !last || *last < *first || *last == UINT64_MAX) return false;
  if (response.total && *last >= *response.total) return false;
  response.range_begin = *first;
  response.range_end = *last + 1;
  return true;
}

// Returns the seconds that Retry-After states, as a number or as a date; -1 for other texts.
double parse_retry_after(const std::string& text) {
  if (const auto seconds = parse_number_text<std::uint64_t>(text)) return static_cast<double>(*seconds);
  const std::time_t date = load_curl().getdate(text.c_str(), nullptr);
  return date < 0 ? -1 : std::max(0.0, std::difftime(date, std::time(nullptr)));
}

[[noreturn]] void throw_changed(const std::string& url, std::string_view how) {
  throw Error(ErrorKind::invalid_file,
              fmt::format("the file on the server has changed since it was opened: {}; open it again", how),
              hide_query(url));
}

[[noreturn]] void throw_status(const HttpResponse& response, const std::string& url) {
  const std::string said =
      response.error_text.empty() ? "" : fmt::format(" (\"{}\")", shorten(response.error_text, kMostShown));
  const std::string path = hide_query(url);
  switch (response.status) {
    case 401:
    case 403:
      throw Error(ErrorKind::io,
                  fmt::format("the server refuses access with status {}{}; for the Hugging Face Hub, HF_TOKEN holds a "
                              "token that may read the model",
                              response.status, said),
                  path);
    case 404:
    case 410: throw Error(ErrorKind::not_found, fmt::format("the server has no such file{}", said), path);
    default:
      throw Error(ErrorKind::io, fmt::format("the server answers with status {}{}", response.status, said), path);
  }
}

}  // namespace

struct FreeHeaders {
  void operator()(curl_slist* list) const { load_curl().slist_free_all(list); }
};

// Holds a connection that can be used again. One thread uses it at a time.
class HttpClient::Connection {
 public:
  Connection() : curl_(load_curl().easy_init()) {
    if (curl_ == nullptr) throw std::bad_alloc();
  }
  ~Connection() { load_curl().easy_cleanup(curl_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  CURL* get() const { return curl_; }

 private:
  CURL* curl_;
};

// Represents one call of get_range(): its attempts, and their redirects.
class HttpClient::Transfer {
 public:
  Transfer(const HttpClient& client, Connection& connection, const RangeRequest& request, const ReceiveBytes& receive)
      : client_(client),
        curl_(connection.get()),
        request_(request),
        receive_(receive),
        url_(request.redirected.empty() ? request.url : request.redirected),
        validator_(request.validator),
        validator_url_(url_),
        total_(request.total),
        position_(request.begin) {}

  HttpResponse run() {
    int failures = 0;
    for (;;) {
      const std::uint64_t before = position_;
      send_with_redirects();
      if (failure_) std::rethrow_exception(failure_);
      if (code_ == CURLE_OK && is_good_) {
        if (position_ >= find_end()) return std::move(response_);
        if (position_ == before) refuse("the server sends fewer bytes than were requested");
        continue;
      }
      if (code_ == CURLE_OK && return_to_first_url()) continue;
      if (position_ - before >= kProgress) failures = 0;
      if (!is_temporary()) throw_failure();
      if (++failures >= client_.options_.attempts) throw_failure();
      wait(failures);
    }
  }

 private:
  // Returns the offset after the last byte that is needed.
  std::uint64_t find_end() const { return total_ ? std::min(request_.end, *total_) : request_.end; }

  [[noreturn]] void refuse(const std::string& message) const {
    throw Error(ErrorKind::invalid_file, message, hide_query(request_.url), position_);
  }

  void send_with_redirects() {
    for (int hop = 0;; ++hop) {
      send();
      if (failure_ || code_ != CURLE_OK || !is_redirect(response_.status)) return;
      if (hop == kMostRedirects)
        throw Error(ErrorKind::io, fmt::format("the server redirects more than {} times", kMostRedirects),
                    hide_query(request_.url));
      if (response_.location.empty())
        throw Error(ErrorKind::io, "the server redirects, but does not name the new place", hide_query(request_.url));
      std::string target = resolve_redirect(url_, response_.location);
      if (url_.starts_with("https:") && !target.starts_with("https:"))
        throw Error(ErrorKind::io, fmt::format("the server redirects to {}, without TLS", hide_query(target)),
                    hide_query(request_.url));
      url_ = std::move(target);
    }
  }

  void send() {
    response_ = {};
    response_.url = url_;
    is_good_ = false;
    body_position_ = 0;
    detail_[0] = '\0';
    header_bytes_ = 0;
    std::unique_ptr<curl_slist, FreeHeaders> headers;
    const auto add = [&](const std::string& line) {
      curl_slist* list = load_curl().slist_append(headers.get(), line.c_str());
      if (list == nullptr) throw std::bad_alloc();
      (void)headers.release();
      headers.reset(list);
    };
    add("Accept-Encoding: identity");
    add("Accept: */*");
    if (!client_.options_.token.empty() && find_origin(url_) == client_.options_.token_origin)
      add("Authorization: Bearer " + client_.options_.token);
    // The server of the first URL may only redirect, and may state another ETag than the server with the file. So it
    // gets a condition only if the validator is its own.
    const bool has_sent_it = url_ != request_.url || validator_url_ == request_.url;
    if (has_sent_it && validator_.starts_with('"')) add("If-Match: " + validator_);
    if (has_sent_it && validator_.starts_with(kLastModified))
      add("If-Unmodified-Since: " + validator_.substr(kLastModified.size()));
    load_curl().easy_reset(curl_);
    const std::string range = fmt::format("{}-{}", position_, find_end() - 1);
    set_option(CURLOPT_URL, url_.c_str());
    set_option(CURLOPT_HTTPHEADER, headers.get());
    if (!request_.as_whole || position_ > 0) set_option(CURLOPT_RANGE, range.c_str());
    set_option(CURLOPT_USERAGENT, "poise");
    set_option(CURLOPT_PROTOCOLS_STR, "http,https");
    set_option(CURLOPT_FOLLOWLOCATION, 0L);  // send_with_redirects() follows, so that other origins get no token
    set_option(CURLOPT_SSL_VERIFYPEER, 1L);
    set_option(CURLOPT_SSL_VERIFYHOST, 2L);
    set_option(CURLOPT_NOSIGNAL, 1L);
    set_option(CURLOPT_HTTP09_ALLOWED, 0L);
    set_option(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
    set_option(CURLOPT_CONNECTTIMEOUT, std::min(kConnectSeconds, client_.options_.stall_seconds));
    set_option(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set_option(CURLOPT_LOW_SPEED_TIME, client_.options_.stall_seconds);
    set_option(CURLOPT_ERRORBUFFER, detail_.data());
    set_option(CURLOPT_HEADERFUNCTION, &Transfer::accept_header);
    set_option(CURLOPT_HEADERDATA, this);
    set_option(CURLOPT_WRITEFUNCTION, &Transfer::accept_body);
    set_option(CURLOPT_WRITEDATA, this);
    ++client_.requests_;
    code_ = load_curl().easy_perform(curl_);
    if (code_ == CURLE_OK && !failure_ && response_.status >= 200 && response_.status < 300 && !is_good_)
      check_reply();  // the reply's body is empty
    // A file whose size was not stated ends where the reply ends.
    if (code_ == CURLE_OK && is_good_ && !response_.range_begin && !total_) total_ = body_position_;
    // accept_body() stops a reply that is not needed, such as the page of an error.
    if (code_ == CURLE_WRITE_ERROR && !failure_ && is_stopped_) code_ = CURLE_OK;
    if (code_ == CURLE_OK && !failure_ && response_.status == 416) check_empty_file();
    is_stopped_ = false;
  }

  template <typename Value>
  void set_option(CURLoption option, Value value) {
    const CURLcode code = load_curl().easy_setopt(curl_, option, value);
    if (code != CURLE_OK)
      throw Error(ErrorKind::internal, fmt::format("libcurl refuses an option: {}", load_curl().easy_strerror(code)));
  }

  static std::size_t accept_header(char* bytes, std::size_t one, std::size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    return transfer.catch_exceptions(one * count, [&] { transfer.parse_header({bytes, one * count}); });
  }
  static std::size_t accept_body(char* bytes, std::size_t one, std::size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    return transfer.catch_exceptions(one * count,
                                     [&] { transfer.receive_body(std::as_bytes(std::span(bytes, one * count))); });
  }

  // Keeps an exception, which must not pass through the C code of libcurl. Any result but `size` ends the transfer.
  template <typename Function>
  std::size_t catch_exceptions(std::size_t size, const Function& function) noexcept {
    try {
      function();
      return is_stopped_ ? size + 1 : size;
    } catch (...) {
      failure_ = std::current_exception();
      return size + 1;
    }
  }

  void parse_header(std::string_view line) {
    header_bytes_ += line.size();
    if (header_bytes_ > kMostHeaderBytes) refuse("the server's reply has more than 256 KiB of headers");
    if (line.starts_with("HTTP/")) {  // the first line of an interim reply, or of the final one
      response_ = {};
      response_.url = url_;
      const std::size_t space = std::min(line.find(' '), line.size());
      response_.status = parse_number_text<int>(trim_ascii_spaces(line.substr(space)).substr(0, 3)).value_or(0);
      return;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const std::string name = to_lower_ascii(trim_ascii_spaces(line.substr(0, colon)));
    const std::string value(trim_ascii_spaces(line.substr(colon + 1)));
    if (name == "content-length") {
      response_.length = parse_number_text<std::uint64_t>(value);
      if (!response_.length) refuse("the server's Content-Length is not a number");
    } else if (name == "content-range") {
      if (!parse_content_range(value, response_))
        refuse(fmt::format("the server's Content-Range is not valid: {}", shorten(value, kMostShown)));
    } else if (name == "etag") {
      response_.validator = value;
    } else if (name == "last-modified") {
      if (response_.validator.empty()) response_.validator = std::string(kLastModified) + value;
    } else if (name == "content-encoding") {
      response_.is_encoded = to_lower_ascii(value) != "identity";
    } else if (name == "retry-after") {
      response_.retry_after = parse_retry_after(value);
    } else if (name == "location") {
      response_.location = value;
    } else if (name == "x-error-message") {
      response_.error_text = value;
    }
  }

  // Checks a successful reply before its first byte is used.
  void check_reply() {
    if (response_.is_encoded) refuse("the server compresses the file although it was asked for the bytes as they are");
    if (!validator_.empty() && response_.validator != validator_)
      throw_changed(request_.url, validator_.starts_with('"') ? "it has another ETag" : "it has another date");
    if (response_.status == 206) {
      check_range();
    } else {
      check_whole_file();
    }
    if (total_ && response_.total && *total_ != *response_.total)
      throw_changed(request_.url, fmt::format("it had {} bytes, and has {}", *total_, *response_.total));
    if (response_.total) total_ = response_.total;
    if (validator_.empty()) validator_ = response_.validator;
    validator_url_ = url_;
    is_good_ = true;
  }

  void check_range() {
    if (!response_.range_begin) refuse("the server sends a range, and does not state which: Content-Range is missing");
    if (*response_.range_begin != position_ || *response_.range_end > find_end())
      refuse(fmt::format("expected bytes {} to {}, and the server sends {} to {}", position_, find_end() - 1,
                         *response_.range_begin, *response_.range_end - 1));
    const std::uint64_t size = *response_.range_end - *response_.range_begin;
    if (response_.length && *response_.length != size)
      refuse(fmt::format("the server's Content-Range has {} bytes, and its Content-Length is {}", size,
                         *response_.length));
    if (!response_.total && !total_) refuse("the server does not state the size of the file in Content-Range");
    body_position_ = *response_.range_begin;
    body_end_ = *response_.range_end;
  }

  void check_whole_file() {
    response_.range_begin.reset();
    if (response_.length && *response_.length > request_.most_whole)
      throw Error(ErrorKind::unsupported,
                  fmt::format("the server sends no parts of files, and this one has {} bytes; download it first "
                              "(curl -LO URL), and open the file",
                              *response_.length),
                  hide_query(request_.url));
    response_.total = response_.length;
    body_position_ = 0;
    body_end_ = response_.length.value_or(request_.most_whole);
  }

  void receive_body(std::span<const std::byte> piece) {
    if (response_.status < 200 || response_.status >= 300) {
      is_stopped_ = true;
      return;
    }
    if (!is_good_) check_reply();
    if (piece.size() > body_end_ - body_position_) {
      if (response_.range_begin || response_.length) refuse("the server sends more bytes than it has announced");
      throw Error(ErrorKind::unsupported,
                  fmt::format("the server states no size, and the file has more than {} bytes; download it first (curl "
                              "-LO URL), and open the file",
                              request_.most_whole),
                  hide_query(request_.url));
    }
    // After a cut connection, a server without ranges sends the first bytes again.
    const std::uint64_t known = std::min<std::uint64_t>(
        piece.size(), position_ > body_position_ ? position_ - body_position_ : std::uint64_t{0});
    body_position_ += piece.size();
    piece = piece.subspan(static_cast<std::size_t>(known));
    if (piece.empty()) return;
    receive_(piece);
    position_ += piece.size();
  }

  // Accepts status 416 for an empty file, because no range of such a file exists.
  void check_empty_file() {
    if (request_.begin != 0 || position_ != 0 || response_.total != 0u)
      throw_changed(request_.url, "it has become shorter");
    total_ = 0;
    is_good_ = true;
  }

  // Makes request_.url the next URL, once, if the one that an earlier request was redirected to has expired. Returns
  // true if it does so.
  bool return_to_first_url() {
    const bool has_expired =
        response_.status == 401 || response_.status == 403 || response_.status == 404 || response_.status == 410;
    if (!has_expired || has_returned_ || request_.redirected.empty()) return false;
    has_returned_ = true;
    url_ = request_.url;
    return true;
  }

  bool is_temporary() const {
    return code_ == CURLE_OK ? is_temporary_status(response_.status) : is_temporary_failure(code_);
  }

  [[noreturn]] void throw_failure() const {
    if (code_ == CURLE_OK) {
      if (response_.status == 412) throw_changed(request_.url, "it has another ETag");
      throw_status(response_, request_.url);
    }
    const std::string_view detail = detail_[0] != '\0' ? detail_.data() : load_curl().easy_strerror(code_);
    throw Error(ErrorKind::io, fmt::format("cannot read from the server: {}", shorten(detail, kMostShown)),
                hide_query(request_.url));
  }

  void wait(int failures) {
    const HttpOptions& options = client_.options_;
    double seconds = options.first_delay * static_cast<double>(1 << std::min(failures - 1, 16));
    if (code_ == CURLE_OK && response_.retry_after >= 0) {
      if (response_.retry_after > options.most_delay)
        throw Error(ErrorKind::io,
                    fmt::format("the server is busy (status {}) and asks to wait {:.0f} seconds; try again then",
                                response_.status, response_.retry_after),
                    hide_query(request_.url));
      seconds = std::max(seconds, response_.retry_after);
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(std::min(seconds, options.most_delay)));
    url_ = request_.url;
  }

  const HttpClient& client_;
  CURL* curl_;
  const RangeRequest& request_;
  const ReceiveBytes& receive_;
  std::string url_;
  std::string validator_;
  std::string validator_url_;  // the URL from which the validator came
  std::optional<std::uint64_t> total_;
  std::uint64_t position_;  // the next byte that the caller needs
  std::uint64_t body_position_ = 0;
  std::uint64_t body_end_ = 0;
  HttpResponse response_;
  CURLcode code_ = CURLE_OK;
  std::exception_ptr failure_;
  std::array<char, CURL_ERROR_SIZE> detail_ = {};
  std::size_t header_bytes_ = 0;
  bool is_good_ = false;     // the reply fits the request
  bool is_stopped_ = false;  // the rest of the reply is not needed
  bool has_returned_ = false;
};

void run_on_threads(std::size_t count, FunctionRef<void()> work) {
  std::vector<std::jthread> threads;
  try {
    for (std::size_t i = 1; i < count; ++i) threads.emplace_back([&] { work(); });
  } catch (const std::system_error&) {
    // The threads that started do all of the work.
  }
  work();
}

HttpClient::HttpClient(HttpOptions options) : options_(std::move(options)) { (void)load_curl(); }
HttpClient::~HttpClient() = default;

HttpResponse HttpClient::get_range(const RangeRequest& request, const ReceiveBytes& receive) const {
  (void)find_origin(request.url);  // throws for URLs that are not http or https
  if (request.begin >= request.end) return {};
  std::unique_ptr<Connection> connection;
  {
    const std::scoped_lock lock(mutex_);
    if (!idle_.empty()) {
      connection = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (connection == nullptr) connection = std::make_unique<Connection>();
  HttpResponse response = Transfer(*this, *connection, request, receive).run();
  const std::scoped_lock lock(mutex_);
  idle_.push_back(std::move(connection));
  return response;
}

std::string HttpClient::get_text(const std::string& url, std::uint64_t most_bytes) const {
  std::string text;
  const auto receive = [&](std::span<const std::byte> piece) {
    if (piece.size() > most_bytes - text.size())
      throw Error(ErrorKind::invalid_file, fmt::format("the server's answer has more than {} bytes", most_bytes),
                  hide_query(url));
    text.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  };
  (void)get_range({.url = url, .end = most_bytes, .as_whole = true, .most_whole = most_bytes}, receive);
  return text;
}

}  // namespace poise::remote
