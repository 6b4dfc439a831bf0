// A Communicator connects the processes ("ranks") that compute one model together, and exchanges bytes between them.
//
// All ranks call the same functions in the same order, each in one thread at a time. If a rank throws instead, the
// others wait, and end() then ends them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace poise {

class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  // Returns the number of this process, from 0.
  std::size_t rank() const { return rank_; }
  std::size_t size() const { return size_; }

  // Replaces the numbers with their sums over all ranks. Adds them in the order of the ranks, so that all ranks get the
  // same bits, in each run. Requires: all ranks pass the same size.
  void sum(std::span<float> numbers);

  // Gathers the texts of all ranks. Returns them on each rank, in the order of the ranks.
  std::vector<std::string> gather(std::string_view own);

  // Gathers the arrays of all ranks in `all`, one after the other. `sizes` has their lengths.
  void gather(std::span<const float> own, std::span<const std::size_t> sizes, std::span<float> all);

  // Copies the bytes of one rank to all ranks. Requires: all ranks pass the same size.
  virtual void broadcast(std::span<std::byte> bytes, std::size_t from) = 0;

  // Ends this rank with the exit code of its command. Returns the exit code of the job: that of the first rank whose
  // code is not 0. Waits for all ranks; after its own error only for a second, and then ends the job. Prints the
  // messages of the rank that decides the code, unless it is rank 0, whose messages have appeared already. Callers
  // return the result from main().
  virtual int end(int code) = 0;

  // Returns the file descriptor for a last message before the process ends without end().
  virtual int error_output() const = 0;

 protected:
  Communicator(std::size_t rank, std::size_t size) : rank_(rank), size_(size) {}

  // Gathers the bytes of all ranks in `all`, one after the other. `sizes` has each rank's number of bytes.
  virtual void gather_bytes(std::span<const std::byte> own, std::span<const std::size_t> sizes,
                            std::span<std::byte> all) = 0;

  // Sends a slice of the numbers to each rank; `slices` has their lengths. `parts` gets the slices that all ranks send
  // to this one, one after the other.
  virtual void exchange_slices(std::span<const float> numbers, std::span<const std::size_t> slices,
                               std::span<float> parts) = 0;

 private:
  void add_parts(std::span<float> sums) const;

  std::size_t rank_;
  std::size_t size_;
  std::vector<float> parts_;  // the terms of a sum, from all ranks
};

// Joins the ranks: in the command poise-mpi, those that mpirun or srun started together (mpi.cpp); in poise, a single
// one (one_rank.cpp). Ranks other than the first print no standard output, and keep their standard error for end().
std::unique_ptr<Communicator> join_ranks(int& argc, char**& argv);

}  // namespace poise
