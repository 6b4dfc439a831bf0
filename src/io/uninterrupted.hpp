// System calls that nothing comes between, not even SIGKILL.
#pragma once

namespace poise {

// Calls `steps(argument)` and waits for its end. Once begun, it ends, even when this process is killed meanwhile, alone or with
// its process group: it runs in a process of its own, which shares this one's memory as vfork()'s does. So `steps` may do nothing
// but system calls: no allocation, no lock, no exception. Where the system allows no such process, this one makes the calls.
void run_uninterrupted(void (*steps)(void*) noexcept, void* argument);

}  // namespace poise
