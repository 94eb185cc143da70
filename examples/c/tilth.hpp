// Packages from C++17: owns a model, and throws what goes wrong. Include tilth.h of the package before, or NAME.h.
#ifndef TILTH_HPP
#define TILTH_HPP
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "tilth.h"

namespace tilth {

class Model {
public:
  // Opens a model of the package whose table it is: tilth_api(), or NAME_api() of one with a prefix.
  Model(const struct tilth_api *api, const std::string &weights, tilth_options options = {})
      : api(api), model(nullptr, api->close) {
    options.size = sizeof options;
    model.reset(api->open_with(weights.c_str(), 0, &options));
    if (!model) throw std::runtime_error(api->last_error());
  }

  // Copies the inputs, runs the model and copies the outputs, in one step that threads which share it take by turns.
  // Each input has the bytes of its tensor.
  std::vector<std::vector<char>> run(const std::vector<std::vector<char>> &inputs) {
    std::lock_guard<Model> held(*this);
    if (inputs.size() != size_t(api->input_count())) throw std::invalid_argument("want one array for each input");
    for (int32_t k = 0; k < api->input_count(); k++) {
      const tilth_tensor *t = api->input_tensor(k);
      if (inputs[k].size() != size_t(t->bytes))
        throw std::invalid_argument(std::string(t->name) + " has another size");
      std::memcpy(api->input(get(), k), inputs[k].data(), inputs[k].size());
    }
    api->run(get());
    if (api->last_error()[0]) throw std::runtime_error(api->last_error());
    std::vector<std::vector<char>> outputs;
    for (int32_t k = 0; k < api->output_count(); k++) {
      const char *at = static_cast<const char *>(api->output(get(), k));
      outputs.emplace_back(at, at + api->output_tensor(k)->bytes);
    }
    return outputs;
  }

  // Holds the model for several calls of the interface in C, by std::lock_guard.
  void lock() { api->lock(get()); }
  void unlock() { api->unlock(get()); }

  tilth_model *get() const { return model.get(); }

  const struct tilth_api *const api;

private:
  std::unique_ptr<tilth_model, void (*)(tilth_model *)> model;
};

}  // namespace tilth
#endif
