#include "io/file_stamp.hpp"

#include <sys/stat.h>

#include <utility>

#include "io/system_error.hpp"

namespace poise {

FileStamp::FileStamp(SourcePtr source) : source_(std::move(source)), before_(now()) {}

// Sources in memory do not change.
FileStamp::State FileStamp::now() const {
  struct stat status {};
  if (source_->descriptor() < 0) return {};
  if (::fstat(source_->descriptor(), &status) != 0) throw_system_error("stat", source_->name());
  return {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

void FileStamp::require_unchanged() const {
  if (now() != before_) throw Error(ErrorKind::io, "the file changed while it was read", source_->name());
}

}  // namespace poise
