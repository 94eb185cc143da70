// An execution provider for ONNX Runtime that runs Tilth packages: a library that a program registers with ONNX
// Runtime (see docs/onnxruntime.md).
//
// The session option `packages` lists the packages. If one was compiled from the session's model, the nodes between
// its inputs and outputs become one node. The other providers keep all other nodes.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "identity.h"
#include "kernel.h"
#include "match.h"
#include "ort.h"
#include "package.h"

#ifndef TILTH_VERSION
#define TILTH_VERSION "0.0.0"
#endif

namespace tilth {
namespace {

constexpr const char *provider_name = "TilthExecutionProvider";
constexpr std::size_t most_packages = 64;
constexpr int most_threads = 1024;

// attempt converts exceptions to a status of ONNX Runtime.
template <typename F>
OrtStatus *attempt(F &&run) noexcept {
  try {
    run();
    return nullptr;
  } catch (const Ort::Exception &error) {
    return Ort::GetApi().CreateStatus(error.GetOrtErrorCode(), error.what());
  } catch (const std::exception &error) {
    return Ort::GetApi().CreateStatus(ORT_EP_FAIL, error.what());
  } catch (...) {
    return Ort::GetApi().CreateStatus(ORT_EP_FAIL, "it failed for a reason that it does not tell");
  }
}

// Options are session entries under ep.<provider name in lower case>.
std::string option(const Ort::ConstSessionOptions &options, const std::string &name, const std::string &otherwise) {
  std::string key = std::string("ep.") + provider_name + "." + name;
  std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return options.HasConfigEntry(key.c_str()) ? options.GetConfigEntry(key.c_str()) : otherwise;
}

int to_threads(const std::string &text) {
  char *end = nullptr;
  const long n = std::strtol(text.c_str(), &end, 10);
  if (text.empty() || *end != 0 || n < 0 || n > most_threads)
    throw std::runtime_error("threads is \"" + text + "\": give a number from 1 to " + std::to_string(most_threads) +
                             ", or 0 for as many as the package was compiled for");
  return static_cast<int>(n);
}

std::string to_digest(const std::string &text) {
  if (!text.empty() && (text.size() != 64 || text.find_first_not_of("0123456789abcdef") != std::string::npos))
    throw std::runtime_error("model_sha256 is \"" + text + "\": give the 64 lower-case hex digits of the model's SHA-256");
  return text;
}

// Computing is the OrtNodeComputeInfo of a package.
struct Computing : OrtNodeComputeInfo {
  explicit Computing(Kernel kernel) : OrtNodeComputeInfo{}, kernel_(std::move(kernel)) {
    ort_version_supported = ORT_API_VERSION;
    CreateState = [](OrtNodeComputeInfo *self, OrtNodeComputeContext *, void **state) -> OrtStatus * {
      *state = self;
      return nullptr;
    };
    Compute = [](OrtNodeComputeInfo *self, void *, OrtKernelContext *context) -> OrtStatus * {
      return attempt([&] { static_cast<Computing *>(self)->kernel_.run(Ort::KernelContext(context)); });
    };
    ReleaseState = [](OrtNodeComputeInfo *, void *) {};
  }

 private:
  Kernel kernel_;
};

// Provider is the provider in one session.
class Provider : public OrtEp {
 public:
  Provider(const Ort::ConstSessionOptions &options, const OrtLogger *logger) : OrtEp{}, logger_(logger) {
    ort_version_supported = ORT_API_VERSION;
    GetName = [](const OrtEp *) noexcept -> const char * { return provider_name; };
    GetCapability = [](OrtEp *self, const OrtGraph *graph, OrtEpGraphSupportInfo *support) noexcept -> OrtStatus * {
      return attempt([&] { static_cast<Provider *>(self)->choose(Ort::ConstGraph(graph), support); });
    };
    Compile = [](OrtEp *self, const OrtGraph **, const OrtNode **nodes, std::size_t count, OrtNodeComputeInfo **infos, OrtNode **) noexcept -> OrtStatus * {
      return attempt([&] {
        std::vector<std::unique_ptr<Computing>> made;
        for (std::size_t i = 0; i < count; i++) made.push_back(static_cast<Provider *>(self)->compile(Ort::ConstNode(nodes[i])));
        for (std::size_t i = 0; i < count; i++) infos[i] = made[i].release();
      });
    };
    ReleaseNodeComputeInfos = [](OrtEp *, OrtNodeComputeInfo **infos, std::size_t count) noexcept {
      for (std::size_t i = 0; i < count; i++) delete static_cast<Computing *>(infos[i]);
    };

    threads_ = to_threads(option(options, "threads", "0"));
    model_sha256_ = to_digest(option(options, "model_sha256", ""));
    std::istringstream paths(option(options, "packages", ""));
    for (std::string path; std::getline(paths, path, ';');) {
      if (packages_.size() >= most_packages) throw std::runtime_error("packages names more than " + std::to_string(most_packages) + " files");
      if (!path.empty()) packages_.push_back(std::make_shared<Package>(path));
    }
    if (packages_.empty()) throw std::runtime_error(std::string(provider_name) + " needs the option packages: paths of packages, with ; between them");
  }

