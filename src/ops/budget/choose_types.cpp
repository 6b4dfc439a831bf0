#include "ops/budget/budget.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <poise/error.hpp>

#include "bytes/checked.hpp"
#include "io/meter.hpp"
#include "io/threads.hpp"
#include "ops/block_recipe.hpp"
#include "ops/ranks.hpp"
#include "views/dense.hpp"
#include "views/layout_type.hpp"

namespace poise {
namespace {

constexpr double kBitsPerByte = 8;

void check_budget(const Format& target, const ConvertOptions& options) {
  const SizeBudget& budget = *options.budget;
  if (budget.bytes.has_value() == budget.bits_per_weight.has_value()) {
    throw Error(ErrorKind::bad_argument, "a budget needs either size, in bytes, or bpw, bits per weight; found " +
                                             std::string(budget.bytes ? "both" : "neither"));
  }
  if (budget.bytes == 0U) throw Error(ErrorKind::bad_argument, "size: expected 1 byte or more, found 0");
  if (budget.bits_per_weight && !(*budget.bits_per_weight > 0 && std::isfinite(*budget.bits_per_weight))) {
    throw Error(ErrorKind::bad_argument,
                fmt::format("bpw: expected a number above 0, found {}", *budget.bits_per_weight));
  }
  if (options.sparse) throw Error(ErrorKind::bad_argument, "quantize auto and sparse exclude each other");
  if (!holds_layout(target, layouts::blocks)) {
    throw Error(
        ErrorKind::bad_argument,
        fmt::format("quantize auto chooses among ggml's block types, which {} files cannot hold", target.info.name))
        .with({.kind = Remedy::Kind::format, .value = "gguf"});
  }
}

// Holds the sizes of an output: of its files, and of its tensors' parts without padding.
struct OutputSize {
  std::optional<std::uint64_t> file;
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;

  OutputSize(const Model& model, const FilePlan& plan) : file(plan.bytes) {
    for (const std::uint64_t bytes : plan.tensor_bytes) tensors = saturating_add(tensors, bytes);
    for (const Tensor& tensor : model.tensors()) elements = saturating_add(elements, tensor.elements());
  }

  double compute_bits_per_weight(std::uint64_t bytes) const {
    return elements == 0 ? 0 : kBitsPerByte * static_cast<double>(bytes) / static_cast<double>(elements);
  }
};

class TypeChooser {
 public:
  TypeChooser(const Model& model, const Format& target, const ConvertOptions& options, const MergedTypes& merged,
              FunctionRef<FilePlan(Transformed&)> plan_file, Communicator* ranks)
      : model_(model),
        target_(target),
        options_(options),
        budget_(*options.budget),
        merged_(merged),
        plan_file_(plan_file),
        ranks_(ranks) {}

  std::optional<BudgetedTypes> choose() {
    check_budget(target_, options_);
    if (fits(measure_output(nullptr))) return std::nullopt;
    measure_matrices();
    const SizeSelection selection = make_selection();
    const MatrixTypes smallest = make_types(selection.select(0));
    const OutputSize least = measure_output(&smallest);
    require_possible(least);
    // The header may depend on the types, and a format may store equal tensors once. So each choice is measured, and
    // the room shrinks until a choice fits.
    fixed_ = subtract(count_bytes(least), selection.least_bytes());
    std::uint64_t room = count_allowed_bytes(least);
    for (;;) {
      const std::vector<std::size_t> chosen = selection.select(subtract(room, fixed_));
      BudgetedTypes result{make_types(chosen), {}};
      const OutputSize size = measure_output(&result.types);
      if (fits(size) || room <= fixed_) {
        result.choice = describe_choice(selection, chosen, size);
        return result;
      }
      room = subtract(room, std::max<std::uint64_t>(1, subtract(count_bytes(size), count_allowed_bytes(size))));
    }
  }

 private:
  static std::uint64_t subtract(std::uint64_t from, std::uint64_t bytes) { return from - std::min(from, bytes); }

  OutputSize measure_output(const MatrixTypes* types) const {
    Transformed made = transform(model_, target_, options_, &merged_, types);
    const FilePlan plan = plan_file_(made);
    if (budget_.bytes && !plan.bytes) {
      throw Error(ErrorKind::bad_argument,
                  "size: the size of the output depends on its tensors' bytes, so only writing shows it; give bpw, a "
                  "limit for the bits per weight");
    }
    return {made.model, plan};
  }

