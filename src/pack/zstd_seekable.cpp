// Reads and writes zt.zstd-seekable/1, frames of zstd with a seek table; zstd.hpp has the layout. Source:
// contrib/seekable_format of github.com/facebook/zstd, "Zstandard Seekable Format".
#include "pack/zstd.hpp"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include <oneapi/tbb/info.h>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/byte_writer.hpp"
#include "bytes/little_endian.hpp"
#include "io/read_fully.hpp"
#include "io/threads.hpp"

namespace poise {
namespace {

constexpr std::uint32_t kMaxFrameBytes = 16 << 20;  // the largest frame that is read, in bytes of content
constexpr std::uint32_t kSkippableMagic = 0x184D2A5E;
constexpr std::uint32_t kTableMagic = 0x8F92EAB1;
constexpr std::uint64_t kFooterBytes = 9;
constexpr std::uint64_t kSkippableHeaderBytes = 8;
constexpr std::uint32_t kFrameBytes = 1 << 20;       // the size of the frames that Poise writes
constexpr std::uint32_t kQuickFrameBytes = 2 << 20;  // frames up to this size are cached

struct Frame {
  std::uint64_t offset = 0;  // counts from the first stored byte
  std::uint32_t stored = 0;
  std::uint32_t content = 0;
};

class SeekTable {
 public:
  SeekTable(const StoredRange& at, std::uint64_t size) : at_(at), size_(size) {
    if (at.length < kSkippableHeaderBytes + kFooterBytes) fail("it is too short for a seek table");
    read_footer();
    read_entries();
  }

  const std::vector<Frame>& frames() const { return frames_; }
  // Returns the checksum of a frame's content, if the table has checksums.
  std::optional<std::uint32_t> checksum(std::size_t frame) const {
    return checksums_.empty() ? std::nullopt : std::optional(checksums_[frame]);
  }
  // Returns how many bytes of content each frame has; the last may have fewer. Returns 1 if no frame has content,
  // because callers divide by the result.
  std::uint32_t frame_bytes() const { return frames_.empty() ? 1 : std::max(1U, frames_[0].content); }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorKind::invalid_file, fmt::format("{}: {}", kZstdSeekable, problem), at_.source->name(), at_.offset);
  }

  void read_footer() {
    std::array<std::byte, kFooterBytes> footer{};
    at_.source->read(at_.offset + at_.length - kFooterBytes, footer);
    if (load_le<std::uint32_t>(&footer[5]) != kTableMagic) fail("the seek table's magic number is missing at its end");
    const auto descriptor = std::to_integer<unsigned>(footer[4]);
    if ((descriptor & 0x7fU) != 0) fail("the seek table's descriptor has reserved bits set");
    entry_bytes_ = (descriptor & 0x80U) != 0 ? 12 : 8;
    count_ = load_le<std::uint32_t>(footer.data());
    const std::uint64_t table = count_ * entry_bytes_ + kFooterBytes;
    // Every frame but the last has content.
    if (count_ > 1 && count_ - 1 > size_) fail(fmt::format("{} frames are too many for {} bytes", count_, size_));
    if (table > at_.length - kSkippableHeaderBytes)
      fail(fmt::format("a seek table of {} frames does not fit into {} bytes", count_, at_.length));
    table_begin_ = at_.length - table;
    std::array<std::byte, kSkippableHeaderBytes> header{};
    at_.source->read(at_.offset + table_begin_ - kSkippableHeaderBytes, header);
    if (load_le<std::uint32_t>(header.data()) != kSkippableMagic || load_le<std::uint32_t>(&header[4]) != table)
      fail("the seek table is not a skippable frame");
  }

