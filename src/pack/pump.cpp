#include "pack/pump.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include <fmt/format.h>

#include "io/threads.hpp"

namespace poise {
namespace {

constexpr std::size_t kChunkBytes = 256 << 10;  // stays in the cache while it is made, hashed and written
constexpr std::size_t kCopyBytes = 16 << 20;    // how much is copied between two reports of progress

void copy_stored_bytes(const StoredRange& at, Sink& sink, Meter& meter, std::string_view item) {
  for (std::uint64_t done = 0; done < at.length;) {
    const std::uint64_t count = std::min<std::uint64_t>(kCopyBytes, at.length - done);
    sink.copy(*at.source, at.offset + done, count);
    meter.advance(count, item);
    done += count;
  }
}

// Reuses memory for chunks. The operating system clears the pages of new memory, which takes as long as filling them.
class ChunkMemory {
 public:
  using Buffer = std::unique_ptr<std::byte[]>;

  static ChunkMemory& shared() {
    static ChunkMemory memory;
    return memory;
  }

  Buffer borrow_buffer() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return std::make_unique_for_overwrite<std::byte[]>(kChunkBytes);
    Buffer buffer = std::move(free_.back());
    free_.pop_back();
    return buffer;
  }

  // Does not allocate, because destructors call it.
  void return_buffer(Buffer buffer) {
    const std::scoped_lock lock(mutex_);
    if (free_.size() < kMostItems) free_.push_back(std::move(buffer));
  }

 private:
  ChunkMemory() { free_.reserve(kMostItems); }

  std::mutex mutex_;
  std::vector<Buffer> free_;
};

struct Chunk {
  Chunk() = default;
  explicit Chunk(std::size_t length) { resize(length); }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;
  ~Chunk() {
    if (buffer) ChunkMemory::shared().return_buffer(std::move(buffer));
  }

  void resize(std::size_t length) {
    if (!buffer) buffer = ChunkMemory::shared().borrow_buffer();
    size = length;
  }
  std::span<std::byte> bytes() const { return {buffer.get(), size}; }

  std::size_t size = 0;
  ChunkMemory::Buffer buffer;
};

// Computes chunks on all threads; `consume` gets them one at a time, in order.
template <typename Consume>
void compute_in_parallel(const Blob& blob, Consume&& consume) {
  struct Piece {
    std::uint64_t offset = 0;
    Chunk chunk;
  };
  const std::uint64_t grain = blob.grain() <= kChunkBytes ? std::max<std::uint64_t>(1, blob.grain()) : 1;
  const std::size_t chunk_bytes = kChunkBytes / grain * grain;
  std::uint64_t next = 0;
  const auto cut = [&](Piece& piece) {
    if (next == blob.size()) return false;
    piece.offset = next;
    piece.chunk.resize(std::min<std::uint64_t>(chunk_bytes, blob.size() - next));
    next += piece.chunk.size;
    return true;
  };
  const auto fill = [&](Piece& piece) { blob.read(piece.offset, piece.chunk.bytes()); };
  const auto use = [&](Piece& piece) { consume(std::span<const std::byte>(piece.chunk.bytes())); };
  process_in_order<Piece>(cut, fill, use);
}

template <typename Consume>
void stream_serially(const Blob& blob, Consume&& consume) {
  const auto stream = blob.stream();
  const auto room = std::min<std::uint64_t>(stream->best_read(), blob.size());
  const auto chunk = std::make_unique_for_overwrite<std::byte[]>(room);
  for (std::uint64_t done = 0; done < blob.size();) {
    const std::size_t got = stream->read({chunk.get(), room});
    if (got == 0) throw Error(ErrorKind::internal, fmt::format("a blob of {} bytes ended after {}", blob.size(), done));
    consume(std::span<const std::byte>(chunk.get(), got));
    done += got;
  }
}

// Reads chunks although the bytes may be mapped, since reading is faster for bytes that are then written.
template <typename Consume>
void read_chunks(const Blob& blob, Consume&& consume) {
  const Chunk chunk(std::min<std::uint64_t>(kChunkBytes, blob.size()));
  for (std::uint64_t done = 0; done < blob.size();) {
    const auto piece = chunk.bytes().first(std::min<std::uint64_t>(chunk.size, blob.size() - done));
    blob.read(done, piece);
    consume(std::span<const std::byte>(piece));
    done += piece.size();
  }
}

template <typename Consume>
void borrow_chunks(std::span<const std::byte> all, Consume&& consume) {
  for (std::size_t done = 0; done < all.size(); done += kChunkBytes)
    consume(all.subspan(done, std::min(kChunkBytes, all.size() - done)));
}

}  // namespace

