// Serves ONNX Runtime with its oneDNN provider over standard input and output; see contender.go for the requests.
//
//   onnxruntime MODEL.onnx THREADS [NAME TYPE SHAPE FILE ...]
//
// Each input has a name, a type such as float32, a shape such as 1x3x224x224 (empty for a scalar), and a file of raw
// data.
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <list>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <onnxruntime/dnnl_provider_options.h>
#include <onnxruntime/onnxruntime_cxx_api.h>

namespace {

const std::map<std::string, ONNXTensorElementDataType> types = {
	{"float32", ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT}, {"float64", ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE},
	{"int8", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8},     {"int16", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16},
	{"int32", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32},   {"int64", ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64},
	{"uint8", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8},   {"uint16", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16},
	{"uint32", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32}, {"uint64", ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64},
	{"bool", ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL},
};

const std::string &name_of(ONNXTensorElementDataType type) {
	for (const auto &[name, t] : types)
		if (t == type)
			return name;
	throw std::runtime_error("an output has type " + std::to_string(int(type)));
}

// Returns a text as a JSON string.
std::string quoted(const std::string &text) {
	std::string out = "\"";
	for (unsigned char c : text) {
		char escape[8];
		std::snprintf(escape, sizeof escape, c < ' ' || c == '"' || c == '\\' ? "\\u%04x" : "%c", c);
		out += escape;
	}
	return out + "\"";
}

// Returns the process's peak resident memory in bytes.
int64_t peak_memory() {
	std::ifstream status("/proc/self/status");
	for (std::string line; std::getline(status, line);)
		if (line.rfind("VmHWM:", 0) == 0)
			return std::stoll(line.substr(6)) << 10;
	return 0;
}

std::vector<int64_t> shape_of(const std::string &text) {
	std::vector<int64_t> shape;
	std::istringstream words(text);
	for (std::string word; std::getline(words, word, 'x');)
		shape.push_back(std::stoll(word));
	return shape;
}

Ort::Session open(const Ort::Env &env, const char *model, int threads) {
	Ort::SessionOptions options;
	options.SetIntraOpNumThreads(threads).SetInterOpNumThreads(1).SetGraphOptimizationLevel(ORT_ENABLE_ALL);
	const OrtApi &api = Ort::GetApi();
	OrtDnnlProviderOptions *onednn = nullptr;
	Ort::ThrowOnError(api.CreateDnnlProviderOptions(&onednn));
	const char *keys[] = {"use_arena"}, *values[] = {"1"};
	Ort::ThrowOnError(api.UpdateDnnlProviderOptions(onednn, keys, values, 1));
	Ort::ThrowOnError(api.SessionOptionsAppendExecutionProvider_Dnnl(options, onednn));
	api.ReleaseDnnlProviderOptions(onednn);
	return Ort::Session(env, model, options);
}

class Server {
  public:
	Server(const char *model, int threads, int words, char **inputs) : before(peak_memory()), session(open(env, model, threads)) {
		Ort::AllocatorWithDefaultOptions allocator;
		for (int k = 0; k < words; k += 4)
			read(inputs + k);
		for (size_t k = 0; k < session.GetOutputCount(); k++)
			outputs.push_back(session.GetOutputNameAllocated(k, allocator).get());
		run();
	}

	void serve() {
		std::printf("ready\n");
		std::fflush(stdout);
		for (std::string line; std::getline(std::cin, line); std::fflush(stdout)) {
			std::istringstream words(line);
			std::string verb, argument;
			words >> verb >> argument;
			if (verb == "run")
				time(std::stoi(argument));
			else if (verb == "outputs")
				write(argument);
			else if (verb == "memory")
				std::printf("{\"Peak\": %" PRId64 ", \"Before\": %" PRId64 "}\n", peak_memory(), before);
			else
				throw std::runtime_error("unknown question " + line);
		}
	}

  private:
	void read(char **words) {
		const std::vector<int64_t> shape = shape_of(words[2]);
		std::ifstream file(words[3], std::ios::binary);
		names.push_back(words[0]);
		auto &bytes = contents.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
		const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
		values.push_back(Ort::Value::CreateTensor(memory, bytes.data(), bytes.size(), shape.data(), shape.size(), types.at(words[1])));
	}

	void run() {
		std::vector<const char *> in, out;
		for (const std::string &name : names)
			in.push_back(name.c_str());
		for (const std::string &name : outputs)
			out.push_back(name.c_str());
		last = session.Run(Ort::RunOptions{nullptr}, in.data(), values.data(), values.size(), out.data(), out.size());
	}

	void time(int count) {
		using namespace std::chrono;
		run();
		const char *before = "[";
		for (int k = 0; k < count; k++, before = ", ") {
			const auto began = steady_clock::now();
			run();
			std::printf("%s%.6f", before, duration<double, std::milli>(steady_clock::now() - began).count());
		}
		std::printf("%s]\n", count > 0 ? "" : "[");
	}

	void write(const std::string &dir) {
		std::string answer;
		for (size_t k = 0; k < last.size(); k++) {
			const auto info = last[k].GetTensorTypeAndShapeInfo();
			const std::string path = dir + "/onednn" + std::to_string(k);
			std::ofstream(path, std::ios::binary).write(static_cast<const char *>(last[k].GetTensorRawData()), last[k].GetTensorSizeInBytes());
			std::string shape;
			for (int64_t e : info.GetShape())
				shape += (shape.empty() ? "" : ", ") + std::to_string(e);
			answer += (k ? ", " : "") + ("{\"name\": " + quoted(outputs[k])) + ", \"dtype\": " + quoted(name_of(info.GetElementType())) +
				", \"shape\": [" + shape + "], \"file\": " + quoted(path) + "}";
		}
		std::printf("[%s]\n", answer.c_str());
	}

	const int64_t before;
	Ort::Env env{ORT_LOGGING_LEVEL_ERROR};
	Ort::Session session;
	std::vector<std::string> names, outputs;
	std::list<std::vector<char>> contents; // keeps the inputs' data alive
	std::vector<Ort::Value> values, last;
};

} // namespace

// Errors go to standard output, like answers, because the library writes much to standard error. The process exits
// without destructors, because some of them crash.
int main(int argc, char **argv) {
	int status = 0;
	try {
		if (argc < 3 || (argc - 3) % 4 != 0)
			throw std::runtime_error("want: onnxruntime MODEL.onnx THREADS [NAME TYPE SHAPE FILE ...]");
		(new Server(argv[1], std::stoi(argv[2]), argc - 3, argv + 3))->serve();
	} catch (const std::exception &e) {
		std::printf("%s\n", e.what());
		status = 1;
	}
	std::fflush(stdout);
	std::_Exit(status);
}