  // The budget limits count_bytes() to count_allowed_bytes().
  std::uint64_t count_bytes(const OutputSize& size) const { return budget_.bytes ? *size.file : size.tensors; }
  std::uint64_t count_allowed_bytes(const OutputSize& size) const {
    if (budget_.bytes) return *budget_.bytes;
    const double bytes = std::floor(*budget_.bits_per_weight * static_cast<double>(size.elements) / kBitsPerByte);
    return bytes < 0x1p63 ? static_cast<std::uint64_t>(bytes) : UINT64_MAX;
  }
  bool fits(const OutputSize& size) const { return count_bytes(size) <= count_allowed_bytes(size); }

  void require_possible(const OutputSize& least) const {
    if (fits(least)) return;
    if (budget_.bytes) {
      throw Error(ErrorKind::bad_argument, fmt::format("size: the smallest possible output has {} bytes, more than {}",
                                                       *least.file, *budget_.bytes));
    }
    // Rounds up, so that a budget of this many bits is possible.
    constexpr double kDigits = 1000;
    const double bits = std::ceil(least.compute_bits_per_weight(least.tensors) * kDigits) / kDigits;
    throw Error(ErrorKind::bad_argument, fmt::format("bpw: the smallest possible output has {:.3f} bits per weight, "
                                                     "more than {}",
                                                     bits, *budget_.bits_per_weight));
  }

  // Finds the matrices whose type is open, and measures their candidates. Open are all matrices that could become
  // blocks.
  void measure_matrices() {
    const MatrixTypes kept;
    Transformed own = transform(model_, target_, options_, &merged_, &kept);
    const FilePlan own_plan = plan_file_(own);
    // This call refuses a model that cannot run, before the samples are read.
    const DivergenceMeasure divergence = budget_.divergence ? budget_.divergence(own.model) : DivergenceMeasure();
    // These matrices keep their type but get new codes, because an adapter changed their numbers.
    std::unordered_map<std::string_view, const QuantizedTensor*> codes;
    for (const QuantizedTensor& tensor : own.quantized) codes.emplace(tensor.name, &tensor);
    // Matrices that already have the type kUsual are open, too.
    const MatrixTypes blocks{.chosen = {}, .others = kUsual, .encodes_again = true};
    const Transformed made = transform(model_, target_, options_, &merged_, &blocks);
    std::vector<const QuantizedTensor*> open;
    std::uint64_t total = 0;
    for (const QuantizedTensor& tensor : made.quantized) {
      if (tensor.rows == nullptr) continue;
      open.push_back(&tensor);
      total = saturating_add(total, count_sample_bytes(*tensor.rows));
    }
    std::unordered_map<std::string_view, std::uint64_t> own_bytes;
    for (std::size_t i = 0; i < own_plan.tensor_bytes.size(); ++i)
      own_bytes.emplace(own.model.tensors()[i].name, own_plan.tensor_bytes[i]);

    struct Work {
      const QuantizedTensor* tensor = nullptr;
      BudgetMatrix matrix = {};
    };
    Meter meter(options_.write.progress, total);
    std::size_t next = 0;
    process_in_order<Work>(
        [&](Work& work) {
          if (next == open.size()) return false;
          work.tensor = open[next++];
          return true;
        },
        [&](Work& work) {
          const QuantizedTensor& tensor = *work.tensor;
          const bool keeps = !codes.contains(tensor.name) && own_bytes.contains(tensor.name);
          const std::uint64_t most = keeps ? own_bytes.at(tensor.name) : UINT64_MAX;
          work.matrix = {
              {tensor.name},
              describe_stored_type(*own.model.find(tensor.name)),
              measure_types(*tensor.rows, tensor.importance, most, target_.holds_bf16, has_importance(tensor))};
          if (keeps || work.matrix.candidates.empty()) work.matrix.candidates.push_back({std::nullopt, most, 0});
        },
        [&](Work& work) {
          meter.advance(count_sample_bytes(*work.tensor->rows), work.tensor->name);
          matrices_.push_back(std::move(work.matrix));
        });
    matrices_ = join_experts(std::move(matrices_));
    set_weights(matrices_);
    if (divergence.measure) measure_divergences(divergence, own.model);
  }

