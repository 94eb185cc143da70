// What this machine's processor can do.
#pragma once
#include <string>
#include <vector>

namespace tilth {

// Those of a package's features, by the names that targets have for them, which this processor lacks; none where the
// system does not tell what it has.
std::vector<std::string> lacking(const std::vector<std::string> &features);

}  // namespace tilth
