#include "ops/delta/delta_parts.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/little_endian.hpp"
#include "io/sink.hpp"
#include "io/threads.hpp"
#include "pack/zstd.hpp"

namespace poise {
namespace {

constexpr std::uint64_t kBlocksInGroup = kDeltaGroup / kDeltaBlock;
constexpr int kSampleLevel = 3;

std::uint64_t count_blocks(std::uint64_t elements) { return (elements + kDeltaBlock - 1) / kDeltaBlock; }
std::uint64_t count_groups(std::uint64_t elements) { return (elements + kDeltaGroup - 1) / kDeltaGroup; }

void xor_bytes(std::span<const std::byte> from, std::span<std::byte> into) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] ^= from[i];
}

// Calls use(index) for each element that is not zero.
template <typename Use>
void visit_changes(std::span<const std::byte> bytes, std::size_t word, const Use& use) {
  constexpr std::size_t kStride = 64;  // bytes; a multiple of each word
  for (std::size_t at = 0; at < bytes.size(); at += kStride) {
    const std::size_t end = std::min(bytes.size(), at + kStride);
    if (std::all_of(bytes.data() + at, bytes.data() + end, [](std::byte byte) { return byte == std::byte{0}; }))
      continue;
    for (std::size_t i = at; i < end; i += word) {
      const std::byte* const element = bytes.data() + i;
      if (std::any_of(element, element + word, [](std::byte byte) { return byte != std::byte{0}; })) use(i / word);
    }
  }
}

// Computes the xor of the base's and the tuned model's bytes in a range.
class XorPiece {
 public:
  std::span<const std::byte> read(const PartPair& pair, std::uint64_t first, std::uint64_t count) {
    const std::uint64_t offset = first * pair.word;
    const auto size = static_cast<std::size_t>(count * pair.word);
    bytes_.resize(size);
    pair.tuned->read(offset, bytes_);
    if (const auto all = pair.base->map()) {
      xor_bytes(all->subspan(static_cast<std::size_t>(offset), size), bytes_);
    } else {
      base_.resize(size);
      pair.base->read(offset, base_);
      xor_bytes(base_, bytes_);
    }
    return bytes_;
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<std::byte> base_;
};

// Fills the bytes of `out` that lie in [at, at + length) of a stored part. `out` begins at byte `offset` of the part,
// and make(i) returns its byte at + i.
template <typename Make>
void copy_overlap(std::uint64_t at, std::uint64_t length, std::uint64_t offset, std::span<std::byte> out,
                  const Make& make) {
  const std::uint64_t begin = std::max(at, offset);
  const std::uint64_t end = std::min(at + length, offset + out.size());
  for (std::uint64_t i = begin; i < end; ++i) out[static_cast<std::size_t>(i - offset)] = make(i - at);
}

class XorBlob final : public Blob {
 public:
  XorBlob(PartPair pair, bool is_shuffled) : pair_(std::move(pair)), is_shuffled_(is_shuffled) {}
  std::uint64_t size() const override { return pair_.tuned->size(); }
  bool seekable() const override { return pair_.base->seekable() && pair_.tuned->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!is_shuffled_) return read_plain(offset, out);
    XorPiece piece;
    const std::size_t word = pair_.word;
    const std::uint64_t elements = size() / word;
    while (!out.empty()) {
      const std::uint64_t first = offset / word / kDeltaGroup * kDeltaGroup;
      const std::uint64_t count = std::min(kDeltaGroup, elements - first);
      const std::uint64_t skipped = offset - first * word;
      const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), count * word - skipped));
      const std::span<std::byte> wanted = out.first(length);
      for (std::uint64_t i = 0; i < count; i += kDeltaBlock) {
        const std::uint64_t n = std::min(kDeltaBlock, count - i);
        if (!overlaps(i, n, count, skipped, length)) continue;
        const auto bytes = piece.read(pair_, first + i, n);
        for (std::size_t p = 0; p < word; ++p) {
          copy_overlap(p * count + i, n, skipped, wanted,
                       [&](std::uint64_t k) { return bytes[static_cast<std::size_t>(k) * word + p]; });
        }
      }
      offset += length;
      out = out.subspan(length);
    }
  }

 private:
  void read_plain(std::uint64_t offset, std::span<std::byte> out) const {
    pair_.tuned->read(offset, out);
    std::vector<std::byte> base(out.size());
    pair_.base->read(offset, base);
    xor_bytes(base, out);
  }

  bool overlaps(std::uint64_t i, std::uint64_t n, std::uint64_t count, std::uint64_t skipped,
                std::uint64_t length) const {
    for (std::size_t p = 0; p < pair_.word; ++p) {
      if (p * count + i < skipped + length && p * count + i + n > skipped) return true;
    }
    return false;
  }

  PartPair pair_;
  bool is_shuffled_;
};

