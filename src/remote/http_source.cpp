#include "remote/http_source.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "remote/url.hpp"

namespace poise::remote {

namespace {

constexpr std::uint64_t kBlock = HttpSession::kBlock;
constexpr std::uint64_t kMostRun = 16;         // the most blocks of a request
constexpr std::uint64_t kStreamingRun = 4;     // threads read ahead once a run has this many blocks
constexpr std::uint64_t kNear = 4 * kMostRun;  // blocks; readers this near to the last claimed block go forward
constexpr int kMostAhead = 3;                  // requests ahead of the readers of a file
constexpr std::uint64_t kMostWholeFile = std::uint64_t{64} << 20;

}  // namespace

enum class CachedBlockState : std::uint8_t { pending, ready, failed };

struct CachedBlock {
  std::vector<std::byte> bytes;
  std::exception_ptr failure;
  CachedBlockState state = CachedBlockState::pending;
};
using CachedBlockPtr = std::shared_ptr<CachedBlock>;

// Keeps the blocks that were used last. A source holds `mutex` when it calls a function other than next_source(), or
// uses a block's state.
class BlockCache {
 public:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // the source's number, and the block's

  explicit BlockCache(std::size_t most_bytes) : most_blocks_(std::max<std::uint64_t>(1, most_bytes / kBlock)) {}

  std::mutex mutex;
  std::condition_variable changed;

  // Returns a block; null if the block is not kept.
  CachedBlockPtr find(const Key& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return nullptr;
    order_.splice(order_.end(), order_, found->second.place);
    return found->second.block;
  }
  bool has(const Key& key) const { return entries_.contains(key); }
  void add(const Key& key, CachedBlockPtr block) {
    while (entries_.size() >= most_blocks_) erase(Key(order_.front()));
    order_.push_back(key);
    entries_.insert_or_assign(key, Entry{std::move(block), std::prev(order_.end())});
  }
  void erase(const Key& key) {
    const auto found = entries_.find(key);
    if (found == entries_.end()) return;
    order_.erase(found->second.place);
    entries_.erase(found);
  }
  void erase_source(std::uint64_t source) {
    for (auto at = entries_.lower_bound({source, 0}); at != entries_.end() && at->first.first == source;) {
      order_.erase(at->second.place);
      at = entries_.erase(at);
    }
  }
  std::uint64_t next_source() { return next_source_++; }

 private:
  struct Entry {
    CachedBlockPtr block;
    std::list<Key>::iterator place;
  };

  std::uint64_t most_blocks_;
  std::map<Key, Entry> entries_;
  std::list<Key> order_;  // the block that was used last is the last one
  std::atomic<std::uint64_t> next_source_ = 0;
};

namespace {

class HttpSource final : public Source {
 public:
  HttpSource(HttpSessionPtr session, std::string url, std::string name, std::uint64_t size)
      : Source(std::move(name), size),
        session_(std::move(session)),
        cache_(session_->cache()),
        id_(cache_.next_source()),
        url_(std::move(url)) {}

  ~HttpSource() override {
    is_closed_ = true;
    for (Worker& worker : workers_) worker.thread.join();
    const std::scoped_lock lock(cache_.mutex);
    cache_.erase_source(id_);
  }

