// Makes the plan of a conversion, carries it out, and measures what casts and codes lose while a writer reads them.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <poise/convert.hpp>
#include <poise/value.hpp>

#include "cluster/communicator.hpp"
#include "formats/format.hpp"
#include "io/sink.hpp"
#include "numeric/cast_kernels.hpp"
#include "ops/lora.hpp"
#include "ops/transform/transform.hpp"
#include "views/computed_blob.hpp"

namespace poise {

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

// Returns a blob with the same bytes that adds the losses to `tally` when it is read. Each loss counts once, even if
// bytes are read several times.
template <typename Loss>
BlobPtr make_measured_blob(std::shared_ptr<const LossyBlob<Loss>> blob, std::shared_ptr<Tally<Loss>> tally);

class MeasuredLosses {
 public:
  // Replaces the model's lossy blobs with blobs that count their losses when they are read.
  explicit MeasuredLosses(Transformed& transformed);

  // Adds the losses in the bytes that any rank has read. `ranks` may be null.
  void add_to(ConvertReport& report, Communicator* ranks) const;

 private:
  using CastTypes = std::pair<DType, DType>;  // the type before the cast, and the type after it
  std::vector<std::pair<CastTypes, std::shared_ptr<Tally<CastStats>>>> casts_;
  std::vector<std::pair<QuantizedTensor, std::shared_ptr<Tally<QuantizationError>>>> quantized_;
};

// Implements ConvertOptions::strict: throws invalid_file with the message of the first finding of severity error, or
// else of the first warning. Returns if there are no findings.
void refuse_warnings(const std::vector<Finding>& warnings);

// Holds the model that a conversion begins with.
struct ConversionInput {
  MergedModel merged;
  std::vector<std::shared_ptr<const Model>> opened;  // models whose digests are checked
  // Returns true for tensors of `opened` whose digests are to be checked. Empty: `opened` is one model, whose tensors
  // have the same names in `merged`, and the check covers those that the output uses.
  std::function<bool(const Tensor&)> is_used = {};
  // Makes checks that need more than headers, before anything is written. Empty: no checks.
  std::function<void(const Progress&)> check = {};
};

// Plans the conversion of a model to another format. `output` is empty if it is known only when the plan is carried
// out. Reads only headers, unless there is a budget. If `describes` is false, the plan describes only the format and
// what the output would replace. If `ranks` is not null, several ranks write the output together.
Plan plan_conversion(ConversionInput input, const std::filesystem::path& output, const Format& target,
                     const ConvertOptions& options, bool describes, Communicator* ranks = nullptr);
// Carries out a plan. The seconds in the report count from `start`.
ConvertReport carry_out(const Plan& plan, SavedOutput* given, const std::filesystem::path& place,
                        std::chrono::steady_clock::time_point start);
// Returns the format that the options name, or else the one that fits the output's name.
const Format& choose_target_format(const std::filesystem::path& output, const ConvertOptions& options);

// Holds the part of a conversion that reads tensors' bytes.
struct Plan::Rest {
  // Writes into `given` or, if that is null, into an output at `place`. Empty after it has been called.
  std::function<ConvertReport(SavedOutput* given, const std::filesystem::path& place)> carry_out;
};

// Each function returns an array for reports in JSON: list_casts() of objects, the others of texts.
Value::Array list_casts(const ConvertReport& report);
Value::Array list_outputs(const ConvertReport& report);
Value::Array list_messages(const std::vector<Finding>& findings);

// Carries out a plan, as write() of <poise/convert.hpp> does, into an output of any kind.
ConvertReport write(const Plan& plan, SavedOutput& output);

}  // namespace poise
