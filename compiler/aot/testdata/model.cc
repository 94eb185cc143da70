/* Runs a package from C++ on the input of standard input, by examples/c/tilth.hpp. */
#include "tilth.hpp"

#include <cstdio>

int main(int, char **argv) {
  try {
    tilth::Model missing(tilth_api(), "/nowhere");
    return 3;
  } catch (const std::runtime_error &e) {
    if (std::string(e.what()).find("/nowhere") == std::string::npos) return 4;
  }
  tilth_options one{};
  one.threads = 1;
  tilth::Model m(tilth_api(), argv[1], one);
  if (m.api->threads(m.get()) != 1 || !TILTH_HAS(m.api, integer_peak)) return 5;
  std::vector<char> input(m.api->input_tensor(0)->bytes);
  if (std::fread(input.data(), input.size(), 1, stdin) != 1) return 2;
  for (const std::vector<char> &output : m.run({input})) std::fwrite(output.data(), output.size(), 1, stdout);
  return 0;
}
