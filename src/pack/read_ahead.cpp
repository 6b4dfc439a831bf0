#include "pack/read_ahead.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_group.h>

#include "io/threads.hpp"

namespace poise {
namespace {

constexpr std::size_t kAheadChunkBytes = 256 << 10;

using ChunkBuffer = std::unique_ptr<std::byte[]>;

}  // namespace

// Holds the decoded chunks of all blobs, and the threads that decode the next blobs. The reader decodes the current
// blob itself. If a thread still works on that blob, the reader decodes one of the next blobs until the thread is done.
class ReadAhead::Window {
 public:
  Window(const std::vector<const Blob*>& blobs, std::size_t threads, const Limits& limits)
      : threads_(threads), most_chunks_(std::min(limits.all_bytes, threads * limits.window_bytes) / kAheadChunkBytes) {
    for (const Blob* blob : blobs) {
      if (!blob->seekable()) items_.push_back({.blob = blob});
    }
    free_.reserve(most_chunks_);
    prepare_task_group();
  }

  ~Window() {
    {
      const std::scoped_lock lock(mutex_);
      stops_ = true;
    }
    try {
      tasks_.wait();
    } catch (...) {  // an error of a thread does not matter, because nobody needs its bytes any more
    }
  }

  // Begins the first stream of an item, and drops the items before it. Returns false for a second stream, and for an
  // item that was dropped.
  bool begin_stream(std::size_t index) {
    const std::scoped_lock lock(mutex_);
    if (index < current_ || items_[index].begun) return false;
    for (; current_ < index; ++current_) drop(items_[current_]);
    items_[index].begun = true;
    start_threads();
    return true;
  }

  // Reads the next bytes of an item that has begun. Returns their number: 0 at the end.
  std::size_t read(std::size_t index, std::span<std::byte> out) {
    std::unique_lock lock(mutex_);
    Item& item = items_[index];
    std::size_t done = 0;
    while (done < out.size()) {
      if (!item.chunks.empty()) {
        Chunk& chunk = item.chunks.front();
        const std::size_t count = std::min(out.size() - done, chunk.size - chunk.used);
        const std::byte* const from = chunk.bytes.get() + chunk.used;
        lock.unlock();  // only this reader removes chunks
        std::copy_n(from, count, out.data() + done);
        lock.lock();
        done += count;
        chunk.used += count;
        if (chunk.used < chunk.size) continue;
        return_buffer(std::move(chunk.bytes));
        item.chunks.pop_front();
        start_threads();
      } else if (item.failure) {
        std::rethrow_exception(item.failure);
      } else if (item.ended) {
        break;
      } else if (!item.busy) {
        make_chunk(item, lock);
      } else if (Item* other = find_idle_item(current_ + 1)) {
        make_chunk(*other, lock);
      } else {
        changed_.wait(lock);
      }
    }
    return done;
  }

 private:
  struct Chunk {
    ChunkBuffer bytes;
    std::size_t size = 0;
    std::size_t used = 0;
  };
  struct Item {
    const Blob* blob = nullptr;
    std::unique_ptr<BlobStream> stream = nullptr;
    std::uint64_t decoded = 0;
    std::deque<Chunk> chunks = {};
    std::exception_ptr failure = nullptr;
    bool begun = false;    // a reader has begun to stream the blob
    bool busy = false;     // somebody makes a chunk
    bool ended = false;    // all chunks are made
    bool dropped = false;  // nobody will read it
  };

  // The caller of each of the following functions holds the lock, except for decode_items().
  bool is_done(const Item& item) const { return item.ended || item.failure || item.dropped; }

  // Returns the first unfinished item from `from` on that nobody decodes. Returns null if there is no room for a chunk,
  // or if somebody decodes each of the next threads_ + 1 unfinished items.
  Item* find_idle_item(std::size_t from) {
    if (chunks_ >= most_chunks_ || stops_) return nullptr;
    std::size_t unfinished = 0;
    for (std::size_t i = from; i < items_.size() && unfinished <= threads_; ++i) {
      if (is_done(items_[i])) continue;
      if (!items_[i].busy) return &items_[i];
      ++unfinished;
    }
    return nullptr;
  }

  void start_threads() {
    while (running_ + 1 < threads_ && find_idle_item(current_ + 1) != nullptr) {
      tasks_.run([this] { decode_items(); });  // decode_items() waits for the lock
      ++running_;
      if (running_ >= count_unfinished()) return;
    }
  }
  std::size_t count_unfinished() const {
    return static_cast<std::size_t>(
        std::count_if(items_.begin() + static_cast<std::ptrdiff_t>(current_) + 1,
                      items_.begin() + static_cast<std::ptrdiff_t>(std::min(items_.size(), current_ + 1 + threads_)),
                      [&](const Item& item) { return !is_done(item); }));
  }

