// DigestCheck: compares the digests that a file has with the bytes they are of, on all threads, while others work on
// the same bytes.
//
// It goes through the bytes in file order, a batch ahead of the others' progress, so that each is read from the disk
// once. Memory: a chunk a thread.
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

#include "io/file_stamp.hpp"
#include "pack/scan.hpp"

namespace poise {

class DigestCheck {
 public:
  using Wanted = std::function<bool(const Tensor&)>;

  // Checks what the models' files say of the tensors that are wanted. Borrowed: the models must outlive this.
  DigestCheck(const std::vector<const Model*>& models, const Wanted& is_wanted);
  DigestCheck(const DigestCheck&) = delete;
  DigestCheck& operator=(const DigestCheck&) = delete;
  // Gives up what is being computed.
  ~DigestCheck() = default;

  // What is said of digests of no known kind, if there are any.
  std::optional<Finding> unchecked() const;

  // Calls work(progress) with a Progress that tells `progress` (may be empty), and checks beside that. Throws what
  // finish() throws, and else what `work` throws.
  template <typename Work>
  auto around(Progress progress, const Work& work) {
    try {
      auto result = work(beside(std::move(progress)));
      finish();
      return result;
    } catch (const Error& error) {
      // Damage may also be met by what decodes or casts the bytes; the digest tells more.
      if (failed_ || error.kind() == ErrorKind::invalid_file || error.kind() == ErrorKind::unsupported) finish_batch();
      throw;
    }
  }

 private:
  // Goes on as events come, and cancels when a digest is wrong.
  Progress beside(Progress progress);
  // Checks what is left. Throws invalid_file, naming the tensor, when a digest is wrong; io when a file has changed
  // since this was made; and what reading throws.
  void finish();
  // Waits for what has begun. Throws invalid_file likewise.
  void finish_batch();

  struct Item {
    const Tensor* tensor;
    const Part* part;
    BlobPtr blob;            // the bytes that the digest is of
    const FileDigest* file;  // whose digest it is; null: the part's

    Digest digest() const { return file != nullptr ? file->digest : *part->digest; }
    std::string where() const;  // "tensor a: data"
  };
  class ItemCheck;
  struct Batch {
    Batch(std::uint64_t begin_byte, std::span<const std::uint64_t> sizes, Scan::MakeVisit make_visit)
        : begin(begin_byte), scan(sizes, std::move(make_visit)) {}
    std::uint64_t begin;  // bytes in the batches before
    Scan scan;
  };

  void add(const Model& model, const Wanted& is_wanted);
  void make_batches();
  void start_batch() { batches_[started_++].scan.start(); }
  // The others have done that part of their work.
  void advance(double share);
  void fail(std::size_t index, const Error& error);

  std::vector<Item> items_;
  std::vector<FileStamp> stamps_;
  std::uint64_t bytes_ = 0;  // of all items
  std::string first_unchecked_;
  std::size_t unchecked_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // of these two
  std::size_t failed_item_ = 0;
  std::optional<Error> failure_;
  std::deque<Batch> batches_;
  std::size_t started_ = 0;  // batches, of which the last one may be busy
};

}  // namespace poise
