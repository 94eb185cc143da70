// What the provider reads of a package's manifest, as Tilth writes it: JSON whose members are indented by one space
// for each object or list around them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tilth {

// A file beside a model's, in which data of its tensors lies.
struct DataFile {
  std::string name;  // from the model's folder
  std::int64_t bytes;
  std::string sha256;  // in hex
};

// The text of a key of one of the manifest's objects, each character as it stands there; "" where it is missing.
std::string text(const std::string &manifest, const std::string &key);

// The features that the manifest's target lists, each a plain word.
std::vector<std::string> features(const std::string &manifest);

// The files beside the model from which the package was compiled. Throws std::runtime_error.
std::vector<DataFile> data_files(const std::string &manifest);

}  // namespace tilth
