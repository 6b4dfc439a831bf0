// Compresses and decodes zstd frames (RFC 8878) with libzstd, as a stream.
#include "pack/zstd.hpp"

#include <algorithm>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <thread>

#include <fmt/format.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <poise/error.hpp>

#include "io/read_fully.hpp"

namespace poise {
namespace {

constexpr int kMaxWindowLog = 27;                      // 128 MiB, which libzstd accepts by default
constexpr std::uint64_t kMinBlockBytes = 4;            // header and RLE byte: the smallest block that has content
constexpr std::uint64_t kMaxBlockContent = 128 << 10;  // a block decodes to at most 128 KiB (RFC 8878)
constexpr std::size_t kInputBytes = 256 << 10;
constexpr int kLeastLargeLevel = 20;               // from this level on, windows have 32 MiB and more
constexpr std::uint64_t kParallelBytes = 8 << 20;  // below this a blob is compressed by one thread

// Decodes frames from front to back.
class Decoder {
 public:
  explicit Decoder(const StoredRange& place) : at_(place), context_(ZSTD_createDCtx()) {
    if (!context_) throw std::bad_alloc();
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMaxWindowLog);
  }

  // Fills `out`, or a part of it if the frames end. Returns the number of bytes.
  std::size_t decode(std::span<std::byte> out) {
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    while (output.pos < output.size && (input_.pos < input_.size || fill_input() || pending_)) {
      const std::size_t before = output.pos;
      const std::size_t hint = ZSTD_decompressStream(context_.get(), &output, &input_);
      if (ZSTD_isError(hint)) refuse(hint);
      in_frame_ = hint != 0;
      // A full output buffer may leave decoded bytes inside the context although all input is consumed.
      pending_ = in_frame_ && output.pos > before;
    }
    return output.pos;
  }

  // Throws if there are more bytes to decode, or the last frame is cut off. The message has `size`, the expected size.
  void require_end(std::uint64_t size) {
    std::byte extra{};
    if (decode(std::span(&extra, 1)) != 0) fail(fmt::format("it decodes to more than {} bytes", size));
    require_whole_frame();
  }

  void require_whole_frame() const {
    if (in_frame_) fail("the last frame is cut off");
  }

  [[noreturn]] void fail(const std::string& problem, ErrorKind kind = ErrorKind::invalid_file) const {
    throw Error(kind, "zstd: " + problem, at_.source->name(), at_.offset);
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };

  bool fill_input() {
    if (consumed_ == at_.length) return false;
    const auto count = std::min<std::uint64_t>(kInputBytes, at_.length - consumed_);
    if (at_.source->mapped()) {
      input_ = {at_.source->bytes().data() + at_.offset + consumed_, count, 0};
    } else {
      buffer_.resize(count);
      at_.source->read(at_.offset + consumed_, buffer_);
      input_ = {buffer_.data(), count, 0};
    }
    consumed_ += count;
    return true;
  }

  [[noreturn]] void refuse(std::size_t code) const {
    const bool too_large = ZSTD_getErrorCode(code) == ZSTD_error_frameParameter_windowTooLarge;
    fail(fmt::format("{}", ZSTD_getErrorName(code)), too_large ? ErrorKind::unsupported : ErrorKind::invalid_file);
  }

  StoredRange at_;
  std::unique_ptr<ZSTD_DCtx, Free> context_;
  std::vector<std::byte> buffer_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  std::uint64_t consumed_ = 0;  // stored bytes handed to the context or in input_
  bool in_frame_ = false;
  bool pending_ = false;
};

class ZstdStream final : public BlobStream {
 public:
  ZstdStream(const StoredRange& place, std::uint64_t size) : decoder_(place), size_(size) {}

  std::size_t read(std::span<std::byte> out) override {
    const auto wanted = out.first(std::min<std::uint64_t>(out.size(), size_ - position_));
    const std::size_t got = decoder_.decode(wanted);
    position_ += got;
    if (got < wanted.size()) {
      decoder_.require_whole_frame();
      decoder_.fail(fmt::format("it decodes to {} bytes, {} expected", position_, size_));
    }
    if (position_ == size_ && !ended_) {
      decoder_.require_end(size_);
      ended_ = true;
    }
    return got;
  }

