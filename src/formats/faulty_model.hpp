// Declares FaultyModel, the error for files with faults, and classes that collect faults. The error carries the tensors
// that a reader could make in spite of the faults, so that `verify` can check their data.
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

// Returns the first fault's message, and the number of the other faults if there are any. Requires: there is a fault.
std::string summarize_faults(const std::vector<Finding>& faults);

// Reports faults, and holds a model of the tensors that could be made. The message is summarize_faults(faults), unless
// the caller gives another.
class FaultyModel : public Error {
 public:
  // Requires: there is a fault.
  FaultyModel(std::string message, const std::string& path, std::vector<Finding> faults, Model sound);
  // `kind` is the kind of the first fault, whose path and offset the error has, too. Requires: there is a fault.
  FaultyModel(std::vector<Finding> faults, Model sound, ErrorKind kind = ErrorKind::invalid_file);

  const std::vector<Finding>& faults() const { return found_->faults; }
  // Moves the model out. All copies of an error share it, so call this only once for all of them.
  Model release_valid_part() { return std::move(found_->sound); }

 private:
  struct Found {
    std::vector<Finding> faults;
    Model sound;
  };
  std::shared_ptr<Found> found_;
};

// Collects the errors of a reader's steps as faults, so that the reader can go on.
class Faults {
 public:
  // `kinds` are the kinds of errors that count as faults. attempt() does not catch others.
  explicit Faults(std::vector<ErrorKind> kinds = {ErrorKind::invalid_file}) : kinds_(std::move(kinds)) {}

  // Runs the step. If the step throws an error that counts as a fault, adds the fault and returns false. `tensor` names
  // the tensor that the step reads, if any.
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
  // Returns true after 100 faults, where readers must stop. One more fault then states this limit.
  bool has_reached_limit() const;
  // Returns an error with the message of summarize_faults(), and the first fault's kind, path and offset. Requires:
  // there is a fault.
  Error make_error() const;
  FaultyModel make_faulty_model(Model sound) &&;

 private:
  void note(const Error& error, std::string_view tensor);

  std::vector<ErrorKind> kinds_;
  std::vector<Finding> found_;
  ErrorKind first_kind_ = ErrorKind::invalid_file;
};

// Collects faults while a reader adds tensors to a model, and stops the reader at the limit of faults. Requires: the
// model outlives this.
class TensorFaults {
 public:
  explicit TensorFaults(Model& model) : model_(model) {}

  // Runs the step. If the step throws invalid_file, adds a fault of `tensor` and returns false. At the limit of faults,
  // throws a FaultyModel instead.
  template <typename Step>
  bool attempt(Step&& step, std::string_view tensor = {}) {
    const bool is_sound = faults_.attempt(std::forward<Step>(step), tensor);
    if (faults_.has_reached_limit()) throw_if_any();
    return is_sound;
  }

  // If there was a fault, throws a FaultyModel, and moves the model into it.
  void throw_if_any();

 private:
  Model& model_;
  Faults faults_;
};

}  // namespace poise