  // Returns true if the matrix may have types that need an importance matrix. If there is one, the embedding and the
  // output matrix may have these types without weights of their own, as in llama-quantize.
  bool has_importance(const QuantizedTensor& tensor) const {
    return tensor.importance != nullptr || (!options_.imatrix.empty() && is_embedding_or_output(tensor.name));
  }

  // Weighs the matrices by the divergence that each one causes alone.
  void measure_divergences(const DivergenceMeasure& divergence, const Model& own) {
    tokens_ = divergence.tokens;
    MatrixTypes probed;
    for (const BudgetMatrix& matrix : matrices_) {
      if (const auto probe = choose_probe(matrix); probe) {
        for (const std::string& name : matrix.names) probed.chosen.emplace(name, matrix.candidates[*probe].type);
      }
    }
    const Transformed made = transform(model_, target_, options_, &merged_, &probed);
    std::uint64_t pass_bytes = 0;
    for (const Tensor& tensor : own.tensors()) pass_bytes = saturating_add(pass_bytes, tensor.size_bytes());
    // The ranks divide the passes and gather the results, so that all of them choose by the same numbers.
    const std::size_t first = ranks_ == nullptr ? 0 : ranks_->rank();
    const std::size_t step = ranks_ == nullptr ? 1 : ranks_->size();
    Meter meter(options_.write.progress,
                checked_mul(pass_bytes, (matrices_.size() + step - 1 - first) / step).value_or(UINT64_MAX));
    std::vector<double> divergences(matrices_.size(), 0.0);
    for (std::size_t i = first; i < matrices_.size(); i += step) {
      const BudgetMatrix& matrix = matrices_[i];
      std::vector<Tensor> changed;
      if (choose_probe(matrix)) {
        for (const std::string& name : matrix.names) changed.push_back(*made.model.find(name));
        divergences[i] = divergence.measure(changed);
      }
      meter.advance(pass_bytes, matrix.names.front());
    }
    if (ranks_ != nullptr) divergences = gather_numbers(divergences, *ranks_);
    set_weights(matrices_, divergences);
  }

  // Returns the numbers of all ranks: rank r has measured every size()-th number from r on.
  static std::vector<double> gather_numbers(std::vector<double> own, Communicator& ranks) {
    std::string message;
    for (const double number : own) append_number(message, std::bit_cast<std::uint64_t>(number));
    const std::vector<std::string> messages = ranks.gather(message);
    std::vector<std::string_view> rest(messages.begin(), messages.end());
    for (std::size_t i = 0; i < own.size(); ++i) {
      for (std::size_t rank = 0; rank < rest.size(); ++rank) {
        const auto number = std::bit_cast<double>(read_number(rest[rank]));
        if (i % rest.size() == rank) own[i] = number;
      }
    }
    return own;
  }

  // Returns how many bytes of the budget a candidate takes: with padding if the budget limits the size of files.
  std::uint64_t count_bytes(const TypeCandidate& candidate) const {
    return budget_.bytes ? count_padded_bytes(candidate.bytes) : candidate.bytes;
  }
  std::uint64_t count_padded_bytes(std::uint64_t bytes) const {
    const auto& allowed = target_.options.align;
    if (!allowed) return bytes;
    return checked_align(bytes, options_.write.align.value_or(allowed->usual)).value_or(UINT64_MAX);
  }

  SizeSelection make_selection() const {
    std::vector<std::vector<SizeCandidate>> items;
    for (const BudgetMatrix& matrix : matrices_) {
      auto& candidates = items.emplace_back();
      for (const TypeCandidate& candidate : matrix.candidates)
        candidates.push_back({count_bytes(candidate), candidate.error * matrix.weight});
    }
    return SizeSelection(items);
  }

  MatrixTypes make_types(const std::vector<std::size_t>& chosen) const {
    MatrixTypes types{.chosen = {}, .others = kUsual};
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      for (const std::string& name : matrices_[i].names)
        types.chosen.emplace(name, matrices_[i].candidates[chosen[i]].type);
    }
    return types;
  }