 private:
  // choose claims the nodes of each package of this model.
  void choose(const Ort::ConstGraph &graph, OrtEpGraphSupportInfo *support) {
    if (graph.GetParentNode()) return;  // packages never compute subgraphs
    Identity identity(graph.GetModelPath(), model_sha256_);
    std::vector<std::size_t> taken;
    for (const auto &package : packages_) {
      try {
        identity.check(*package);
        const auto nodes = nodes_of(*package, graph);
        std::vector<const OrtNode *> list;
        for (const auto &node : nodes) {
          if (std::find(taken.begin(), taken.end(), node.GetId()) != taken.end()) throw Mismatch("another package computes some of its nodes");
          list.push_back(node);
        }
        for (const auto &node : nodes) taken.push_back(node.GetId());
        OrtNodeFusionOptions fusion{};
        fusion.ort_version_supported = ORT_API_VERSION;
        fusion.drop_constant_initializers = true;  // the package contains them
        Ort::ThrowOnError(Ort::GetEpApi().EpGraphSupportInfo_AddNodesToFuse(support, list.data(), list.size(), &fusion));
        used_.push_back(package);
      } catch (const Mismatch &why) {
        warn(package->path() + " is not used: " + why.what());
      }
    }
  }

  // compile opens the package of a fused node.
  std::unique_ptr<Computing> compile(const Ort::ConstNode &node) const {
    const auto names = [](const std::vector<Ort::ConstValueInfo> &values) {
      std::vector<std::string> list;
      for (const auto &value : values) list.push_back(value ? value.GetName() : "");
      return list;
    };
    const auto inputs = names(node.GetInputs()), outputs = names(node.GetOutputs());
    for (const auto &package : used_) {
      const auto has = [](const std::vector<std::string> &list, const tilth_tensor *tensor) {
        return std::find(list.begin(), list.end(), tensor->name) != list.end();
      };
      const auto &in = package->inputs(), &out = package->outputs();
      if (std::all_of(in.begin(), in.end(), [&](const tilth_tensor *t) { return has(inputs, t); }) &&
          std::all_of(out.begin(), out.end(), [&](const tilth_tensor *t) { return has(outputs, t); }))
        return std::make_unique<Computing>(Kernel(package, threads_, inputs, outputs));
    }
    throw std::runtime_error("no package computes the node " + node.GetName());
  }

  void warn(const std::string &message) const {
    Ort::Status(Ort::GetApi().Logger_LogMessage(logger_, ORT_LOGGING_LEVEL_WARNING, message.c_str(), ORT_FILE, __LINE__, "Tilth"));
  }

  const OrtLogger *logger_;
  int threads_ = 0;
  std::string model_sha256_;
  std::vector<std::shared_ptr<const Package>> packages_, used_;
};

// Factory creates a provider for each session.
struct Factory : OrtEpFactory {
  Factory() : OrtEpFactory{} {
    ort_version_supported = ORT_API_VERSION;
    GetName = [](const OrtEpFactory *) noexcept -> const char * { return provider_name; };
    GetVendor = [](const OrtEpFactory *) noexcept -> const char * { return "Tilth"; };
    GetVendorId = [](const OrtEpFactory *) noexcept -> std::uint32_t { return 0; };
    GetVersion = [](const OrtEpFactory *) noexcept -> const char * { return TILTH_VERSION; };
    GetSupportedDevices = [](OrtEpFactory *self, const OrtHardwareDevice *const *devices, std::size_t count, OrtEpDevice **found,
                             std::size_t most, std::size_t *n) noexcept -> OrtStatus * {
      *n = 0;
      for (std::size_t i = 0; i < count && *n < most; i++) {
        if (Ort::GetApi().HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
        if (OrtStatus *status = Ort::GetEpApi().CreateEpDevice(self, devices[i], nullptr, nullptr, &found[*n])) {
          while (*n > 0) Ort::GetEpApi().ReleaseEpDevice(found[--*n]);
          return status;
        }
        ++*n;
      }
      return nullptr;
    };
    CreateEp = [](OrtEpFactory *, const OrtHardwareDevice *const *, const OrtKeyValuePairs *const *, std::size_t,
                  const OrtSessionOptions *options, const OrtLogger *logger, OrtEp **provider) noexcept -> OrtStatus * {
      return attempt([&] { *provider = new Provider(Ort::ConstSessionOptions(options), logger); });
    };
    ReleaseEp = [](OrtEpFactory *, OrtEp *provider) noexcept { delete static_cast<Provider *>(provider); };
    // Tensors are in host memory. Some versions of the runtime call these functions without checking for null.
    CreateAllocator = [](OrtEpFactory *, const OrtMemoryInfo *, const OrtKeyValuePairs *, OrtAllocator **allocator) noexcept -> OrtStatus * {
      *allocator = nullptr;
      return nullptr;
    };
    ReleaseAllocator = [](OrtEpFactory *, OrtAllocator *) noexcept {};
    CreateDataTransfer = [](OrtEpFactory *, OrtDataTransferImpl **transfer) noexcept -> OrtStatus * {
      *transfer = nullptr;
      return nullptr;
    };
    IsStreamAware = [](const OrtEpFactory *) noexcept { return false; };
  }
};

}  // namespace
}  // namespace tilth

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT OrtStatus *CreateEpFactories(const char *, const OrtApiBase *base, const OrtLogger *, OrtEpFactory **factories, std::size_t most,
                                    std::size_t *count) {
  *count = 0;
  const OrtApi *api = base->GetApi(ORT_API_VERSION);
  if (!api) return nullptr;  // the runtime is too old for any of its functions to be called
  Ort::InitApi(api);
  if (most < 1) return api->CreateStatus(ORT_INVALID_ARGUMENT, "there is no room for a factory");
  return tilth::attempt([&] {
    factories[0] = new tilth::Factory();
    *count = 1;
  });
}

EXPORT OrtStatus *ReleaseEpFactory(OrtEpFactory *factory) {
  delete static_cast<tilth::Factory *>(factory);
  return nullptr;
}