  // Decodes items on a thread, each as far as there is room.
  void decode_items() {
    std::unique_lock lock(mutex_);
    while (Item* item = find_idle_item(current_ + 1)) {
      item->busy = true;
      while (!is_done(*item) && chunks_ < most_chunks_ && !stops_) decode_chunk(*item, lock);
      item->busy = false;
      changed_.notify_all();
    }
    --running_;
  }

  void make_chunk(Item& item, std::unique_lock<std::mutex>& lock) {
    item.busy = true;
    decode_chunk(item, lock);
    item.busy = false;
    changed_.notify_all();
  }

  // Decodes the next chunk of a busy item. Releases the lock meanwhile.
  void decode_chunk(Item& item, std::unique_lock<std::mutex>& lock) {
    ++chunks_;
    Chunk chunk;
    if (!free_.empty()) {
      chunk.bytes = std::move(free_.back());
      free_.pop_back();
    }
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (!chunk.bytes) chunk.bytes = std::make_unique_for_overwrite<std::byte[]>(kAheadChunkBytes);
      if (!item.stream) item.stream = item.blob->stream();
      while (chunk.size < kAheadChunkBytes) {
        const std::size_t got = item.stream->read({chunk.bytes.get() + chunk.size, kAheadChunkBytes - chunk.size});
        chunk.size += got;
        item.decoded += got;
        if (got == 0 || item.decoded == item.blob->size()) break;
      }
    } catch (...) {
      failure = std::current_exception();
    }
    const bool ends = failure || chunk.size == 0 || item.decoded == item.blob->size();
    if (ends) item.stream.reset();
    lock.lock();
    bool is_kept = false;
    try {
      if (!failure && chunk.size > 0 && !item.dropped) {
        item.chunks.push_back(std::move(chunk));
        is_kept = true;
      }
    } catch (...) {
      failure = std::current_exception();
    }
    if (!is_kept) return_buffer(std::move(chunk.bytes));
    item.failure = failure;
    item.ended = ends && !failure;
    changed_.notify_all();
  }

  // Does not allocate, so that it cannot throw.
  void return_buffer(ChunkBuffer bytes) {
    --chunks_;
    if (bytes && free_.size() < free_.capacity()) free_.push_back(std::move(bytes));
  }

  void drop(Item& item) {
    item.dropped = true;
    if (!item.busy) item.stream.reset();
    for (Chunk& chunk : item.chunks) return_buffer(std::move(chunk.bytes));
    item.chunks.clear();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Item> items_;
  std::size_t threads_;
  std::size_t most_chunks_;
  std::size_t chunks_ = 0;  // number of chunks that are not used up, or are being made
  std::vector<ChunkBuffer> free_;
  std::size_t current_ = 0;  // index of the item that is streamed
  std::size_t running_ = 0;  // number of threads that run decode_items(), or will
  bool stops_ = false;
  oneapi::tbb::task_group tasks_;
};

class ReadAhead::AheadBlob final : public Blob {
 public:
  AheadBlob(const Blob& blob, Window& window, std::size_t item) : blob_(blob), window_(window), item_(item) {}

  std::uint64_t size() const override { return blob_.size(); }
  std::optional<std::span<const std::byte>> map() const override { return blob_.map(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override { blob_.read(offset, out); }
  bool seekable() const override { return false; }
  std::uint64_t grain() const override { return blob_.grain(); }
  std::optional<StoredRange> raw_range() const override { return blob_.raw_range(); }
  std::optional<Stored> stored() const override { return blob_.stored(); }
  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override { return blob_.stored_byte(offset); }
  bool decodable() const override { return blob_.decodable(); }

  std::unique_ptr<BlobStream> stream() const override {
    if (!window_.begin_stream(item_)) return blob_.stream();
    return std::make_unique<Stream>(window_, item_);
  }

 private:
  class Stream final : public BlobStream {
   public:
    Stream(Window& window, std::size_t item) : window_(window), item_(item) {}
    std::size_t read(std::span<std::byte> out) override { return window_.read(item_, out); }
    std::size_t best_read() const override { return kAheadChunkBytes; }

   private:
    Window& window_;
    std::size_t item_;
  };

  const Blob& blob_;
  Window& window_;
  std::size_t item_;
};

ReadAhead::ReadAhead(std::vector<const Blob*> blobs, Limits limits) : blobs_(std::move(blobs)) {
  if (std::ranges::all_of(blobs_, &Blob::seekable)) return;
  const auto processors = static_cast<std::size_t>(oneapi::tbb::info::default_concurrency());
  window_ = std::make_unique<Window>(blobs_, limits.threads == 0 ? processors : limits.threads, limits);
  ahead_.resize(blobs_.size());
  std::size_t item = 0;
  for (std::size_t i = 0; i < blobs_.size(); ++i) {
    if (!blobs_[i]->seekable()) ahead_[i] = std::make_unique<AheadBlob>(*blobs_[i], *window_, item++);
  }
}

ReadAhead::~ReadAhead() = default;

const Blob& ReadAhead::operator[](std::size_t index) const {
  return window_ && ahead_[index] ? *ahead_[index] : *blobs_[index];
}

}  // namespace poise
