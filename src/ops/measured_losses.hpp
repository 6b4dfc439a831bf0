// MeasuredLosses: what the casts and codes of a conversion lose, counted in the bytes that its writer reads.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <poise/convert.hpp>

#include "numeric/cast_kernels.hpp"
#include "ops/transform/transform.hpp"
#include "views/lossy_blob.hpp"

namespace poise {

// Adds up the losses of some blobs; safe to use from many threads.
template <typename Loss>
class Tally {
 public:
  void add(const Loss& loss) {
    const std::scoped_lock lock(mutex_);
    total_.merge(loss);
  }
  Loss total() const {
    const std::scoped_lock lock(mutex_);
    return total_;
  }

 private:
  mutable std::mutex mutex_;
  Loss total_;
};

// The same bytes. What each lost is added to `tally` when it is first read, however often it is read. Requires: the
// blob loses something.
template <typename Loss>
BlobPtr make_measured_blob(std::shared_ptr<const LossyBlob<Loss>> blob, std::shared_ptr<Tally<Loss>> tally);

class MeasuredLosses {
 public:
  // From now on the reads of the model's lossy blobs are counted.
  explicit MeasuredLosses(Transformed& transformed);

  // Tells what has been lost in the bytes that were read.
  void tell(ConvertReport& report) const;

 private:
  std::map<std::pair<DType, DType>, std::shared_ptr<Tally<CastStats>>> casts_;
  std::vector<std::pair<QuantizedTensor, std::shared_ptr<Tally<QuantizationError>>>> quantized_;
};

}  // namespace poise
