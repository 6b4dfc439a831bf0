// Reads a file on a server as a Source: by ranges, ahead of a reader that goes forward, with a cache of limited size.
//
// A block is 1 MiB of the file, and one request gets a run of blocks. Runs double, up to 16 MiB, while a reader goes
// forward. Threads get the next runs before the reader needs them. All sources of a session share one cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <poise/source.hpp>

#include "remote/http.hpp"

namespace poise::remote {

class BlockCache;

// Shares connections and a cache of blocks among sources.
class HttpSession {
 public:
  static constexpr std::size_t kBlock = std::size_t{1} << 20;
  static constexpr std::size_t kMostCached = std::size_t{128} << 20;

  explicit HttpSession(HttpOptions options, std::size_t most_cached = kMostCached);
  ~HttpSession();

  const HttpClient& client() const { return client_; }
  BlockCache& cache() const { return *cache_; }

 private:
  HttpClient client_;
  std::unique_ptr<BlockCache> cache_;
};

using HttpSessionPtr = std::shared_ptr<const HttpSession>;

// Opens a file with one request, which gets its size and its first block. Messages call the source `name`. A file of at
// most 64 MiB that the server sends only as a whole stays in memory. Throws what HttpClient::get_range() throws.
SourcePtr open_http_source(HttpSessionPtr session, const std::string& url, std::string name);

// Makes a source of a file whose size is known. The first read sends the first request, and throws if the server states
// another size.
SourcePtr make_http_source(HttpSessionPtr session, std::string url, std::string name, std::uint64_t size);

}  // namespace poise::remote
