/* Preloaded into a program, fails some of its system calls or allocations.

       POISE_FAULT=CALL:N:HOW,... the N-th CALL (from 1) goes wrong; HOW is an errno's name, or SHORT: half of the bytes
   are done POISE_FAULT_LOG=FILE       at the end, lines "CALL COUNT" are written there

   CALL "tmpfile" is open() of a file without a name. Calls on the standard streams, and mmap() without a file, are left
   alone and not counted; so are allocations other than by C++'s operator new (OpenSSL crashes when it cannot load its
   algorithms), and those before the program's first signal(), with which its main() begins: what runs before main() can
   report nothing. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

enum call {
  CALL_open,
  CALL_tmpfile,
  CALL_close,
  CALL_write,
  CALL_pwrite,
  CALL_pread,
  CALL_copy_file_range,
  CALL_fsync,
  CALL_fallocate,
  CALL_rename,
  CALL_renameat2,
  CALL_linkat,
  CALL_link,
  CALL_unlink,
  CALL_ftruncate,
  CALL_mmap,
  CALL_pthread_create,
  CALL_malloc,
  CALLS
};

static const char* const names[CALLS] = {
    "open",      "tmpfile", "close", "write",  "pwrite",    "pread", "copy_file_range", "fsync", "fallocate", "rename",
    "renameat2", "linkat",  "link",  "unlink", "ftruncate", "mmap",  "pthread_create",  "malloc"};
static const struct {
  const char* name;
  int code;
} codes[] = {{"EINTR", EINTR},   {"EIO", EIO},     {"ENOSPC", ENOSPC},         {"EACCES", EACCES},
             {"ENOMEM", ENOMEM}, {"EXDEV", EXDEV}, {"EOPNOTSUPP", EOPNOTSUPP}, {"EINVAL", EINVAL},
             {"EAGAIN", EAGAIN}, {"SHORT", -1}};

static atomic_ulong counts[CALLS];
static atomic_bool begun;
static struct fault {
  enum call call;
  unsigned long at;
  int how;
} faults[4];
static size_t fault_count;

/* Where the C++ library lies, whose operator new calls malloc(). */
static const char* cxx_begin;
static const char* cxx_end;

static int find_cxx_library(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size;
  (void)unused;
  if (strstr(info->dlpi_name, "libstdc++") == NULL) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD || !(info->dlpi_phdr[i].p_flags & PF_X)) continue;
    cxx_begin = (const char*)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    cxx_end = cxx_begin + info->dlpi_phdr[i].p_memsz;
  }
  return 1;
}

static bool in_cxx_library(const void* caller) {
  return cxx_begin <= (const char*)caller && (const char*)caller < cxx_end;
}

__attribute__((constructor)) static void begin(void) {
  dl_iterate_phdr(find_cxx_library, NULL);
  const char* text = getenv("POISE_FAULT");
  char name[32];
  char how[32];
  int length = 0;
  struct fault fault = {CALLS, 0, 0};
  while (text != NULL && fault_count < sizeof faults / sizeof faults[0] &&
         sscanf(text, "%31[^:]:%lu:%31[^,]%n", name, &fault.at, how, &length) == 3) {
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; ++i) {
      if (strcmp(how, codes[i].name) == 0) fault.how = codes[i].code;
    }
    for (int call = 0; call < CALLS; ++call) {
      if (strcmp(name, names[call]) == 0) fault.call = (enum call)call;
    }
    faults[fault_count++] = fault;
    text += length;
    if (*text == ',') ++text;
  }
}

__attribute__((destructor)) static void end(void) {
  const char* path = getenv("POISE_FAULT_LOG");
  if (path == NULL) return;
  fault_count = 0;
  FILE* log = fopen(path, "w");
  if (log == NULL) return;
  for (int call = 0; call < CALLS; ++call) fprintf(log, "%s %lu\n", names[call], atomic_load(&counts[call]));
  fclose(log);
}

