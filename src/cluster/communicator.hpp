// A Communicator connects the processes ("ranks") that compute one model together, and exchanges bytes between them.
//
// All ranks call the same functions in the same order, each in one thread at a time. If a command fails on one rank
// alone, the other ranks wait for it in their next call, until end() on the failed rank ends all of them.
#pragma once

#include <cstddef>
#include <cstdint>
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

  // Returns the number of this process, from 0 to size() - 1.
  std::size_t rank() const { return rank_; }
  std::size_t size() const { return size_; }

  // Replaces each number with its sum over all ranks. Adds in the order of the ranks, so that all ranks get the same
  // bits, and another run with as many ranks gets them, too. Requires: all ranks pass the same size.
  void sum(std::span<float> numbers);

  // Gathers the texts of all ranks. Returns them on each rank, in the order of the ranks.
  std::vector<std::string> gather(std::string_view own);

  // Gathers the arrays of all ranks in `all`, one after the other. `sizes` has the length of each rank's array.
  void gather(std::span<const float> own, std::span<const std::size_t> sizes, std::span<float> all);

  // Copies the bytes of rank `from` to the `bytes` of all ranks. Requires: all ranks pass the same size and `from`.
  virtual void broadcast(std::span<std::byte> bytes, std::size_t from) = 0;

  // Ends this rank; `code` is the exit code of its command. Waits until all ranks call end(). Returns the exit code of
  // the job, which main() returns: the code of the first rank whose code is not 0, or 0. If `code` is not 0 and another
  // rank does not call end() within a second, ends the job with `code`. The rank whose code becomes that of the job
  // prints its messages; those of rank 0 have appeared already.
  virtual int end(int code) = 0;

  // Returns the descriptor of the standard error with which the process started, for a last message before it ends
  // without end().
  virtual int error_output() const = 0;

 protected:
  Communicator(std::size_t rank, std::size_t size) : rank_(rank), size_(size) {}

  // Gathers the bytes of all ranks in `all`, one after the other. `sizes` has each rank's number of bytes.
  virtual void gather_bytes(std::span<const std::byte> own, std::span<const std::size_t> sizes,
                            std::span<std::byte> all) = 0;

  // Cuts the numbers into a slice for each rank, with the lengths in `slices`, and sends each rank its slice. `parts`
  // gets the slices that all ranks send to this one, one after the other.
  virtual void exchange_slices(std::span<const float> numbers, std::span<const std::size_t> slices,
                               std::span<float> parts) = 0;

 private:
  void add_parts(std::span<float> sums) const;

  std::size_t rank_;
  std::size_t size_;
  std::vector<float> parts_;  // the buffer of sum(): numbers of all ranks, one rank after the other
};

// Connects this process with the other ranks. In the command poise-mpi, these are the processes that mpirun or srun
// started together (mpi.cpp); in poise, there are none (one_rank.cpp). From then on, standard output of every rank but
// rank 0 is discarded, and its standard error is kept in memory until end().
std::unique_ptr<Communicator> join_ranks(int& argc, char**& argv);

// Divides items among ranks by their bytes. Returns the rank of each item; the items of a rank are neighbours.
std::vector<std::size_t> assign_to_ranks(std::span<const std::uint64_t> sizes, std::size_t ranks);

}  // namespace poise
