// Cancelled computations: the loops of oneTBB that a call has started end early, and their results must not be used.
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
