// Checks which elements each output of a kernel is the maximum of. The kernel templates run with sets of colours
// instead of elements (colours.h), on every small input, with the vectors of one instruction set, and with miniature or
// ordinary constants. Kernels must not change the cache lines before and after a buffer.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include <sanitizer/asan_interface.h>

#include "colours.h"
#include "../../native/kernels/segment.h"
#include "../../native/kernels/unsorted.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

template <class Word, bool as_float>
struct PlainLanes<ColourOrder<Word, as_float>> {
    using Wide = std::conditional_t<sizeof(Word) == 8, std::uint64_t, std::uint32_t>;
    using Lane = Colour<Wide>;

    static Lane lane(Colour<Word> bits) { return static_cast<Wide>(bits.set); }
    static Colour<Word> bits(Lane lane) { return Colour<Word>(lane); }
};

#if defined(MAXOPS_HAS_COMPRESSION) && !defined(MAXOPS_AVX512)
// Widens colours to the lanes of a scan. instructions.cpp tests the wider lanes of each shipped type.
template <class Word, bool as_float>
struct KeyLanes<ColourOrder<Word, as_float>> {
    using T = ColourOrder<Word, as_float>;
    using Wide = std::conditional_t<sizeof(Word) == 8, std::uint64_t, std::uint32_t>;
    using Lane = Colour<Wide>;
    using Place = std::make_signed_t<Wide>;
    using V = Vec<Lane>;

    static Lane lane(Colour<Word> bits) { return static_cast<Wide>(bits.set); }
    static Colour<Word> bits(Lane lane) { return Colour<Word>(lane); }
    static V load(const Item<T>* from) { return {load_widened<Vec<Wide>, Word>(from).v}; }
};
#elif defined(MAXOPS_AVX512)
// The same for vectors of AVX-512, whose type is the same for keys and ids. Therefore, compilation does not show that
// the kernel only computes maxima of keys. avx512/segments.cpp shows it, with lanes that are terms.
struct ColourLanes32 : Lanes32i {
    static __m512i highest(Mask where, __m512i a, __m512i b) { return _mm512_mask_or_epi32(a, where, a, b); }
};
struct ColourLanes64 : Lanes64i {
    static __m512i highest(Mask where, __m512i a, __m512i b) { return _mm512_mask_or_epi64(a, where, a, b); }
};
template <class Word, bool as_float>
struct KeyLanes<ColourOrder<Word, as_float>> {
    using T = ColourOrder<Word, as_float>;
    using Lanes = std::conditional_t<sizeof(Word) == 8, ColourLanes64, ColourLanes32>;
    using Plain = KeyLanes<IntegerOrder<std::make_signed_t<Word>>>;  // an order whose keys are the bits

    static __m512i load(unsigned lanes, const Item<T>* from) {
        return Plain::load(lanes, reinterpret_cast<const Item<IntegerOrder<std::make_signed_t<Word>>>*>(from));
    }
    static void store(unsigned lanes, Item<T>* to, __m512i keys) {
        Plain::store(lanes, reinterpret_cast<Item<IntegerOrder<std::make_signed_t<Word>>>*>(to), keys);
    }
    static __m512i splat(Colour<Word> bits) {
        return Lanes::splat(static_cast<typename Lanes::Lane>(static_cast<std::make_signed_t<Word>>(bits.set)));
    }
};
#endif

template <class Word, bool as_float>
struct PlaceOf<ColourOrder<Word, as_float>> {
    static constexpr int value = __builtin_ctz(sizeof(Word));  // the index in the table at the end of this file
};

unsigned long long states = 0, wrong = 0, touched = 0;

