// Makes oneTBB understandable to ThreadSanitizer.
//
// The libtbb of systems is not built with the sanitizer, which therefore sees no order between a task's maker and the
// thread that runs it, and reports everything that one of them writes and the other reads. This file redefines the
// entry points of the library through which work changes hands, and announces that order: spawn() hands a task over,
// waiting for tasks hands back what they did, and memory comes from malloc, which the sanitizer knows. It orders
// nothing else: two tasks that touch the same thing are reported. Threads of this file run pipelines, whose tasks the
// library makes internally.
//
// Only linked into the tests of `make tsan`. Follows the declarations of oneTBB 2021.
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include <oneapi/tbb/cache_aligned_allocator.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);

namespace tbb::detail {
namespace {

template <typename Function>
Function* of_library(const char* mangled) {
  void* const found = ::dlsym(RTLD_NEXT, mangled);
  if (found == nullptr) std::abort();  // another oneTBB than this file was written for
  return reinterpret_cast<Function*>(found);
}

// Stands for a task while the library has it.
class HandedTask final : public d1::task {
 public:
  explicit HandedTask(d1::task& task) : task_(task) { __tsan_release(this); }

  d1::task* execute(d1::execution_data& data) override { return taken().execute(data); }
  d1::task* cancel(d1::execution_data& data) override { return taken().cancel(data); }

 private:
  d1::task& taken() {
    __tsan_acquire(this);
    d1::task& task = task_;
    delete this;
    return task;
  }

  d1::task& task_;
};

// Stands for work that enters an arena: where the arena is full, one of its threads does the work.
class HandedWork final : public d1::delegate_base {
 public:
  explicit HandedWork(d1::delegate_base& work) : work_(work) { __tsan_release(this); }
  ~HandedWork() override { __tsan_acquire(this); }
  HandedWork(const HandedWork&) = delete;
  HandedWork& operator=(const HandedWork&) = delete;

  bool operator()() const override {
    void* const order = const_cast<HandedWork*>(this);
    __tsan_acquire(order);
    try {
      const bool done = work_();
      __tsan_release(order);
      return done;
    } catch (...) {
      __tsan_release(order);
      throw;
    }
  }

 private:
  d1::delegate_base& work_;
};

// The tasks that are waited for count down in here, by an atomic number that the sanitizer sees; who waits reads it in
// the library.
void take_back(d1::wait_context& done) {
  static_assert(sizeof(d1::wait_context) == 16);
  __tsan_acquire(reinterpret_cast<char*>(&done) + 8);
}

// The library itself takes and gives back blocks here, in any thread.
void* allocated(std::size_t bytes) {
  constexpr std::size_t kLine = 128;
  void* const block = std::aligned_alloc(kLine, (bytes + kLine - 1) / kLine * kLine);
  if (block == nullptr) throw std::bad_alloc();
  __tsan_release(block);
  return block;
}
void release(void* block) {
  if (block != nullptr) __tsan_acquire(block);
  std::free(block);
}

// Every stage of the library's pipelines is parallel, or serial and in order; that is what this one honours.
class Pipeline {
 public:
  Pipeline(const d1::filter_node& root, std::size_t tokens) : tokens_(tokens) {
    add(root);
    turns_.resize(stages_.size());
  }
  ~Pipeline() {
    for (d1::base_filter* stage : stages_) {
      stage->~base_filter();
      r1::deallocate_memory(stage);
    }
  }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  void run() {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < std::min<std::size_t>(tokens_, 4); ++i) threads.emplace_back([this] { carry_items(); });
    for (std::thread& thread : threads) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }
  static void end_of_input() { ended = true; }

 private:
  void add(const d1::filter_node& node) {
    if (node.left && node.right) {
      add(*node.left);
      add(*node.right);
    } else {
      stages_.push_back(node.create_filter());
    }
  }

  // Carries one item after another through all stages, until there are no more.
  void carry_items() {
    while (true) {
      std::size_t number = 0;
      void* item = nullptr;
      {
        const std::lock_guard lock(input_mutex_);
        if (input_ended_) return;
        ended = false;
        try {
          item = (*stages_.front())(nullptr);
        } catch (...) {
          fail();
          ended = true;
        }
        input_ended_ = ended;
        if (input_ended_) return;
        number = items_++;
      }
      for (std::size_t stage = 1; stage < stages_.size(); ++stage) item = pass(stage, number, item);
    }
  }

