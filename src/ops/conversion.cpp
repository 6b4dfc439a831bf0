#include "ops/conversion.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <unordered_map>

namespace poise {
namespace {

constexpr std::size_t kBlock = 8 << 10;  // losses are counted for this many bytes together, unless the blob has a grain
constexpr std::size_t kBestRead = 256 << 10;

template <typename Loss>
class MeasuredBlob final : public Blob {
 public:
  MeasuredBlob(std::shared_ptr<const LossyBlob<Loss>> blob, std::shared_ptr<Tally<Loss>> tally)
      : blob_(std::move(blob)),
        tally_(std::move(tally)),
        block_(static_cast<std::size_t>(blob_->grain() > 1 ? blob_->grain() : kBlock)),
        counted_(static_cast<std::size_t>(blob_->size() / block_ + 1)) {}

  std::uint64_t size() const override { return blob_->size(); }
  bool seekable() const override { return blob_->seekable(); }
  std::uint64_t grain() const override { return blob_->grain(); }
  std::unique_ptr<BlobStream> stream() const override { return std::make_unique<WholeBlocks>(*this); }

  // Reads bytes, and counts the losses of a block when its first byte is read for the first time.
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    Loss loss;
    while (!out.empty()) {
      const bool counts = offset % block_ == 0 && mark_counted(offset / block_);
      std::size_t length = std::min(out.size(), static_cast<std::size_t>(block_ - offset % block_));
      const auto whole = static_cast<std::size_t>(std::min<std::uint64_t>(block_, size() - offset));
      if (!counts) {
        blob_->read(offset, out.first(length));
      } else if (length < whole) {
        read_whole_block(offset, whole, out.first(length), loss);
      } else {
        while (out.size() - length >= block_ && mark_counted((offset + length) / block_)) length += block_;
        blob_->read_measured(offset, out.first(length), &loss);
      }
      offset += length;
      out = out.subspan(length);
    }
    tally_->add(loss);
  }

 private:
  // Streams whole blocks, so that no block is computed twice.
  class WholeBlocks final : public BlobStream {
   public:
    explicit WholeBlocks(const MeasuredBlob& blob) : blob_(blob) {}
    std::size_t best_read() const override { return std::max<std::size_t>(kBestRead / blob_.block_, 1) * blob_.block_; }
    std::size_t read(std::span<std::byte> out) override {
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), blob_.size() - position_));
      blob_.read(position_, out.first(count));
      position_ += count;
      return count;
    }

   private:
    const MeasuredBlob& blob_;
    std::uint64_t position_ = 0;
  };

  // Returns false if the block was marked before.
  bool mark_counted(std::uint64_t block) const {
    return counted_[static_cast<std::size_t>(block)].exchange(1, std::memory_order_relaxed) == 0;
  }

  // Reads a whole block to measure its losses, and copies its beginning to `out`.
  void read_whole_block(std::uint64_t offset, std::size_t whole, std::span<std::byte> out, Loss& loss) const {
    std::vector<std::byte> block(whole);
    blob_->read_measured(offset, block, &loss);
    std::copy_n(block.begin(), out.size(), out.begin());
  }

  std::shared_ptr<const LossyBlob<Loss>> blob_;
  std::shared_ptr<Tally<Loss>> tally_;
  std::size_t block_;
  mutable std::vector<std::atomic<std::uint8_t>> counted_;
};

// Holds a blob with losses, and the tally of these; `blob` is null if there are no losses.
template <typename Loss>
struct Counted {
  LossyBlobPtr<Loss> blob;
  std::shared_ptr<Tally<Loss>> tally;
};

// Replaces `counted.blob`, where a part of the tensor has it, with a blob that counts its losses.
template <typename Loss>
void replace_with_measured_blob(Tensor& tensor, const Counted<Loss>& counted) {
  for (Part& part : tensor.parts) {
    if (counted.blob != nullptr && part.blob == counted.blob)
      part.blob = make_measured_blob<Loss>(counted.blob, counted.tally);
  }
}

