// Files opened for reading.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace tilth {

[[noreturn]] inline void fail(const std::string &what, const std::string &why) { throw std::runtime_error(what + ": " + why); }

// File owns a descriptor. It throws std::runtime_error with its path in the message.
class File {
 public:
  // Opens a regular file without blocking on a pipe.
  explicit File(const std::string &path) : File(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), path) {
    struct stat info {};
    if (fd_ < 0 || fstat(fd_, &info) != 0) fail(path, std::strerror(errno));
    if (!S_ISREG(info.st_mode)) fail(path, "it is no file");
    size_ = info.st_size;
  }
  File(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File &) = delete;
  File &operator=(const File &) = delete;
  int fd() const { return fd_; }
  std::int64_t size() const { return size_; }
  int release() { return std::exchange(fd_, -1); }

  // Reads exactly the given number of bytes at an offset.
  void read(void *to, std::int64_t bytes, std::int64_t offset) const {
    for (auto *at = static_cast<char *>(to); bytes > 0;) {
      const ssize_t n = pread(fd_, at, static_cast<std::size_t>(bytes), offset);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(path_, std::strerror(errno));
      if (n == 0) fail(path_, "it is cut short");
      at += n, bytes -= n, offset += n;
    }
  }

 private:
  int fd_;
  std::int64_t size_ = 0;
  std::string path_;
};

}  // namespace tilth