namespace {

void write_bytes(const Blob& blob, Sink& sink, Meter& meter, std::string_view item, Hasher* hasher) {
  const auto at = blob.raw_range();
  const bool in_file = at && at->source->descriptor() >= 0;
  if (hasher == nullptr && in_file) return copy_stored_bytes(*at, sink, meter, item);
  const auto consume = [&](std::span<const std::byte> bytes) {
    if (hasher != nullptr) hasher->update(bytes);
    sink.write(bytes);
    meter.advance(bytes.size(), item);
  };
  if (in_file) return read_chunks(blob, consume);
  if (const auto all = blob.map()) return borrow_chunks(*all, consume);
  if (blob.seekable() && blob.size() > kChunkBytes) return compute_in_parallel(blob, consume);
  stream_serially(blob, consume);
}

}  // namespace

bool write_blob(const Blob& blob, Sink& sink, Meter& meter, std::string_view item, Hasher* hasher) {
  const bool is_here = sink.begin_part(blob.size());
  if (is_here) {
    write_bytes(blob, sink, meter, item, hasher);
  } else {
    sink.skip(blob.size());
    meter.advance(blob.size(), item);
  }
  sink.end_part();
  return is_here;
}

void write_whole_blob(const Blob& blob, Sink& sink, Meter& meter, std::string_view item, Hasher& hasher) {
  write_bytes(blob, sink, meter, item, &hasher);
}

void stream_chunks(const Blob& blob, const std::function<void(std::span<const std::byte>)>& consume) {
  const auto all = blob.map();
  if (!all) return stream_serially(blob, consume);
  borrow_chunks(*all, consume);
  // Releases the pages here, because several threads may run this function. Otherwise one thread would release all of
  // them when the file is closed.
  if (const auto at = blob.stored()) at->source->done_with(at->offset, at->length);
}

namespace {

constexpr std::size_t kBeginningBytes = 64 << 10;
constexpr std::size_t kComparedBytes = 1 << 20;

bool have_same_place(const Blob& a, const Blob& b) {
  const auto x = a.stored();
  return x && x == b.stored();
}

}  // namespace

bool have_same_bytes(const Blob& a, const Blob& b) {
  if (a.size() != b.size()) return false;
  if (&a == &b || have_same_place(a, b)) return true;
  const auto x = a.map();
  const auto y = b.map();
  if (x && y) return x->empty() || std::memcmp(x->data(), y->data(), x->size()) == 0;
  std::vector<std::byte> left(std::min<std::uint64_t>(kComparedBytes, a.size()));
  std::vector<std::byte> right(left.size());
  const auto from_a = a.stream();
  const auto from_b = b.stream();
  for (std::uint64_t done = 0; done < a.size(); done += left.size()) {
    left.resize(std::min<std::uint64_t>(left.size(), a.size() - done));
    right.resize(left.size());
    if (from_a->read(left) != from_b->read(right) || left != right) return false;
  }
  return true;
}

std::uint64_t hash_beginning(const Blob& blob) {
  std::vector<std::byte> beginning(std::min<std::uint64_t>(kBeginningBytes, blob.size()));
  blob.stream()->read(beginning);
  return compute_xxh3(beginning);
}

}  // namespace poise
