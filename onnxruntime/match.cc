#include "match.h"

#include <map>
#include <set>

#include "kernel.h"

namespace tilth {
namespace {

// Graph is a graph with indexes for traversal.
class Graph {
 public:
  explicit Graph(const Ort::ConstGraph &graph) {
    const auto add = [&](const Ort::ConstValueInfo &value) {
      if (value) values_.emplace(value.GetName(), value);
    };
    for (const auto &value : graph.GetInputs()) add(value);
    for (const auto &value : graph.GetInitializers()) initializers_.insert(value.GetName());
    for (const auto &node : graph.GetNodes()) {
      for (const auto &value : node.GetOutputs()) {
        add(value);
        if (value) producers_.emplace(value.GetName(), node);
      }
      for (const auto &name : read(node)) readers_[name].push_back(node.GetId());
    }
    for (const auto &value : graph.GetOutputs()) outputs_.insert(value.GetName());
  }

  // Returns the value with a name. Throws Mismatch.
  Ort::ConstValueInfo value(const std::string &name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw Mismatch("the graph has no value " + name + ", which an optimisation of the runtime may have removed");
    return found->second;
  }

  // Returns the node that computes a value, or nothing for an input or a constant.
  const Ort::ConstNode *producer(const std::string &name) const {
    const auto found = producers_.find(name);
    return found == producers_.end() ? nullptr : &found->second;
  }

  bool is_initializer(const std::string &name) const { return initializers_.count(name) > 0; }

  // Reports whether other nodes read a value, or whether it is an output of the graph.
  bool read_outside(const std::string &name, const std::map<std::size_t, Ort::ConstNode> &nodes) const {
    if (outputs_.count(name) > 0) return true;
    const auto found = readers_.find(name);
    if (found == readers_.end()) return false;
    for (const std::size_t id : found->second)
      if (nodes.count(id) == 0) return true;
    return false;
  }

  // Returns the names that a node reads, including those read by its subgraphs.
  static std::vector<std::string> read(const Ort::ConstNode &node) {
    std::vector<std::string> names;
    for (const auto &values : {node.GetInputs(), node.GetImplicitInputs()})
      for (const auto &value : values)
        if (value && !value.GetName().empty()) names.push_back(value.GetName());
    return names;
  }

 private:
  std::map<std::string, Ort::ConstValueInfo> values_;
  std::map<std::string, Ort::ConstNode> producers_;
  std::map<std::string, std::vector<std::size_t>> readers_;
  std::set<std::string> initializers_, outputs_;
};

// check compares a value's type and shape with a package's.
void check(const Ort::ConstValueInfo &value, const tilth_tensor &tensor) {
  const auto info = value.TypeInfo().GetTensorTypeAndShapeInfo();
  if (info.GetElementType() != element_type(tensor)) throw Mismatch(std::string(tensor.name) + " is of another type");
  const auto shape = info.GetShape();
  bool same = shape.size() == static_cast<std::size_t>(tensor.rank);
  for (std::size_t i = 0; same && i < shape.size(); i++) same = shape[i] < 0 || shape[i] == tensor.shape[i];
  if (!same)
    throw Mismatch(std::string(tensor.name) + " has the shape " + to_text(shape) + ", and the package was compiled for " +
                   to_text({tensor.shape, tensor.shape + tensor.rank}));
}

// before collects all nodes on which values depend, up to the given boundary values.
std::map<std::size_t, Ort::ConstNode> before(const Graph &graph, std::vector<std::string> names, const std::set<std::string> &stop) {
  std::map<std::size_t, Ort::ConstNode> nodes;
  std::set<std::string> seen;
  while (!names.empty()) {
    const std::string name = std::move(names.back());
    names.pop_back();
    if (stop.count(name) > 0 || !seen.insert(name).second) continue;
    const Ort::ConstNode *node = graph.producer(name);
    if (!node) continue;
    if (nodes.emplace(node->GetId(), *node).second)
      for (auto &read : Graph::read(*node)) names.push_back(std::move(read));
  }
  return nodes;
}

}  // namespace

std::vector<Ort::ConstNode> nodes_of(const Package &package, Ort::ConstGraph whole) {
  const Graph graph(whole);
  std::set<std::string> inputs;
  std::vector<std::string> from, to;
  for (const tilth_tensor *tensor : package.inputs()) {
    check(graph.value(tensor->name), *tensor);
    inputs.insert(tensor->name);
    from.push_back(tensor->name);
  }
  std::set<std::string> outputs;
  for (const tilth_tensor *tensor : package.outputs()) {
    graph.value(tensor->name);
    outputs.insert(tensor->name);
    to.push_back(tensor->name);
  }

  const auto nodes = before(graph, to, inputs);
  for (const auto &[id, node] : nodes) {
    for (const auto &name : Graph::read(node))
      if (inputs.count(name) == 0 && !graph.producer(name) && !graph.is_initializer(name))
        throw Mismatch(name + " is needed, and is no input of the package");
    for (const auto &value : node.GetOutputs())
      if (value && outputs.count(value.GetName()) == 0 && graph.read_outside(value.GetName(), nodes))
        throw Mismatch(value.GetName() + " is read by others, and is no output of the package");
  }
  for (const auto &[id, node] : before(graph, from, {}))
    if (nodes.count(id) > 0) throw Mismatch("its inputs depend on its outputs");
  if (nodes.empty()) throw Mismatch("the graph has no nodes between its inputs and its outputs");

  std::vector<Ort::ConstNode> list;
  for (const auto &node : whole.GetNodes())
    if (nodes.count(node.GetId()) > 0) list.push_back(node);
  return list;
}

}  // namespace tilth
