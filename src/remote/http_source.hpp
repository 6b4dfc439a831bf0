// A file on a server as a Source: reads ranges, keeps a bounded number of bytes, and reads ahead.
//
// The file is cut into blocks of 1 MiB. One request gets a run of blocks. Runs double, up to 16 MiB, while a reader
// goes forward, and then threads get the next runs ahead of it. All sources of a session share the bytes that are kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <poise/source.hpp>

#include "remote/http.hpp"

namespace poise::remote {

class BlockCache;

// Sources that belong together: their connections, and the blocks that they keep.
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

// Opens a file with one request, which gets its size and its first block. Its name in messages is `name`. A file that
// the server sends only as a whole is kept in memory, if it has at most 64 MiB. Throws what HttpClient::get_range()
// throws.
SourcePtr open_http_source(HttpSessionPtr session, const std::string& url, std::string name);

// Makes a source of a file whose size is known. The first read sends the first request; a server that states another
// size is an error then.
SourcePtr make_http_source(HttpSessionPtr session, std::string url, std::string name, std::uint64_t size);

}  // namespace poise::remote