// A buffer of an exact size, at a given offset in a cache line. The destructor counts changes outside the buffer.
class Buffer {
public:
    Buffer(std::size_t bytes, std::size_t offset) : size_(bytes) {
        offset += kLine;  // the destructor checks the cache lines before and after the buffer
        const std::size_t whole = offset + bytes + kLine;
        void* at = nullptr;
        if (posix_memalign(&at, kLine, whole) != 0) std::abort();
        memory_ = static_cast<char*>(at);
        data_ = memory_ + offset;
        std::memset(memory_, kCanary, whole);
        std::memset(data_, 0, bytes);
        ASAN_POISON_MEMORY_REGION(memory_, offset);  // detects reads, in code that the compiler instruments
        ASAN_POISON_MEMORY_REGION(data_ + bytes, kLine);
    }
    ~Buffer() {
        ASAN_UNPOISON_MEMORY_REGION(data_ - kLine, 2 * kLine + size_);
        for (std::size_t k = 0; k < kLine; ++k)
            if (data_[size_ + k] != kCanary || data_[-1 - static_cast<std::ptrdiff_t>(k)] != kCanary) touched += 1;
        std::free(memory_);
    }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    char* data() const { return data_; }

private:
    static constexpr char kCanary = 0x5A;
    char* memory_;
    char* data_;
    std::size_t size_;
};

// A word has too few bits for the colours of all elements. Therefore, checks run in rounds: element i has its colour in
// round i / kBits, and no colour in other rounds.
template <class Word>
constexpr std::size_t kBits = 8 * sizeof(Word);
template <class Word>
Word colour_of(std::size_t element, std::size_t round) {
    return element / kBits<Word> == round ? static_cast<Word>(Word{1} << element % kBits<Word>) : Word{0};
}
template <class Word>
std::size_t rounds_of(std::size_t elements) {
    return elements == 0 ? 1 : (elements + kBits<Word> - 1) / kBits<Word>;
}

void expect(bool is_valid, const char* kernel, std::size_t itemsize, const std::vector<std::size_t>& of) {
    states += 1;
    if (is_valid) return;
    if (wrong++ > 20) return;
    std::fprintf(stderr, "%s, items of %zu bytes:", kernel, itemsize);
    for (const std::size_t number : of) std::fprintf(stderr, " %zu", number);
    std::fprintf(stderr, "\n");
}

// An array whose elements each have their own colour, which show() writes for one round.
template <class Word>
class Elements {
public:
    // `step` is the distance between rows, and `offset` is the offset in a cache line, both in bytes.
    Elements(std::size_t rows, std::size_t n, std::size_t step, std::size_t offset, std::size_t first = 0)
        : rows_(rows), n_(n), step_(step), first_(first),
          memory_(rows == 0 ? 0 : (rows - 1) * step + n * sizeof(Word), offset) {}

    char* data() const { return memory_.data(); }
    void show(std::size_t round) {
        for (std::size_t r = 0; r < rows_; ++r)
            for (std::size_t i = 0; i < n_; ++i) put(r, i, colour_of<Word>(number(r, i), round));
    }
    std::size_t number(std::size_t r, std::size_t i) const { return first_ + r * n_ + i; }
    Word get(std::size_t r, std::size_t i) const {
        Word word;
        std::memcpy(&word, data() + r * step_ + i * sizeof(Word), sizeof word);
        return word;
    }
    void put(std::size_t r, std::size_t i, Word word) {
        std::memcpy(data() + r * step_ + i * sizeof(Word), &word, sizeof word);
    }

private:
    std::size_t rows_, n_, step_, first_;
    Buffer memory_;
};

// ---------------------------------------------------------------------------- Max

template <class T, int inputs>
void folds(std::size_t longest) {
    using Word = decltype(T::Bits::set);
    constexpr std::size_t kItem = sizeof(Word);
    for (std::size_t n = 0; n <= longest; ++n)
        for (std::size_t rows = 1; rows <= 2; ++rows)
            for (std::size_t offset = 0; offset < kLine; offset += offset < 2 * kItem ? kItem : kLine / 4)
                for (int in_place = -1; in_place < inputs; in_place += inputs > 2 ? inputs : 1)
                    for (std::size_t round = 0; round < rounds_of<Word>(rows * n * inputs); ++round) {
                        std::deque<Elements<Word>> arrays;
                        const void* in[inputs];
                        std::ptrdiff_t strides[inputs];
                        const auto step = static_cast<std::ptrdiff_t>(n * kItem);
                        for (int k = 0; k < inputs; ++k) {
                            const std::size_t at = k == in_place ? offset : (offset + k * kItem) % kLine;
                            arrays.emplace_back(rows, n, n * kItem, at, k * rows * n);
                            arrays[k].show(round);
                            in[k] = arrays[k].data();
                            strides[k] = step;
                        }
                        Elements<Word> apart(rows, n, n * kItem, offset);
                        Elements<Word>& out = in_place >= 0 ? arrays[in_place] : apart;
                        fold<T, inputs>(out.data(), step, in, strides, rows, n);
                        bool is_valid = true;
                        for (std::size_t r = 0; r < rows; ++r)
                            for (std::size_t i = 0; i < n; ++i) {
                                Word expected = 0;
                                for (int k = 0; k < inputs; ++k) expected |= colour_of<Word>(arrays[k].number(r, i), round);
                                is_valid = is_valid && out.get(r, i) == expected;
                            }
                        expect(is_valid, "fold", kItem, {inputs, rows, n, offset, in_place + 1UL, round});
                    }
}

