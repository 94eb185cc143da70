// The parts of a package's manifest that the provider reads. Tilth writes it as JSON, indented by one space per level.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tilth {

// An external data file of a model.
struct DataFile {
  std::string name;  // relative to the model's folder
  std::int64_t bytes;
  std::string sha256;  // in hex
};

// Returns the raw text of a key in one of the manifest's objects, or "".
std::string text(const std::string &manifest, const std::string &key);

// Returns the features of the manifest's target.
std::vector<std::string> features(const std::string &manifest);

// Returns the external data files of the package's model. Throws std::runtime_error.
std::vector<DataFile> data_files(const std::string &manifest);

}  // namespace tilth
