#include "kernel.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <stdexcept>

namespace tilth {
namespace {

using Shape = std::vector<std::int64_t>;

Shape shape_of(const tilth_tensor &tensor) { return {tensor.shape, tensor.shape + tensor.rank}; }

std::int64_t elements(const Shape &shape) {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

// copy copies the elements of a tensor, from an axis on, between memories with the strides of shapes that are at
// least as large.
void copy(char *to, const Shape &to_shape, const char *from, const Shape &from_shape, const Shape &shape, std::size_t axis, std::int64_t bytes) {
  if (axis == shape.size()) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  const auto behind = [axis](const Shape &s) { return Shape(s.begin() + static_cast<std::ptrdiff_t>(axis) + 1, s.end()); };
  const Shape rest = behind(shape), to_rest = behind(to_shape), from_rest = behind(from_shape);
  if (rest == to_rest && rest == from_rest) {
    std::memcpy(to, from, static_cast<std::size_t>(shape[axis] * elements(rest) * bytes));
    return;
  }
  for (std::int64_t i = 0; i < shape[axis]; i++)
    copy(to + i * elements(to_rest) * bytes, to_shape, from + i * elements(from_rest) * bytes, from_shape, shape, axis + 1, bytes);
}

// places returns the indexes in a list of the names that a package expects.
std::vector<std::size_t> places(const std::vector<const tilth_tensor *> &wanted, const std::vector<std::string> &names) {
  std::vector<std::size_t> at;
  for (const tilth_tensor *tensor : wanted) {
    const auto found = std::find(names.begin(), names.end(), tensor->name);
    if (found == names.end()) throw std::runtime_error(std::string(tensor->name) + " is not among what the node has");
    at.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  return at;
}

}  // namespace

std::string to_text(const Shape &shape) {
  std::string text;
  for (const std::int64_t extent : shape) text += (text.empty() ? "" : "x") + (extent < 0 ? "?" : std::to_string(extent));
  return text.empty() ? "scalar" : text;
}

ONNXTensorElementDataType element_type(const tilth_tensor &tensor) {
  switch (tensor.type) {
    case TILTH_TYPE_FLOAT32: return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    case TILTH_TYPE_FLOAT64: return ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE;
    case TILTH_TYPE_FLOAT16: return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
    case TILTH_TYPE_BFLOAT16: return ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16;
    case TILTH_TYPE_INT8: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8;
    case TILTH_TYPE_INT16: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16;
    case TILTH_TYPE_INT32: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
    case TILTH_TYPE_INT64: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    case TILTH_TYPE_UINT8: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;
    case TILTH_TYPE_UINT16: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16;
    case TILTH_TYPE_UINT32: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32;
    case TILTH_TYPE_UINT64: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64;
    case TILTH_TYPE_BOOL: return ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;
  }
  return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

Kernel::Kernel(std::shared_ptr<const Package> package, int threads, const std::vector<std::string> &inputs,
               const std::vector<std::string> &outputs)
    : package_(std::move(package)),
      model_(package_->open(threads)),
      inputs_(places(package_->inputs(), inputs)),
      outputs_(places(package_->outputs(), outputs)),
      extents_(find_extents()) {}

// find_extents finds the axes with an open extent.
std::vector<Kernel::Extent> Kernel::find_extents() const {
  const Api &api = package_->api();
  const auto shapes = [&] {
    std::vector<Shape> all;
    for (const tilth_tensor *tensor : package_->inputs()) all.push_back(shape_of(*tensor));
    for (std::size_t i = 0; i < all.size(); i++) api.input_shape(model_.get(), static_cast<int>(i), all[i].data());
    return all;
  };
  std::vector<Extent> found;
  for (int e = 0; e < api.extent_count(); e++) {
    std::int64_t least = 0, most = 0;
    api.extent_bounds(e, &least, &most);
    api.set_extent(model_.get(), e, least);
    const auto small = shapes();
    api.set_extent(model_.get(), e, most);
    const auto large = shapes();
    const auto before = found.size();
    for (std::size_t i = 0; i < small.size() && found.size() == before; i++)
      for (std::size_t axis = 0; axis < small[i].size() && found.size() == before; axis++)
        if (small[i][axis] == least && large[i][axis] == most)
          found.push_back({e, static_cast<int>(i), static_cast<int>(axis)});
    if (found.size() == before)
      throw std::runtime_error(package_->path() + ": no axis of an input tells " + api.extent_name(e));
  }
  return found;
}

void Kernel::set_extents(const std::vector<Shape> &shapes) const {
  const Api &api = package_->api();
  for (const Extent &extent : extents_) {
    const auto &tensor = *package_->inputs()[static_cast<std::size_t>(extent.input)];
    const auto &shape = shapes[static_cast<std::size_t>(extent.input)];
    if (shape.size() != static_cast<std::size_t>(tensor.rank)) continue;  // rejected below
    std::int64_t least = 0, most = 0;
    api.extent_bounds(extent.index, &least, &most);
    const std::int64_t n = shape[static_cast<std::size_t>(extent.axis)];
    if (api.set_extent(model_.get(), extent.index, n) != 0)
      throw std::runtime_error(std::string(api.extent_name(extent.index)) + " of " + tensor.name + " is " + std::to_string(n) + "; " +
                               package_->path() + " was compiled for " + std::to_string(least) + " to " + std::to_string(most));
  }
  for (std::size_t i = 0; i < shapes.size(); i++) {
    const auto &tensor = *package_->inputs()[i];
    Shape wanted = shape_of(tensor);
    api.input_shape(model_.get(), static_cast<int>(i), wanted.data());
    if (shapes[i] != wanted)
      throw std::runtime_error(std::string(tensor.name) + " has the shape " + to_text(shapes[i]) + "; " + package_->path() +
                               " was compiled for " + to_text(wanted));
  }
}

void Kernel::write(int input, const Ort::ConstValue &value, const Shape &shape) const {
  const auto &tensor = *package_->inputs()[static_cast<std::size_t>(input)];
  const Shape largest = shape_of(tensor);
  const std::int64_t count = elements(largest);
  if (count == 0 || elements(shape) == 0) return;
  copy(static_cast<char *>(package_->api().input(model_.get(), input)), largest, static_cast<const char *>(value.GetTensorRawData()), shape,
       shape, 0, tensor.bytes / count);
}

void Kernel::run(const Ort::KernelContext &context) const {
  const Api &api = package_->api();
  struct Hold {
    Hold(const Api &a, tilth_model *m) : api(a), model(m) { api.lock(model); }
    ~Hold() { api.unlock(model); }
    Hold(const Hold &) = delete;
    Hold &operator=(const Hold &) = delete;
    const Api &api;
    tilth_model *model;
  } hold(api, model_.get());

  std::vector<Ort::ConstValue> values;
  std::vector<Shape> shapes;
  for (const std::size_t place : inputs_) {
    values.push_back(context.GetInput(place));
    shapes.push_back(values.back().GetTensorTypeAndShapeInfo().GetShape());
  }
  set_extents(shapes);
  for (std::size_t i = 0; i < values.size(); i++) write(static_cast<int>(i), values[i], shapes[i]);

  api.run(model_.get());
  if (const char *error = api.last_error(); error && *error) throw std::runtime_error(package_->path() + ": " + error);

  for (std::size_t i = 0; i < outputs_.size(); i++) {
    const auto &tensor = *package_->outputs()[i];
    const Shape largest = shape_of(tensor);
    Shape shape = largest;
    api.output_shape(model_.get(), static_cast<int>(i), shape.data());
    for (std::size_t axis = 0; axis < shape.size(); axis++)
      if (shape[axis] < 0 || shape[axis] > largest[axis])
        throw std::runtime_error(package_->path() + ": it is damaged: " + tensor.name + " has the shape " + to_text(shape));
    auto value = context.GetOutput(outputs_[i], shape);
    if (elements(shape) > 0)
      copy(static_cast<char *>(value.GetTensorMutableRawData()), shape,
           static_cast<const char *>(api.output(model_.get(), static_cast<int>(i))), largest, shape, 0, tensor.bytes / elements(largest));
  }
}

}  // namespace tilth
