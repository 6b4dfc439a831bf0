// FaultyModel: what a reader throws where tensors of a file are wrong, one or many; the others can be checked still.
#pragma once

#include <memory>
#include <vector>

#include <poise/error.hpp>
#include <poise/finding.hpp>
#include <poise/model.hpp>

namespace poise {

// The message is that of the first fault, and how many more there are.
class FaultyModel : public Error {
 public:
  // Requires: there is a fault.
  FaultyModel(std::vector<Finding> faults, Model sound);

  const std::vector<Finding>& faults() const { return found_->faults; }
  // Without the tensors that are wrong.
  const Model& sound() const { return found_->sound; }

 private:
  struct Found {
    std::vector<Finding> faults;
    Model sound;
  };
  std::shared_ptr<const Found> found_;
};

// Which tensors of a file are wrong, while a model is made of it. Requires: the model outlives this.
class TensorFaults {
 public:
  explicit TensorFaults(Model& model) : model_(model) {}

  // False where the step throws invalid_file, which is noted. Throws a FaultyModel when there are too many to go on.
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

  // Throws a FaultyModel, with what is sound of the model, where there was one.
  void throw_if_any();

 private:
  void note(const Error& error);

  Model& model_;
  std::vector<Finding> faults_;
};

}  // namespace poise
