// Extracts adapters: the difference of two models, as products of thin matrices.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>
#include <oneapi/tbb/task_arena.h>

#include <poise/delta.hpp>
#include <poise/diff.hpp>
#include <poise/error.hpp>
#include <poise/make_lora.hpp>
#include <poise/values.hpp>

#include "bytes/checked.hpp"
#include "bytes/short_text.hpp"
#include "family/check.hpp"
#include "family/decoder_plan.hpp"
#include "family/families.hpp"
#include "family/tensor_table.hpp"
#include "formats/adapter.hpp"
#include "formats/format.hpp"
#include "io/meter.hpp"
#include "io/sink.hpp"
#include "ops/destination.hpp"
#include "ops/lora.hpp"
#include "ops/low_rank_fit.hpp"
#include "views/dense.hpp"

namespace poise {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostRank = 1 << 16;  // the largest rank that Poise reads from PEFT's configuration
constexpr std::string_view kWeight = ".weight";

struct ChangedMatrix {
  const Tensor* base;
  const Tensor* tuned;
  std::uint64_t rank;
  bool is_turned;  // the adapter holds the transposed change
  double largest;
  double sum_of_squares;
};

// Computes the two thin matrices of a changed matrix when they are read, and keeps those of the last matrix.
class Fits {
 public:
  Fits(std::vector<ChangedMatrix> matrices, Progress progress) : matrices_(std::move(matrices)) {
    std::uint64_t total = 0;
    for (const ChangedMatrix& matrix : matrices_) {
      const std::uint64_t bytes = checked_mul(matrix.base->elements(), kLowRankPasses * sizeof(float)).value_or(0);
      total = saturating_add(total, bytes);
    }
    meter_.emplace(std::move(progress), total);
    captured_.resize(matrices_.size(), 0);
  }

  const std::vector<ChangedMatrix>& matrices() const { return matrices_; }
  // Returns the captured share of each matrix, 0 for those that have not been computed.
  const std::vector<double>& captured() const { return captured_; }

  std::shared_ptr<const LowRankFit> get(std::size_t index) {
    const std::scoped_lock lock(mutex_);
    if (kept_ && kept_index_ == index) return kept_;
    kept_.reset();
    // A thread that waits for others here must not begin another task, which may wait for this lock.
    oneapi::tbb::this_task_arena::isolate([&] { kept_ = std::make_shared<const LowRankFit>(compute_fit(index)); });
    kept_index_ = index;
    return kept_;
  }

 private:
  // Holds a tensor's numbers, in memory if they can only be read from front to back.
  struct Numbers {
    explicit Numbers(const Tensor& tensor) : blob(make_dense_blob(tensor, DType::f32)) {
      if (!blob->seekable()) blob = make_memory_blob(read_all(*blob), tensor.name);
    }
    BlobPtr blob;
  };

  LowRankFit compute_fit(std::size_t index) {
    const ChangedMatrix& matrix = matrices_[index];
    const Numbers base(*matrix.base);
    const Numbers tuned(*matrix.tuned);
    const std::uint64_t columns = matrix.base->shape[1];
    ReadMatrix source;
    source.rows = matrix.base->shape[0];
    source.columns = columns;
    source.largest = matrix.largest;
    source.sum_of_squares = matrix.sum_of_squares;
    source.read = [&](std::uint64_t first, std::span<float> out) {
      std::vector<float> own(out.size());
      tuned.blob->read(first * columns * sizeof(float), std::as_writable_bytes(out));
      base.blob->read(first * columns * sizeof(float), std::as_writable_bytes(std::span(own)));
      // compare() refuses differences that are not finite, except those of equal infinities and of NaNs.
      for (std::size_t i = 0; i < out.size(); ++i) {
        const float difference = out[i] - own[i];
        out[i] = std::isfinite(difference) ? difference : 0;
      }
    };
    source.count = [&](std::uint64_t elements) { meter_->advance(elements * sizeof(float), matrix.base->name); };
    LowRankFit fit = fit_low_rank(source, matrix.rank);
    // Differences of float64 numbers may be 0 as float32: then the product captures none of them.
    const bool is_zero = std::ranges::all_of(fit.left, [](float number) { return number == 0; });
    captured_[index] = is_zero ? 0 : fit.captured;
    if (matrix.is_turned) {
      std::vector<float> left = transpose(fit.right, static_cast<std::size_t>(matrix.rank));
      fit.right = transpose(fit.left, fit.left.size() / static_cast<std::size_t>(matrix.rank));
      fit.left = std::move(left);
    }
    return fit;
  }

  static std::vector<float> transpose(const std::vector<float>& matrix, std::size_t rows) {
    const std::size_t columns = matrix.size() / rows;
    std::vector<float> result(matrix.size());
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) result[j * rows + i] = matrix[i * columns + j];
    }
    return result;
  }

  std::vector<ChangedMatrix> matrices_;
  std::vector<double> captured_;
  std::optional<Meter> meter_;
  std::mutex mutex_;
  std::shared_ptr<const LowRankFit> kept_;
  std::size_t kept_index_ = 0;
};

