#include "package.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "file.h"
#include "manifest.h"
#include "processor.h"

namespace tilth {
namespace {

// Maximum sizes of a package's parts; larger ones are damaged.
constexpr std::int64_t most_code = std::int64_t{1} << 30, most_manifest = std::int64_t{64} << 20;
constexpr int most_parts = 64;

struct Part {
  std::int64_t offset = 0, size = 0;
};

// octal parses a number of a tar header; sizes from 8 GiB are binary.
std::int64_t octal(const unsigned char *field, int length) {
  if (field[0] & 0x80) {
    std::uint64_t n = 0;
    for (int i = length - 8; i < length; i++) n = n << 8 | field[i];
    return n > INT64_MAX ? -1 : static_cast<std::int64_t>(n);
  }
  std::int64_t n = 0;
  for (int i = 0; i < length && field[i] != 0 && field[i] != ' '; i++) {
    if (field[i] < '0' || field[i] > '7') return -1;
    n = n * 8 + (field[i] - '0');
  }
  return n;
}

// The parts of a package, which is a tar archive of few files.
std::map<std::string, Part> contents(const File &file, const std::string &path) {
  const std::int64_t all = file.size();
  std::map<std::string, Part> parts;
  for (std::int64_t at = 0; at + 512 <= all;) {
    unsigned char header[512];
    file.read(header, sizeof header, at);
    if (header[0] == 0) break;
    const std::int64_t size = octal(header + 124, 12);
    if (std::memcmp(header + 257, "ustar", 5) != 0 || size < 0 || size > all - at - 512 || parts.size() >= most_parts)
      fail(path, "it is not a package of Tilth, or it is damaged");
    parts[std::string(reinterpret_cast<char *>(header), strnlen(reinterpret_cast<char *>(header), 100))] = {at + 512, size};
    at += 512 + (size + 511) / 512 * 512;
  }
  return parts;
}

const Part &part(const std::map<std::string, Part> &parts, const char *name, std::int64_t most, const std::string &path) {
  const auto found = parts.find(name);
  if (found == parts.end()) fail(path, std::string("it has no ") + name + ": it is not a package of Tilth");
  if (found->second.size > most) fail(path, std::string("its ") + name + " is too large");
  return found->second;
}

// load loads a shared object from memory. Its descriptor must stay open while the object is loaded, because the
// loader identifies objects by path and would confuse it with another one with the same number.
std::shared_ptr<void> load(const std::string &code, const std::string &path) {
  File memory(memfd_create("model.so", MFD_CLOEXEC), path);
  if (memory.fd() < 0) fail(path, std::string("no memory for its code: ") + std::strerror(errno));
  for (std::size_t done = 0; done < code.size();) {
    const ssize_t n = write(memory.fd(), code.data() + done, code.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail(path, std::string("no memory for its code: ") + std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
  const std::string name = "/proc/self/fd/" + std::to_string(memory.fd());
  void *object = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!object) fail(path, dlerror());
  return {object, [name, fd = memory.release()](void *loaded) {
            dlclose(loaded);
            if (!dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD)) close(fd);
          }};
}

}  // namespace

Package::Package(std::string path) : path_(std::move(path)) {
  const auto opened = std::make_shared<File>(path_);
  const File &file = *opened;
  file_ = opened, fd_ = file.fd();
  const auto parts = contents(file, path_);
  const Part &code = part(parts, "model.so", most_code, path_), &described = part(parts, "manifest.json", most_manifest, path_);
  weights_ = part(parts, "weights.bin", INT64_MAX, path_).offset;

  std::string manifest(static_cast<std::size_t>(described.size), 0), object(static_cast<std::size_t>(code.size), 0);
  file.read(manifest.data(), described.size, described.offset);
  file.read(object.data(), code.size, code.offset);
  model_digest_ = text(manifest, "model_sha256");
  model_data_ = data_files(manifest);
  if (model_digest_.empty()) fail(path_, "it does not say from which model it was compiled: compile it with this version of Tilth");

  std::string missing;
  for (const auto &feature : lacking(features(manifest))) missing += (missing.empty() ? "" : ", ") + feature;
  if (!missing.empty()) fail(path_, "it needs " + missing + ", which this processor lacks; compile the model for this machine");

  object_ = load(object, path_);
  const auto table = reinterpret_cast<const Api *(*)()>(dlsym(object_.get(), "tilth_api"));
  if (!table) fail(path_, "it was compiled by too old a version of Tilth: compile it again");
  api_ = table();
  for (int i = 0; i < api_->input_count(); i++) inputs_.push_back(api_->input_tensor(i));
  for (int i = 0; i < api_->output_count(); i++) outputs_.push_back(api_->output_tensor(i));
}

std::shared_ptr<tilth_model> Package::open(int threads) const {
  tilth_options options{};
  options.size = sizeof options;
  options.threads = threads;
  // Opened by descriptor, because another file may have the path by now.
  tilth_model *model = api_->open_with(("/proc/self/fd/" + std::to_string(fd_)).c_str(), weights_, &options);
  if (!model) fail(path_, api_->last_error());
  return {model, api_->close};
}

}  // namespace tilth