  void* pass(std::size_t stage, std::size_t number, void* item) {
    d1::base_filter& filter = *stages_[stage];
    if (!filter.is_serial()) return work(filter, item);
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return turns_[stage] == number; });
    }
    void* const result = work(filter, item);
    const std::lock_guard lock(mutex_);
    ++turns_[stage];
    changed_.notify_all();
    return result;
  }

  // After a failure the rest is dropped, in its turn.
  void* work(d1::base_filter& filter, void* item) {
    if (item == nullptr) return nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (failure_) {
        filter.finalize(item);
        return nullptr;
      }
    }
    try {
      return filter(item);
    } catch (...) {
      fail();
      return nullptr;
    }
  }

  void fail() {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    input_ended_ = true;
  }

  static thread_local bool ended;

  std::size_t tokens_;
  std::vector<d1::base_filter*> stages_;
  std::mutex input_mutex_;
  std::atomic<bool> input_ended_ = false;
  std::size_t items_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::size_t> turns_;  // of each stage: the number of the item that may enter
  std::exception_ptr failure_;
};

thread_local bool Pipeline::ended = false;

char no_pool = 0;  // what is allocated here is of no pool of the library's

}  // namespace

namespace r1 {

void spawn(d1::task& task, d1::task_group_context& context) {
  static auto* const library = of_library<void(d1::task&, d1::task_group_context&)>(
      "_ZN3tbb6detail2r15spawnERNS0_2d14taskERNS2_18task_group_contextE");
  tbb::this_task_arena::isolate([] {});  // gives a new thread its arena, which is handed over with the task
  library(*new HandedTask(task), context);
}

void execute_and_wait(d1::task& task, d1::task_group_context& context, d1::wait_context& done,
                      d1::task_group_context& waiting) {
  static auto* const library =
      of_library<void(d1::task&, d1::task_group_context&, d1::wait_context&, d1::task_group_context&)>(
          "_ZN3tbb6detail2r116execute_and_waitERNS0_2d14taskERNS2_18task_group_contextERNS2_12wait_contextES6_");
  try {
    library(task, context, done, waiting);
  } catch (...) {
    take_back(done);
    throw;
  }
  take_back(done);
}

void wait(d1::wait_context& done, d1::task_group_context& context) {
  static auto* const library = of_library<void(d1::wait_context&, d1::task_group_context&)>(
      "_ZN3tbb6detail2r14waitERNS0_2d112wait_contextERNS2_18task_group_contextE");
  try {
    library(done, context);
  } catch (...) {
    take_back(done);
    throw;
  }
  take_back(done);
}

void execute(d1::task_arena_base& arena, d1::delegate_base& work) {
  static auto* const library = of_library<void(d1::task_arena_base&, d1::delegate_base&)>(
      "_ZN3tbb6detail2r17executeERNS0_2d115task_arena_baseERNS2_13delegate_baseE");
  HandedWork handed(work);
  library(arena, handed);
}

void* allocate(d1::small_object_pool*& pool, std::size_t bytes, const d1::execution_data&) {
  return allocate(pool, bytes);
}
void* allocate(d1::small_object_pool*& pool, std::size_t bytes) {
  pool = reinterpret_cast<d1::small_object_pool*>(&no_pool);
  return allocated(bytes);
}
void deallocate(d1::small_object_pool&, void* block, std::size_t, const d1::execution_data&) { release(block); }
void deallocate(d1::small_object_pool&, void* block, std::size_t) { release(block); }
void* allocate_memory(std::size_t bytes) { return allocated(bytes); }
void deallocate_memory(void* block) { release(block); }
void* cache_aligned_allocate(std::size_t bytes) { return allocated(bytes); }
void cache_aligned_deallocate(void* block) { release(block); }

void parallel_pipeline(d1::task_group_context&, std::size_t tokens, const d1::filter_node& root) {
  Pipeline(root, tokens).run();
}
void set_end_of_input(d1::base_filter&) { Pipeline::end_of_input(); }

}  // namespace r1
}  // namespace tbb::detail