// Returns the totals of the tallies. With several ranks, a tensor counts with the largest total, because the rank that
// wrote it has read all of it, and others may have read a part.
template <typename Loss, typename Tallies>
std::vector<Loss> add_up_tallies(const Tallies& tallies, Communicator* ranks) {
  std::vector<Loss> totals;
  for (const auto& entry : tallies) totals.push_back(entry.second->total());
  if (ranks == nullptr) return totals;
  static_assert(std::is_trivially_copyable_v<Loss>);
  const std::string own(reinterpret_cast<const char*>(totals.data()), totals.size() * sizeof(Loss));
  for (const std::string& message : ranks->gather(own)) {
    for (std::size_t i = 0; i < std::min(totals.size(), message.size() / sizeof(Loss)); ++i) {
      Loss other;
      std::memcpy(&other, message.data() + i * sizeof(Loss), sizeof other);
      if (other.values > totals[i].values) totals[i] = other;
    }
  }
  return totals;
}

}  // namespace

template <typename Loss>
BlobPtr make_measured_blob(std::shared_ptr<const LossyBlob<Loss>> blob, std::shared_ptr<Tally<Loss>> tally) {
  return std::make_shared<MeasuredBlob<Loss>>(std::move(blob), std::move(tally));
}

template BlobPtr make_measured_blob(std::shared_ptr<const LossyBlob<CastStats>> blob,
                                    std::shared_ptr<Tally<CastStats>> tally);
template BlobPtr make_measured_blob(std::shared_ptr<const LossyBlob<QuantizationError>> blob,
                                    std::shared_ptr<Tally<QuantizationError>> tally);

MeasuredLosses::MeasuredLosses(Transformed& transformed) {
  if (transformed.casts.empty() && transformed.quantized.empty()) return;
  std::unordered_map<std::string_view, Counted<CastStats>> casts;
  for (const CastTensor& cast : transformed.casts) {
    const auto& tally = casts_.emplace_back(CastTypes{cast.from, cast.to}, std::make_shared<Tally<CastStats>>()).second;
    casts.emplace(cast.name, Counted<CastStats>{cast.blob, tally});
  }
  std::unordered_map<std::string_view, Counted<QuantizationError>> codes;
  for (const QuantizedTensor& tensor : transformed.quantized) {
    const auto& tally = quantized_.emplace_back(tensor, std::make_shared<Tally<QuantizationError>>()).second;
    codes.emplace(tensor.name, Counted<QuantizationError>{tensor.codes, tally});
  }
  Model model(transformed.model.header());
  model.reserve(transformed.model.size());
  for (const Tensor& original : transformed.model.tensors()) {
    Tensor tensor = original;
    if (const auto cast = casts.find(tensor.name); cast != casts.end())
      replace_with_measured_blob(tensor, cast->second);
    if (const auto code = codes.find(tensor.name); code != codes.end())
      replace_with_measured_blob(tensor, code->second);
    model.add(std::move(tensor));
  }
  transformed.model = std::move(model);
}

void MeasuredLosses::add_to(ConvertReport& report, Communicator* ranks) const {
  std::map<CastTypes, CastStats> casts;
  const std::vector<CastStats> cast_losses = add_up_tallies<CastStats>(casts_, ranks);
  for (std::size_t i = 0; i < casts_.size(); ++i) casts[casts_[i].first].merge(cast_losses[i]);
  for (const auto& [types, stats] : casts) {
    if (stats.values == 0) continue;  // the writer has read no elements
    report.casts.push_back({types.first, types.second, stats.values, stats.to_zero, stats.to_subnormal,
                            stats.not_finite, stats.worst_error});
  }
  const std::vector<QuantizationError> errors = add_up_tallies<QuantizationError>(quantized_, ranks);
  for (std::size_t i = 0; i < quantized_.size(); ++i) {
    const QuantizedTensor& tensor = quantized_[i].first;
    report.quantized.push_back({tensor.name, tensor.type, tensor.bytes_in, tensor.bytes_out, errors[i]});
  }
}

Value::Array list_casts(const ConvertReport& report) {
  Value::Array casts;
  for (const ConvertReport::Cast& cast : report.casts) {
    casts.emplace_back(Attributes{{"from", to_string(cast.from)},
                                  {"to", to_string(cast.to)},
                                  {"values", cast.values},
                                  {"to_zero", cast.to_zero},
                                  {"to_subnormal", cast.to_subnormal},
                                  {"not_finite", cast.not_finite},
                                  {"worst_error", cast.worst_error}});
  }
  return casts;
}

Value::Array list_outputs(const ConvertReport& report) {
  Value::Array outputs;
  for (const std::filesystem::path& path : report.outputs) outputs.emplace_back(path.string());
  return outputs;
}

Value::Array list_messages(const std::vector<Finding>& findings) {
  Value::Array messages;
  for (const Finding& finding : findings) messages.emplace_back(finding.message);
  return messages;
}

}  // namespace poise
