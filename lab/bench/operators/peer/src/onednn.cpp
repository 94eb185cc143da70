// Times single operators of oneDNN. Weights, images and results have the library's preferred layouts, and conversions
// are not timed. Convolutions include bias and ReLU, and integer results are scaled to 8 bits, in the same call.
#include "talk.h"

#include <cstdint>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

using namespace dnnl;
using Format = memory::format_tag;
using Type = memory::data_type;

namespace {

struct Types {
	Type operand, weights;
	bool scaled() const { return operand == Type::u8; }
};

Types types(const std::string &name) {
	if (name == "f32")
		return {Type::f32, Type::f32};
	if (name == "bf16")
		return {Type::bf16, Type::bf16};
	if (name == "int8")
		return {Type::u8, Type::s8};
	throw std::runtime_error("no such element type: " + name);
}

class Library {
  public:
	talk::Answer prepare(std::istringstream &words) {
		std::string kind, element;
		words >> kind >> element;
		arguments.clear();
		if (kind == "convolution")
			return convolution(types(element), words);
		if (kind == "product")
			return product(types(element), words);
		throw std::runtime_error("no such operator: " + kind);
	}

  private:
	engine processor{engine::kind::cpu, 0};
	stream queue{processor};
	talk::Random random;
	std::unordered_map<int, memory> arguments;

	// batch, input rows and columns, channels in and out, kernel, stride, padding, dilation, groups
	talk::Answer convolution(Types t, std::istringstream &words) {
		memory::dim batch, rows, columns, in, out, kernel, stride, pad, dilation, groups;
		if (!(words >> batch >> rows >> columns >> in >> out >> kernel >> stride >> pad >> dilation >> groups))
			throw std::runtime_error("a convolution has 10 numbers");
		auto positions = [&](memory::dim n) { return (n + 2 * pad - dilation * (kernel - 1) - 1) / stride + 1; };
		const memory::desc source({batch, in, rows, columns}, t.operand, Format::any);
		const memory::desc result({batch, out, positions(rows), positions(columns)}, t.operand, Format::any);
		const memory::desc bias({out}, Type::f32, Format::a);
		const memory::desc weights =
			groups > 1 ? memory::desc({groups, out / groups, in / groups, kernel, kernel}, t.weights, Format::any)
					   : memory::desc({out, in, kernel, kernel}, t.weights, Format::any);
		primitive_attr attributes = scales(t, groups > 1 ? 3 : 1, out);
		post_ops after;
		after.append_eltwise(algorithm::eltwise_relu, 0, 0);
		attributes.set_post_ops(after);
		convolution_forward::primitive_desc chosen(processor, prop_kind::forward_inference,
			algorithm::convolution_auto, source, weights, bias, result, {stride, stride}, {dilation - 1, dilation - 1},
			{pad, pad}, {pad, pad}, attributes);
		arguments[DNNL_ARG_SRC] = filled(chosen.src_desc());
		arguments[DNNL_ARG_WEIGHTS] = filled(chosen.weights_desc());
		arguments[DNNL_ARG_BIAS] = filled(chosen.bias_desc());
		arguments[DNNL_ARG_DST] = filled(chosen.dst_desc());
		return answer(chosen.impl_info_str(), convolution_forward(chosen));
	}

	// rows, columns, depth
	talk::Answer product(Types t, std::istringstream &words) {
		memory::dim rows, columns, depth;
		if (!(words >> rows >> columns >> depth))
			throw std::runtime_error("a product has 3 numbers");
		const memory::desc source({rows, depth}, t.operand, Format::ab), result({rows, columns}, t.operand, Format::ab);
		const memory::desc weights({depth, columns}, t.weights, Format::any), bias({1, columns}, Type::f32, Format::ab);
		matmul::primitive_desc chosen(processor, source, weights, bias, result, scales(t, 2, columns));
		arguments[DNNL_ARG_SRC] = filled(chosen.src_desc());
		arguments[DNNL_ARG_WEIGHTS] = filled(chosen.weights_desc());
		arguments[DNNL_ARG_BIAS] = filled(bias);
		arguments[DNNL_ARG_DST] = filled(chosen.dst_desc());
		return answer(chosen.impl_info_str(), matmul(chosen));
	}

	talk::Answer answer(const std::string &implementation, const primitive &operation) {
		auto execute = [this, operation] {
			operation.execute(queue, arguments);
			queue.wait();
		};
		return {implementation, execute, {constant(DNNL_ARG_WEIGHTS), constant(DNNL_ARG_BIAS)}};
	}

	talk::Constants constant(int argument) {
		const memory &m = arguments[argument];
		return {static_cast<const char *>(m.get_data_handle()), m.get_desc().get_size()};
	}

	// Returns the scales of integers: one for the operand, one for the result, and one per output channel of the weights.
	primitive_attr scales(Types t, int mask, memory::dim channels) {
		primitive_attr attributes;
		if (!t.scaled())
			return attributes;
		const std::pair<int, memory::dim> list[] = {{DNNL_ARG_SRC, 1}, {DNNL_ARG_DST, 1}, {DNNL_ARG_WEIGHTS, channels}};
		for (auto [argument, count] : list) {
			attributes.set_scales_mask(argument, argument == DNNL_ARG_WEIGHTS ? mask : 0);
			memory scale({{count}, Type::f32, Format::a}, processor);
			std::fill_n(static_cast<float *>(scale.get_data_handle()), count, argument == DNNL_ARG_DST ? 8.f : .01f);
			arguments[DNNL_ARG_ATTR_SCALES | argument] = scale;
		}
		return attributes;
	}

	// Returns memory filled with numbers whose products are normal, because denormals are slow.
	memory filled(const memory::desc &description) {
		memory m(description, processor);
		auto *bytes = static_cast<uint8_t *>(m.get_data_handle());
		const size_t size = description.get_size();
		switch (description.get_data_type()) {
		case Type::f32:
			for (size_t i = 0; i < size / 4; i++)
				reinterpret_cast<float *>(bytes)[i] = random.unit();
			break;
		case Type::bf16:
			for (size_t i = 0; i < size / 2; i++) {
				const float value = random.unit();
				std::memcpy(bytes + 2 * i, reinterpret_cast<const uint8_t *>(&value) + 2, 2);
			}
			break;
		default:
			for (size_t i = 0; i < size; i++)
				bytes[i] = uint8_t(random.next());
		}
		return m;
	}
};

} // namespace

int main() {
	const auto *version = dnnl_version();
	Library library;
	return talk::serve("oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
			std::to_string(version->patch),
		[&](std::istringstream &words) { return library.prepare(words); });
}
