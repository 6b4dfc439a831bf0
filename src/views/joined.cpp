#include "views/joined.hpp"

#include <algorithm>
#include <utility>

namespace poise {
namespace {

class JoinedBlob final : public Blob {
 public:
  explicit JoinedBlob(std::vector<BlobPtr> blobs) : blobs_(std::move(blobs)) {
    for (const BlobPtr& blob : blobs_) ends_.push_back((ends_.empty() ? 0 : ends_.back()) + blob->size());
  }

  std::uint64_t size() const override { return ends_.back(); }
  bool seekable() const override {
    return std::ranges::all_of(blobs_, [](const BlobPtr& blob) { return blob->seekable(); });
  }
  // That of the blobs if they agree and no blob ends within it.
  std::uint64_t grain() const override {
    const std::uint64_t grain = blobs_.front()->grain();
    return std::ranges::all_of(blobs_,
                               [&](const BlobPtr& blob) { return blob->grain() == grain && blob->size() % grain == 0; })
               ? grain
               : 1;
  }
  bool decodable() const override {
    return std::ranges::all_of(blobs_, [](const BlobPtr& blob) { return blob->decodable(); });
  }

  std::optional<StoredByte> stored_byte(std::uint64_t offset) const override {
    const auto i = static_cast<std::size_t>(std::ranges::upper_bound(ends_, offset) - ends_.begin());
    return blobs_[i]->stored_byte(offset - (i == 0 ? 0 : ends_[i - 1]));
  }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    auto i = static_cast<std::size_t>(std::ranges::upper_bound(ends_, offset) - ends_.begin());
    while (!out.empty()) {
      const std::uint64_t begin = i == 0 ? 0 : ends_[i - 1];
      const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), ends_[i] - offset));
      if (bytes > 0) blobs_[i]->read(offset - begin, out.first(bytes));
      offset += bytes;
      out = out.subspan(bytes);
      ++i;
    }
  }

  std::unique_ptr<BlobStream> stream() const override { return std::make_unique<Stream>(blobs_); }

 private:
  // Streams the blobs in turn, for blobs that cannot seek.
  class Stream final : public BlobStream {
   public:
    explicit Stream(const std::vector<BlobPtr>& blobs) : blobs_(blobs) {}
    std::size_t read(std::span<std::byte> out) override {
      while (next_ < blobs_.size() || current_) {
        if (!current_) current_ = blobs_[next_++]->stream();
        if (const std::size_t count = current_->read(out); count > 0 || out.empty()) return count;
        current_.reset();
      }
      return 0;
    }

   private:
    const std::vector<BlobPtr>& blobs_;
    std::size_t next_ = 0;
    std::unique_ptr<BlobStream> current_;
  };

  std::vector<BlobPtr> blobs_;
  std::vector<std::uint64_t> ends_;
};

// Where one range of a file holds the blobs in order.
std::optional<StoredRange> one_range(const std::vector<BlobPtr>& blobs) {
  auto all = blobs.front()->raw();
  for (std::size_t i = 1; i < blobs.size() && all; ++i) {
    const auto next = blobs[i]->raw();
    if (!next || next->source != all->source || next->offset != all->offset + all->length) return std::nullopt;
    all->length += next->length;
  }
  return all;
}

}  // namespace

BlobPtr make_joined_blob(std::vector<BlobPtr> blobs) {
  if (blobs.size() == 1) return std::move(blobs.front());
  if (const auto range = one_range(blobs)) return make_source_blob(range->source, range->offset, range->length);
  return std::make_shared<JoinedBlob>(std::move(blobs));
}

}  // namespace poise