  // Returns the size and the error of a choice. `size` is the size of the output with the choice `reference`.
  BudgetChoice::Point make_point(const std::vector<std::size_t>& chosen, const std::vector<std::size_t>& reference,
                                 const OutputSize& size) const {
    BudgetChoice::Point point;
    std::uint64_t tensors = size.tensors;
    std::uint64_t file = size.file.value_or(0);
    double weights = 0;
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      const TypeCandidate& from = matrices_[i].candidates[reference[i]];
      const TypeCandidate& to = matrices_[i].candidates[chosen[i]];
      tensors = saturating_add(subtract(tensors, from.bytes), to.bytes);
      file = saturating_add(subtract(file, count_padded_bytes(from.bytes)), count_padded_bytes(to.bytes));
      point.error += to.error * matrices_[i].weight;
      weights += matrices_[i].weight;
    }
    point.bits_per_weight = size.compute_bits_per_weight(tensors);
    if (size.file) point.bytes = file;
    if (weights > 0 && tokens_ == 0) point.error /= weights;
    point.is_chosen = chosen == reference;
    return point;
  }

  BudgetChoice describe_choice(const SizeSelection& selection, const std::vector<std::size_t>& chosen,
                               const OutputSize& size) const {
    constexpr double kStep = 0.5;  // bits per weight
    constexpr double kLastStep = 9;
    std::vector<std::vector<std::size_t>> choices = {selection.select(0), chosen, selection.select(UINT64_MAX)};
    const std::uint64_t fixed = subtract(size.tensors, count_chosen_bytes(chosen));
    for (double bits = kStep; bits < kLastStep; bits += kStep) {
      const double bytes = bits * static_cast<double>(size.elements) / kBitsPerByte;
      if (bytes < 0x1p63) choices.push_back(selection.select(subtract(static_cast<std::uint64_t>(bytes), fixed)));
    }
    std::ranges::sort(choices, {}, [&](const auto& one) { return count_chosen_bytes(one); });
    choices.erase(std::unique(choices.begin(), choices.end()), choices.end());
    BudgetChoice choice;
    for (const auto& one : choices) choice.curve.push_back(make_point(one, chosen, size));
    choice.rows = make_rows(chosen);
    choice.tokens = tokens_;
    return choice;
  }

  std::uint64_t count_chosen_bytes(const std::vector<std::size_t>& chosen) const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < matrices_.size(); ++i)
      sum = saturating_add(sum, matrices_[i].candidates[chosen[i]].bytes);
    return sum;
  }

  // Returns a row for each role and type, in the order of the model. The rows of a role are neighbours.
  std::vector<BudgetChoice::Row> make_rows(const std::vector<std::size_t>& chosen) const {
    std::vector<BudgetChoice::Row> rows;
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
      const BudgetMatrix& matrix = matrices_[i];
      const TypeCandidate& candidate = matrix.candidates[chosen[i]];
      const std::string type = candidate.type ? to_string(*candidate.type) : matrix.own_type;
      const auto is_same_row = [&](const BudgetChoice::Row& row) {
        return row.name == matrix.role && row.type == type;
      };
      auto row = std::ranges::find_if(rows, is_same_row);
      if (row == rows.end()) {
        const auto last = std::ranges::find(rows.rbegin(), rows.rend(), matrix.role, &BudgetChoice::Row::name);
        row = rows.insert(last.base() == rows.begin() ? rows.end() : last.base(), {matrix.role, type, 0, 0, 0});
      }
      row->matrices += matrix.names.size();
      row->bytes = saturating_add(row->bytes, candidate.bytes);
      row->error += candidate.error * (tokens_ == 0 ? static_cast<double>(matrix.names.size()) : matrix.weight);
    }
    for (BudgetChoice::Row& row : rows) row.error /= tokens_ == 0 ? static_cast<double>(row.matrices) : 1.0;
    return rows;
  }

  // Matrices that are not open get this type, or float16 if its blocks do not fill their rows.
  static constexpr StoredType kUsual = {.dtype = DType::u8, .blocks = "q8_0"};

  const Model& model_;
  const Format& target_;
  const ConvertOptions& options_;
  const SizeBudget& budget_;
  const MergedTypes& merged_;
  FunctionRef<FilePlan(Transformed&)> plan_file_;
  Communicator* ranks_;
  std::vector<BudgetMatrix> matrices_;
  std::size_t tokens_ = 0;   // of the text that weighs the matrices; 0: none
  std::uint64_t fixed_ = 0;  // bytes besides the matrices
};

}  // namespace

std::optional<BudgetedTypes> choose_types(const Model& model, const Format& target, const ConvertOptions& options,
                                          const MergedTypes& merged, FunctionRef<FilePlan(Transformed&)> plan_file,
                                          Communicator* ranks) {
  if (!options.budget) return std::nullopt;
  return TypeChooser(model, target, options, merged, plan_file, ranks).choose();
}

}  // namespace poise
