// Defines the ranks of the command poise-mpi: the processes that mpirun or srun starts. No other file includes MPI.
#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <poise/error.hpp>

#include "bytes/number_text.hpp"
#include "cluster/communicator.hpp"
#include "io/file_descriptor.hpp"

namespace poise {
namespace {

std::size_t find_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return static_cast<std::size_t>(rank);
}

std::size_t count_ranks() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return static_cast<std::size_t>(size);
}

std::string get_machine_name() {
  std::array<char, MPI_MAX_PROCESSOR_NAME> name{};
  int length = 0;
  MPI_Get_processor_name(name.data(), &length);
  return {name.data(), static_cast<std::size_t>(length)};
}

// Returns the time to wait before each exchange: POISE_EXCHANGE_DELAY in microseconds, or 0 if it is not set. The delay
// imitates a slower network, to measure its cost on one machine (docs/scale.md). Throws bad_argument for a value that
// is not a whole number from 0 to a million.
std::chrono::microseconds read_exchange_delay() {
  const char* const text = std::getenv("POISE_EXCHANGE_DELAY");
  if (text == nullptr) return {};
  constexpr std::uint32_t kMost = 1'000'000;
  const auto delay = parse_number_text<std::uint32_t>(text);
  if (!delay || *delay > kMost) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("POISE_EXCHANGE_DELAY: expected microseconds from 0 to {}, found \"{}\"", kMost, text));
  }
  // By default, Linux may wake a sleeping thread 50 microseconds late. New threads inherit the setting of 1 nanosecond.
  if (*delay > 0) ::prctl(PR_SET_TIMERSLACK, 1UL);
  return std::chrono::microseconds(*delay);
}

// Exchanges bytes with MPI, which ends the job when a call fails or a rank is lost.
class MpiRanks final : public Communicator {
 public:
  explicit MpiRanks(std::chrono::microseconds delay) : Communicator(find_rank(), count_ranks()), delay_(delay) {
    MPI_Comm_dup(MPI_COMM_WORLD, &ends_);
    if (rank() != 0) redirect_output();
  }

  void broadcast(std::span<std::byte> bytes, std::size_t from) override {
    imitate_slow_network();
    while (!bytes.empty()) {
      const std::size_t count = std::min<std::size_t>(bytes.size(), kMostAtOnce);
      MPI_Bcast(bytes.data(), static_cast<int>(count), MPI_BYTE, static_cast<int>(from), MPI_COMM_WORLD);
      bytes = bytes.subspan(count);
    }
  }

  int end(int code) override {
    std::fflush(stdout);
    std::vector<int> codes(size());
    // Other ranks may still wait in an exchange. MPI does not match it with this call, because only end() uses `ends_`.
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Iallgather(&code, 1, MPI_INT, codes.data(), 1, MPI_INT, ends_, &request);
    const auto begin = std::chrono::steady_clock::now();
    for (int is_done = 0; true; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
      MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
      if (is_done != 0) break;
      if (code == 0 || std::chrono::steady_clock::now() - begin < kPatience) continue;
      print_messages();
      MPI_Abort(MPI_COMM_WORLD, code);
    }
    const auto first = std::ranges::find_if(codes, [](int other) { return other != 0; });
    const bool is_first = static_cast<std::size_t>(first - codes.begin()) == rank();
    if (is_first) print_messages();
    MPI_Barrier(ends_);  // waits for the messages, because mpirun ends all ranks when one exits with an error
    MPI_Finalize();
    return first == codes.end() ? 0 : *first;
  }

  int error_output() const override { return rank() == 0 ? STDERR_FILENO : error_output_.get(); }

