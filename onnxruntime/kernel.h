// A package's model as a kernel of ONNX Runtime.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ort.h"
#include "package.h"

namespace tilth {

// Kernel runs a package on the tensors of a node. Concurrent calls are serialised, because each uses all threads of
// the model.
class Kernel {
 public:
  // inputs and outputs are the names of the node's tensors, in order. Throws std::runtime_error.
  Kernel(std::shared_ptr<const Package> package, int threads, const std::vector<std::string> &inputs,
         const std::vector<std::string> &outputs);

  // Throws std::runtime_error if the package was not compiled for the shapes of the inputs.
  void run(const Ort::KernelContext &context) const;

 private:
  // The input axis that determines an extent of a run.
  struct Extent {
    int index, input, axis;
  };

  void set_extents(const std::vector<std::vector<std::int64_t>> &shapes) const;
  void write(int input, const Ort::ConstValue &value, const std::vector<std::int64_t> &shape) const;
  std::vector<Extent> find_extents() const;

  std::shared_ptr<const Package> package_;
  std::shared_ptr<tilth_model> model_;
  std::vector<std::size_t> inputs_, outputs_;  // indexes of the package's tensors in the node
  std::vector<Extent> extents_;
};

// Returns the ONNX type of a package's tensor.
ONNXTensorElementDataType element_type(const tilth_tensor &tensor);

// Formats a shape.
std::string to_text(const std::vector<std::int64_t> &shape);

}  // namespace tilth