// Collects changed elements in planes: two for the low and high bytes of the gaps, and one for each byte of an element.
class SparsePlanes {
 public:
  explicit SparsePlanes(std::size_t word) : planes_(2 + word) {}

  // Adds a block, and returns the number of its changed elements.
  std::uint32_t add(std::span<const std::byte> changes, std::size_t word) {
    std::uint32_t count = 0;
    std::size_t next = 0;
    visit_changes(changes, word, [&](std::size_t index) {
      const std::size_t gap = index - next;
      next = index + 1;
      planes_[0].push_back(static_cast<std::byte>(gap));
      planes_[1].push_back(static_cast<std::byte>(gap >> 8));
      for (std::size_t p = 0; p < word; ++p) planes_[2 + p].push_back(changes[index * word + p]);
      ++count;
    });
    return count;
  }
  std::vector<std::byte> join() const {
    std::vector<std::byte> bytes;
    for (const auto& plane : planes_) bytes.insert(bytes.end(), plane.begin(), plane.end());
    return bytes;
  }

 private:
  std::vector<std::vector<std::byte>> planes_;
};

// Computes where a sparse part stores the changes of groups and blocks, from the number of changes in each block.
class SparseIndex {
 public:
  SparseIndex(std::vector<std::uint32_t> counts, std::size_t word) : counts_(std::move(counts)), word_(word) {
    std::uint64_t sum = 0;
    for (std::size_t b = 0; b < counts_.size(); ++b) {
      if (b % kBlocksInGroup == 0) groups_.push_back(sum);
      sum += counts_[b];
    }
    groups_.push_back(sum);
  }
  std::uint64_t header_size() const { return counts_.size() * sizeof(std::uint32_t); }
  std::uint64_t size() const { return header_size() + groups_.back() * (2 + word_); }
  std::uint32_t count_changes(std::uint64_t block) const { return counts_[static_cast<std::size_t>(block)]; }
  const std::vector<std::uint32_t>& counts() const { return counts_; }
  std::uint64_t find_group_begin(std::uint64_t group) const {
    return header_size() + groups_[static_cast<std::size_t>(group)] * (2 + word_);
  }
  std::uint64_t count_group_changes(std::uint64_t group) const {
    return groups_[static_cast<std::size_t>(group) + 1] - groups_[static_cast<std::size_t>(group)];
  }
  // Returns the group that has the byte at `offset`. Requires: header_size() <= offset < size().
  std::uint64_t find_group(std::uint64_t offset) const {
    const std::uint64_t change = (offset - header_size()) / (2 + word_);
    const auto next = std::ranges::upper_bound(groups_, change);
    return static_cast<std::uint64_t>(next - groups_.begin()) - 1;
  }
  // Returns the number of changes in the block's group before the block.
  std::uint64_t count_before(std::uint64_t block) const {
    std::uint64_t sum = 0;
    for (std::uint64_t b = block / kBlocksInGroup * kBlocksInGroup; b < block; ++b) sum += count_changes(b);
    return sum;
  }

 private:
  std::vector<std::uint32_t> counts_;
  std::size_t word_;
  std::vector<std::uint64_t> groups_;  // the number of changes before each group; at the end, the number of all changes
};

