// A computation that its caller wants no more: the loops of oneTBB that it has begun end early, with results that
// nobody must use.
#pragma once

#include <tbb/task_group.h>

#include <poise/error.hpp>

namespace poise {

[[noreturn]] inline void throw_cancelled() { throw Error(ErrorKind::cancelled, "the computation was told to stop"); }

// Throws cancelled when the calling task's group is cancelled.
inline void require_wanted() {
  if (tbb::is_current_task_group_canceling()) throw_cancelled();
}

}  // namespace poise
