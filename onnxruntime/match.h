// Selection of the nodes that a package computes.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

#include "ort.h"
#include "package.h"

namespace tilth {

// Mismatch is the reason why a package does not compute a part of a graph.
struct Mismatch : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Returns the nodes between the package's inputs and outputs, whose names the runtime's optimisations preserve. The
// caller must have checked that the package was compiled from the graph's model. Throws Mismatch.
std::vector<Ort::ConstNode> nodes_of(const Package &package, Ort::ConstGraph graph);

}  // namespace tilth
