// Compares the intrinsics of avx512_emulated.h with results from Intel's documents, where these are not
// obvious; `make emulated` runs it. Compiled with -mavx512f -mavx512bw -mavx512dq -mavx512vl, and without the
// header, it tests the processor's own intrinsics, which shows that the expected results are correct.
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <limits>

namespace maxops {
namespace {

int faults = 0;

void expect(bool holds, const char* what) {
    if (holds) return;
    ++faults;
    std::printf("%s is wrong\n", what);
}
template <class T, class Vector>
void expect(const Vector& actual, std::initializer_list<T> expected, const char* what) {
    expect(std::memcmp(&actual, expected.begin(), expected.size() * sizeof(T)) == 0, what);
}
// A vector with these first lanes, followed by zeros.
template <class T>
__m512i of(std::initializer_list<T> lanes) {
    __m512i v = _mm512_setzero_si512();
    std::memcpy(&v, lanes.begin(), lanes.size() * sizeof(T));
    return v;
}
#define EXPECT(call, T, ...) expect<T>(call, {__VA_ARGS__}, #call)

void lanes_that_move() {
    const __m512i a = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                  b = _mm512_add_epi32(a, _mm512_set1_epi32(100)),
                  c = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
                  d = _mm512_add_epi64(c, _mm512_set1_epi64(100));
    using i32 = std::int32_t;
    using i64 = std::int64_t;
    EXPECT(_mm512_alignr_epi32(b, a, 3), i32, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 100, 101, 102);
    EXPECT(_mm512_alignr_epi32(b, a, 0), i32, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    EXPECT(_mm512_alignr_epi64(d, c, 7), i64, 7, 100, 101, 102, 103, 104, 105, 106);
    EXPECT(_mm512_extracti64x4_epi64(c, 1), i64, 4, 5, 6, 7);
    // Indices are taken modulo the number of lanes.
    EXPECT(_mm512_permutexvar_epi32(of<i32>({15, 16, 33, -1}), a), i32, 15, 0, 1, 15, 0);
    EXPECT(_mm512_permutexvar_epi64(of<i64>({7, 8, 17, -1}), c), i64, 7, 0, 1, 7, 0);
    EXPECT(_mm512_permutex2var_epi32(a, of<i32>({15, 16, 31, 32, -1}), b), i32, 15, 100, 115, 0, 115, 0);
    EXPECT(_mm512_maskz_compress_epi32(0x8012, a), i32, 1, 4, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    EXPECT(_mm512_maskz_compress_epi64(0x92, d), i64, 101, 104, 107, 0, 0, 0, 0, 0);
    EXPECT(_mm512_mask_expand_epi32(b, 0x8012, a), i32, 100, 0, 102, 103, 1, 105, 106, 107, 108, 109, 110,
           111, 112, 113, 114, 2);
    EXPECT(_mm512_mask_expand_epi64(d, 0x92, c), i64, 100, 0, 102, 103, 1, 105, 106, 2);
}

void lanes_by_themselves() {
    using i8 = std::int8_t;
    using i32 = std::int32_t;
    using i64 = std::int64_t;
    constexpr i8 kMost8 = 127;
    const __m512i minus = _mm512_set1_epi8(-1), one8 = _mm512_set1_epi8(1), one16 = _mm512_set1_epi16(1),
                  one32 = _mm512_set1_epi32(1), one64 = _mm512_set1_epi64(1);
    EXPECT(_mm512_mask_max_epi32(one32, 2, minus, _mm512_setzero_si512()), i32, 1, 0, 1);
    expect(_mm512_cmplt_epi8_mask(minus, one8) == ~__mmask64{0}, "cmplt_epi8");
    expect(_mm512_cmplt_epu8_mask(minus, one8) == 0, "cmplt_epu8");
    expect(_mm512_cmplt_epi16_mask(minus, one16) == ~__mmask32{0}, "cmplt_epi16");
    expect(_mm512_cmplt_epu16_mask(one16, minus) == ~__mmask32{0}, "cmplt_epu16");
    expect(_mm512_cmplt_epu32_mask(one32, of<i32>({2, 1, 0, -1})) == 0x9, "cmplt_epu32");
    expect(_mm512_cmplt_epi64_mask(one64, of<i64>({2, 1, 0, -1})) == 0x1, "cmplt_epi64");
    expect(_mm512_cmpneq_epi64_mask(one64, of<i64>({2, 1, 0, 1})) == 0xF5, "cmpneq_epi64");
    expect(_mm512_mask_cmpgt_epi32_mask(0x6, one32, of<i32>({0, 0, 1, 0})) == 0x2, "mask_cmpgt_epi32");
    expect(_mm512_mask_cmpgt_epi64_mask(0xC, one64, of<i64>({0, 0, 1, -1})) == 0x8, "mask_cmpgt_epi64");

    // Shifts by at least the width of a lane give zeros, or the sign.
    const __m512i low = of<i32>({-0x7FFEFFFE, 0x00018001});
    EXPECT(_mm512_slli_epi32(low, 16), i32, 0x00020000, static_cast<i32>(0x80010000));
    EXPECT(_mm512_srli_epi32(low, 16), i32, 0x8001, 1);
    EXPECT(_mm512_srli_epi32(low, 32), i32, 0, 0);
    EXPECT(_mm512_srai_epi32(low, 31), i32, -1, 0);
    EXPECT(_mm512_srai_epi64(of<i64>({-2, 2}), 63), i64, -1, 0);
    EXPECT(_mm512_maskz_sllv_epi64(0x17, one64, of<i64>({63, 64, -1, 1, 2})), i64,
           std::numeric_limits<i64>::min(), 0, 0, 0, 4, 0, 0, 0);
    expect(_mm512_reduce_or_epi64(of<i64>({1, 0, 2, 0, 0, 0, 0, 8})) == 11, "reduce_or_epi64");
    const __m512i a = of<i64>({0xF0}), b = of<i64>({0xCC}), c = of<i64>({0xAA});
    for (const int table : {0x78, 0xCA, 0x01}) {
        const __m512i all = table == 0x78   ? _mm512_ternarylogic_epi64(a, b, c, 0x78)
                            : table == 0xCA ? _mm512_ternarylogic_epi64(a, b, c, 0xCA)
                                            : _mm512_ternarylogic_epi64(a, b, c, 0x01);
        expect<std::uint8_t>(all, {static_cast<std::uint8_t>(table)}, "ternarylogic_epi64");
    }
    const __m512i bytes = of<i8>({-1, kMost8, 1, -128});
    EXPECT(_mm512_cvtepi8_epi32(_mm512_castsi512_si128(bytes)), i32, -1, 127, 1, -128, 0);
    EXPECT(_mm512_cvtepu8_epi32(_mm512_castsi512_si128(bytes)), i32, 255, 127, 1, 128, 0);
    EXPECT(_mm512_cvtepi16_epi32(_mm512_castsi512_si256(bytes)), i32, 0x7FFF, -0x7FFF, 0);
    EXPECT(_mm512_cvtepu16_epi32(_mm512_castsi512_si256(bytes)), i32, 0x7FFF, 0x8001, 0);
    EXPECT(_mm512_cvtepi32_epi64(_mm512_castsi512_si256(minus)), i64, -1, -1);
    EXPECT(_mm512_cvtepu32_epi64(_mm512_castsi512_si256(minus)), i64, 0xFFFFFFFF, 0xFFFFFFFF);
}

// Lanes whose bit is 0 are in a protected page.
void masked_memory() {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    void* pages = mmap(nullptr, 3 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    auto* first = static_cast<char*>(pages) + page;
    if (pages == MAP_FAILED || mprotect(first, page, PROT_READ | PROT_WRITE) != 0)
        return expect(false, "mmap");
    char* const end = first + page;
    const __m512i nines = _mm512_set1_epi8(9),
                  v = _mm512_setr_epi32(0x01020304, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08090A0B);
    using u8 = std::uint8_t;

    _mm512_mask_storeu_epi8(end - 3, 0x7, v);
    EXPECT(_mm512_mask_loadu_epi8(nines, 0x5, end - 3), u8, 4, 9, 2, 9, 9);
    EXPECT(_mm_maskz_loadu_epi8(0x7, end - 3), u8, 4, 3, 2, 0, 0);
    _mm512_mask_storeu_epi16(end - 4, 0x2, v);
    EXPECT(_mm512_mask_loadu_epi16(nines, 0x3, end - 4), u8, 0, 4, 2, 1, 9, 9);
    EXPECT(_mm256_maskz_loadu_epi16(0x2, end - 4), u8, 0, 0, 2, 1, 0, 0);
    _mm512_mask_storeu_epi32(end - 8, 0x3, v);
    EXPECT(_mm512_mask_loadu_epi32(nines, 0x2, end - 8), u8, 9, 9, 9, 9, 5, 0, 0, 0, 9);
    EXPECT(_mm512_maskz_loadu_epi32(0x1, end - 8), u8, 4, 3, 2, 1, 0, 0, 0, 0, 0);
    EXPECT(_mm256_maskz_loadu_epi32(0x2, end - 8), u8, 0, 0, 0, 0, 5, 0, 0, 0, 0);
    _mm512_mask_storeu_epi64(end - 16, 0x3, v);
    EXPECT(_mm512_mask_loadu_epi64(nines, 0x1, end - 16), u8, 4, 3, 2, 1, 5, 0, 0, 0, 9);
    EXPECT(_mm512_maskz_loadu_epi64(0x2, end - 16), u8, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 0);
    // The first lanes are off, the last ones on: the memory before the page must not be touched either.
    _mm512_mask_storeu_epi32(first - 60, 0x8000, v);
    EXPECT(_mm512_maskz_loadu_epi32(0x8000, first - 60), std::int32_t, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
           0, 0, 0x08090A0B);
    // Values are truncated, not saturated.
    _mm512_mask_cvtepi32_storeu_epi8(end - 2, 0x3, v);
    EXPECT(_mm_maskz_loadu_epi8(0xF, end - 4), u8, 7, 0, 4, 5, 0);
    _mm512_mask_cvtepi32_storeu_epi16(end - 4, 0x1, v);
    EXPECT(_mm_maskz_loadu_epi8(0xF, end - 4), u8, 4, 3, 4, 5, 0);
    munmap(pages, 3 * page);
}

// VRANGE with 5: the maximum, with its own sign.
void maxima_of_floats() {
    using i32 = std::int32_t;
    using i64 = std::int64_t;
    constexpr i32 kMinus = std::numeric_limits<i32>::min(), kInfinity = 0x7F800000, kOne = 0x3F800000;
    const i32 cases[][3] = {
        {0, kMinus, 0},
        {kMinus, 0, 0},
        {kMinus, kMinus, kMinus},
        {kMinus | kOne, kMinus | (kOne + 1), kMinus | kOne},
        {kMinus | kInfinity, kMinus | (kInfinity - 1), kMinus | (kInfinity - 1)},
        {kInfinity, kOne, kInfinity},
        {1, 2, 2},  // subnormals
        {kMinus | 1, kMinus, kMinus},
        {0x7FC00001, kMinus | kOne, kMinus | kOne},  // a quiet NaN loses
        {kOne, kMinus | 0x7FC00001, kOne},
        {0x7FC00001, kMinus | 0x7FC00002, 0x7FC00001},  // the first of two
        {0x7F800001, kOne, 0x7FC00001},                 // a signalling NaN becomes quiet
        {kOne, kMinus | 0x7F800001, kMinus | 0x7FC00001},
        {0x7FC00002, 0x7F800001, 0x7FC00001},
    };
    const auto floats = [](__m512i v) { return _mm512_castsi512_ps(v); };
    const auto doubles = [](__m512i v) { return _mm512_castsi512_pd(v); };
    // The same bit patterns as doubles: sign, exponent, and the highest and lowest bits of the fraction.
    const auto wide = [](i32 x) {
        const i64 sign = x < 0 ? std::numeric_limits<i64>::min() : 0, exponent = x >> 23 & 0xFF,
                  fraction = x & 0x7FFFFF;
        const i64 wider = exponent == 0 || exponent == 0xFF ? exponent * 0x7FF / 0xFF : exponent + 896;
        return sign | wider << 52 | (fraction & 0x400000) << 29 | (fraction & 0x3FFFFF);
    };
    for (const auto& [a, b, most] : cases) {
        EXPECT(_mm512_range_ps(floats(of({a})), floats(of({b})), 5), i32, most, 0);
        EXPECT(_mm512_range_pd(doubles(of({wide(a)})), doubles(of({wide(b)})), 5), i64, wide(most), 0);
    }
    const unsigned modes = _mm_getcsr();
    _mm_setcsr(modes | 0x0040);  // denormals are zero
    EXPECT(_mm512_range_ps(floats(of<i32>({1, kMinus | 1})), floats(of({2, 1})), 5), i32, 0, 0, 0);
    EXPECT(_mm512_range_pd(doubles(of({i64{1}})), doubles(of({i64{2}})), 5), i64, 0, 0);
    _mm_setcsr(modes);

    const __m512 x = floats(of({0x7FC00000, 0, 0x7F800001, kInfinity})),
                 y = floats(of({0, kMinus | 0x7FC00000, 0, 0}));
    expect(_mm512_cmp_ps_mask(x, y, _CMP_UNORD_Q) == 0x7, "cmp_ps_mask");
    const __m512d u = doubles(of<i64>({0x7FF8000000000000, 0, 0x7FF0000000000001, 0x7FF0000000000000})),
                  w = doubles(of<i64>({0, -1, 0, 0, 0, 0, 0, -1}));
    expect(_mm512_cmp_pd_mask(u, w, _CMP_UNORD_Q) == 0x87, "cmp_pd_mask");
}

int run() {
    lanes_that_move();
    lanes_by_themselves();
    masked_memory();
    maxima_of_floats();
    return faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace maxops

int main() {
    return maxops::run();
}
