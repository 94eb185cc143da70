// Runs a model in two sessions of ONNX Runtime, in turns: one with the provider and its packages, and one without.
//
//   session PROVIDER.so MODEL.onnx PACKAGES RUNS THREADS [NAME=EXTENT...]
//
// Inputs are drawn at random; an extent that the model leaves open is that of its NAME, or 1. Prints the largest
// relative difference of an output, and medians of the times of a run. The environment says more:
//
//   ALONE=1            packages must compute the whole model
//   MEMORY=1           sessions get the model in memory
//   MODEL_SHA256=HEX   the option model_sha256
//   COST=1             the package also runs by the C interface, in turns with its session: what the session adds
#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "../package.h"

namespace {

constexpr const char *provider_name = "TilthExecutionProvider";

struct Input {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<char> bytes;
  ONNXTensorElementDataType type;
};

template <typename T, typename D>
void draw(std::vector<char> &bytes, std::size_t count, D distribution, std::mt19937 &random) {
  bytes.resize(count * sizeof(T));
  for (std::size_t i = 0; i < count; i++) {
    const T value = static_cast<T>(distribution(random));
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

std::vector<Input> draw_inputs(const Ort::Session &session, const std::map<std::string, std::int64_t> &extents) {
  std::mt19937 random(1);
  std::vector<Input> inputs;
  Ort::AllocatorWithDefaultOptions allocator;
  for (std::size_t i = 0; i < session.GetInputCount(); i++) {
    Input input{session.GetInputNameAllocated(i, allocator).get(), {}, {}, ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED};
    const auto type = session.GetInputTypeInfo(i);
    const auto info = type.GetTensorTypeAndShapeInfo();
    input.type = info.GetElementType();
    input.shape = info.GetShape();
    std::vector<const char *> names(input.shape.size());
    info.GetSymbolicDimensions(names.data(), names.size());
    std::size_t count = 1;
    for (std::size_t axis = 0; axis < names.size(); axis++) {
      if (input.shape[axis] < 0) {
        const auto found = extents.find(names[axis]);
        input.shape[axis] = found == extents.end() ? 1 : found->second;
      }
      count *= static_cast<std::size_t>(input.shape[axis]);
    }
    switch (input.type) {
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: draw<float>(input.bytes, count, std::normal_distribution<float>(), random); break;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: draw<std::int64_t>(input.bytes, count, std::uniform_int_distribution<int>(0, 1), random); break;
      case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: draw<std::int32_t>(input.bytes, count, std::uniform_int_distribution<int>(0, 1), random); break;
      default: throw std::runtime_error("input " + input.name + " is of a type that is not drawn here");
    }
    inputs.push_back(std::move(input));
  }
  return inputs;
}

struct Run {
  Ort::Session session;
  std::vector<std::string> outputs;
  std::vector<double> seconds;

  Run(const Ort::Env &env, const std::string &model, const Ort::SessionOptions &options) : session(open(env, model, options)) {
    Ort::AllocatorWithDefaultOptions allocator;
    for (std::size_t i = 0; i < session.GetOutputCount(); i++) outputs.emplace_back(session.GetOutputNameAllocated(i, allocator).get());
  }

  std::vector<Ort::Value> once(std::vector<Input> &inputs) {
    const Ort::MemoryInfo memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
    std::vector<const char *> in, out;
    std::vector<Ort::Value> values;
    for (Input &input : inputs) {
      in.push_back(input.name.c_str());
      values.push_back(Ort::Value::CreateTensor(memory, input.bytes.data(), input.bytes.size(), input.shape.data(), input.shape.size(), input.type));
    }
    for (const std::string &name : outputs) out.push_back(name.c_str());
    const auto start = std::chrono::steady_clock::now();
    auto results = session.Run(Ort::RunOptions{nullptr}, in.data(), values.data(), values.size(), out.data(), out.size());
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return results;
  }

  static Ort::Session open(const Ort::Env &env, const std::string &model, const Ort::SessionOptions &options) {
    if (!std::getenv("MEMORY")) return Ort::Session(env, model.c_str(), options);
    std::ifstream file(model, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return Ort::Session(env, bytes.data(), bytes.size(), options);
  }
};

double median(std::vector<double> list) {
  std::sort(list.begin(), list.end());
  return list[list.size() / 2];
}

// cost runs a package by the C interface in turns with its session, each after the other, and prints what the session
// takes more, and how much of that are the copies of inputs and outputs.
void cost(const std::string &path, int threads, Run &session, std::vector<Input> &inputs, int runs) {
  const tilth::Package package(path);
  const auto model = package.open(threads);
  const tilth::Api &api = package.api();
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto since = [&](auto start) { return std::chrono::duration<double>(now() - start).count(); };
  std::vector<char> taken;
  const auto copy = [&] {
    const auto start = now();
    for (std::size_t i = 0; i < inputs.size(); i++) std::memcpy(api.input(model.get(), static_cast<int>(i)), inputs[i].bytes.data(), inputs[i].bytes.size());
    for (std::size_t i = 0; i < package.outputs().size(); i++) {
      taken.resize(static_cast<std::size_t>(package.outputs()[i]->bytes));
      std::memcpy(taken.data(), api.output(model.get(), static_cast<int>(i)), taken.size());
    }
    return since(start);
  };
  std::vector<double> alone, copies, more;
  session.seconds.clear();
  for (int i = 0; i < 1 + runs; i++) {
    session.once(inputs);
    const double copied = copy();
    const auto start = now();
    api.run(model.get());
    const double ran = since(start);
    if (i == 0) {
      session.seconds.clear();
      continue;
    }
    alone.push_back(ran), copies.push_back(copied), more.push_back(session.seconds.back() - ran);
  }
  std::printf("session %.6f ms, package %.6f ms, more %.1f us, of which copies %.1f us\n", median(session.seconds) * 1e3, median(alone) * 1e3,
              median(more) * 1e6, median(copies) * 1e6);
}

// The largest difference of an element, relative to the largest element of its output.
double difference(const std::vector<Ort::Value> &got, const std::vector<Ort::Value> &want) {
  double worst = 0;
  for (std::size_t k = 0; k < want.size(); k++) {
    const auto info = want[k].GetTensorTypeAndShapeInfo();
    if (info.GetShape() != got[k].GetTensorTypeAndShapeInfo().GetShape()) throw std::runtime_error("an output has another shape");
    if (info.GetElementType() != ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT) {
      if (std::memcmp(got[k].GetTensorRawData(), want[k].GetTensorRawData(), want[k].GetTensorSizeInBytes()) != 0)
        throw std::runtime_error("an output that is not of floats differs");
      continue;
    }
    const float *a = got[k].GetTensorData<float>(), *b = want[k].GetTensorData<float>();
    double largest = 0, apart = 0;
    for (std::size_t i = 0; i < info.GetElementCount(); i++) {
      largest = std::max(largest, std::fabs(static_cast<double>(b[i])));
      apart = std::max(apart, std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
      if (std::isnan(a[i]) != std::isnan(b[i])) throw std::runtime_error("one of the outputs is not a number");
    }
    if (largest > 0) worst = std::max(worst, apart / largest);
  }
  return worst;
}

void compare(int argc, char **argv) {
  if (argc < 6) throw std::runtime_error("usage: session PROVIDER.so MODEL.onnx PACKAGES RUNS THREADS [NAME=EXTENT...]");
  const std::string library = argv[1], model = argv[2], packages = argv[3];
  const int runs = std::atoi(argv[4]), threads = std::atoi(argv[5]);
  std::map<std::string, std::int64_t> extents;
  for (int i = 6; i < argc; i++) {
    const std::string text = argv[i];
    extents[text.substr(0, text.find('='))] = std::atoll(text.c_str() + text.find('=') + 1);
  }

  Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "test");
  env.RegisterExecutionProviderLibrary("tilth", library);
  {
    std::vector<Ort::ConstEpDevice> devices;
    for (const auto &device : env.GetEpDevices())
      if (std::strcmp(device.EpName(), provider_name) == 0) devices.push_back(device);
    if (devices.empty()) throw std::runtime_error("the provider has no device");

    Ort::SessionOptions plain, ours;
    for (Ort::SessionOptions *options : {&plain, &ours}) {
      options->SetIntraOpNumThreads(threads);
      options->AddConfigEntry("session.intra_op.allow_spinning", "0");  // neither disturbs the other between its runs
    }
    std::unordered_map<std::string, std::string> given{{"packages", packages}, {"threads", std::to_string(threads)}};
    if (const char *digest = std::getenv("MODEL_SHA256")) given["model_sha256"] = digest;
    ours.AppendExecutionProvider_V2(env, devices, given);
    if (std::getenv("ALONE")) ours.AddConfigEntry("session.disable_cpu_ep_fallback", "1");
    Run without(env, model, plain), with(env, model, ours);
    auto inputs = draw_inputs(without.session, extents);
    double worst = 0;
    for (int i = 0; i < 1 + runs; i++) {
      const auto want = without.once(inputs);
      const auto got = with.once(inputs);
      worst = std::max(worst, difference(got, want));
      if (i == 0) without.seconds.clear(), with.seconds.clear();
    }
    if (runs > 0) std::printf("without %.6f ms, with %.6f ms, ", median(without.seconds) * 1e3, median(with.seconds) * 1e3);
    std::printf("difference %.3g\n", worst);
    if (std::getenv("COST")) cost(packages, threads, with, inputs, runs);
  }
  env.UnregisterExecutionProviderLibrary("tilth");
}

}  // namespace

int main(int argc, char **argv) {
  try {
    compare(argc, argv);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
