// Which model a session has.
#pragma once
#include <map>
#include <string>

#include "package.h"

namespace tilth {

// Identity tells whether packages were compiled from a session's model, by digests of the model's files. Each file is
// read once.
class Identity {
 public:
  // The model is the file at a path. Where the path is empty, the session got it in memory, and its digest is what the
  // program says; "" where it says nothing.
  Identity(std::string path, std::string told) : path_(std::move(path)), told_(std::move(told)) {}

  // Throws Mismatch where the package was compiled from another model.
  void check(const Package &package);

 private:
  std::string digest(const Package &package);
  const std::string &file(const std::string &path);

  std::string path_, told_;
  std::map<std::string, std::string> digests_;  // of files, by their paths
};

}  // namespace tilth