  bool mapped() const override { return false; }
  std::span<const std::byte> bytes() const override { return {}; }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size() || out.size() > size() - offset)
      throw Error(ErrorKind::internal, "a read outside of a file on a server", name(), offset);
    while (!out.empty()) {
      const std::uint64_t index = offset / kBlock;
      const std::uint64_t begin = offset % kBlock;
      const std::uint64_t last = (offset + out.size() - 1) / kBlock;
      const CachedBlockPtr block = get_block(index, last - index + 1);
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), block->bytes.size() - begin));
      std::memcpy(out.data(), block->bytes.data() + begin, count);
      out = out.subspan(count);
      offset += count;
    }
  }

  // Keeps the reply to the request that opened the file, and the first block. Callers call it before any read.
  void keep_first_reply(const HttpResponse& response, std::span<const std::byte> first) {
    redirected_ = response.url;
    validator_ = response.validator;
    const std::scoped_lock lock(cache_.mutex);
    auto block = std::make_shared<CachedBlock>();
    block->bytes.assign(first.begin(), first.end());
    block->state = CachedBlockState::ready;
    cache_.add({id_, 0}, std::move(block));
    frontier_ = 1;
  }

 private:
  struct Run {
    std::uint64_t first = 0;
    std::vector<CachedBlockPtr> blocks;
  };
  struct Worker {
    std::thread thread;
    std::shared_ptr<std::atomic<bool>> is_done;
  };

  std::uint64_t count_blocks() const { return ceil_div(size(), kBlock); }
  std::uint64_t compute_block_size(std::uint64_t index) const { return std::min(kBlock, size() - index * kBlock); }

  // Returns a block once its bytes are there. Gets them unless another thread does. The read needs `needed` blocks from
  // this one on.
  CachedBlockPtr get_block(std::uint64_t index, std::uint64_t needed) const {
    std::unique_lock lock(cache_.mutex);
    CachedBlockPtr block = cache_.find({id_, index});
    if (block == nullptr) {
      Run run = claim_run(index, needed);
      block = run.blocks.front();
      read_ahead(index);
      lock.unlock();
      fetch_run(run);
      lock.lock();
    } else {
      read_ahead(index);
    }
    cache_.changed.wait(lock, [&] { return block->state != CachedBlockState::pending; });
    if (block->state == CachedBlockState::failed) std::rethrow_exception(block->failure);
    return block;
  }

  // Claims the missing block `index` and blocks after it, as claim_blocks() does: `needed` or run_ of them, whichever
  // is more, but at most kMostRun. While readers go forward, run_ doubles; otherwise it becomes 1. Requires: the lock.
  Run claim_run(std::uint64_t index, std::uint64_t needed) const {
    const bool goes_forward = frontier_ > 0 && index + kNear >= frontier_ && index <= frontier_ + 1;
    run_ = goes_forward ? std::min(2 * run_, kMostRun) : 1;
    return claim_blocks(index, std::min(std::max(run_, needed), kMostRun));
  }

  // Adds at most `count` blocks, which the caller must get, up to the first that the cache has or to the end of the
  // file. Requires: the lock.
  Run claim_blocks(std::uint64_t index, std::uint64_t count) const {
    Run run{index, {}};
    run.blocks.reserve(static_cast<std::size_t>(count));  // so that no claimed block is lost
    for (std::uint64_t i = index; i < std::min(index + count, count_blocks()) && !cache_.has({id_, i}); ++i) {
      run.blocks.push_back(std::make_shared<CachedBlock>());
      cache_.add({id_, i}, run.blocks.back());
    }
    frontier_ = index + run.blocks.size();
    return run;
  }

  // Starts threads that get the next blocks, if readers come near the end of the blocks that were claimed. Without
  // memory, gets none. Requires: the lock.
  void read_ahead(std::uint64_t index) const {
    try {
      start_workers(index);
    } catch (const std::bad_alloc&) {
    }
  }

  void start_workers(std::uint64_t index) const {
    if (run_ < kStreamingRun || index + kNear < frontier_) return;
    std::erase_if(workers_, [](Worker& worker) {
      if (!*worker.is_done) return false;
      worker.thread.join();
      return true;
    });
    workers_.reserve(kMostAhead);  // so that push_back() does not fail while it holds a thread
    while (workers_.size() < kMostAhead && frontier_ < index + (kMostAhead - 1) * kMostRun) {
      auto is_done = std::make_shared<std::atomic<bool>>(false);
      auto run = std::make_shared<Run>();
      *run = claim_blocks(frontier_, kMostRun);
      if (run->blocks.empty()) return;
      const auto fetch = [this, run, is_done] {
        fetch_run(*run);
        *is_done = true;
      };
      try {
        workers_.push_back({std::thread(fetch), is_done});
      } catch (const std::exception&) {  // too many threads, or no memory: readers get these blocks themselves
        return fail_blocks(*run, 0, std::current_exception());
      }
    }
  }

  // Gets the bytes of a run. Marks each complete block as ready, and after an error the others as failed.
  void fetch_run(Run& run) const noexcept {
    std::size_t done = 0;
    try {
      RangeRequest request{.url = url_, .begin = run.first * kBlock, .total = size()};
      request.end = std::min(size(), request.begin + run.blocks.size() * kBlock);
      {
        const std::scoped_lock lock(cache_.mutex);
        request.redirected = redirected_;
        request.validator = validator_;
      }
      std::vector<std::byte> filling;
      const auto receive = [&](std::span<const std::byte> piece) {
        if (is_closed_) throw Error(ErrorKind::cancelled, "the file was closed", name());
        while (!piece.empty() && done < run.blocks.size()) {  // a server without ranges sends more
          const auto length = static_cast<std::size_t>(compute_block_size(run.first + done));
          if (filling.empty()) filling.reserve(length);
          const std::size_t count = std::min(piece.size(), length - filling.size());
          filling.insert(filling.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count));
          piece = piece.subspan(count);
          if (filling.size() == length) finish_block(*run.blocks[done++], std::exchange(filling, {}));
        }
      };
      const HttpResponse response = session_->client().get_range(request, receive);
      if (done < run.blocks.size()) throw Error(ErrorKind::invalid_file, "the server has sent too few bytes", name());
      const std::scoped_lock lock(cache_.mutex);
      redirected_ = response.url;
      if (validator_.empty()) validator_ = response.validator;
    } catch (...) {
      const std::scoped_lock lock(cache_.mutex);
      fail_blocks(run, done, std::current_exception());
    }
  }

  void finish_block(CachedBlock& block, std::vector<std::byte> bytes) const {
    const std::scoped_lock lock(cache_.mutex);
    block.bytes = std::move(bytes);
    block.state = CachedBlockState::ready;
    cache_.changed.notify_all();
  }

  // Marks the blocks from `done` on as failed, and removes them from the cache, so that the next read tries again.
  // Requires: the lock.
  void fail_blocks(const Run& run, std::size_t done, const std::exception_ptr& failure) const {
    for (std::size_t i = done; i < run.blocks.size(); ++i) {
      run.blocks[i]->failure = failure;
      run.blocks[i]->state = CachedBlockState::failed;
      cache_.erase({id_, run.first + i});
    }
    cache_.changed.notify_all();
  }

  HttpSessionPtr session_;
  BlockCache& cache_;
  std::uint64_t id_;
  std::string url_;
  std::atomic<bool> is_closed_ = false;
  // The cache's mutex guards the following members.
  mutable std::string redirected_;
  mutable std::string validator_;
  mutable std::uint64_t frontier_ = 0;  // one after the last block that was claimed
  mutable std::uint64_t run_ = 1;       // blocks of a request, unless its read needs more
  mutable std::vector<Worker> workers_;
};

}  // namespace

