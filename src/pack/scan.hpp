// Scan: reads many blobs in parallel, each from front to back on one thread, and shows their bytes to visitors.
//
// Reads each blob once, whatever its visitor computes. Blobs in memory whose SHA-256 is wanted are hashed several at a
// time, one in each vector lane, where that is faster. Memory: a chunk for each thread, and the visitors of the blobs
// that are being read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <oneapi/tbb/task_group.h>

#include <poise/blob.hpp>
#include <poise/error.hpp>

#include "pack/sha256_lanes.hpp"

namespace poise {

// Computes something of one blob. One thread calls it, beginning with see().
class Visitor {
 public:
  virtual ~Visitor() = default;
  // The next bytes, in order. Every piece but the last is a multiple of 16 bytes, so that elements stay whole. May
  // throw only `cancelled`.
  virtual void see(std::span<const std::byte> bytes) = 0;
  // The end. `sha256`: of all bytes, 64 lower-case digits; empty unless the visit asks for it.
  virtual void end(std::string sha256) = 0;
  // Reading or end() threw; nothing is called after this. What this throws ends the scan; `cancelled` ends the scan
  // without a call.
  virtual void fail(const Error& error) { throw Error(error); }
};

struct Visit {
  BlobPtr blob;
  bool sha256 = false;  // is wanted
  std::unique_ptr<Visitor> visitor;
};

class Scan {
 public:
  // Makes the visit with this index. Called from several threads, once for each index.
  using MakeVisit = std::function<Visit(std::size_t index)>;

  // Begins with the longest blobs. `sizes`: of the blobs.
  Scan(std::span<const std::uint64_t> sizes, MakeVisit make_visit);
  // Cancels the rest.
  ~Scan();
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

  // Starts reading on all threads and returns. Called once.
  void start();
  // Started and not finished.
  bool busy() const { return busy_ > 0; }
  // Waits for the end; the calling thread helps. Throws the error that ended the scan.
  void finish();

  // How far a scan should run ahead of a reader of the same bytes: the bytes stay in the page cache, and there are
  // enough blobs for all lanes.
  static std::uint64_t batch_bytes();

 private:
  std::optional<Sha256Message> begin(const HashOrder::Item& turn);
  void go_on() const;

  HashOrder order_;
  MakeVisit make_visit_;
  std::atomic<std::size_t> busy_ = 0;  // threads
  std::atomic<bool> given_up_ = false;
  oneapi::tbb::task_group tasks_;
};

}  // namespace poise