template <class T>
void folds_with_items(std::size_t longest) {
    using Word = decltype(T::Bits::set);
    constexpr std::size_t kItem = sizeof(Word);
    for (std::size_t n = 0; n <= longest; ++n)
        for (std::size_t rows = 1; rows <= 3; ++rows)
            for (std::size_t offset = 0; offset < kLine; offset += kLine / 4)
                for (std::size_t round = 0; round < rounds_of<Word>(rows * n + rows); ++round) {
                    Elements<Word> in(rows, n, n * kItem, offset), items(rows, 1, kItem, kItem, rows * n);
                    Elements<Word> out(rows, n, n * kItem, offset);
                    in.show(round);
                    items.show(round);
                    const auto step = static_cast<std::ptrdiff_t>(n * kItem);
                    fold_rows_with<T>(out.data(), step, in.data(), step, items.data(), kItem, rows, n);
                    bool is_valid = true;
                    for (std::size_t r = 0; r < rows; ++r)
                        for (std::size_t i = 0; i < n; ++i)
                            is_valid = is_valid && out.get(r, i) == (in.get(r, i) | items.get(r, 0));
                    expect(is_valid, "fold_rows_with", kItem, {rows, n, offset, round});
                }
}

// ---------------------------------------------------------------------------- ReduceMax

// Checks start, rows or columns, and finish, for contiguous rows and for rows with gaps between them.
template <class T, bool by_rows>
void reductions(std::size_t most_rows, std::size_t longest) {
    using Word = decltype(T::Bits::set);
    constexpr std::size_t kItem = sizeof(Word);
    for (std::size_t rows = 0; rows <= most_rows; ++rows)
        for (std::size_t n = 0; n <= longest; ++n)
            for (std::size_t gap = 0; gap <= kItem; gap += kItem)
                for (std::size_t round = 0; round < rounds_of<Word>(rows * n); ++round) {
                    const std::size_t step = n * kItem + gap, outputs = by_rows ? rows : n;
                    Elements<Word> in(rows, n, step, kItem), keys(1, outputs, 0, 0), out(1, outputs, 0, kItem);
                    in.show(round);
                    start<T>(keys.data(), outputs);
                    if constexpr (by_rows)
                        MAXOPS_ISA::rows<T>(keys.data(), in.data(), static_cast<std::ptrdiff_t>(step), rows, n);
                    else
                        columns<T>(keys.data(), in.data(), static_cast<std::ptrdiff_t>(step), rows, n);
                    finish<T>(out.data(), keys.data(), outputs);
                    bool is_valid = true;
                    for (std::size_t j = 0; j < outputs; ++j) {
                        Word expected = 0;
                        for (std::size_t k = 0; k < (by_rows ? n : rows); ++k)
                            expected |= colour_of<Word>(by_rows ? in.number(j, k) : in.number(k, j), round);
                        is_valid = is_valid && out.get(0, j) == expected;
                    }
                    expect(is_valid, by_rows ? "rows" : "columns", kItem, {rows, n, gap, round});
                }
}