class SparseBlob final : public Blob {
 public:
  SparseBlob(PartPair pair, std::vector<std::uint32_t> counts)
      : pair_(std::move(pair)), index_(std::move(counts), pair_.word) {}
  std::uint64_t size() const override { return index_.size(); }
  bool seekable() const override { return pair_.base->seekable() && pair_.tuned->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    copy_overlap(0, index_.header_size(), offset, out, [&](std::uint64_t i) {
      return static_cast<std::byte>(index_.count_changes(i / sizeof(std::uint32_t)) >>
                                    (8 * (i % sizeof(std::uint32_t))));
    });
    const std::uint64_t end = offset + out.size();
    for (std::uint64_t at = std::max(offset, index_.header_size()); at < end;) {
      const std::uint64_t group = index_.find_group(at);
      const std::vector<std::byte> bytes = make_group(group);
      const std::uint64_t begin = index_.find_group_begin(group);
      copy_overlap(begin, bytes.size(), offset, out,
                   [&](std::uint64_t i) { return bytes[static_cast<std::size_t>(i)]; });
      at = begin + bytes.size();
    }
  }

 private:
  std::vector<std::byte> make_group(std::uint64_t group) const {
    const std::uint64_t elements = pair_.tuned->size() / pair_.word;
    SparsePlanes planes(pair_.word);
    XorPiece piece;
    const std::uint64_t last = std::min<std::uint64_t>((group + 1) * kBlocksInGroup, index_.counts().size());
    for (std::uint64_t b = group * kBlocksInGroup; b < last; ++b) {
      if (index_.count_changes(b) == 0) continue;
      const auto changes = piece.read(pair_, b * kDeltaBlock, std::min(kDeltaBlock, elements - b * kDeltaBlock));
      if (planes.add(changes, pair_.word) != index_.count_changes(b))
        throw Error(ErrorKind::io, fmt::format("tensor {}: its bytes have changed while they were read", pair_.tensor));
    }
    return planes.join();
  }

  PartPair pair_;
  SparseIndex index_;
};

class AppliedXor final : public Blob {
 public:
  AppliedXor(BlobPtr base, BlobPtr delta, const DeltaForm& form)
      : base_(std::move(base)), delta_(std::move(delta)), form_(form) {}
  std::uint64_t size() const override { return base_->size(); }
  bool seekable() const override { return base_->seekable() && delta_->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    base_->read(offset, out);
    std::vector<std::byte> changes;
    if (!form_.is_shuffled) {
      changes.resize(out.size());
      delta_->read(offset, changes);
      return xor_bytes(changes, out);
    }
    const std::size_t word = form_.word;
    const std::uint64_t elements = size() / word;
    while (!out.empty()) {
      const std::uint64_t element = offset / word;
      const std::uint64_t first = element / kDeltaGroup * kDeltaGroup;
      const std::uint64_t count = std::min(kDeltaGroup, elements - first);
      const auto skipped = static_cast<std::size_t>(offset % word);
      const std::uint64_t n =
          std::min({(skipped + out.size() + word - 1) / word, first + count - element, kDeltaBlock});
      const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), n * word - skipped));
      changes.resize(static_cast<std::size_t>(n));
      for (std::size_t p = 0; p < word; ++p) {
        delta_->read(first * word + p * count + element - first, changes);
        for (std::size_t i = (p + word - skipped) % word; i < length; i += word)
          out[i] ^= changes[(i + skipped) / word];
      }
      offset += length;
      out = out.subspan(length);
    }
  }

 private:
  BlobPtr base_;
  BlobPtr delta_;
  DeltaForm form_;
};

