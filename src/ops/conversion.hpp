// Conversion: what convert() and plan() share. A conversion is prepared from headers alone, then described or carried
// out.
#pragma once

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poise/convert.hpp>

#include "formats/format.hpp"
#include "numeric/cast_kernels.hpp"
#include "ops/lora.hpp"
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

// The same bytes. Adds each loss to `tally` on the first read only. Requires: a LossyBlob.
template <typename Loss>
BlobPtr make_measured_blob(std::shared_ptr<const LossyBlob<Loss>> blob, std::shared_ptr<Tally<Loss>> tally);

class MeasuredLosses {
 public:
  // Counts the reads of the model's lossy blobs from now on.
  explicit MeasuredLosses(Transformed& transformed);

  // Reports what was lost in the bytes that were read.
  void tell(ConvertReport& report) const;

 private:
  std::map<std::pair<DType, DType>, std::shared_ptr<Tally<CastStats>>> casts_;
  std::vector<std::pair<QuantizedTensor, std::shared_ptr<Tally<QuantizationError>>>> quantized_;
};

struct Plan::Work {
  std::optional<Model> opened;        // the input, if the conversion opened it
  const Model* read = nullptr;        // the input before adapters
  std::optional<Model> resolved;      // its tied embeddings, if they need that
  std::optional<MergedModel> merged;  // with the adapters, if there are any
  const Model* input = nullptr;       // one of these
  const Format* format = nullptr;
  ConvertOptions options;
  std::vector<std::filesystem::path> files;  // the output must not replace these
  std::string replaces;                      // what the output will replace, if known; see SavedOutput
  Transformed transformed;
  std::optional<MeasuredLosses> losses;    // of its casts and codes
  std::unique_ptr<PreparedFile> prepared;  // of its model; null until made
  bool is_written = false;

  // Throws what prepare_file() throws.
  const PreparedFile& file() {
    if (!prepared) prepared = prepare_file(transformed.model, *format, options.write);
    return *prepared;
  }
  // What the output file cannot hold of the input, one sentence each.
  std::vector<std::string> reported_losses() {
    std::vector<std::string> all = transformed.reformed ? transformed.reformed->losses : std::vector<std::string>();
    std::ranges::move(file().losses(), std::back_inserter(all));
    return all;
  }
};

// Carries out a plan, as write() of <poise/convert.hpp> does, into an output of any kind.
ConvertReport write(const Plan& plan, SavedOutput& output);

// Throws what plan() throws.
std::shared_ptr<Plan::Work> prepare(const Model& model, std::string_view format, const ConvertOptions& options);
std::shared_ptr<Plan::Work> prepare(const std::filesystem::path& input, const std::filesystem::path& output,
                                    const ConvertOptions& options);

}  // namespace poise
