// SHA-256 (FIPS 180-4).
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace tilth {

class Sha256 {
 public:
  void add(const void *data, std::size_t bytes) {
    const auto *at = static_cast<const std::uint8_t *>(data);
    length_ += bytes;
    if (filled_ > 0) {
      const std::size_t n = std::min(bytes, block_.size() - filled_);
      std::memcpy(block_.data() + filled_, at, n);
      at += n, bytes -= n, filled_ += n;
      if (filled_ < block_.size()) return;
      mix(block_.data(), 1);
      filled_ = 0;
    }
    mix(at, bytes / block_.size());
    filled_ = bytes % block_.size();
    std::memcpy(block_.data(), at + (bytes - filled_), filled_);
  }

  // The digest of what was added; nothing can be added afterwards.
  std::string hex() {
    const std::uint64_t bits = length_ * 8;
    const std::uint8_t one = 0x80, zero = 0;
    add(&one, 1);
    while (filled_ != 56) add(&zero, 1);
    std::array<std::uint8_t, 8> end{};
    for (int i = 0; i < 8; i++) end[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(bits >> (56 - 8 * i));
    add(end.data(), end.size());
    std::string text;
    for (const std::uint32_t word : state_)
      for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
    return text;
  }

 private:
  static std::uint32_t rotate(std::uint32_t x, int n) { return x >> n | x << (32 - n); }

  // The first 32 bits of the fractions of the cube roots of the first 64 primes.
  static constexpr std::uint32_t roots[64] = {
      0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
      0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
      0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
      0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
      0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
      0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#if defined(__x86_64__)
  // Whether the processor has instructions for it.
  static bool has_instructions() {
    unsigned a = 0, b = 0, c = 0, d = 0, unused = 0;
    return __get_cpuid(1, &a, &unused, &c, &d) && (c & bit_SSE4_1) && (c & bit_SSSE3) && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
           (b & bit_SHA);
  }

  // The instructions take the state as two vectors: a, b, e, f and c, d, g, h, from the highest lane down.
  __attribute__((target("sha,ssse3,sse4.1"))) void mix_by_instructions(const std::uint8_t *data, std::size_t blocks) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    std::array<int, 8> s;
    std::memcpy(s.data(), state_.data(), sizeof s);
    __m128i abef = _mm_set_epi32(s[0], s[1], s[4], s[5]), cdgh = _mm_set_epi32(s[2], s[3], s[6], s[7]);
    for (; blocks > 0; blocks--, data += 64) {
      const __m128i abef_before = abef, cdgh_before = cdgh;
      __m128i w[4] = {};
      for (int i = 0; i < 16; i++) {
        __m128i next;
        if (i < 4) {
          next = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i *>(data) + i), swap);
        } else {
          next = _mm_add_epi32(_mm_sha256msg1_epu32(w[0], w[1]), _mm_alignr_epi8(w[3], w[2], 4));
          next = _mm_sha256msg2_epu32(next, w[3]);
        }
        w[0] = w[1], w[1] = w[2], w[2] = w[3], w[3] = next;
        const __m128i k = _mm_add_epi32(next, _mm_loadu_si128(reinterpret_cast<const __m128i *>(roots) + i));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0e));
      }
      abef = _mm_add_epi32(abef, abef_before), cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    alignas(16) std::array<std::uint32_t, 8> lanes;
    _mm_store_si128(reinterpret_cast<__m128i *>(lanes.data()), abef);
    _mm_store_si128(reinterpret_cast<__m128i *>(lanes.data() + 4), cdgh);
    state_ = {lanes[3], lanes[2], lanes[7], lanes[6], lanes[1], lanes[0], lanes[5], lanes[4]};
  }
#endif

  void mix(const std::uint8_t *data, std::size_t blocks) {
#if defined(__x86_64__)
    static const bool fast = has_instructions();
    if (fast) return mix_by_instructions(data, blocks);
#endif
    for (; blocks > 0; blocks--, data += 64) mix_block(data);
  }

  void mix_block(const std::uint8_t *data) {
    std::uint32_t w[64];
    for (int i = 0; i < 16; i++) {
      const std::uint8_t *b = data + 4 * i;
      w[i] = std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | b[3];
    }
    for (int i = 16; i < 64; i++) {
      const std::uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
      const std::uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (int i = 0; i < 64; i++) {
      const std::uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + roots[i] + w[i];
      const std::uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::uint32_t rounds[8] = {a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; i++) state_[i] += rounds[i];
  }

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> block_{};
  std::size_t filled_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace tilth