class AppliedSparse final : public Blob {
 public:
  AppliedSparse(std::string where, BlobPtr base, BlobPtr delta, std::vector<std::uint32_t> counts, std::size_t word)
      : where_(std::move(where)),
        base_(std::move(base)),
        delta_(std::move(delta)),
        word_(word),
        index_(std::move(counts), word) {}
  std::uint64_t size() const override { return base_->size(); }
  bool seekable() const override { return base_->seekable() && delta_->seekable(); }

  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (out.empty()) return;
    base_->read(offset, out);
    const std::uint64_t block_bytes = kDeltaBlock * word_;
    for (std::uint64_t b = offset / block_bytes; b * block_bytes < offset + out.size(); ++b) {
      if (index_.count_changes(b) > 0) change_block(b, offset, out);
    }
  }

 private:
  void change_block(std::uint64_t block, std::uint64_t offset, std::span<std::byte> out) const {
    const std::uint32_t count = index_.count_changes(block);
    const std::uint64_t group = block / kBlocksInGroup;
    const std::uint64_t stride = index_.count_group_changes(group);
    const std::uint64_t begin = index_.find_group_begin(group) + index_.count_before(block);
    std::vector<std::byte> planes(static_cast<std::size_t>(count) * (2 + word_));
    for (std::size_t p = 0; p < 2 + word_; ++p)
      delta_->read(begin + p * stride, std::span(planes).subspan(p * count, count));
    const std::uint64_t first = block * kDeltaBlock;
    const std::uint64_t elements = std::min(kDeltaBlock, size() / word_ - first);
    std::uint64_t next = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t index =
          next + std::to_integer<unsigned>(planes[i]) + 256 * std::to_integer<unsigned>(planes[count + i]);
      if (index >= elements)
        throw Error(ErrorKind::invalid_file, fmt::format("{}: block {}: expected changed elements below {}, found {}",
                                                         where_, block, elements, index));
      next = index + 1;
      for (std::size_t p = 0; p < word_; ++p) {
        const std::uint64_t at = (first + index) * word_ + p;
        if (at >= offset && at < offset + out.size())
          out[static_cast<std::size_t>(at - offset)] ^= planes[(2 + p) * count + i];
      }
    }
  }

  std::string where_;
  BlobPtr base_;
  BlobPtr delta_;
  std::size_t word_;
  SparseIndex index_;
};

std::uint64_t measure_compressed(ZstdCompressor& compressor, std::span<const std::byte> bytes) {
  CountingSink sink;
  ZstdCompressor::Frame frame(compressor, sink, bytes.size());
  frame.write(bytes);
  frame.finish();
  return sink.position();
}

struct SampleSizes {
  std::uint64_t sparse = 0;
  std::uint64_t plain = 0;
  std::uint64_t shuffled = 0;

  void add(std::span<const std::byte> changes, std::size_t word, ZstdCompressor& compressor) {
    SparsePlanes planes(word);
    if (planes.add(changes, word) == 0) return;
    sparse += measure_compressed(compressor, planes.join());
    plain += measure_compressed(compressor, changes);
    std::vector<std::byte> bytes;
    for (std::size_t p = 0; p < word; ++p) {
      for (std::size_t i = p; i < changes.size(); i += word) bytes.push_back(changes[i]);
    }
    shuffled += measure_compressed(compressor, bytes);
  }
};

DeltaForm choose_form(const PartPair& pair, const PartChange& change, const SampleSizes& sample) {
  DeltaForm form{.word = pair.word};
  const bool is_short = change.changed * (2 + pair.word) <= pair.tuned->size();
  form.is_sparse = is_short && sample.sparse <= std::min(sample.plain, sample.shuffled);
  form.is_shuffled = !form.is_sparse && pair.word > 1 && sample.shuffled < sample.plain;
  return form;
}

// Holds the comparison of one group.
struct GroupWork {
  std::size_t pair = 0;
  std::uint64_t group = 0;
  std::vector<std::uint32_t> counts;
  SampleSizes sample;
  XorPiece piece;
  std::unique_ptr<ZstdCompressor> compressor;

  void compare(const PartPair& parts) {
    if (!compressor) compressor = std::make_unique<ZstdCompressor>(kSampleLevel);
    counts.clear();
    sample = {};
    const std::uint64_t elements = parts.tuned->size() / parts.word;
    const std::uint64_t end = std::min(elements, (group + 1) * kDeltaGroup);
    for (std::uint64_t first = group * kDeltaGroup; first < end; first += kDeltaBlock) {
      const auto changes = piece.read(parts, first, std::min(kDeltaBlock, end - first));
      std::uint32_t count = 0;
      visit_changes(changes, parts.word, [&](std::size_t) { ++count; });
      const bool is_sample = sample.plain == 0 && count > 0;  // the first block with a change
      if (is_sample) sample.add(changes, parts.word, *compressor);
      counts.push_back(count);
    }
  }
};

