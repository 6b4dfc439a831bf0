// Scan: reads blobs from front to back, each by one thread and many side by side, and shows their bytes to visitors.
//
// Each blob is read once, whatever its visitor computes of it. Blobs in memory whose SHA-256 is wanted are hashed
// several at a time, one in each lane of the processor's vectors, where that is quicker. Memory: a chunk a thread, and
// the visitors of the blobs that are being read.
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

// What is computed of one blob. One thread calls it, beginning with see().
class Visitor {
 public:
  virtual ~Visitor() = default;
  // The next bytes, in order. Every piece but the last is a multiple of 16 bytes, so that elements stay whole. Throws
  // nothing but `cancelled`.
  virtual void see(std::span<const std::byte> bytes) = 0;
  // There are no more bytes. `sha256`: of all of them, 64 lower-case digits; empty if the visit does not ask for it.
  virtual void end(std::string sha256) = 0;
  // Reading or end() threw; nothing is called afterwards. What this throws ends the scan. `cancelled` ends it without
  // this.
  virtual void fail(const Error& error) { throw Error(error); }
};

struct Visit {
  BlobPtr blob;
  bool sha256 = false;  // is wanted
  std::unique_ptr<Visitor> visitor;
};

class Scan {
 public:
  // Makes the visit with this index. Several threads call it, once for each index.
  using MakeVisit = std::function<Visit(std::size_t index)>;

  // Long blobs come first. `sizes`: of the blobs.
  Scan(std::span<const std::uint64_t> sizes, MakeVisit make_visit);
  // Gives up what is not done.
  ~Scan();
  Scan(const Scan&) = delete;
  Scan& operator=(const Scan&) = delete;

  // Reads on all threads while the caller does something else. Called once.
  void start();
  // Started, and not done yet.
  bool busy() const { return busy_ > 0; }
  // Waits until all is read; the calling thread helps. Throws what ended the scan.
  void finish();

  // Whoever reads the same bytes as a scan at about the same time has it go this far ahead: so many bytes should stay
  // in the page cache, and are enough blobs for all lanes.
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
