// Errors for files in which some tensors are faulty. FaultyModel carries the valid tensors, which can still be checked.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include <poise/error.hpp>
#include <poise/finding.hpp>
#include <poise/model.hpp>

namespace poise {

// Returns the first fault's message, with the number of others. Requires: there is a fault.
std::string summarize_faults(const std::vector<Finding>& faults);

// Reports faults, and holds the model without the faulty tensors. The message is summarize_faults(faults), unless the
// caller gives another.
class FaultyModel : public Error {
 public:
  // Requires: there is a fault.
  FaultyModel(std::string message, const std::string& path, std::vector<Finding> faults, Model sound);
  // `kind` is the kind of the first fault. Requires: there is a fault.
  FaultyModel(std::vector<Finding> faults, Model sound, ErrorKind kind = ErrorKind::invalid_file);

  const std::vector<Finding>& faults() const { return found_->faults; }
  // Moves out the model without the faulty tensors. Call it only once for an error and all its copies.
  Model release_valid_part() { return std::move(found_->sound); }

 private:
  struct Found {
    std::vector<Finding> faults;
    Model sound;
  };
  std::shared_ptr<Found> found_;
};

// Collects the faults that a reader finds.
class Faults {
 public:
  // `kinds` are the kinds of errors that count as faults.
  explicit Faults(std::vector<ErrorKind> kinds = {ErrorKind::invalid_file}) : kinds_(std::move(kinds)) {}

  // Runs the step. If it throws an error of these kinds, adds a fault and returns false. `tensor` names the tensor that
  // the step reads, if any.
  template <typename Step>
  bool attempt(Step&& step, std::string_view tensor = {}) {
    try {
      step();
      return true;
    } catch (const Error& error) {
      if (std::ranges::find(kinds_, error.kind()) == kinds_.end()) throw;
      note(error, tensor);
      return false;
    }
  }

  bool empty() const { return found_.empty(); }
  // Returns true at the limit of faults, where readers stop. The last fault states the limit.
  bool has_reached_limit() const;
  // Returns an error with summarize_faults(). Requires: there is a fault.
  Error make_error() const;
  FaultyModel make_faulty_model(Model sound) &&;

 private:
  void note(const Error& error, std::string_view tensor);

  std::vector<ErrorKind> kinds_;
  std::vector<Finding> found_;
  ErrorKind first_kind_ = ErrorKind::invalid_file;
};

// Collects the faults of tensors that a reader finds, and stops the reader at the limit. Requires: the model outlives
// this.
class TensorFaults {
 public:
  explicit TensorFaults(Model& model) : model_(model) {}

  // Runs the step. If it throws invalid_file, adds a fault of the tensor and returns false. Throws a FaultyModel at the
  // limit of faults.
  template <typename Step>
  bool attempt(Step&& step, std::string_view tensor = {}) {
    const bool is_sound = faults_.attempt(std::forward<Step>(step), tensor);
    if (faults_.has_reached_limit()) throw_if_any();
    return is_sound;
  }

  // Throws a FaultyModel that holds the valid tensors if there was a fault.
  void throw_if_any();

 private:
  Model& model_;
  Faults faults_;
};

}  // namespace poise