std::vector<std::uint32_t> read_counts(const std::string& where, const Blob& base, const Blob& delta,
                                       std::size_t word) {
  const std::uint64_t elements = base.size() / word;
  const std::uint64_t blocks = count_blocks(elements);
  const auto fail = [&](const std::string& problem) {
    throw Error(ErrorKind::invalid_file, fmt::format("{}: {}", where, problem));
  };
  if (delta.size() / sizeof(std::uint32_t) < blocks)
    fail(fmt::format("expected the counts of {} blocks, found {} bytes", blocks, delta.size()));
  std::vector<std::byte> bytes(static_cast<std::size_t>(blocks) * sizeof(std::uint32_t));
  delta.read(0, bytes);
  std::vector<std::uint32_t> counts(static_cast<std::size_t>(blocks));
  std::uint64_t sum = 0;
  for (std::uint64_t b = 0; b < blocks; ++b) {
    const auto i = static_cast<std::size_t>(b);
    counts[i] = load_le<std::uint32_t>(bytes.data() + i * sizeof(std::uint32_t));
    const std::uint64_t most = std::min(kDeltaBlock, elements - b * kDeltaBlock);
    if (counts[i] > most) fail(fmt::format("block {}: expected at most {} changes, found {}", b, most, counts[i]));
    sum += counts[i];
  }
  // The sum is at most the number of elements, so that this fits 64 bits.
  const std::uint64_t expected = bytes.size() + sum * (2 + word);
  if (delta.size() != expected) fail(fmt::format("expected {} bytes, found {}", expected, delta.size()));
  return counts;
}

}  // namespace

bool is_delta_word(std::uint64_t word) { return std::has_single_bit(word) && word <= 16; }

std::size_t choose_delta_word(const Part& part) {
  if (part.dtype == DType::unknown) return 1;
  const std::size_t word = info(part.dtype).bits / 8;
  return is_delta_word(word) && part.blob->size() % word == 0 ? word : 1;
}

std::vector<PartChange> compare_parts(std::span<const PartPair> pairs, Meter& meter) {
  std::vector<PartChange> changes(pairs.size());
  std::vector<SampleSizes> samples(pairs.size());
  std::size_t pair = 0;
  std::uint64_t group = 0;
  const auto begin_group = [&](GroupWork& work) {
    while (pair < pairs.size() && group == count_groups(pairs[pair].tuned->size() / pairs[pair].word)) {
      ++pair;
      group = 0;
    }
    if (pair == pairs.size()) return false;
    work.pair = pair;
    work.group = group++;
    return true;
  };
  const auto compare_group = [&](GroupWork& work) { work.compare(pairs[work.pair]); };
  const auto add_group = [&](GroupWork& work) {
    PartChange& change = changes[work.pair];
    for (const std::uint32_t count : work.counts) change.changed += count;
    change.counts.insert(change.counts.end(), work.counts.begin(), work.counts.end());
    samples[work.pair].sparse += work.sample.sparse;
    samples[work.pair].plain += work.sample.plain;
    samples[work.pair].shuffled += work.sample.shuffled;
    const PartPair& parts = pairs[work.pair];
    const std::uint64_t begin = work.group * kDeltaGroup * parts.word;
    meter.advance(std::min(kDeltaGroup * parts.word, parts.tuned->size() - begin), parts.tensor);
  };
  process_in_order<GroupWork>(begin_group, compare_group, add_group);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (changes[i].changed > 0) changes[i].form = choose_form(pairs[i], changes[i], samples[i]);
    if (!changes[i].form.is_sparse) changes[i].counts = {};
  }
  return changes;
}

BlobPtr make_delta_blob(const PartPair& pair, const PartChange& change) {
  if (change.form.is_sparse) return std::make_shared<SparseBlob>(pair, change.counts);
  return std::make_shared<XorBlob>(pair, change.form.is_shuffled);
}

BlobPtr apply_delta_blob(const std::string& where, BlobPtr base, BlobPtr delta, const DeltaForm& form) {
  const auto fail = [&](const std::string& problem) {
    throw Error(ErrorKind::invalid_file, fmt::format("{}: {}", where, problem));
  };
  if (base->size() % form.word != 0)
    fail(fmt::format("the base has {} bytes, which are not elements of {} bytes", base->size(), form.word));
  if (form.is_sparse) {
    auto counts = read_counts(where, *base, *delta, form.word);
    return std::make_shared<AppliedSparse>(where, std::move(base), std::move(delta), std::move(counts), form.word);
  }
  if (delta->size() != base->size()) fail(fmt::format("expected {} bytes, found {}", base->size(), delta->size()));
  return std::make_shared<AppliedXor>(std::move(base), std::move(delta), form);
}

}  // namespace poise