  std::uint64_t position() const { return position_; }

 private:
  Decoder decoder_;
  std::uint64_t size_;
  std::uint64_t position_ = 0;
  bool ended_ = false;
};

// Returns the largest size that the stored bytes can decode to. It limits allocations.
std::uint64_t compute_largest_content(const StoredRange& place) {
  return place.length > UINT64_MAX / kMaxBlockContent - 1 ? UINT64_MAX
                                                          : (place.length / kMinBlockBytes + 1) * kMaxBlockContent;
}

class ZstdBlob final : public Blob {
 public:
  ZstdBlob(StoredRange place, std::uint64_t size) : place_(std::move(place)), size_([size] { return size; }) {
    if (size > compute_largest_content(place_))
      Decoder(place_).fail(fmt::format("{} bytes cannot decode to {}", place_.length, size));
    if (size == 0) Decoder(place_).require_end(0);  // checks the frame here, since an empty blob is never read
  }
  // Calls `size` when the size is needed, until a call succeeds.
  ZstdBlob(StoredRange place, std::function<std::uint64_t()> size)
      : place_(std::move(place)), size_(std::move(size)), is_size_stated_(false) {}

  std::uint64_t size() const override {
    std::call_once(size_known_, [this] { known_size_ = size_(); });
    return known_size_;
  }
  std::optional<std::uint64_t> stated_size() const override {
    return is_size_stated_ ? std::optional(size()) : std::nullopt;
  }
  bool seekable() const override { return false; }
  std::optional<Stored> stored() const override { return Stored{place_, "zstd"}; }
  std::unique_ptr<BlobStream> stream() const override { return std::make_unique<ZstdStream>(place_, size()); }

  // Continues where the last read stopped, if possible: computed blobs read in pieces, and starting over for each piece
  // would take quadratic time.
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const std::lock_guard lock(last_mutex_);
    std::unique_ptr<ZstdStream> from = std::move(last_);
    if (!from || from->position() > offset) from = std::make_unique<ZstdStream>(place_, size());
    discard_bytes(*from, offset - from->position());
    from->read(out);
    if (from->position() < size()) last_ = std::move(from);
  }

 private:
  StoredRange place_;
  std::function<std::uint64_t()> size_;
  bool is_size_stated_ = true;
  mutable std::once_flag size_known_;
  mutable std::uint64_t known_size_ = 0;
  mutable std::mutex last_mutex_;
  mutable std::unique_ptr<ZstdStream> last_;
};

// Returns the decoded size of frames; std::nullopt if it exceeds `most`.
std::optional<std::uint64_t> count_decoded_bytes(const StoredRange& place, std::uint64_t most) {
  Decoder decoder(place);
  std::vector<std::byte> chunk(kInputBytes);
  std::uint64_t size = 0;
  while (const std::size_t got = decoder.decode(chunk)) {
    size += got;
    if (size > most) return std::nullopt;
  }
  decoder.require_whole_frame();
  return size;
}

}  // namespace

// Finds the decoded size of frames. If a count stops at its limit, the limit of the next one is at least twice as
// large, so that many callers with different limits cause few counts.
class ZstdSize {
 public:
  explicit ZstdSize(StoredRange place) : place_(std::move(place)) {}

  std::uint64_t get(std::uint64_t limit) {
    const std::lock_guard lock(mutex_);
    while (!size_ && !failure_ && (!above_ || limit > *above_)) count_bytes(limit);
    if (failure_) std::rethrow_exception(failure_);
    if (size_ && *size_ <= limit) return *size_;
    Decoder(place_).fail(fmt::format("it decodes to more than {} bytes, the most that the file allows here", limit));
  }