  void read_entries() {
    std::vector<std::byte> entries(count_ * entry_bytes_);
    at_.source->read(at_.offset + table_begin_, entries);
    frames_.reserve(count_);
    std::uint64_t offset = 0;
    std::uint64_t content = 0;
    for (std::size_t at = 0; at < entries.size(); at += entry_bytes_) {
      const Frame frame{offset, load_le<std::uint32_t>(&entries[at]), load_le<std::uint32_t>(&entries[at + 4])};
      if (frame.content > kMaxFrameBytes)
        fail(fmt::format("frame {} holds {} bytes, at most {} are allowed", frames_.size(), frame.content,
                         kMaxFrameBytes));
      frames_.push_back(frame);
      if (entry_bytes_ == 12) checksums_.push_back(load_le<std::uint32_t>(&entries[at + 8]));
      offset += frame.stored;
      content += frame.content;
    }
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      const bool last = i + 1 == frames_.size();
      if (last ? frames_[i].content > frames_[0].content : frames_[i].content != frames_[0].content) {
        fail(fmt::format("frame {} holds {} bytes, expected {} as in the first", i, frames_[i].content,
                         frames_[0].content));
      }
    }
    if (offset != table_begin_ - kSkippableHeaderBytes)
      fail(fmt::format("the frames take {} bytes, but {} are before the seek table", offset,
                       table_begin_ - kSkippableHeaderBytes));
    if (content != size_) fail(fmt::format("the frames hold {} bytes, {} expected", content, size_));
  }

  StoredRange at_;
  std::uint64_t size_;
  std::uint64_t count_ = 0;
  std::uint64_t entry_bytes_ = 8;
  std::uint64_t table_begin_ = 0;  // where the entries begin
  std::vector<Frame> frames_;
  std::vector<std::uint32_t> checksums_;  // the checksums of the frames; empty if the table has none
};

struct FreeDecoder {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
struct FreeEncoder {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

// Caches recently decoded frames, so that reading a blob in pieces, perhaps on many threads, decodes each frame once.
// All blobs share the cache, so that its memory does not grow with their number.
class FrameCache {
 public:
  using Content = std::shared_ptr<const std::vector<std::byte>>;

  static FrameCache& shared() {
    static FrameCache& cache = *new FrameCache;  // never destroyed: blobs may outlive static objects
    return cache;
  }

  // Returns a new number, by which the cache identifies a blob.
  std::uint64_t make_blob_number() { return next_blob_++; }

  void drop_frames(std::uint64_t blob) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [&](const auto& entry) { return entry->blob == blob; });
  }

  // Returns a frame, which make() decodes if it is not cached. Waits if another thread is decoding the same frame.
  template <typename Make>
  Content get(std::uint64_t blob, std::size_t frame, const Make& make) {
    return find_or_add(blob, frame)->content.get([&] {
      return std::make_shared<const std::vector<std::byte>>(make());
    });
  }

 private:
  struct Entry {
    Entry(std::uint64_t its_blob, std::size_t its_frame) : blob(its_blob), frame(its_frame) {}
    std::uint64_t blob;
    std::size_t frame;
    LazyValue<const std::vector<std::byte>> content;
  };

  // Returns the frame's entry, and moves it to the front. If it is new, and the cache is full, drops the last entry.
  std::shared_ptr<Entry> find_or_add(std::uint64_t blob, std::size_t frame) {
    const std::lock_guard lock(mutex_);
    auto at =
        std::ranges::find_if(entries_, [&](const auto& entry) { return entry->blob == blob && entry->frame == frame; });
    if (at == entries_.end()) {
      if (entries_.size() == most_) entries_.pop_back();
      at = entries_.insert(entries_.end(), std::make_shared<Entry>(blob, frame));
    }
    std::rotate(entries_.begin(), at, at + 1);
    return entries_.front();
  }

  std::atomic<std::uint64_t> next_blob_ = 0;
  std::mutex mutex_;
  std::size_t most_ =
      2 * static_cast<std::size_t>(oneapi::tbb::info::default_concurrency()) + 1;  // a thread may compare two blobs
  std::vector<std::shared_ptr<Entry>> entries_;
};

class SeekableBlob final : public Blob {
 public:
  SeekableBlob(StoredRange place, std::uint64_t size) : place_(std::move(place)), size_(size) {
    if (size > 0) return;
    // An empty blob is never read, so its frames are checked here.
    for (std::size_t i = 0; i < get_table().frames().size(); ++i) decode(i, {});
  }
  ~SeekableBlob() override { FrameCache::shared().drop_frames(name_); }

