// Checks the outputs of kernels/segment_avx512.h for each type. The shipped header is compiled with vectors whose lanes
// are terms (terms.h). Ids are numbers, and every small pattern of ids is tried. Keys are variables. Each row of the
// output must be the term that the header computes for the maximum of exactly the keys of its segment. Rows outside the
// walk must not change. lanes.cpp proves, for all values, that the terms for keys and for stored values are correct.
#include <sanitizer/asan_interface.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "segment_terms.h"

namespace maxops {
namespace MAXOPS_ISA {
const ReduceKernels reduce[kOrders] = {};  // no function of this program calls these kernels
namespace {

using terms::all_terms;

unsigned long long states = 0, wrong = 0;

// A buffer of an exact size. Accesses before and after it are errors.
class Buffer {
public:
    explicit Buffer(std::size_t bytes) : bytes_(bytes), memory_(bytes + 2 * kApart) {
        ASAN_POISON_MEMORY_REGION(memory_.data(), kApart);
        ASAN_POISON_MEMORY_REGION(data() + bytes_, kApart);
    }
    ~Buffer() { ASAN_UNPOISON_MEMORY_REGION(memory_.data(), memory_.size()); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    char* data() { return memory_.data() + kApart; }

private:
    static constexpr std::size_t kApart = 64;
    std::size_t bytes_;
    std::vector<char> memory_;
};

// The values that represent keys in memory: 1 and above for rows of the data, then these constants, then stored terms.
constexpr unsigned kMostRows = 100, kCarry = 110, kFill = 119, kUntouched = 120;
static_assert(kUntouched < terms::kFirstStored);

struct Call {
    std::vector<std::int64_t> ids;
    std::int64_t previous = -1;
    std::int64_t segments = 0;  // the number of segments; 0: the highest id + 1
    bool is_filled = false;
    std::int64_t base = 0;  // the first segment whose output row exists; no id is lower
};

template <class T, class Id>
class Walk {
public:
    Walk() {
        // The keys that other loops have stored in memory as numbers represent rows, like the keys that are terms.
        std::unordered_map<std::uint32_t, std::uint32_t> same;
        std::vector<Item<T>> items(kMostRows);
        terms::variables() = {reinterpret_cast<const char*>(items.data()), kMostRows, sizeof(Item<T>)};
        for (unsigned r = 0; r < kMostRows; ++r) {
            keys_.push_back(Keys::load(1, &items[r]).lanes[0].as_term(kBits));
            if (kIsToldApart) same[number_of(r + 1)] = keys_[r];
        }
        all_terms().set_same(std::move(same));
    }