 protected:
  void gather_bytes(std::span<const std::byte> own, std::span<const std::size_t> sizes,
                    std::span<std::byte> all) override {
    imitate_slow_network();
    if (all.size() <= kMostAtOnce) {
      const ArrayPlaces of_all(sizes);
      MPI_Allgatherv(own.data(), of_all.counts[rank()], MPI_BYTE, all.data(), of_all.counts.data(),
                     of_all.places.data(), MPI_BYTE, MPI_COMM_WORLD);
      return;
    }
    for (std::size_t from = 0, place = 0; from < size(); place += sizes[from++]) {
      const auto part = all.subspan(place, sizes[from]);
      if (from == rank()) std::ranges::copy(own, part.begin());
      broadcast(part, from);
    }
  }

  // Requires: an int can count the numbers. sum() gets at most Transformer::kMaxBatch hidden states.
  void exchange_slices(std::span<const float> numbers, std::span<const std::size_t> slices,
                       std::span<float> parts) override {
    imitate_slow_network();
    const ArrayPlaces out(slices);
    const ArrayPlaces in(std::vector(size(), slices[rank()]));
    MPI_Alltoallv(numbers.data(), out.counts.data(), out.places.data(), MPI_FLOAT, parts.data(), in.counts.data(),
                  in.places.data(), MPI_FLOAT, MPI_COMM_WORLD);
  }

 private:
  // The functions of MPI take the number of bytes as an int.
  static constexpr std::size_t kMostAtOnce = INT_MAX;

  // Holds the lengths and offsets of consecutive arrays, which MPI's functions take as counts and displacements.
  struct ArrayPlaces {
    explicit ArrayPlaces(std::span<const std::size_t> sizes) {
      for (int place = 0; const std::size_t size : sizes) {
        counts.push_back(static_cast<int>(size));
        places.push_back(place);
        place += counts.back();
      }
    }

    std::vector<int> counts = {};
    std::vector<int> places = {};
  };

  // A failed rank waits this long for the others in end(). An error that all ranks have, such as a missing file, is
  // expected to reach all of them within this time.
  static constexpr std::chrono::seconds kPatience{1};

  void imitate_slow_network() const {
    if (delay_.count() > 0) std::this_thread::sleep_for(delay_);
  }

  // Redirects standard error to memory, from which print_messages() reads it, and standard output to /dev/null.
  void redirect_output() {
    error_output_ = FileDescriptor(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3));
    messages_ = FileDescriptor(::memfd_create("poise messages", MFD_CLOEXEC));
    const FileDescriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    if (!error_output_ || !messages_ || !nowhere || ::dup2(messages_.get(), STDERR_FILENO) < 0 ||
        ::dup2(nowhere.get(), STDOUT_FILENO) < 0)
      throw_system_error("redirect", "standard output");
  }

  void print_messages() const {
    std::fflush(stderr);
    if (rank() == 0) return;
    std::string text = fmt::format("poise: rank {} on {} ends all:\n", rank(), get_machine_name());
    std::array<char, 4096> piece{};
    for (::off_t at = 0; true;) {
      const ::ssize_t count = ::pread(messages_.get(), piece.data(), piece.size(), at);
      if (count <= 0) break;
      text.append(piece.data(), static_cast<std::size_t>(count));
      at += count;
    }
    [[maybe_unused]] const ::ssize_t written = ::write(error_output_.get(), text.data(), text.size());
  }

  std::chrono::microseconds delay_;
  MPI_Comm ends_ = MPI_COMM_NULL;  // a copy of MPI_COMM_WORLD for the calls of end() alone
  FileDescriptor error_output_;
  FileDescriptor messages_;
};

}  // namespace

std::unique_ptr<Communicator> join_ranks(int& argc, char**& argv) {
  // mpirun gives each rank a terminal even if the output of mpirun goes to a file, so ranks print no colours.
  setenv("NO_COLOR", "1", 0);
  const std::chrono::microseconds delay = read_exchange_delay();
  int provided = 0;
  // Any thread of a session may call MPI, but only one at a time.
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  if (provided < MPI_THREAD_SERIALIZED)
    throw std::runtime_error("this MPI allows calls from the first thread only: use one with MPI_THREAD_SERIALIZED");
  return std::make_unique<MpiRanks>(delay);
}

}  // namespace poise
