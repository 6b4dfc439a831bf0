// Conversion: measures what casts and codes lose while a writer reads them, and has the rest of a plan for write().
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <poise/convert.hpp>
#include <poise/value.hpp>

#include "io/sink.hpp"
#include "numeric/cast_kernels.hpp"
#include "ops/transform/transform.hpp"
#include "views/computed_blob.hpp"

namespace poise {

// MeasuredLosses: what the casts and codes of a conversion lose, counted while its writer reads them.

// Adds up the losses of some blobs. Thread-safe.
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

// Returns the same bytes. Adds each loss to `tally` on the first read only. Requires: a LossyBlob.
template <typename Loss>
BlobPtr make_measured_blob(std::shared_ptr<const LossyBlob<Loss>> blob, std::shared_ptr<Tally<Loss>> tally);

class MeasuredLosses {
 public:
  // Counts the reads of the model's lossy blobs from now on.
  explicit MeasuredLosses(Transformed& transformed);

  // Adds what was lost in the bytes that were read.
  void add_to(ConvertReport& report) const;

 private:
  std::map<std::pair<DType, DType>, std::shared_ptr<Tally<CastStats>>> casts_;
  std::vector<std::pair<QuantizedTensor, std::shared_ptr<Tally<QuantizationError>>>> quantized_;
};

// Does the work of ConvertOptions::strict: throws the first warning as invalid_file, errors before others. Returns if
// there are no warnings.
void refuse_warnings(const std::vector<Finding>& warnings);

// Is the part of a conversion that reads tensors' bytes.
struct Plan::Rest {
  // Writes into `given`, or into an output at `place` if that is null. Empty once it is called.
  std::function<ConvertReport(SavedOutput* given, const std::filesystem::path& place)> carry_out;
};

// Return arrays for reports in JSON. list_casts() has objects, the others have texts.
Value::Array list_casts(const ConvertReport& report);
Value::Array list_outputs(const ConvertReport& report);
Value::Array list_messages(const std::vector<Finding>& findings);

// Carries out a plan, as write() of <poise/convert.hpp> does, into an output of any kind.
ConvertReport write(const Plan& plan, SavedOutput& output);

}  // namespace poise
