// Features of this machine's processor.
#pragma once
#include <string>
#include <vector>

namespace tilth {

// Returns the features of a package, named as in targets, that this processor lacks; empty if its features are
// unknown.
std::vector<std::string> lacking(const std::vector<std::string> &features);

}  // namespace tilth