template <class T>
void merges(std::size_t most_groups, std::size_t longest) {
    using Word = decltype(T::Bits::set);
    for (std::size_t groups = 1; groups <= most_groups; ++groups)
        for (std::size_t n = 0; n <= longest; ++n)
            for (std::size_t round = 0; round < rounds_of<Word>(groups * n); ++round) {
                Elements<Word> keys(groups, n, n * sizeof(Word), 0);
                keys.show(round);
                merge<T>(keys.data(), groups, n);
                bool is_valid = true;
                for (std::size_t j = 0; j < n; ++j) {
                    Word expected = 0;
                    for (std::size_t g = 0; g < groups; ++g) expected |= colour_of<Word>(keys.number(g, j), round);
                    is_valid = is_valid && keys.get(0, j) == expected;
                }
                expect(is_valid, "merge", sizeof(Word), {groups, n, round});
            }
}

// ---------------------------------------------------------------------------- SegmentMax

// Calls act(ids) for every list of ids up to a length, or for every sorted list.
template <class Act>
void every_ids(std::size_t longest, int lowest, int most, bool sorted, const Act& act) {
    std::vector<int> ids;
    const std::function<void()> grow = [&] {
        act(ids);
        if (ids.size() == longest) return;
        for (int id = sorted && !ids.empty() ? ids.back() : lowest; id < most; ++id) {
            ids.push_back(id);
            grow();
            ids.pop_back();
        }
    };
    grow();
}

// Returns the expected output: the union of the rows of each segment or, for an empty segment, the fill value.
template <class Word>
std::vector<Word> defined(const std::vector<int>& ids, const Elements<Word>& data, std::size_t segments,
                          std::size_t width, Word fill, std::size_t round) {
    std::vector<Word> expected(segments * width, fill);
    for (std::size_t s = 0; s < segments; ++s) {
        bool is_empty = true;
        for (std::size_t r = 0; r < ids.size(); ++r) {
            if (ids[r] != static_cast<int>(s)) continue;
            for (std::size_t j = 0; j < width; ++j)
                expected[s * width + j] =
                    static_cast<Word>((is_empty ? 0 : expected[s * width + j]) | colour_of<Word>(data.number(r, j), round));
            is_empty = false;
        }
    }
    return expected;
}

template <class T, class Id>
void segment_case(const std::vector<int>& ids_, std::size_t cut, std::size_t segments, std::size_t width,
                  std::size_t gap, bool gallops) {
    using Word = decltype(T::Bits::set);
    constexpr std::size_t kItem = sizeof(Word);
    const std::size_t n = ids_.size(), step = width * kItem + gap;
    const Word fill = static_cast<Word>(Word{1} << (kBits<Word> - 1) | 1);
    std::vector<Id> ids(ids_.begin(), ids_.end());
    for (std::size_t round = 0; round < rounds_of<Word>(n * width); ++round) {
        Elements<Word> data(n, width, step, kItem), out(segments, width, width * kItem, 0);
        data.show(round);
        for (std::size_t s = 0; s < segments; ++s)
            for (std::size_t j = 0; j < width; ++j) out.put(s, j, static_cast<Word>(~fill));  // must be overwritten
        alignas(64) static char scratch[kSegmentScratchBytes];
        SegmentWalk walk{};
        walk.out = out.data();
        walk.out_stride = static_cast<std::ptrdiff_t>(width * kItem);
        walk.width = width;
        walk.num_segments = static_cast<std::int64_t>(segments);
        walk.fill = fill;
        walk.gallops = gallops;
        walk.checks = !gallops;
        walk.previous = -1;
        walk.scratch = scratch;
        for (std::size_t begin = 0, end; begin < n; begin = end) {  // one block, or two
            end = begin < cut ? std::min(cut, n) : n;
            Buffer block((end - begin) * sizeof(Id), sizeof(Id));
            std::memcpy(block.data(), ids.data() + begin, (end - begin) * sizeof(Id));
            segment_rows<T, Id>(&walk, data.data() + begin * step, static_cast<std::ptrdiff_t>(step), block.data(),
                                end - begin);
        }
        MAXOPS_ISA::fill<T>(&walk, walk.previous + 1, walk.num_segments);
        const std::vector<Word> expected = defined<Word>(ids_, data, segments, width, fill, round);
        bool is_valid = !walk.is_unsorted;
        for (std::size_t s = 0; s < segments; ++s)
            for (std::size_t j = 0; j < width; ++j) is_valid = is_valid && out.get(s, j) == expected[s * width + j];
        std::vector<std::size_t> of{cut, segments, width, gap, gallops, round};
        of.insert(of.end(), ids_.begin(), ids_.end());
        expect(is_valid, "segment", kItem, of);
    }
}

