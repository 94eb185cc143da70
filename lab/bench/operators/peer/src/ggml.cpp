// Times products of ggml with float32 activations and optionally block-quantised weights.
#include "talk.h"

#include <cstdlib>
#include <cstring>
#include <ggml-backend.h>
#include <ggml.h>
#include <memory>

namespace {

using Context = std::unique_ptr<ggml_context, decltype(&ggml_free)>;
using Backend = std::unique_ptr<ggml_backend, decltype(&ggml_backend_free)>;
using Buffer = std::unique_ptr<ggml_backend_buffer, decltype(&ggml_backend_buffer_free)>;

ggml_type type(const std::string &name) {
	for (int t = 0; t < GGML_TYPE_COUNT; t++)
		if (const char *known = ggml_type_name(ggml_type(t)); known && name == known)
			return ggml_type(t);
	throw std::runtime_error("no such element type: " + name);
}

// processor returns the fastest backend library that this machine supports, with a number of threads.
Backend processor(int threads) {
	ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
	if (!device)
		throw std::runtime_error("ggml has no library for this processor");
	Backend backend(ggml_backend_dev_init(device, nullptr), ggml_backend_free);
	auto set = reinterpret_cast<ggml_backend_set_n_threads_t>(
		ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_set_n_threads"));
	if (!backend || !set)
		throw std::runtime_error("ggml's library for this processor does not start");
	set(backend.get(), threads);
	return backend;
}

class Library {
  public:
	explicit Library(int threads) : backend(processor(threads)) {}

	// type of the weights, rows, columns, depth
	talk::Answer prepare(std::istringstream &words) {
		std::string kind, element;
		int64_t rows, columns, depth;
		if (!(words >> kind >> element >> rows >> columns >> depth) || kind != "product")
			throw std::runtime_error("only products, of 3 numbers");
		context.reset(ggml_init({1 << 20, nullptr, true}));
		ggml_tensor *weights = ggml_new_tensor_2d(context.get(), type(element), depth, columns);
		ggml_tensor *operand = ggml_new_tensor_2d(context.get(), GGML_TYPE_F32, depth, rows);
		ggml_cgraph *graph = ggml_new_graph(context.get());
		ggml_build_forward_expand(graph, ggml_mul_mat(context.get(), weights, operand));
		buffer.reset(ggml_backend_alloc_ctx_tensors(context.get(), backend.get()));
		if (!buffer)
			throw std::runtime_error("no memory");
		fill(weights);
		fill(operand);
		auto execute = [this, graph] {
			if (ggml_backend_graph_compute(backend.get(), graph) != GGML_STATUS_SUCCESS)
				throw std::runtime_error("the product failed");
		};
		return {ggml_backend_name(backend.get()), execute, {{static_cast<const char *>(weights->data), ggml_nbytes(weights)}}};
	}

  private:
	Backend backend;
	Context context{nullptr, ggml_free};
	Buffer buffer{nullptr, ggml_backend_buffer_free};
	talk::Random random;

	void fill(ggml_tensor *t) {
		const int64_t row = t->ne[0], rows = ggml_nrows(t);
		std::vector<float> values(row * rows);
		for (float &v : values)
			v = random.unit();
		std::vector<char> bytes(ggml_nbytes(t));
		if (t->type == GGML_TYPE_F32)
			std::memcpy(bytes.data(), values.data(), bytes.size());
		else
			ggml_quantize_chunk(t->type, values.data(), bytes.data(), 0, rows, row, nullptr);
		ggml_backend_tensor_set(t, bytes.data(), 0, bytes.size());
	}
};

} // namespace

int main(int count, char **values) {
	if (count != 2) {
		std::fprintf(stderr, "usage: ggml FOLDER, which has its libraries for processors; OMP_NUM_THREADS says on how many threads\n");
		return 2;
	}
	ggml_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
	ggml_backend_load_all_from_path(values[1]);
	const char *threads = std::getenv("OMP_NUM_THREADS");
	try {
		Library library(threads ? std::atoi(threads) : 1);
		return talk::serve(std::string("ggml ") + ggml_version(), [&](std::istringstream &words) { return library.prepare(words); });
	} catch (const std::exception &e) {
		std::fprintf(stderr, "ggml: %s\n", e.what());
		return 1;
	}
}
