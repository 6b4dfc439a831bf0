// Shares values among the ranks that run this command: the processes that mpirun started together, or a single process
// (cluster/communicator.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/communicator.hpp"

namespace poise::cli {

// Sets the ranks. Call this before any other function of this file.
void set_cluster(std::unique_ptr<Communicator> communicator);
// Returns the ranks. Requires: set_cluster() was called.
Communicator& get_cluster();

// Returns true for commands that all ranks run. Rank 0 runs the other commands alone.
bool is_run_by_all_ranks(std::string_view command);

// Throws bad_argument if there are several ranks. `what` names the option or input that only works with one.
void require_one_rank(std::string_view what);

// Returns, on all ranks, the number that rank 0 passes.
std::uint64_t share_number(std::uint64_t number);

// Calls read() on rank 0 alone, and returns its text, or throws its error, on all ranks.
std::string share_text(const std::function<std::string()>& read);

}  // namespace poise::cli