// Reads one of the two thin matrices of a fit.
class FitBlob final : public Blob {
 public:
  FitBlob(std::shared_ptr<Fits> fits, std::size_t index, std::vector<float> LowRankFit::*side, std::uint64_t elements)
      : fits_(std::move(fits)), index_(index), side_(side), elements_(elements) {}

  std::uint64_t size() const override { return elements_ * sizeof(float); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    const auto fit = fits_->get(index_);
    std::ranges::copy(std::as_bytes(std::span((*fit).*side_)).subspan(static_cast<std::size_t>(offset), out.size()),
                      out.begin());
  }

 private:
  std::shared_ptr<Fits> fits_;
  std::size_t index_;
  std::vector<float> LowRankFit::*side_;
  std::uint64_t elements_;
};

class Extraction {
 public:
  Extraction(const fs::path& base, const fs::path& tuned, const ExtractLoraOptions& options)
      : options_(options),
        base_(open(base, options.read)),
        tuned_(open(tuned, options.read)),
        family_(find_family_or_llama(base_)) {
    if (options.rank < 1 || options.rank > kMostRank)
      throw Error(ErrorKind::bad_argument, fmt::format("the rank is {}, expected 1 to {}", options.rank, kMostRank));
    for (const Model* model : {&base_, &tuned_}) {
      if (is_delta(*model) || parse_adapter(*model, nullptr))
        throw Error(ErrorKind::bad_argument, "this is not a model: expected a base and a model that was made from it",
                    model->origin.path.string());
    }
    plan_ = make_known_plan(base_);
    is_tied_ = base_.config && base_.config->tie_word_embeddings;
    adapter_.base_model = base.string();
  }

  ExtractLoraReport extract(Destination destination) {
    const Format& target =
        options_.format.empty() ? find_output_format(destination.path()) : find_format_by_name(options_.format);
    require_adapter_format(target);
    std::vector<fs::path> inputs = base_.origin.files;
    std::ranges::copy(tuned_.origin.files, std::back_inserter(inputs));
    destination.require_possible(target, options_.write.overwrite, inputs, options_.dry_run);
    compare();
    const auto fits = std::make_shared<Fits>(std::move(changed_), options_.write.progress);
    for (std::size_t i = 0; i < fits->matrices().size(); ++i) add(fits, i);
    const Model file = choose_adapter_form(target).make(adapter_, base_);
    const PreparedFile prepared = prepare_file(file, target, options_.write);
    report_.format = target.info.name;
    report_.losses = prepared.losses;
    if (options_.dry_run) {
      for (std::size_t i = 0; i < fits->matrices().size(); ++i) fits->get(i);
      report_.bytes_out = prepared.plan().bytes.value_or(0);
    } else {
      SavedOutput& output = destination.open(target, options_.write.overwrite, std::move(inputs));
      prepared.write(output, {});
      report_.bytes_out = output.bytes();
      output.commit();
      report_.output = destination.path();
    }
    add_captured_shares(*fits);
    return std::move(report_);
  }

 private:
  // Compares the models, and sorts their differences into changed matrices and tensors that an adapter leaves out.
  void compare() {
    const DiffReport report = diff(base_, tuned_,
                                   {.only = options_.only,
                                    .skip = options_.skip,
                                    .values = true,
                                    .verify = options_.verify,
                                    .progress = options_.write.progress});
    report_.equal = report.equal_tensors;
    std::map<std::string_view, const TensorDifference*> by_name;
    std::size_t common = report.equal_tensors;
    for (const TensorDifference& difference : report.tensors) {
      by_name.emplace(difference.name, &difference);
      if (difference.what != TensorDifference::What::only_in_a && difference.what != TensorDifference::What::only_in_b)
        ++common;
    }
    if (common == 0)
      throw Error(ErrorKind::bad_argument, "the two models have no tensor of the same name",
                  tuned_.origin.path.string());
    compare_configurations();
    for (const Model* model : {&base_, &tuned_}) {
      for (const Tensor& tensor : model->tensors()) {
        const auto found = by_name.find(tensor.name);
        if (found == by_name.end()) continue;
        classify(*found->second);
        by_name.erase(found);
      }
    }
    report_left_out();
    if (changed_.empty())
      throw Error(
          ErrorKind::bad_argument,
          fmt::format("there is nothing to extract: no matrix differs{}{}", report_.warnings.empty() ? "" : "; ",
                      report_.warnings.empty() ? "" : report_.warnings.front()),
          tuned_.origin.path.string());
  }

  void compare_configurations() {
    if (!base_.config || !tuned_.config || base_.config == tuned_.config) return;
    const Attributes own = config_to_attributes(*base_.config, base_.card.model_type);
    const Attributes other = config_to_attributes(*tuned_.config, tuned_.card.model_type);
    std::vector<std::string> names;
    for (const auto& [key, value] : own) {
      if (const Value* found = other.find(key); found == nullptr || !(*found == value)) names.push_back(key);
    }
    if (!names.empty())
      report_.warnings.push_back(
          fmt::format("the configurations differ in {}: the adapter keeps the base's values", list_names(names)));
  }

