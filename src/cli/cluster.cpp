#include "cli/cluster.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include <poise/error.hpp>

namespace poise::cli {
namespace {

std::unique_ptr<Communicator> all_ranks;

}  // namespace

void set_cluster(std::unique_ptr<Communicator> communicator) { all_ranks = std::move(communicator); }

Communicator& get_cluster() { return *all_ranks; }

bool is_run_by_all_ranks(std::string_view command) {
  constexpr std::array<std::string_view, 9> kCommands = {"run",  "chat", "embed", "bench", "convert",
                                                         "hash", "diff", "stats", "verify"};
  return std::ranges::find(kCommands, command) != kCommands.end();
}

void require_one_rank(std::string_view what) {
  if (get_cluster().size() == 1) return;
  throw Error(ErrorKind::bad_argument,
              fmt::format("{} needs one process, and {} run this command together", what, get_cluster().size()));
}

std::uint64_t share_number(std::uint64_t number) {
  get_cluster().broadcast(std::as_writable_bytes(std::span(&number, 1)), 0);
  return number;
}

std::string share_text(const std::function<std::string()>& read) {
  if (get_cluster().size() == 1) return read();
  std::array<std::string, 2> texts;  // the text, or message and path of the error
  constexpr std::uint64_t kNone = UINT64_MAX;
  std::uint64_t error = kNone;
  try {
    if (get_cluster().rank() == 0) texts[0] = read();
  } catch (const Error& thrown) {
    error = static_cast<std::uint64_t>(thrown.kind());
    texts = {thrown.message(), thrown.path()};
  }
  error = share_number(error);
  for (std::string& text : texts) {
    text.resize(share_number(text.size()));
    get_cluster().broadcast(std::as_writable_bytes(std::span(text)), 0);
  }
  if (error != kNone) throw Error(static_cast<ErrorKind>(error), texts[0], texts[1]);
  return texts[0];
}

}  // namespace poise::cli