/* 0: do it; -1: do half of it; an errno: it has failed. */
static int fate(enum call call) {
  const unsigned long count = atomic_fetch_add(&counts[call], 1) + 1;
  for (size_t i = 0; i < fault_count; ++i) {
    if (faults[i].call == call && faults[i].at == count) return faults[i].how;
  }
  return 0;
}

#define REAL(call) ((__typeof__(&call))dlsym(RTLD_NEXT, #call))
#define FAIL_OR_HALVE(call, fd, length)           \
  if ((fd) > 2) {                                 \
    const int wrong = fate(CALL_##call);          \
    if (wrong > 0) return errno = wrong, -1;      \
    if (wrong < 0 && (length) > 1) (length) /= 2; \
  }
#define FAIL(call)                           \
  do {                                       \
    const int wrong = fate(CALL_##call);     \
    if (wrong > 0) return errno = wrong, -1; \
  } while (0)

int open(const char* path, int flags, ...) {
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  if ((flags & O_TMPFILE) == O_TMPFILE) {
    FAIL(tmpfile);
  } else {
    FAIL(open);
  }
  return REAL(open)(path, flags, mode);
}

/* As the kernel does it: the file is closed, and only then something is said. */
int close(int fd) {
  const int result = REAL(close)(fd);
  if (fd > 2) FAIL(close);
  return result;
}

ssize_t write(int fd, const void* bytes, size_t length) {
  FAIL_OR_HALVE(write, fd, length)
  return REAL(write)(fd, bytes, length);
}

ssize_t pwrite(int fd, const void* bytes, size_t length, off_t offset) {
  FAIL_OR_HALVE(pwrite, fd, length)
  return REAL(pwrite)(fd, bytes, length, offset);
}

ssize_t pread(int fd, void* bytes, size_t length, off_t offset) {
  FAIL_OR_HALVE(pread, fd, length)
  return REAL(pread)(fd, bytes, length, offset);
}

ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t length, unsigned flags) {
  FAIL_OR_HALVE(copy_file_range, to, length)
  return REAL(copy_file_range)(from, from_offset, to, to_offset, length, flags);
}

int fsync(int fd) {
  FAIL(fsync);
  return REAL(fsync)(fd);
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
  FAIL(fallocate);
  return REAL(fallocate)(fd, mode, offset, length);
}

int rename(const char* from, const char* to) {
  FAIL(rename);
  return REAL(rename)(from, to);
}

int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) {
  FAIL(renameat2);
  return REAL(renameat2)(from_directory, from, to_directory, to, flags);
}

int linkat(int from_directory, const char* from, int to_directory, const char* to, int flags) {
  FAIL(linkat);
  return REAL(linkat)(from_directory, from, to_directory, to, flags);
}

int link(const char* from, const char* to) {
  FAIL(link);
  return REAL(link)(from, to);
}

int unlink(const char* path) {
  FAIL(unlink);
  return REAL(unlink)(path);
}

int ftruncate(int fd, off_t length) {
  FAIL(ftruncate);
  return REAL(ftruncate)(fd, length);
}

void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t offset) {
  if (fd >= 0) {
    const int wrong = fate(CALL_mmap);
    if (wrong > 0) return errno = wrong, MAP_FAILED;
  }
  return REAL(mmap)(address, length, protection, flags, fd, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*), void* argument) {
  const int wrong = fate(CALL_pthread_create);
  return wrong > 0 ? wrong : REAL(pthread_create)(thread, attributes, function, argument);
}

void (*signal(int number, void (*handler)(int)))(int) {
  atomic_store(&begun, true);
  return REAL(signal)(number, handler);
}

extern void* __libc_malloc(size_t size);

void* malloc(size_t size) {
  if (atomic_load(&begun) && in_cxx_library(__builtin_return_address(0)) && fate(CALL_malloc) > 0)
    return errno = ENOMEM, NULL;
  return __libc_malloc(size);
}
