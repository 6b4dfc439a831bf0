// The ranks of this command: those that mpirun started together, or one (cluster/communicator.hpp).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/communicator.hpp"

namespace poise::cli {

// Sets the ranks, before any other call.
void use_cluster(std::unique_ptr<Communicator> communicator);
Communicator& cluster();

// Returns true for commands that all ranks run; rank 0 runs others alone.
bool is_run_by_all_ranks(std::string_view command);

// Throws bad_argument, naming the option or input, for one that several ranks cannot follow.
void require_one_rank(std::string_view what);

// Returns the number that rank 0 has.
std::uint64_t share_number(std::uint64_t number);

// Returns the text that rank 0 reads, or throws its error, on all ranks.
std::string share_text(const std::function<std::string()>& read);

}  // namespace poise::cli
