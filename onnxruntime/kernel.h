// A package's model as what ONNX Runtime calls in a session.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ort.h"
#include "package.h"

namespace tilth {

// Kernel runs a package on the tensors of a node. Calls at the same time wait for each other: the model uses all of its
// threads for each.
class Kernel {
 public:
  // inputs and outputs are the names of the node's, in its order. Throws std::runtime_error.
  Kernel(std::shared_ptr<const Package> package, int threads, const std::vector<std::string> &inputs,
         const std::vector<std::string> &outputs);

  // Throws std::runtime_error where the inputs have shapes for which the package was not compiled.
  void run(const Ort::KernelContext &context) const;

 private:
  // Where a run's extent is read: from an axis of an input.
  struct Extent {
    int index, input, axis;
  };

  void set_extents(const std::vector<std::vector<std::int64_t>> &shapes) const;
  void write(int input, const Ort::ConstValue &value, const std::vector<std::int64_t> &shape) const;
  std::vector<Extent> find_extents() const;

  std::shared_ptr<const Package> package_;
  std::shared_ptr<tilth_model> model_;
  std::vector<std::size_t> inputs_, outputs_;  // where the node has the package's
  std::vector<Extent> extents_;
};

// The type of a package's tensor in ONNX.
ONNXTensorElementDataType element_type(const tilth_tensor &tensor);

// A shape for people.
std::string to_text(const std::vector<std::int64_t> &shape);

}  // namespace tilth