 private:
  void count_bytes(std::uint64_t limit) {
    const std::uint64_t twice = above_.value_or(0) > UINT64_MAX / 2 ? UINT64_MAX : 2 * above_.value_or(0);
    const std::uint64_t most = std::max(limit, twice);
    try {
      size_ = count_decoded_bytes(place_, most);
    } catch (const Error&) {
      failure_ = std::current_exception();
    }
    above_ = most;
  }

  StoredRange place_;
  std::mutex mutex_;
  std::optional<std::uint64_t> size_;
  std::optional<std::uint64_t> above_;  // while the size is unknown: the size exceeds this
  std::exception_ptr failure_;
};

std::shared_ptr<ZstdSize> make_zstd_size(StoredRange place) { return std::make_shared<ZstdSize>(std::move(place)); }

BlobPtr make_zstd_blob(StoredRange place, std::uint64_t size) {
  return std::make_shared<ZstdBlob>(std::move(place), size);
}

BlobPtr make_zstd_blob_of_unknown_size(StoredRange place, std::uint64_t limit, std::shared_ptr<ZstdSize> size) {
  return std::make_shared<ZstdBlob>(std::move(place), [size = std::move(size), limit] { return size->get(limit); });
}

void require_zstd_level(int level) {
  if (level < 1 || level > ZSTD_maxCLevel()) {
    throw Error(ErrorKind::bad_argument, fmt::format("zstd has the levels 1 to {}, not {}", ZSTD_maxCLevel(), level));
  }
}

struct ZstdCompressor::Context {
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> zstd{ZSTD_createCCtx()};
  std::vector<std::byte> output = std::vector<std::byte>(ZSTD_CStreamOutSize());
  int level = 0;

  void set_parameter(ZSTD_cParameter parameter, int value) const {
    check_result(ZSTD_CCtx_setParameter(zstd.get(), parameter, value));
  }

  static std::size_t check_result(std::size_t result) {
    if (ZSTD_isError(result))
      throw Error(ErrorKind::internal, fmt::format("zstd cannot compress: {}", ZSTD_getErrorName(result)));
    return result;
  }

  // Compresses `bytes` into `to`. With ZSTD_e_end, also writes what is still buffered.
  void compress_into(std::span<const std::byte> bytes, ZSTD_EndDirective directive, Sink& to) {
    ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
    bool done = false;
    while (!done) {
      ZSTD_outBuffer produced{output.data(), output.size(), 0};
      const std::size_t left = check_result(ZSTD_compressStream2(zstd.get(), &produced, &input, directive));
      to.write(std::span(output).first(produced.pos));
      done = directive == ZSTD_e_end ? left == 0 : input.pos == input.size;
    }
  }
};

ZstdCompressor::ZstdCompressor(int level) : context_(std::make_unique<Context>()) {
  if (!context_->zstd) throw std::bad_alloc();
  require_zstd_level(level);
  context_->level = level;
  context_->set_parameter(ZSTD_c_compressionLevel, level);
  context_->set_parameter(ZSTD_c_contentSizeFlag, 0);
}

ZstdCompressor::~ZstdCompressor() = default;

ZstdCompressor::Frame::Frame(ZstdCompressor& compressor, Sink& to, std::uint64_t size)
    : compressor_(compressor), to_(to) {
  Context& context = *compressor_.context_;
  Context::check_result(ZSTD_CCtx_reset(context.zstd.get(), ZSTD_reset_session_only));
  const int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  context.set_parameter(ZSTD_c_nbWorkers, size >= kParallelBytes ? threads : 0);
  // Without the size, these levels take hundreds of MB for the smallest frame. At other levels, the size would change
  // the bytes that earlier versions of Poise wrote.
  if (context.level >= kLeastLargeLevel) Context::check_result(ZSTD_CCtx_setPledgedSrcSize(context.zstd.get(), size));
}

void ZstdCompressor::Frame::do_write(std::span<const std::byte> bytes) {
  compressor_.context_->compress_into(bytes, ZSTD_e_continue, to_);
}
void ZstdCompressor::Frame::finish() { compressor_.context_->compress_into({}, ZSTD_e_end, to_); }

}  // namespace poise
