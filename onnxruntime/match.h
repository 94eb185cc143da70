// Which nodes of a graph a package computes.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

#include "ort.h"
#include "package.h"

namespace tilth {

// Mismatch says why a package does not compute a part of a graph.
struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The nodes from the values that are the package's inputs to those that are its outputs, which the runtime's
// optimisations left in the graph under their names. Whoever asks has seen that the graph is of the model from which the
// package was compiled. Throws Mismatch.
std::vector<Ort::ConstNode> nodes_of(const Package &package, Ort::ConstGraph graph);

}  // namespace tilth
