// A Scan reads many blobs in parallel, each once, from front to back on one thread, and passes their bytes to visitors.
//
// Memory: a chunk for each thread, and the visitors of the blobs that are being read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <oneapi/tbb/task_group.h>

#include <poise/blob.hpp>
#include <poise/error.hpp>

namespace poise {

// Computes a result from the bytes of one blob. One thread makes all calls, update() first.
class Visitor {
 public:
  virtual ~Visitor() = default;
  // Gets the next bytes, in order. Every piece but the last is a multiple of 16 bytes, so that elements stay whole. May
  // throw only `cancelled`.
  virtual void update(std::span<const std::byte> bytes) = 0;
  // Ends the blob. `sha256` is the digest of all bytes, as 64 lower-case hexadecimal digits; empty unless the visit
  // asks for it.
  virtual void end(std::string sha256) = 0;
  // Handles an error that reading or end() threw, as the last call. If it throws, the scan ends. The error `cancelled`
  // ends the scan without this call.
  virtual void fail(const Error& error) { throw Error(error); }
};

struct Visit {
  BlobPtr blob;
  bool sha256 = false;  // whether end() gets the SHA-256 of the blob
  std::unique_ptr<Visitor> visitor;
};

class Scan {
 public:
  // Makes the visit with this index. Several threads call it, once for each index.
  using MakeVisit = std::function<Visit(std::size_t index)>;

  // `sizes` are the sizes of the blobs. The scan reads the longest blobs first, so that all threads end at about the
  // same time.
  Scan(std::span<const std::uint64_t> sizes, MakeVisit make_visit);
  // Cancels the rest.
  ~Scan();
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

  // Starts reading on all threads and returns. Callers call it once.
  void start();
  // Returns true if the scan has started, and has neither finished nor failed.
  bool is_busy() const { return busy_ > 0 && !failed_; }
  // Returns true if finish() will throw.
  bool has_failed() const { return failed_; }
  // Waits for the end; the calling thread helps. Throws the error that ended the scan.
  void finish();

  // A scan should run this far ahead of a reader of the same bytes, which are then still in the page cache.
  static constexpr std::uint64_t kBatchBytes = std::uint64_t{256} << 20;

 private:
  void visit_blobs();
  void visit_blob(std::size_t index);

  std::vector<std::size_t> order_;  // indices, the longest blob first
  MakeVisit make_visit_;
  std::atomic<std::size_t> next_ = 0;  // position in order_
  std::atomic<std::size_t> busy_ = 0;  // number of threads that read
  std::atomic<bool> failed_ = false;
  std::atomic<bool> given_up_ = false;
  oneapi::tbb::task_group tasks_;
};

}  // namespace poise
