// Runs a pipeline of three steps: cuts items in order, makes them on all threads, and uses them in order. Also holds
// values that are made on first use.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <poise/error.hpp>

namespace poise {

inline constexpr std::size_t kMostItems = 32;  // the most items at once, unless there are as many processors or more

// Runs the pipeline. cut(Item&) -> bool sets up the next item, or returns false at the end; make(Item&) may run for
// several items at once; use(Item&) gets items in the order of cut(). If make() throws, its error is thrown here after
// the items before it were used; an error of cut() or use() is thrown at once. All threads have finished when this
// returns or throws. Items are reused and keep their memory. (This function owns them because oneTBB does not free the
// items of a pipeline that fails.)
template <typename Item, typename Cut, typename Make, typename Use>
void process_in_order(const Cut& cut, const Make& make, const Use& use) {
  namespace tbb = oneapi::tbb;
  struct Slot {
    Item item;
    std::exception_ptr failure;
    std::atomic<bool> busy = false;
  };
  // There is an item for each processor, and one more. Up to kMostItems in all, each processor has a second one, which
  // waits.
  const auto processors = static_cast<std::size_t>(tbb::info::default_concurrency());
  const std::size_t count = std::min(2 * processors + 1, std::max(kMostItems, processors + 1));
  std::vector<Slot> slots(count);
  std::size_t next = 0;
  const auto cut_item = [&](tbb::flow_control& control) -> Slot* {
    Slot& slot = slots[next++ % count];
    // Items end in order, so the previous item in this slot has ended.
    if (slot.busy.exchange(true, std::memory_order_acquire))
      throw Error(ErrorKind::internal, "more items in flight than there are places");
    if (cut(slot.item)) return &slot;
    control.stop();
    return nullptr;
  };
  const auto make_item = [&](Slot* slot) {
    try {
      make(slot->item);
    } catch (...) {
      slot->failure = std::current_exception();
    }
    return slot;
  };
  const auto use_item = [&](Slot* slot) {
    if (slot->failure) std::rethrow_exception(slot->failure);
    use(slot->item);
    slot->busy.store(false, std::memory_order_release);
  };
  tbb::parallel_pipeline(count, tbb::make_filter<void, Slot*>(tbb::filter_mode::serial_in_order, cut_item) &
                                    tbb::make_filter<Slot*, Slot*>(tbb::filter_mode::parallel, make_item) &
                                    tbb::make_filter<Slot*, void>(tbb::filter_mode::serial_in_order, use_item));
}

// Call this before the first run() of a oneTBB task_group. Makes oneTBB's data of this thread, or throws
// std::bad_alloc. If run() fails to make them, neither wait() nor the destructor of the group works.
inline void prepare_task_group() {
  oneapi::tbb::parallel_for(0, 1, [](int) {});
}

// Holds a value that is made on first use and can be released. Thread-safe. Callers of get() keep a value that is
// released meanwhile; the next get() makes a new one.
template <typename T>
class LazyValue {
 public:
  // Returns the value. The first call makes it by make(), which returns a std::shared_ptr<T>; other threads wait. The
  // call is isolated: a thread that waits in make() must not take other work, which may wait for the value.
  template <typename Make>
  std::shared_ptr<T> get(const Make& make) const {
    const std::scoped_lock lock(mutex_);
    if (!value_) value_ = oneapi::tbb::this_task_arena::isolate(make);
    return value_;
  }

  void release() const {
    const std::scoped_lock lock(mutex_);
    value_.reset();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::shared_ptr<T> value_;
};

}  // namespace poise
