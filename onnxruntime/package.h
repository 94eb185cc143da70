// Tilth package files.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "manifest.h"
#include "tilth.h"

namespace tilth {

// The functions of a package. C has a function of this name, too.
using Api = struct tilth_api;

// A package with loaded code. It must outlive its models.
class Package {
 public:
  // Opens the package at a path: reads its table of contents, and loads its model.so from memory. Throws
  // std::runtime_error, with the path in its message.
  explicit Package(std::string path);
  Package(const Package &) = delete;
  Package &operator=(const Package &) = delete;

  const std::string &path() const { return path_; }
  const Api &api() const { return *api_; }

  // The sha256 of the model's file from which the package was compiled, in hex. Where data lies in files beside it, it
  // is the sha256 of this digest and those of these files, in hex, one after the other.
  const std::string &model_digest() const { return model_digest_; }
  const std::vector<DataFile> &model_data() const { return model_data_; }

  const std::vector<const tilth_tensor *> &inputs() const { return inputs_; }
  const std::vector<const tilth_tensor *> &outputs() const { return outputs_; }

  // Opens the model with a number of threads; 0 means that of the compilation. Throws std::runtime_error.
  std::shared_ptr<tilth_model> open(int threads) const;

 private:
  std::string path_, model_digest_;
  std::vector<DataFile> model_data_;
  std::int64_t weights_ = 0;  // offset of weights.bin in the package
  std::shared_ptr<void> file_, object_;  // the open package and its loaded code
  int fd_ = -1;                          // of file_
  const Api *api_ = nullptr;
  std::vector<const tilth_tensor *> inputs_, outputs_;
};

}  // namespace tilth
