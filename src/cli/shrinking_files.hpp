// The message for a mapped file that another program truncates while it is read.
#pragma once

namespace poise::cli {

// From now on, reading a missing page ends the process with a message and exit code 1 instead of a core dump. Programs
// that use the library and must not end so open files with IoMode::read.
void report_files_that_shrink();

}  // namespace poise::cli
