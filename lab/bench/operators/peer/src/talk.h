// Common part of the programs that time other libraries. They read requests from standard input, one per line, and
// answer each with one line. ../../peer.go documents the lines.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <immintrin.h>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace talk {

// Execution executes the requested operator once.
using Execution = std::function<void()>;

// Constants is the memory of constant data, such as weights.
struct Constants {
	const char *data;
	size_t bytes;
};

// Answer is a library's implementation of a request.
struct Answer {
	std::string implementation;
	Execution execute;
	std::vector<Constants> constants;
};

inline double now() {
	using namespace std::chrono;
	return duration<double>(steady_clock::now().time_since_epoch()).count();
}

// Evicts constants from the caches, as the other layers of a model do between two executions of a layer.
inline void flush_caches(const Answer &a) {
	constexpr size_t line = 64;
	for (const Constants &c : a.constants)
		for (size_t at = 0; at < c.bytes; at += line)
			_mm_clflushopt(const_cast<char *>(c.data + at));
	_mm_mfence();
}

// Returns the duration of an execution with cold constants, in seconds.
inline double once(const Answer &a) {
	flush_caches(a);
	const double begin = now();
	a.execute();
	return now() - begin;
}

// Takes samples of an answer for a number of seconds. Each sample is the mean over two milliseconds of executions, at
// most `most` of them.
inline std::vector<double> samples(const Answer &a, double seconds) {
	constexpr double span = 2e-3;
	constexpr size_t least = 3, most = 200;
	const int inner = std::max(1, int(span / std::max(once(a), 1e-7)));
	std::vector<double> list;
	for (double end = now() + seconds; list.size() < most && (list.size() < least || now() < end);) {
		double sum = 0;
		for (int i = 0; i < inner; i++)
			sum += once(a);
		list.push_back(sum / inner);
	}
	return list;
}

inline void time(const Answer &a, double seconds) {
	if (!a.execute)
		throw std::runtime_error("time before a question that is supported");
	std::printf("samples");
	for (double s : samples(a, seconds))
		std::printf(" %.9g", s);
	std::printf("\n");
}

// serve answers requests until the end of the input. An exception from prepare becomes an answer.
inline int serve(const std::string &name, const std::function<Answer(std::istringstream &)> &prepare) {
	std::printf("peer %s\n", name.c_str());
	std::fflush(stdout);
	Answer answer;
	for (std::string line; std::getline(std::cin, line); std::fflush(stdout)) {
		std::istringstream words(line);
		std::string verb;
		words >> verb;
		try {
			if (double seconds = 0; verb == "time" && words >> seconds) {
				time(answer, seconds);
				continue;
			}
			if (verb != "prepare")
				throw std::runtime_error("no such verb: " + verb);
			answer = {};
			Answer next = prepare(words);
			next.execute(); // generates kernels and touches pages
			answer = next;
			std::printf("ready %s\n", answer.implementation.c_str());
		} catch (const std::exception &e) {
			std::string why = e.what();
			std::replace(why.begin(), why.end(), '\n', ' ');
			std::printf("unsupported %s\n", why.c_str());
		}
	}
	return 0;
}

// A deterministic random number generator.
class Random {
  public:
	unsigned next() { return (state = state * 1664525u + 1013904223u) >> 8; }
	// In [-1, 1).
	float unit() { return float(next() & 0xffff) / 32768 - 1; }

  private:
	unsigned state = 1;
};

} // namespace talk
