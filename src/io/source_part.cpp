#include "io/source_part.hpp"

#include <utility>

#include <poise/error.hpp>

namespace poise {
namespace {

class SourcePart final : public Source {
 public:
  SourcePart(SourcePtr whole, std::uint64_t begin, std::uint64_t size, std::string name)
      : Source(std::move(name), size), whole_(std::move(whole)), begin_(begin) {}

  bool mapped() const override { return whole_->mapped(); }
  std::span<const std::byte> bytes() const override {
    const auto all = whole_->bytes();
    return all.empty() ? all : all.subspan(static_cast<std::size_t>(begin_), static_cast<std::size_t>(size()));
  }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > size() || out.size() > size() - offset)
      throw Error(ErrorKind::internal, "a read outside the part of a file", name(), offset);
    whole_->read(begin_ + offset, out);
  }
  void will_need(std::uint64_t offset, std::uint64_t length) const override {
    whole_->will_need(begin_ + offset, length);
  }
  void done_with(std::uint64_t offset, std::uint64_t length) const override {
    whole_->done_with(begin_ + offset, length);
  }

 private:
  SourcePtr whole_;
  std::uint64_t begin_;
};

}  // namespace

SourcePtr make_source_part(SourcePtr whole, std::uint64_t begin, std::uint64_t size, std::string name) {
  return std::make_shared<SourcePart>(std::move(whole), begin, size, std::move(name));
}

}  // namespace poise
