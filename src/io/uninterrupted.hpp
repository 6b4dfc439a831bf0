// System calls that nothing comes between, not even SIGKILL.
#pragma once

namespace poise {

// Calls `steps(argument)`, waits for its end and returns what it returns, 0 to 255. Once begun, it ends, even when this process is
// killed meanwhile, alone or with its process group: it runs in a process of its own, which shares this one's memory as vfork()'s
// does. So `steps` may do nothing but system calls: no allocation, no lock, no exception. What it writes may be lost (valgrind
// copies the memory). Where the system allows no such process, this one makes the calls. -1 when that process was killed itself.
int run_uninterrupted(int (*steps)(const void*) noexcept, const void* argument);

}  // namespace poise
