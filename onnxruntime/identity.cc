#include "identity.h"

#include "file.h"
#include "match.h"
#include "sha256.h"

namespace tilth {
namespace {

std::string sha256_of(const File &file) {
  Sha256 sum;
  std::string buffer(1 << 20, 0);
  for (std::int64_t at = 0; at < file.size();) {
    const std::int64_t n = std::min(file.size() - at, static_cast<std::int64_t>(buffer.size()));
    file.read(buffer.data(), n, at);
    sum.add(buffer.data(), static_cast<std::size_t>(n));
    at += n;
  }
  return sum.hex();
}

}  // namespace

void Identity::check(const Package &package) {
  if (path_.empty() && told_.empty())
    throw Mismatch("the session's model was not loaded from a file: say which model it is by the option model_sha256");
  const std::string found = path_.empty() ? told_ : digest(package);
  if (found != package.model_digest())
    throw Mismatch("it was compiled from a model with the digest " + package.model_digest() + ", and " +
                   (path_.empty() ? "the session's" : path_) + " has " + found);
}

// digest returns the model digest that a package compiled from the model would contain.
std::string Identity::digest(const Package &package) {
  const std::string &own = file(path_);
  if (package.model_data().empty()) return own;
  const std::string folder = path_.substr(0, path_.rfind('/') + 1);
  Sha256 all;
  all.add(own.data(), own.size());
  for (const auto &data : package.model_data()) {
    const std::string path = folder + data.name;
    try {
      if (File(path).size() != data.bytes || file(path) != data.sha256) throw Mismatch("it was compiled from a model with other data in " + path);
    } catch (const Mismatch &) {
      throw;
    } catch (const std::runtime_error &error) {
      throw Mismatch("data of the model from which it was compiled cannot be read: " + std::string(error.what()));
    }
    all.add(data.sha256.data(), data.sha256.size());
  }
  return all.hex();
}

const std::string &Identity::file(const std::string &path) {
  const auto known = digests_.find(path);
  return known == digests_.end() ? digests_.emplace(path, sha256_of(File(path))).first->second : known->second;
}

}  // namespace tilth
