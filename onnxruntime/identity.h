// Identity of a session's model.
#pragma once
#include <map>
#include <string>

#include "package.h"

namespace tilth {

// Identity checks whether packages were compiled from a session's model, by digests of the model's files. It reads
// each file once.
class Identity {
 public:
  // The model is the file at a path. If the path is empty, the model is in memory, and its digest comes from the
  // program, or is "".
  Identity(std::string path, std::string told) : path_(std::move(path)), told_(std::move(told)) {}

  // Throws Mismatch if the package was compiled from another model.
  void check(const Package &package);

 private:
  std::string digest(const Package &package);
  const std::string &file(const std::string &path);

  std::string path_, told_;
  std::map<std::string, std::string> digests_;  // of files, by their paths
};

}  // namespace tilth