template <class T, class Id>
void segments(std::size_t longest, int most_segments) {
    // includes ids past the last segment, whose rows belong to no segment
    every_ids(longest, 0, most_segments + 1, true, [&](const std::vector<int>& ids) {
        for (std::size_t width = 1; width <= 3; width += ids.size() > 4 ? 2 : 1)
            for (std::size_t cut = 0; cut < std::max<std::size_t>(1, ids.size()); ++cut)
                for (const bool gallops : {false, true})
                    segment_case<T, Id>(ids, cut, static_cast<std::size_t>(most_segments), width, 0, gallops);
        segment_case<T, Id>(ids, ids.size() / 2, static_cast<std::size_t>(most_segments), 1, sizeof(typename T::Bits), false);
    });
    // wide rows, which kernels process in strips of columns
    for (const std::size_t width : {4U, 7U, 9U, 17U, 33U, 65U})
        every_ids(3, 0, 3, true, [&](const std::vector<int>& ids) {
            for (std::size_t cut = 0; cut < std::max<std::size_t>(1, ids.size()); ++cut)
                segment_case<T, Id>(ids, cut, 3, width, 0, false);
        });
}

// Checks sequences of runs whose lengths are near the constants that select code paths.
template <class T, class Id>
void runs(const std::vector<std::size_t>& lengths) {
    const auto word = [&](const std::vector<std::size_t>& run_lengths, int step) {
        std::vector<int> ids;
        int id = 0;
        for (const std::size_t length : run_lengths) {
            ids.insert(ids.end(), length, id);
            id += step;
        }
        for (std::size_t cut : {std::size_t{0}, run_lengths[0], ids.size() / 2, ids.size() - 1})
            segment_case<T, Id>(ids, cut, static_cast<std::size_t>(id), 1, 0, step == 1);
    };
    for (const std::size_t a : lengths)
        for (const std::size_t b : lengths)
            for (const std::size_t c : lengths)
                for (const int step : {1, 2}) word({a, b, c, 1, 1, 1, 1, 1, b}, step);
}

// Checks the kernels for unsorted ids, which fold rows into keys.
template <class T, class Id>
void unsorted(std::size_t longest, int most_segments) {
    using Word = decltype(T::Bits::set);
    constexpr std::size_t kItem = sizeof(Word);
    every_ids(longest, -1, most_segments + 1, false, [&](const std::vector<int>& ids_) {
        const std::size_t n = ids_.size(), segments = static_cast<std::size_t>(most_segments);
        const std::vector<Id> ids(ids_.begin(), ids_.end());
        for (std::size_t width : {1U, 2U, 5U, 19U})
            for (const bool takes_all : {false, true}) {
                if (width > 5 && n > 2) continue;
                Elements<Word> data(n, width, width * kItem, kItem), keys(segments, width, width * kItem, 0);
                const Word fill = static_cast<Word>(Word{1} << (kBits<Word> - 1) | 1);
                for (std::size_t round = 0; round < rounds_of<Word>(n * width); ++round) {
                    data.show(round);
                    init_segments<T>(keys.data(), 0, segments * width);
                    const UnsortedSegments to{keys.data(), static_cast<std::ptrdiff_t>(width * kItem), width, 0,
                                              most_segments, takes_all};
                    const auto step = static_cast<std::ptrdiff_t>(width * kItem);
                    bool has_lowest = false;
                    if (n < 2) {
                        has_lowest = Unsorted<T, Id>::accumulate(&to, data.data(), step, ids.data(), n);
                    } else {  // fold the first row into separate keys, then merge the keys
                        Elements<Word> others(segments, width, width * kItem, 0);
                        UnsortedSegments apart = to;
                        apart.keys = others.data();
                        has_lowest = Unsorted<T, Id>::accumulate(&apart, data.data(), step, ids.data(), 1);
                        has_lowest |= Unsorted<T, Id>::accumulate(&to, data.data() + step, step, ids.data() + 1, n - 1);
                        merge_segments<T>(keys.data(), others.data(), segments * width);
                    }
                    std::vector<std::uint8_t> is_empty(segments, 1);
                    for (const int id : ids_)
                        if (0 <= id && id < most_segments) is_empty[static_cast<std::size_t>(id)] = 0;
                    bool any_lowest = false;  // whether the first element of any row has no colour in this round
                    for (std::size_t r = 0; r < n; ++r)
                        if (0 <= ids_[r] && ids_[r] < most_segments)
                            any_lowest = any_lowest || data.get(r, 0) == 0;
                    // marks empty segments or, if no row has the lowest key, lets the kernel find them by this key
                    finalize_segments<T>(keys.data(), step, has_lowest || takes_all ? is_empty.data() : nullptr, fill,
                                         segments, width);
                    const std::vector<Word> expected = defined<Word>(ids_, data, segments, width, fill, round);
                    bool is_valid = has_lowest == any_lowest;
                    for (std::size_t s = 0; s < segments; ++s)
                        for (std::size_t j = 0; j < width; ++j) is_valid = is_valid && keys.get(s, j) == expected[s * width + j];
                    std::vector<std::size_t> of{segments, width, takes_all, round};
                    of.insert(of.end(), ids_.begin(), ids_.end());
                    expect(is_valid, "unsorted", kItem, of);
                }
            }
    });
}