  std::uint64_t size() const override { return size_; }
  std::optional<Stored> stored() const override { return Stored{place_, std::string(kZstdSeekable)}; }
  // Returns false for large frames, because each read of a piece would decode a whole frame.
  bool seekable() const override { return get_table().frame_bytes() <= kQuickFrameBytes; }
  std::unique_ptr<BlobStream> stream() const override;

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const std::size_t index = offset / get_table().frame_bytes();
      const std::uint64_t inside = offset % get_table().frame_bytes();
      const Frame& frame = get_table().frames()[index];
      const std::size_t count = std::min<std::uint64_t>(out.size(), frame.content - inside);
      if (count == frame.content) {
        decode(index, out.first(count));
      } else {
        const auto content = frame.content <= kQuickFrameBytes
                                 ? FrameCache::shared().get(name_, index, [&] { return decode_frame(index); })
                                 : std::make_shared<const std::vector<std::byte>>(decode_frame(index));
        std::copy_n(content->begin() + static_cast<std::ptrdiff_t>(inside), count, out.begin());
      }
      out = out.subspan(count);
      offset += count;
    }
  }

  const SeekTable& get_table() const {
    const std::lock_guard lock(mutex_);
    if (!table_) table_.emplace(place_, size_);
    return *table_;
  }

  std::vector<std::byte> decode_frame(std::size_t index) const {
    std::vector<std::byte> content(get_table().frames()[index].content);
    decode(index, content);
    return content;
  }

  // Decodes a frame into `out`. Requires: `out` is as large as the frame's content.
  void decode(std::size_t index, std::span<std::byte> out) const {
    const Frame& frame = get_table().frames()[index];
    std::vector<std::byte> copy;
    std::span<const std::byte> stored;
    if (place_.source->mapped()) {
      stored = place_.source->bytes().subspan(place_.offset + frame.offset, frame.stored);
    } else {
      copy.resize(frame.stored);
      place_.source->read(place_.offset + frame.offset, copy);
      stored = copy;
    }
    const auto fail = [&](std::string_view problem) {
      throw Error(ErrorKind::invalid_file, fmt::format("{}: frame {}: {}", kZstdSeekable, index, problem),
                  place_.source->name(), place_.offset + frame.offset);
    };
    constexpr unsigned kChecksumFlag = 4;
    constexpr std::uint32_t kFrameMagic = 0xFD2FB528;
    if (stored.size() < 5 || load_le<std::uint32_t>(stored.data()) != kFrameMagic)
      fail("it does not begin with zstd's magic number");
    if ((std::to_integer<unsigned>(stored[4]) & kChecksumFlag) == 0) fail("it has no checksum");
    if (ZSTD_findFrameCompressedSize(stored.data(), stored.size()) != stored.size())
      fail(fmt::format("it does not fill its {} bytes exactly", stored.size()));
    thread_local std::unique_ptr<ZSTD_DCtx, FreeDecoder> context;
    if (!context) context.reset(ZSTD_createDCtx());
    if (!context) throw std::bad_alloc();
    const std::size_t got = ZSTD_decompressDCtx(context.get(), out.data(), out.size(), stored.data(), stored.size());
    if (ZSTD_isError(got)) fail(ZSTD_getErrorName(got));
    if (got != out.size()) fail(fmt::format("it decodes to {} bytes, {} expected", got, out.size()));
    // The checksum of a frame and that in the table are both the low half of the content's XXH64. The decoder has
    // checked the former.
    const auto checksum = load_le<std::uint32_t>(stored.last(sizeof(std::uint32_t)).data());
    if (const auto listed = get_table().checksum(index); listed && *listed != checksum)
      fail(fmt::format("checksum: expected {:08x}, found {:08x} in the seek table", checksum, *listed));
  }

 private:
  StoredRange place_;
  std::uint64_t size_;
  std::uint64_t name_ = FrameCache::shared().make_blob_number();
  mutable std::mutex mutex_;
  mutable std::optional<SeekTable> table_;  // constant once set
};

