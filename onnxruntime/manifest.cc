#include "manifest.h"

#include <cstdlib>
#include <stdexcept>

namespace tilth {
namespace {

[[noreturn]] void damaged() { throw std::runtime_error("its manifest is damaged"); }

// A character in UTF-8.
std::string utf8(std::uint32_t c) {
  const auto byte = [](std::uint32_t b) { return static_cast<char>(b); };
  if (c < 0x80) return {byte(c)};
  if (c < 0x800) return {byte(0xc0 | c >> 6), byte(0x80 | (c & 0x3f))};
  return {byte(0xe0 | c >> 12), byte(0x80 | (c >> 6 & 0x3f)), byte(0x80 | (c & 0x3f))};
}

// quoted parses a string starting at its quotation mark. Tilth does not escape characters beyond 16 bits.
std::string quoted(const std::string &json, std::size_t at) {
  std::string got;
  for (at++; at < json.size() && json[at] != '"'; at++) {
    if (json[at] != '\\') {
      got += json[at];
      continue;
    }
    if (++at >= json.size()) damaged();
    switch (json[at]) {
      case 'b': got += '\b'; break;
      case 'f': got += '\f'; break;
      case 'n': got += '\n'; break;
      case 'r': got += '\r'; break;
      case 't': got += '\t'; break;
      case 'u': got += utf8(static_cast<std::uint32_t>(std::strtoul(json.substr(at + 1, 4).c_str(), nullptr, 16))), at += 4; break;
      default: got += json[at];
    }
  }
  if (at >= json.size()) damaged();
  return got;
}

// member returns the start of the value of a member with the given indentation, within a part of the manifest.
std::size_t member(const std::string &manifest, const std::string &indent, const std::string &key, std::size_t from, std::size_t end) {
  const std::string start = "\n" + indent + "\"" + key + "\": ";
  const auto at = manifest.find(start, from);
  return at < end ? at + start.size() : std::string::npos;
}

}  // namespace

std::string text(const std::string &manifest, const std::string &key) {
  const auto at = member(manifest, "  ", key, 0, manifest.size());
  if (at == std::string::npos || manifest[at] != '"') return "";
  return manifest.substr(at + 1, manifest.find('"', at + 1) - at - 1);
}

std::vector<std::string> features(const std::string &manifest) {
  const auto at = member(manifest, "  ", "features", 0, manifest.size());
  if (at == std::string::npos) return {};
  const auto end = manifest.find(']', at);
  std::vector<std::string> list;
  for (auto from = manifest.find('"', at); from < end;) {
    const auto to = manifest.find('"', from + 1);
    if (to == std::string::npos) break;
    list.push_back(manifest.substr(from + 1, to - from - 1));
    from = manifest.find('"', to + 1);
  }
  return list;
}

std::vector<DataFile> data_files(const std::string &manifest) {
  std::vector<DataFile> list;
  const auto at = member(manifest, "  ", "model_data", 0, manifest.size());
  if (at == std::string::npos) return list;
  const auto end = manifest.find("\n  ]", at);
  if (end == std::string::npos) damaged();
  for (auto from = at; (from = manifest.find("\n   {", from)) < end; from++) {
    const auto close = manifest.find("\n   }", from);
    const auto name = member(manifest, "    ", "name", from, close), bytes = member(manifest, "    ", "size_bytes", from, close),
               sha256 = member(manifest, "    ", "sha256", from, close);
    if (name == std::string::npos || bytes == std::string::npos || sha256 == std::string::npos) damaged();
    list.push_back({quoted(manifest, name), std::atoll(manifest.c_str() + bytes), quoted(manifest, sha256)});
  }
  return list;
}

}  // namespace tilth
