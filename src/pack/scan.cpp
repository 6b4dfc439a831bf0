#include "pack/scan.hpp"

#include "pack/digest.hpp"
#include "pack/pump.hpp"

namespace poise {

Scan::Scan(std::span<const std::uint64_t> sizes, MakeVisit make_visit)
    : order_(sizes), make_visit_(std::move(make_visit)) {}

Scan::~Scan() {
  given_up_ = true;
  order_.end();
  try {
    tasks_.wait();
  } catch (...) {  // the caller has its own error, or no longer needs the result
  }
}

void Scan::start() {
  busy_ = order_.threads();
  for (std::size_t thread = 0; thread < order_.threads(); ++thread) {
    tasks_.run([this] {
      sha256_share(order_, [this](const HashOrder::Item& turn) { return begin(turn); });
      --busy_;
    });
  }
}

void Scan::finish() { tasks_.wait(); }

std::uint64_t Scan::batch_bytes() { return HashOrder::has_lanes() ? 1 << 30 : 256 << 20; }

// Reads a blob, or returns it for hashing in a lane.
std::optional<Sha256Message> Scan::begin(const HashOrder::Item& turn) {
  Visit visit = make_visit_(turn.index);
  const std::shared_ptr<Visitor> visitor = std::move(visit.visitor);
  const auto see = [this, visitor](std::span<const std::byte> bytes) {
    go_on();
    visitor->see(bytes);
  };
  const auto guarded = [visitor](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::cancelled) throw;
      visitor->fail(error);
    }
  };
  std::optional<Sha256Message> message;
  guarded([&] {
    if (const auto bytes = visit.sha256 ? turn.side_by_side(*visit.blob) : std::nullopt) {
      const auto end = [visitor, guarded, blob = visit.blob](std::string digits) {
        guarded([&] { visitor->end(std::move(digits)); });
      };
      message = Sha256Message{*bytes, see, end};
      return;
    }
    const auto hasher = visit.sha256 ? make_sha256() : nullptr;
    stream_chunks(*visit.blob, [&](std::span<const std::byte> bytes) {
      if (hasher) hasher->update(bytes);
      see(bytes);
    });
    visitor->end(hasher ? hasher->finish() : std::string());
  });
  return message;
}

void Scan::go_on() const {
  if (given_up_) throw Error(ErrorKind::cancelled, "cancelled");
}

}  // namespace poise