    void operator()(const Call& call) {
        const std::size_t n = call.ids.size(), size = sizeof(Item<T>);
        if (n > kMostRows) std::abort();
        const std::int64_t highest = *std::max_element(call.ids.begin(), call.ids.end());
        const std::int64_t segments = call.segments != 0 ? call.segments : std::max(highest, call.previous) + 1;
        const auto rows = static_cast<std::size_t>(segments - call.base);
        Buffer data(n * size), out(rows * size), ids(n * sizeof(Id));
        for (std::size_t r = 0; r < n; ++r) {
            put(data.data() + r * size, static_cast<unsigned>(r + 1));
            const auto id = static_cast<Id>(call.ids[r]);
            std::memcpy(ids.data() + r * sizeof(Id), &id, sizeof id);
        }
        for (std::size_t s = 0; s < rows; ++s) put(out.data() + s * size, call.is_filled ? kFill : kUntouched);
        if (call.previous >= call.base) put(out.data() + static_cast<std::size_t>(call.previous - call.base) * size, kCarry);

        SegmentWalk walk{};
        walk.out = out.data() - call.base * static_cast<std::int64_t>(size);
        walk.out_stride = static_cast<std::ptrdiff_t>(size);
        walk.width = 1;
        walk.num_segments = segments;
        walk.fill = kFill;
        walk.is_filled = call.is_filled;
        walk.previous = call.previous;
        const auto* items = reinterpret_cast<const Item<T>*>(data.data());
        const Ids<Id> all{reinterpret_cast<const Unaligned<Id>*>(ids.data()), n, segments, false};
        const typename T::Key before = call.previous < 0 ? T::kLowestKey : T::key(static_cast<typename T::Bits>(kCarry));
        ColumnWalk<T> at{call.previous, before};
        terms::variables() = {data.data(), n, size};
        terms::stored().clear();
        const std::size_t taken = avx512::VectorSegments<T, Id>::take(&walk, items, all, 0, &at);

        bool is_valid = taken <= n && may_stop(call, segments, taken);
        const std::int64_t last = taken > 0 ? call.ids[taken - 1] : call.previous;
        is_valid = is_valid && at.previous == last;
        std::size_t r = 0;
        for (std::int64_t s = call.base; s < segments && is_valid; ++s) {
            const std::size_t first = r;
            while (r < taken && call.ids[r] == s) ++r;
            const std::uint64_t held = get(out.data() + static_cast<std::size_t>(s - call.base) * size);
            const bool is_carried = s == call.previous;
            if (r == first) {  // the segment has no rows: it is empty, or outside the rows that were processed
                const bool is_gap = s > call.previous && s < last;
                is_valid = held == (is_carried ? kCarry : call.is_filled || is_gap ? kFill : kUntouched);
            } else if (held >= terms::kFirstStored) {
                const std::size_t which = held - terms::kFirstStored;
                is_valid = which < terms::stored().size() && terms::stored()[which] == maximum(first, r, is_carried);
            } else {  // a segment of one row, which single_rows copied
                is_valid = r == first + 1 && !is_carried && held == r && taken >= kSinglesLeast;
            }
            if (s == last && taken > 0) is_valid = is_valid && T::bits(at.best) == bits_of(held);
        }
        is_valid = is_valid && r == taken;
        states += 1;
        if (!is_valid && wrong++ < 20) {
            std::fprintf(stderr, "items of %zu bytes, ids of %zu, previous %lld, %lld segments, filled %d, taken %zu, ids",
                         size, sizeof(Id), static_cast<long long>(call.previous), static_cast<long long>(segments),
                         call.is_filled, taken);
            for (const std::int64_t id : call.ids) std::fprintf(stderr, " %lld", static_cast<long long>(id));
            std::fprintf(stderr, "\n");
        }
    }

private:
    using Keys = avx512::KeyLanes<T>;
    using Lanes = typename Keys::Lanes;
    static constexpr unsigned kCount = Lanes::kCount, kBits = 512 / kCount;
    static constexpr std::size_t kSinglesLeast = kCount + kSingles;
    static constexpr bool kIsToldApart = !std::is_same_v<T, BoolOrder>;  // rows have different keys; as bool, all are 1

    static std::uint64_t get(const char* from) {
        std::uint64_t value = 0;
        std::memcpy(&value, from, sizeof(Item<T>));
        return value;
    }
    static void put(char* to, unsigned value) {
        const std::uint64_t word = value;
        std::memcpy(to, &word, sizeof(Item<T>));
    }
    static typename T::Bits bits_of(std::uint64_t value) { return T::bits(T::key(static_cast<typename T::Bits>(value))); }
    // The key of known bits of a result, as a term.
    static std::uint32_t number_of(unsigned bits) { return Keys::splat(bits_of(bits)).lanes[0].as_term(kBits); }
    // The term that the kernel stores for the maximum of rows [begin, end) and, if `is_carried`, of the carried key.
    std::uint32_t maximum(std::size_t begin, std::size_t end, bool is_carried) {
        auto& known = maxima_[begin][end][is_carried];
        if (known != 0) return known;
        terms::Terms::Set set(keys_.begin() + static_cast<std::ptrdiff_t>(begin), keys_.begin() + static_cast<std::ptrdiff_t>(end));
        if (is_carried) set.push_back(number_of(kCarry));
        terms::Vector v = Lanes::splat(0);
        v.lanes[0] = {0, all_terms().maximum(set, kBits)};
        Item<T> to[kCount];
        Keys::store(1, to, v);
        known = terms::stored().back();
        terms::stored().pop_back();
        return known;
    }
    // Whether the kernel may stop at a row and leave the rest to other loops: if the ids of the next vector are not
    // sorted, or are outside the output, or if a long run begins.
    static bool may_stop(const Call& call, std::int64_t segments, std::size_t at) {
        const std::size_t n = call.ids.size(), left = n - at, m = std::min<std::size_t>(left, kCount);
        if (left == 0) return true;
        std::int64_t before = std::max<std::int64_t>(at > 0 ? call.ids[at - 1] : call.previous, 0);
        for (std::size_t k = at; k < std::min(at + m + 1, n); ++k) {
            if (call.ids[k] < before) return true;
            before = call.ids[k];
        }
        const std::int64_t first = call.ids[at], last = call.ids[at + m - 1];
        const bool is_far = kBits < 8 * sizeof(Id) && last - (at > 0 ? call.ids[at - 1] : call.previous) > 0x7FFFFFFF;
        return last >= segments || is_far || (left > kCount && left >= kRun && call.ids[at + kRun - 1] == first);
    }

