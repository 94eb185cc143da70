#include "processor.h"

#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace tilth {
namespace {

// The line of /proc/cpuinfo with the flags, and flags named differently from features.
#if defined(__x86_64__)
constexpr const char *line_name = "flags";
const std::map<std::string, std::string> other_names = {
    {"sse3", "pni"},
    {"sse4.1", "sse4_1"},
    {"sse4.2", "sse4_2"},
    {"bmi", "bmi1"},
    {"lzcnt", "abm"},
    {"avxvnni", "avx_vnni"},
    {"avx512vbmi2", "avx512_vbmi2"},
    {"avx512vnni", "avx512_vnni"},
    {"avx512bf16", "avx512_bf16"},
    {"avx512fp16", "avx512_fp16"},
    {"amx-tile", "amx_tile"},
    {"amx-int8", "amx_int8"},
    {"amx-bf16", "amx_bf16"},
    {"amx-fp16", "amx_fp16"},
};
#elif defined(__aarch64__)
constexpr const char *line_name = "Features";
const std::map<std::string, std::string> other_names = {{"neon", "asimd"}, {"lse", "atomics"}, {"fp16", "asimdhp"}, {"dotprod", "asimddp"}};
#else
constexpr const char *line_name = "Features";
const std::map<std::string, std::string> other_names = {{"idiv", "idiva"}};
#endif

// Lengths of SVE registers, which belong to a process: /proc/cpuinfo lacks them, and a package checks its own.
const std::set<std::string> lengths = {"sve256", "sve512", "sve1024"};

std::set<std::string> flags() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != line_name) continue;
    std::set<std::string> found;
    while (words >> word) found.insert(word);
    if (found.count("avx2") > 0) found.insert("abm");  // some kernels omit it, but every processor with AVX2 has it
    return found;
  }
  return {};
}

}  // namespace

std::vector<std::string> lacking(const std::vector<std::string> &features) {
  const auto has = flags();
  std::vector<std::string> missing;
  if (has.empty()) return missing;
  for (const auto &feature : features) {
    if (lengths.count(feature) > 0) continue;
    const auto other = other_names.find(feature);
    if (has.count(other == other_names.end() ? feature : other->second) == 0) missing.push_back(feature);
  }
  return missing;
}

}  // namespace tilth