  void classify(const TensorDifference& difference) {
    using What = TensorDifference::What;
    if (difference.what == What::only_in_a) return only_in_base_.push_back(difference.name);
    if (difference.what == What::only_in_b) return only_in_tuned_.push_back(difference.name);
    if (difference.what == What::shape)
      return report_.warnings.push_back(fmt::format("{} is left out: it is {} in the base and {} in the tuned model",
                                                    difference.name, difference.a, difference.b));
    const Tensor& base = *base_.find(difference.name);
    const Tensor& tuned = *tuned_.find(difference.name);
    const std::string name = find_table_name(family_, difference.name);
    if (!difference.values || base.shape.size() != 2 || !has_float_elements(base) || !has_float_elements(tuned) ||
        !name.ends_with(kWeight) || base.elements() == 0)
      return other_.push_back(difference.name);
    if (name == family_.embedding && is_tied_) {
      report_.warnings.push_back(
          fmt::format("{} differs and is left out: it is the output matrix, too, which an adapter would not change",
                      difference.name));
      return;
    }
    if (plan_ && !plan_->positions.empty() && name == plan_->positions) {
      report_.warnings.push_back(
          fmt::format("{} differs and is left out: llama.cpp adds no adapter to learned positions", difference.name));
      return;
    }
    const TensorDifference::Values& values = *difference.values;
    const double elements = static_cast<double>(base.elements());
    const double squares = values.rms * values.rms * elements;
    if (!std::isfinite(squares) || !(values.max_absolute <= static_cast<double>(std::numeric_limits<float>::max())))
      throw Error(ErrorKind::invalid_file,
                  fmt::format("tensor {}: the difference of the two models {}", difference.name,
                              std::isfinite(values.max_absolute)
                                  ? fmt::format("does not fit float32: its largest element is {}", values.max_absolute)
                                  : "is not finite: an element is NaN or infinite"),
                  tuned_.origin.path.string())
          .with({.kind = Remedy::Kind::skip, .tensor = difference.name});
    const bool is_turned = name == family_.embedding || (plan_ && is_stored_transposed(*plan_, name));
    changed_.push_back({&base, &tuned, std::min({options_.rank, base.shape[0], base.shape[1]}), is_turned,
                        values.max_absolute, squares});
    report_.matrices.push_back({difference.name, base.shape, changed_.back().rank, values.rms, 0});
  }

  void report_left_out() {
    const auto warn = [&](const std::vector<std::string>& names, std::string_view text) {
      if (!names.empty())
        report_.warnings.push_back(
            fmt::format("{} {} left out: {}", list_names(names), names.size() == 1 ? "is" : "are", text));
    };
    warn(other_, "an adapter changes matrices alone");
    warn(only_in_base_, "the tuned model lacks it");
    warn(only_in_tuned_, "the base lacks it");
  }

  void add(const std::shared_ptr<Fits>& fits, std::size_t index) {
    const ChangedMatrix& matrix = fits->matrices()[index];
    std::uint64_t rows = matrix.base->shape[0];
    std::uint64_t columns = matrix.base->shape[1];
    if (matrix.is_turned) std::swap(rows, columns);
    const auto make = [&](const Shape& shape, std::vector<float> LowRankFit::*side) {
      return make_dense(matrix.base->name, shape, DType::f32,
                        std::make_shared<FitBlob>(fits, index, side, shape[0] * shape[1]));
    };
    adapter_.matrices.push_back({matrix.base->name,
                                 matrix.base->name,
                                 {make({rows, matrix.rank}, &LowRankFit::left),
                                  make({matrix.rank, columns}, &LowRankFit::right), matrix.is_turned, 1}});
  }

  void add_captured_shares(const Fits& fits) {
    double captured = 0;
    double all = 0;
    for (std::size_t i = 0; i < fits.matrices().size(); ++i) {
      const ChangedMatrix& matrix = fits.matrices()[i];
      report_.matrices[i].captured = fits.captured()[i];
      captured += fits.captured()[i] * matrix.sum_of_squares;
      all += matrix.sum_of_squares;
    }
    report_.captured = all > 0 ? captured / all : 0;  // squares of tiny float64 numbers are 0
  }

  ExtractLoraOptions options_;
  Model base_;
  Model tuned_;
  const Family& family_;
  std::optional<DecoderPlan> plan_;
  bool is_tied_ = false;
  Adapter adapter_;
  ExtractLoraReport report_;
  std::vector<ChangedMatrix> changed_;
  std::vector<std::string> other_;  // tensors that differ and are not floating-point matrices named *.weight
  std::vector<std::string> only_in_base_;
  std::vector<std::string> only_in_tuned_;
};

}  // namespace

ExtractLoraReport extract_lora(const fs::path& base, const fs::path& tuned, Destination destination,
                               const ExtractLoraOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  ExtractLoraReport report = Extraction(base, tuned, options).extract(std::move(destination));
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

ExtractLoraReport extract_lora(const fs::path& base, const fs::path& tuned, const fs::path& output,
                               const ExtractLoraOptions& options) {
  return extract_lora(base, tuned, Destination(output), options);
}

}  // namespace poise