    std::vector<std::uint32_t> keys_;
    std::uint32_t maxima_[kMostRows + 1][kMostRows + 1][2] = {};
};

// ---------------------------------------------------------------------------- the calls

using Act = std::function<void(const Call&)>;
using Steps = std::vector<std::int64_t>;

// Returns a call whose ids increase by these steps, starting from `previous`.
Call by_steps(std::int64_t previous, const Steps& steps, bool is_filled) {
    Call call;
    call.previous = previous;
    call.is_filled = is_filled;
    std::int64_t id = previous;
    for (const std::int64_t step : steps) call.ids.push_back(id += step);
    return call;
}
// Walks from the beginning of the output, and from a segment that already has rows.
void everywhere(const Steps& steps, const Act& walk) {
    for (const bool is_filled : {false, true})
        for (const std::int64_t previous : {-1, 2})
            if (previous >= 0 || steps[0] > 0) walk(by_steps(previous, steps, is_filled));
}
// Calls act(steps) for every sequence of `length` steps that are less than `below`.
void every_steps(std::size_t length, int below, const std::function<void(const Steps&)>& act) {
    Steps steps(length, 0);
    for (;;) {
        act(steps);
        std::size_t k = 0;
        while (k < length && steps[k] == below - 1) steps[k++] = 0;
        if (k == length) return;
        steps[k] += 1;
    }
}
// Calls act(steps) for every set of positions at which segments end in n rows. Unless `is_thorough`, omits sets in
// which both the ends and the other positions are many.
void every_ends(std::size_t n, bool is_thorough, const std::function<void(const Steps&)>& act) {
    for (unsigned ends = 0; ends < 1U << (n - 1); ++ends) {
        const int few = __builtin_popcount(ends), many = static_cast<int>(n) - 1 - few;
        if (!is_thorough && n > 8 && few > 1 && many > 1) continue;
        Steps steps(n, 0);
        for (std::size_t k = 1; k < n; ++k) steps[k] = ends >> (k - 1) & 1;
        act(steps);
    }
}

// Tries rows that fill part of a vector, a whole vector, and a vector and part of the next.
void vectors(unsigned count, bool is_thorough, const Act& walk) {
    for (std::size_t n = 1; n <= (is_thorough ? 7 : 5); ++n)
        every_steps(n, 3, [&](const Steps& steps) { everywhere(steps, walk); });
    for (std::size_t n = 6; n <= count; ++n)
        every_ends(n, is_thorough && n < 12, [&](Steps steps) {
            for (steps[0] = 0; steps[0] < 3; ++steps[0]) everywhere(steps, walk);
        });
    // combine each of a few patterns with all beginnings and endings, and each of many patterns with one of them
    const auto whole = [&](const Steps& some, unsigned which) {
        for (unsigned k = 0; k < 18; ++k) {
            if (which != 0 && which % 18 != k) continue;
            Steps steps = some;
            steps[0] = k % 3;
            steps.push_back(k / 3 % 3);
            if (k >= 9) steps.push_back(k % 2);
            walk(by_steps(k % 3 > 0 && k < 9 ? -1 : 2, steps, k >= 15));
        }
    };
    every_ends(count, false, [&](const Steps& steps) { whole(steps, 0); });
    if (!is_thorough) return;
    unsigned number = 0;
    every_ends(count, true, [&](const Steps& steps) { whole(steps, ++number); });
    if (count == 8)
        every_steps(count - 1, 3, [&](Steps steps) {
            steps.insert(steps.begin(), 0);
            whole(steps, ++number);
        });
}

// Tries gaps of different sizes at one and two positions, among long runs, single rows and runs of two rows.
void gaps(unsigned count, bool is_thorough, const Act& walk) {
    for (const std::size_t n : {3U, count, count + 1, 2 * count + 3})
        for (const int base : {0, 1, 2})
            for (std::size_t a = 0; a < n; a += is_thorough ? 1 : 3)
                for (std::size_t b = a; b < n; b += is_thorough ? 2 : 7)
                    for (const std::int64_t gap : {2, 7, 8, 9, 15, 16, 17, 31, 33, 62, 63, 64, 65, 90}) {
                        Steps steps(n);
                        for (std::size_t k = 0; k < n; ++k) steps[k] = base == 2 ? static_cast<std::int64_t>(k % 2) : base;
                        steps[0] = 1;
                        steps[b] = 3;
                        steps[a] = gap;
                        walk(by_steps(a % 2 == 0 ? -1 : 1, steps, gap % 2 == 1));
                    }
}

// Tries stretches of single rows and long runs, which other loops process, followed by other rows.
void stretches(unsigned count, bool has_singles, const Act& walk) {
    const auto add = [&](std::size_t rows, std::int64_t step, std::size_t after, std::int64_t then) {
        if (rows + after > kMostRows) return;
        Steps steps(rows, step);
        steps.insert(steps.end(), after, then);
        for (steps[0] = 0; steps[0] < 3; ++steps[0]) everywhere(steps, walk);
    };
    for (std::size_t after = 0; after < count + 3; after += after < 3 ? 1 : 5) {
        for (const std::size_t more : {std::size_t{0}, std::size_t{1}, kSingles - 1, kSingles, 2 * kSingles})
            for (const std::int64_t then : {0, 1, 2})
                if (has_singles) add(count + more, 1, after, then);
        for (const std::size_t run : {kRun - 1, kRun, kRun + 1})
            if (run > count) add(run, 0, after, 1);
    }
}

// Tries ids that are unsorted or outside the output, at which the kernel must stop, and ids whose lower half is close
// to its lowest or highest value.
void ids_of_any_kind(unsigned count, std::size_t size, const Act& walk) {
    every_steps(4, 5, [&](const Steps& ids) {
        for (const std::int64_t previous : {-1, 1}) {
            Call call;
            for (const std::int64_t id : ids) call.ids.push_back(id - 1);
            call.previous = previous;
            call.segments = 3;
            walk(call);
        }
    });
    for (std::size_t down = 0; down < 2 * count; ++down) {
        Steps steps(2 * count, 1);
        steps[down] = -1;
        for (const std::int64_t too_few : {0, 1}) {
            Call call = by_steps(20, steps, false);
            call.segments = 20 + 2 * count + 1 - too_few;
            walk(call);
        }
    }
    for (const std::int64_t base : {std::int64_t{0x7FFFFFC8}, std::int64_t{0xFFFFFFE8}, std::int64_t{1} << 40}) {
        if (size == 4 && base > 0x7FFFFFFF) continue;
        for (const std::size_t n : {5U, count, count + 1})
            for (const std::int64_t gap : {1, 2, 5})
                for (const std::int64_t first : {0, 1, 4}) {
                    Steps steps(n);
                    for (std::size_t k = 0; k < n; ++k) steps[k] = static_cast<std::int64_t>(k % 2);
                    steps[n / 2] = gap;
                    steps[0] = first;
                    Call call = by_steps(base + 16, steps, false);
                    call.base = base;
                    walk(call);
                }
    }
    if (size == 8 && count == 16)  // far from the previous segment, although the lower halves are close or equal
        for (const std::int64_t base : {std::int64_t{1} << 32, std::int64_t{1} << 40})
            for (const std::size_t n : {3U, count, count + 1}) {
                Call call;
                call.previous = 1;
                call.ids.assign(n, base + 1);
                call.base = base;
                call.segments = base + 2;
                walk(call);
            }
}

template <class T, class Id>
void all(bool is_thorough) {
    Walk<T, Id> walk;
    const Act act = [&](const Call& call) { walk(call); };
    constexpr unsigned kCount = avx512::KeyLanes<T>::Lanes::kCount;
    vectors(kCount, is_thorough, act);
    gaps(kCount, is_thorough, act);
    // not single rows of bools, because the loop for single rows makes all of them 1, so that rows look the same
    stretches(kCount, !std::is_same_v<T, BoolOrder>, act);
    ids_of_any_kind(kCount, sizeof(Id), act);
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops

int main() {
    using namespace maxops::MAXOPS_ISA;
    // Types differ in their keys. The loops differ only by the widths of lanes and ids, so two types are tried
    // thoroughly.
    all<IntegerOrder<std::int32_t>, std::int64_t>(true);
    all<Float64, std::int32_t>(true);
#define MAXOPS_TYPE(name, order, ...)                                                     \
    all<order, std::conditional_t<order::is_float, std::int64_t, std::int32_t>>(          \
        std::is_same_v<order, IntegerOrder<std::int32_t>> || std::is_same_v<order, Float64>);
#define MAXOPS_IGNORING_NAN(name, order) all<order, std::int64_t>(false);
#include "../../native/core/types.def"
    std::printf("{\"states\":%llu,\"wrong\":%llu}\n", states, wrong);
    return wrong != 0;
}