// Sets of colours of each width, with the code for integers or for floats.
using Colours8 = ColourOrder<std::uint8_t, false>;
using Colours16 = ColourOrder<std::uint16_t, true>;
using Colours32 = ColourOrder<std::uint32_t, true>;
using Colours64 = ColourOrder<std::uint64_t, false>;

template <class T>
void all() {
    using Word = decltype(T::Bits::set);
    constexpr std::size_t kVector = kVectorBytes / sizeof(Word), kPeeled = (kPeelBytes <= 256 ? kPeelBytes : 0) / sizeof(Word),
                          kLong = 3 * kVector + 2 + kPeeled;
    folds<T, 1>(kLong);
    folds<T, 2>(kLong);
    folds<T, 3>(kLong);
    folds<T, 4>(kLong);
    folds<T, 8>(2 * kVector + 2);
    folds_with_items<T>(kLong);
    reductions<T, true>(2 * kVector + 1 < 20 ? 2 * kVector + 1 : 20, kLong);
    reductions<T, true>(2, 20 * kVector + 3);
    reductions<T, false>(19, 2 * kVector + 2);
    reductions<T, false>(3, 5 * kVector + 3);
    merges<T>(5, 9);
    segments<T, std::int32_t>(6, 4);
    segments<T, std::int64_t>(6, 4);
    const auto vector = static_cast<std::size_t>(kVector);
    runs<T, std::int32_t>({1, 2, kShort - 1, kShort, kRun - 1, kRun, kRun + 1, kSingles, vector, 2 * vector + 1});
    unsorted<T, std::int32_t>(4, 3);
    unsorted<T, std::int64_t>(4, 3);
}

template <class T>
constexpr ReduceKernels reduce_kernels() {
    return {start<T>, rows<T>, columns<T>, merge<T>, finish<T>};
}

}  // namespace
// The kernels that reduce a strip of columns, which the kernel for segments of wide rows calls through this table.
const ReduceKernels reduce[] = {reduce_kernels<Colours8>(), reduce_kernels<Colours16>(), reduce_kernels<Colours32>(),
                                reduce_kernels<Colours64>()};
}  // namespace MAXOPS_ISA
}  // namespace maxops

int main() {
    using namespace maxops::MAXOPS_ISA;
    all<Colours8>();
    all<Colours16>();
    all<Colours32>();
    all<Colours64>();
    wrong += touched;
    std::printf("{\"states\":%llu,\"wrong\":%llu}\n", states, wrong);
    return wrong != 0;
}
