// DigestCheck checks a file's digests on all threads, while other code works on the same bytes.
//
// It reads in batches, in file order, and one batch ahead of the other code, which then finds the bytes in the page
// cache. Each thread needs memory for one chunk.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <poise/error.hpp>
#include <poise/finding.hpp>
#include <poise/model.hpp>
#include <poise/progress.hpp>

#include "cluster/communicator.hpp"
#include "io/file_descriptor.hpp"
#include "pack/scan.hpp"

namespace poise {

// Names a file with a digest of the whole file, and a part that only this digest covers.
struct FileClaim {
  const FileDigest* file = nullptr;  // Poise may not know the kind of its digest
  // The first part of the file without a digest of its own, or with one of a kind that Poise does not compute.
  const Tensor* tensor = nullptr;
  const Part* part = nullptr;
  BlobPtr bytes;  // the whole file
};

// Returns a claim for each file that has a digest and holds a part of a wanted tensor that only this digest covers. The
// claims refer to the model.
std::vector<FileClaim> find_file_claims(const Model& model, const std::function<bool(const Tensor&)>& is_wanted);

class DigestCheck {
 public:
  using Wanted = std::function<bool(const Tensor&)>;

  // Lists the digests to check: those of wanted tensors in the models' files. If `ranks` is not null, lists only the
  // share of this rank. Requires: the models outlive this.
  DigestCheck(const std::vector<const Model*>& models, const Wanted& is_wanted, const Communicator* ranks = nullptr);
  DigestCheck(const DigestCheck&) = delete;
  DigestCheck& operator=(const DigestCheck&) = delete;
  // Cancels checks that are still running.
  ~DigestCheck() = default;

  // Returns a finding about digests of unknown kinds, if there are any.
  std::optional<Finding> find_unchecked() const;

  // Calls work(progress) with a Progress that forwards to `progress` (which may be empty), and checks digests
  // meanwhile. Throws what finish() throws, or else what `work` throws.
  template <typename Work>
  auto run_checked(Progress progress, const Work& work) {
    try {
      auto result = work(make_tracking_progress(std::move(progress)));
      finish();
      return result;
    } catch (const Error& error) {
      // A decoder or cast may notice damage, too; a wrong digest explains more.
      if (failed_ || error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported) finish_batch();
      throw;
    }
  }

 private:
  // Returns a Progress that continues the check at each event, and forwards the event. It cancels when a digest is
  // wrong or checking fails.
  Progress make_tracking_progress(Progress progress);
  // Checks the rest. Throws invalid_file, naming the tensor, for a wrong digest; io if a file has changed since the
  // constructor; and what reading throws.
  void finish();
  // Waits for the batch that was started last. Throws for a wrong digest, and what reading throws.
  void finish_batch();

  struct Item {
    const Tensor* tensor;
    const Part* part;
    BlobPtr blob;            // the digested bytes
    const FileDigest* file;  // the file that the digest covers; null: the digest covers the part

    Digest digest() const { return file != nullptr ? file->digest : *part->digest; }
    std::string describe() const;  // "tensor a: data"
  };
  class ItemCheck;
  struct Batch {
    Batch(std::uint64_t begin_byte, std::span<const std::uint64_t> sizes, Scan::MakeVisit make_visit)
        : begin(begin_byte), scan(sizes, std::move(make_visit)) {}
    std::uint64_t begin;  // the bytes in earlier batches
    Scan scan;
  };

  void add_items(const Model& model, const Wanted& is_wanted);
  void keep_own_items(const Communicator& ranks);
  void make_batches();
  void start_batch() { batches_[started_++].scan.start(); }
  // Starts the next batch if no batch is running and the other code, which has done `share` of its work, has reached
  // the batch that was started last.
  void start_batch_if_due(double share);
  void record_failure(std::size_t index, const Error& error);

  std::vector<Item> items_;
  std::vector<FileStamp> stamps_;
  std::uint64_t bytes_ = 0;  // the bytes of all items
  std::string first_unchecked_;
  std::size_t unchecked_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // guards the next two members
  std::size_t failed_item_ = 0;
  std::optional<Error> failure_;
  std::deque<Batch> batches_;
  std::size_t started_ = 0;  // the number of started batches; the last of them may be running
};

}  // namespace poise
