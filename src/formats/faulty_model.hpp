// FaultyModel: the error of a reader with faulty tensors; it carries the valid ones, which can still be checked.
#pragma once

#include <memory>
#include <vector>

#include <poise/error.hpp>
#include <poise/finding.hpp>
#include <poise/model.hpp>

namespace poise {

// The first fault's message, with the number of others. Requires: there is a fault.
std::string message_of(const std::vector<Finding>& faults);

// Its message is message_of() the faults.
class FaultyModel : public Error {
 public:
  // `kind`: of the first fault. Requires: there is one.
  FaultyModel(std::vector<Finding> faults, Model sound, ErrorKind kind = ErrorKind::invalid_file);

  const std::vector<Finding>& faults() const { return found_->faults; }
  // Without the faulty tensors.
  const Model& sound() const { return found_->sound; }

 private:
  struct Found {
    std::vector<Finding> faults;
    Model sound;
  };
  std::shared_ptr<const Found> found_;
};

// Collects faulty tensors while a model is read. Requires: the model outlives this.
class TensorFaults {
 public:
  explicit TensorFaults(Model& model) : model_(model) {}

  // False if the step throws invalid_file; adds the fault. Throws a FaultyModel when there are too many.
  template <typename Step>
  bool attempt(Step&& step) {
    try {
      step();
      return true;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::invalid_file) throw;
      note(error);
      return false;
    }
  }

  // Throws a FaultyModel, with the valid tensors, if there was a fault.
  void throw_if_any();

 private:
  void note(const Error& error);

  Model& model_;
  std::vector<Finding> faults_;
};

}  // namespace poise