HttpSession::HttpSession(HttpOptions options, std::size_t most_cached)
    : client_(std::move(options)), cache_(std::make_unique<BlockCache>(most_cached)) {}
HttpSession::~HttpSession() = default;

SourcePtr open_http_source(HttpSessionPtr session, const std::string& url, std::string name) {
  std::vector<std::byte> first;
  const auto receive = [&](std::span<const std::byte> piece) { first.insert(first.end(), piece.begin(), piece.end()); };
  const HttpResponse response =
      session->client().get_range({.url = url, .end = kBlock, .most_whole = kMostWholeFile}, receive);
  const std::uint64_t size = response.total.value_or(first.size());
  if (first.size() >= size) return Source::from_memory(std::move(first), std::move(name));
  if (first.size() != kBlock)
    throw Error(ErrorKind::invalid_file,
                fmt::format("expected {} bytes from the server, found {}", kBlock, first.size()), hide_query(url));
  auto source = std::make_shared<HttpSource>(std::move(session), url, std::move(name), size);
  source->keep_first_reply(response, first);
  return source;
}

SourcePtr make_http_source(HttpSessionPtr session, std::string url, std::string name, std::uint64_t size) {
  if (size == 0) return Source::from_memory({}, std::move(name));
  return std::make_shared<HttpSource>(std::move(session), std::move(url), std::move(name), size);
}

}  // namespace poise::remote
