// What the command says when a mapped file is truncated by another program while it is being read.
#pragma once

namespace poise::cli {

// From now on, a page that is no longer there ends the process with a message and exit code 1 instead of a core dump. A
// program that uses the library and cannot end so opens files with IoMode::read.
void report_files_that_shrink();

}  // namespace poise::cli
