// Work in three steps on one item after another: cut in order, made side by side by all threads, used in order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <exception>
#include <vector>

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_pipeline.h>

namespace poise {

inline constexpr std::size_t kMostItems = 32;  // worked on at once, however many processors there are

// cut(Item&) -> bool gives the next item its work, or says that there is none; make(Item&) may run for several items at once; use(Item&)
// gets them as they were cut. Of several failures of make(), the first item's is thrown, after those before it were used; all
// threads are done when this returns or throws. The items are used again and again and keep what memory they have. (They are
// kept here because oneTBB forgets items of a pipeline that fails.)
template <typename Item, typename Cut, typename Make, typename Use>
void process_in_order(const Cut& cut, const Make& make, const Use& use) {
  namespace tbb = oneapi::tbb;
  struct Slot {
    Item item;
    std::exception_ptr failure;
  };
  // Enough for every processor to make one while another waits to be used.
  const std::size_t count = std::min(kMostItems, 2 * static_cast<std::size_t>(tbb::info::default_concurrency()) + 1);
  std::vector<Slot> slots(count);
  std::size_t next = 0;  // items end in order, so that the one that had this place has ended
  const auto first = [&](tbb::flow_control& control) -> Slot* {
    Slot& slot = slots[next++ % count];
    if (cut(slot.item)) return &slot;
    control.stop();
    return nullptr;
  };
  const auto second = [&](Slot* slot) {
    try {
      make(slot->item);
    } catch (...) {
      slot->failure = std::current_exception();
    }
    return slot;
  };
  const auto third = [&](Slot* slot) {
    if (slot->failure) std::rethrow_exception(slot->failure);
    use(slot->item);
  };
  tbb::parallel_pipeline(count, tbb::make_filter<void, Slot*>(tbb::filter_mode::serial_in_order, first) &
                                    tbb::make_filter<Slot*, Slot*>(tbb::filter_mode::parallel, second) &
                                    tbb::make_filter<Slot*, void>(tbb::filter_mode::serial_in_order, third));
}

}  // namespace poise