// Decodes each frame once, directly into `out` if the reader wants the whole frame.
class FrameStream final : public BlobStream {
 public:
  explicit FrameStream(const SeekableBlob& blob) : blob_(blob), frames_(blob.get_table().frames()) {}

  std::size_t best_read() const override {
    const std::size_t frame = blob_.get_table().frame_bytes();
    return frame > BlobStream::best_read() && frame % 16 == 0 ? frame : BlobStream::best_read();
  }

  std::size_t read(std::span<std::byte> out) override {
    const std::size_t wanted = out.size();
    while (!out.empty()) {
      if (position_ == content_.size()) {
        if (next_ == frames_.size()) break;
        const std::size_t size = frames_[next_].content;
        if (size <= out.size()) {
          blob_.decode(next_++, out.first(size));
          out = out.subspan(size);
          continue;
        }
        content_.resize(size);
        blob_.decode(next_++, content_);
        position_ = 0;
      }
      const std::size_t count = std::min(content_.size() - position_, out.size());
      std::copy_n(content_.begin() + static_cast<std::ptrdiff_t>(position_), count, out.begin());
      position_ += count;
      out = out.subspan(count);
    }
    if (position_ == content_.size() && next_ < frames_.size() && frames_[next_].content == 0)
      blob_.decode(next_++, {});  // checks a last frame without content
    return wanted - out.size();
  }

 private:
  const SeekableBlob& blob_;
  const std::vector<Frame>& frames_;
  std::size_t next_ = 0;
  std::vector<std::byte> content_;
  std::size_t position_ = 0;
};

std::unique_ptr<BlobStream> SeekableBlob::stream() const { return std::make_unique<FrameStream>(*this); }

struct Work {
  std::uint64_t offset = 0;
  std::vector<std::byte> content;
  std::vector<std::byte> stored;
};

void compress(Work& work, int level) {
  const std::unique_ptr<ZSTD_CCtx, FreeEncoder> context(ZSTD_createCCtx());
  if (!context) throw std::bad_alloc();
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
  work.stored.resize(ZSTD_compressBound(work.content.size()));
  const std::size_t length =
      ZSTD_compress2(context.get(), work.stored.data(), work.stored.size(), work.content.data(), work.content.size());
  if (ZSTD_isError(length))
    throw Error(ErrorKind::internal, fmt::format("zstd cannot compress: {}", ZSTD_getErrorName(length)));
  work.stored.resize(length);
}

}  // namespace

BlobPtr make_zstd_seekable_blob(StoredRange place, std::uint64_t size) {
  return std::make_shared<SeekableBlob>(std::move(place), size);
}

void write_zstd_seekable(const Blob& blob, int level, Sink& sink, Meter& meter, std::string_view item, Hasher* hasher) {
  require_zstd_level(level);
  const bool seekable = blob.map().has_value() || blob.seekable();
  const auto stream = seekable ? nullptr : blob.stream();
  ByteWriter table;
  std::uint32_t frames = 0;
  std::uint64_t next = 0;
  const auto cut = [&](Work& work) {
    if (next == blob.size()) return false;
    work.offset = next;
    work.content.resize(std::min<std::uint64_t>(kFrameBytes, blob.size() - next));
    next += work.content.size();
    if (!seekable) read_fully(*stream, work.content);
    return true;
  };
  const auto make = [&](Work& work) {
    if (seekable) blob.read(work.offset, work.content);
    compress(work, level);
  };
  const auto write_frame = [&](Work& work) {
    if (hasher != nullptr) hasher->update(work.content);
    sink.write(work.stored);
    table.append_u32(static_cast<std::uint32_t>(work.stored.size()));
    table.append_u32(static_cast<std::uint32_t>(work.content.size()));
    ++frames;
    meter.advance(work.content.size(), item);
  };
  process_in_order<Work>(cut, make, write_frame);
  ByteWriter head;
  head.append_u32(kSkippableMagic);
  head.append_u32(static_cast<std::uint32_t>(table.size() + kFooterBytes));
  table.append_u32(frames);
  table.append_u8(0);
  table.append_u32(kTableMagic);
  sink.write(head.bytes());
  sink.write(table.bytes());
}

}  // namespace poise
