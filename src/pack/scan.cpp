#include "pack/scan.hpp"

#include <algorithm>
#include <numeric>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task.h>

#include "io/threads.hpp"
#include "pack/digest.hpp"
#include "pack/pump.hpp"

namespace poise {

Scan::Scan(std::span<const std::uint64_t> sizes, MakeVisit make_visit)
    : order_(sizes.size()), make_visit_(std::move(make_visit)) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::ranges::stable_sort(order_, std::ranges::greater(), [&](std::size_t index) { return sizes[index]; });
}

Scan::~Scan() {
  given_up_ = true;
  next_ = order_.size();
  try {
    tasks_.wait();
  } catch (...) {  // the caller has its own error, or no longer needs the result
  }
}

void Scan::start() {
  const auto processors = static_cast<std::size_t>(oneapi::tbb::info::default_concurrency());
  const std::size_t threads = std::min(processors, order_.size());
  prepare_task_group();
  busy_ = threads;
  for (std::size_t thread = 0; thread < threads; ++thread) {
    tasks_.run([this] {
      try {
        visit_blobs();
      } catch (...) {
        failed_ = true;  // busy_ stays above 0, because oneTBB cancels tasks that have not begun
        throw;
      }
      --busy_;
    });
  }
}

void Scan::finish() { tasks_.wait(); }

// Visits blobs on one thread until none is left.
void Scan::visit_blobs() {
  for (std::size_t i = next_++; i < order_.size(); i = next_++) {
    if (oneapi::tbb::is_current_task_group_canceling()) return;
    visit_blob(order_[i]);
  }
}

void Scan::visit_blob(std::size_t index) {
  const Visit visit = make_visit_(index);
  try {
    const auto hasher = visit.sha256 ? make_sha256() : nullptr;
    stream_chunks(*visit.blob, [&](std::span<const std::byte> bytes) {
      if (given_up_) throw Error(ErrorKind::cancelled, "cancelled");
      if (hasher) hasher->update(bytes);
      visit.visitor->update(bytes);
    });
    visit.visitor->end(hasher ? hasher->finish() : std::string());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::cancelled) throw;
    visit.visitor->fail(error);
  }
}

}  // namespace poise
