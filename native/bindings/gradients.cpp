#include "gradients.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#include "../core/order.h"
#include "../drivers/guarded.h"
#include "../drivers/iterate.h"
#include "tensors.h"

namespace maxops {
namespace {

using MAXOPS_ISA::Float16, MAXOPS_ISA::BFloat16, MAXOPS_ISA::Float32, MAXOPS_ISA::Float64;
constexpr int kMostData = 8;

// The row of maxima (the cell) of each row of data.
struct Rows {
    std::size_t count = 0, cells = 0, inner = 1;
    std::size_t length = 1;  // rows of data in a cell, if there are no indices
    const View* indices = nullptr;
    bool by_offsets = false;
    unsigned repeated = 0;  // a bit for each array of data whose only element is repeated for a whole row

    std::size_t elements() const { return count * inner; }
    std::int64_t index(std::size_t at) const {
        const char* const place = indices->data + static_cast<std::ptrdiff_t>(at) * indices->strides[0];
        return indices->type == static_cast<int>(Type::int64_) ? read_once<std::int64_t>(place)
                                                               : read_once<std::int32_t>(place);
    }
    // volatile, as in segment_ids.h: the value that is checked must be the value that is used.
    template <class Int>
    static std::int64_t read_once(const char* place) {
        return *reinterpret_cast<const volatile Int*>(place);
    }
    // Whether offsets are non-decreasing, from 0 to the number of rows.
    bool are_valid() const {
        if (!by_offsets) return true;
        for (std::size_t k = 0; k < cells; ++k)
            if (index(k + 1) < index(k)) return false;
        return index(0) == 0 && index(cells) == static_cast<std::int64_t>(count);
    }
    // The first row of a cell. Offsets may have changed since the check.
    std::size_t begin(std::size_t cell) const {
        return by_offsets ? std::min(static_cast<std::size_t>(index(cell)), count) : cell * length;
    }
};

template <class To, class From>
To cast(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

template <class Int>
Int all_ones_if(bool is_so) {
    return static_cast<Int>(-static_cast<Int>(is_so));
}

// Without branches, so that compilers vectorize the loops.
inline std::int32_t select(bool is_so, std::int32_t one, std::int32_t other) {
    return other ^ ((one ^ other) & all_ones_if<std::int32_t>(is_so));
}

// How the gradients of a type are divided, and how their ties are counted. Gradients of 16 bits are divided
// as float32 and rounded to the nearest, ties to even.
template <class Order>
struct Quotients {
    using Float = std::conditional_t<sizeof(typename Order::Bits) == 8, double, float>;
    using Count = typename Order::Bits;
    static Float widen(Count bits) { return cast<Float>(bits); }
    static Count narrow(Float value) { return cast<Count>(value); }
};

template <>
struct Quotients<BFloat16> {
    using Float = float;
    using Count = std::int32_t;
    static float widen(std::int16_t bits) { return cast<float>(static_cast<std::uint32_t>(bits) << 16); }
    static std::int16_t narrow(float value) {
        const auto bits = cast<std::int32_t>(value);
        const std::uint32_t number = static_cast<std::uint32_t>(bits) + 0x7FFF + (bits >> 16 & 1);
        return static_cast<std::int16_t>(select((bits & 0x7FFFFFFF) > 0x7F800000, bits >> 16 | 0x40,
                                                static_cast<std::int32_t>(number >> 16)));
    }
};

template <>
struct Quotients<Float16> {
    using Float = float;
    using Count = std::int32_t;
    static constexpr std::int32_t kBias = (127 - 15) << 23;        // of the exponents of float32
    static constexpr std::int32_t kHalf = 126 << 23;               // 0.5: the lowest of its bits is 2^-24
    static constexpr std::int32_t kNormal = kBias + (1 << 23);     // the lowest normal number
    static constexpr std::int32_t kTooLarge = kBias + (31 << 23);  // the lowest number that is infinity

    static float widen(std::int16_t bits) {
        const std::int32_t magnitude = bits & 0x7FFF;
        const std::int32_t subnormal = cast<std::int32_t>(cast<float>(kHalf | magnitude) - 0.5F);
        const std::int32_t normal = (magnitude << 13) + kBias + select(magnitude < 0x7C00, 0, kBias);
        const std::int32_t number = select(magnitude < 0x400, subnormal, normal);
        return cast<float>(number | (bits & std::numeric_limits<std::int32_t>::min()));
    }
    static std::int16_t narrow(float value) {
        const auto bits = cast<std::int32_t>(value);
        const std::int32_t magnitude = bits & 0x7FFFFFFF;
        const std::int32_t least = select(magnitude < kTooLarge, magnitude, kTooLarge);
        const std::int32_t normal = (least - kBias + 0xFFF + (least >> 13 & 1)) >> 13;
        const std::int32_t subnormal = cast<std::int32_t>(cast<float>(magnitude) + 0.5F) - kHalf;
        const std::int32_t nan = 0x7E00 | (magnitude >> 13 & 0x3FF);
        const std::int32_t number =
            select(magnitude > 0x7F800000, nan, select(magnitude < kNormal, subnormal, normal));
        return static_cast<std::int16_t>(number | (bits >> 16 & ~0x7FFF));
    }
};

// The share of each of n elements in the gradient of its maximum. `Order` is the order of the data's type,
// and `Gradient` is the order of the gradients' type.
template <class Order, class Gradient>
struct Step {
    using Bits = typename Order::Bits;
    using Word = typename Gradient::Bits;
    using Count = typename Quotients<Gradient>::Count;

    // All ones if an element equals its maximum in the order. Every NaN equals the NaN of results.
    static Bits holds(Bits element, Bits maximum) {
        constexpr auto kMagnitude = static_cast<Bits>(Order::kSign - 1);
        constexpr auto kInfinity = static_cast<Bits>(Order::kInfinity);
        const Bits is_same = all_ones_if<Bits>(element == maximum);
        const Bits is_nan = all_ones_if<Bits>((element & kMagnitude) > kInfinity);
        return static_cast<Bits>(is_same | (is_nan & all_ones_if<Bits>(maximum == Order::kNaN)));
    }
    static Word share(Word gradient, Count held) {
        using By = Quotients<Gradient>;
        return By::narrow(By::widen(gradient) / static_cast<typename By::Float>(held + (held == 0)));
    }
    static Word part(Bits element, Bits maximum, Word share) {
        return static_cast<Word>(static_cast<Word>(holds(element, maximum)) & share);
    }
    static void count(const Bits* __restrict data, const Bits* __restrict maxima, Count* __restrict held,
                      std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) held[i] -= static_cast<Count>(holds(data[i], maxima[i]));
    }
    // The same for data whose only element is repeated.
    static void count_repeated(Bits element, const Bits* __restrict maxima, Count* __restrict held,
                               std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) held[i] -= static_cast<Count>(holds(element, maxima[i]));
    }
    static void divide(const Word* __restrict gradient, const Count* __restrict held, Word* __restrict shares,
                       std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) shares[i] = share(gradient[i], held[i]);
    }
    static void give(const Bits* __restrict data, const Bits* __restrict maxima,
                     const Word* __restrict shares, Word* __restrict to, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) to[i] = part(data[i], maxima[i], shares[i]);
    }
    static void give_first(const Bits* __restrict data, const Bits* __restrict maxima,
                           const Word* __restrict gradient, Count* __restrict held, Word* __restrict to,
                           std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            const Bits is_held = holds(data[i], maxima[i]);
            const Word is_first = static_cast<Word>(is_held) & all_ones_if<Word>(held[i] == 0);
            to[i] = static_cast<Word>(is_first & gradient[i]);
            held[i] -= static_cast<Count>(is_held);
        }
    }
};

template <class Order, class Gradient>
struct Spread {
    using Steps = Step<Order, Gradient>;
    using Bits = typename Steps::Bits;
    using Word = typename Steps::Word;
    using Count = typename Steps::Count;
    static constexpr std::size_t kBlock = 512;

    const Rows& rows;
    bool to_first;
    const Bits* maxima;
    const Word* gradient;
    std::size_t count;
    const Bits* data[kMostData];
    Word* to[kMostData];  // null if not needed

    // For n maxima from `base` on. each(use) calls use(index in the data, index in the maxima, count).
    template <class Each>
    void run(const Each& each, std::size_t base, std::size_t n, Count* held, Word* share) const {
        for (std::size_t k = 0; k < count; ++k)
            each([&](std::size_t at, std::size_t cell, std::size_t width) {
                if (to_first && to[k] != nullptr)
                    Steps::give_first(data[k] + at, maxima + cell, gradient + cell, held + (cell - base),
                                      to[k] + at, width);
                else if ((rows.repeated >> k & 1) != 0)
                    Steps::count_repeated(*data[k], maxima + cell, held + (cell - base), width);
                else
                    Steps::count(data[k] + at, maxima + cell, held + (cell - base), width);
            });
        if (to_first) return;
        Steps::divide(gradient + base, held, share, n);
        for (std::size_t k = 0; k < count; ++k)
            if (to[k] != nullptr)
                each([&](std::size_t at, std::size_t cell, std::size_t width) {
                    Steps::give(data[k] + at, maxima + cell, share + (cell - base), to[k] + at, width);
                });
    }

    // For one maximum of n consecutive elements.
    void run_one(std::size_t cell, std::size_t at, std::size_t n) const {
        const Bits maximum = maxima[cell];
        Count held = 0;
        for (std::size_t k = 0; k < count && !to_first; ++k)
            for (std::size_t i = at; i < at + n; ++i) held -= Steps::holds(data[k][i], maximum);
        const Word share = to_first ? gradient[cell] : Steps::share(gradient[cell], held);
        for (std::size_t k = 0; k < count; ++k) {
            const Bits* __restrict const from = data[k] + at;
            Word* __restrict const gets = to[k] == nullptr ? nullptr : to[k] + at;
            if (gets != nullptr)
                for (std::size_t i = 0; i < n; ++i)
                    gets[i] = to_first ? Word{0} : Steps::part(from[i], maximum, share);
            if (!to_first || held != 0) continue;
            std::size_t place = 0;
            while (place < n && Steps::holds(from[place], maximum) == 0) ++place;
            if (place == n) continue;
            if (gets != nullptr) gets[place] = share;
            held = 1;
        }
    }

    // For maxima [begin, end), whose rows are consecutive.
    void run_cells(std::size_t begin, std::size_t end) const {
        Count held[kBlock];
        Word share[kBlock];
        for (std::size_t at = begin; at < end;) {
            const std::size_t cell = at / rows.inner, column = at % rows.inner;
            const std::size_t n = std::min({end - at, rows.inner - column, kBlock});
            const std::size_t first = rows.begin(cell);
            // Another thread may change the offsets.
            const std::size_t last = std::max(first, rows.begin(cell + 1));
            if (rows.inner == 1) {
                run_one(at++, first, last - first);
                continue;
            }
            std::fill(held, held + n, 0);
            const auto each = [&](const auto& use) {
                for (std::size_t row = first; row < last; ++row) use(row * rows.inner + column, at, n);
            };
            run(each, at, n, held, share);
            at += n;
        }
    }

    void run_ids() const {
        const std::size_t n = rows.cells * rows.inner;
        const auto held = std::make_unique<Count[]>(n);
        const auto share = std::make_unique<Word[]>(to_first ? 0 : n);
        for (std::size_t k = 0; k < count; ++k)
            if (to[k] != nullptr) std::fill(to[k], to[k] + rows.elements(), 0);  // for rows in no segment
        const auto each = [&](const auto& use) {
            for (std::size_t row = 0; row < rows.count; ++row) {
                const auto cell = static_cast<std::size_t>(rows.index(row));
                if (cell < rows.cells) use(row * rows.inner, cell * rows.inner, rows.inner);
            }
        };
        run(each, 0, n, held.get(), share.get());
    }
};

template <class Order, class Gradient>
Fault spread(const Rows& rows, bool to_first, const View& maxima, const View& gradient, const View* data,
             const Made* made, std::size_t count) {
    using All = Spread<Order, Gradient>;
    using Word = typename All::Word;
    All all{rows,
            to_first,
            reinterpret_cast<const typename All::Bits*>(maxima.data),
            reinterpret_cast<const Word*>(gradient.data),
            count,
            {},
            {}};
    for (std::size_t k = 0; k < count; ++k) {
        all.data[k] = reinterpret_cast<const typename All::Bits*>(data[k].data);
        all.to[k] = made[k] ? reinterpret_cast<Word*>(made[k].data()) : nullptr;
    }
    if (rows.indices != nullptr && !rows.by_offsets) {
        all.run_ids();
        return {};
    }
    const std::size_t n = maxima.elements();
    if (n == 0) return {};
    const std::size_t bytes = 2 * (n + count * rows.elements()) * sizeof(Word);
    return finished(parallel_for({kernels_of(maxima.type), poll_signals}, n, task_items(n, bytes / n + 1),
                                 bytes,
                                 [&](std::size_t begin, std::size_t end) { all.run_cells(begin, end); }));
}

using Spreader = Fault (*)(const Rows&, bool, const View&, const View&, const View*, const Made*,
                           std::size_t);

// For data and gradients of these types; null if there is none.
Spreader spreader(int data, int gradient) {
    const bool is_same = data == gradient, is_single = gradient == static_cast<int>(Type::float32_);
    switch (static_cast<Type>(data)) {
        case Type::float16_:
            return is_same ? spread<Float16, Float16> : is_single ? spread<Float16, Float32> : nullptr;
        case Type::bfloat16_:
            return is_same ? spread<BFloat16, BFloat16> : is_single ? spread<BFloat16, Float32> : nullptr;
        case Type::float32_:
            return is_same ? spread<Float32, Float32> : nullptr;
        case Type::float64_:
            return is_same ? spread<Float64, Float64> : nullptr;
        default:
            return nullptr;
    }
}

// Whether each element is aligned to its size.
bool is_aligned(const View& array) {
    const std::size_t itemsize = kernels_of(array.type).itemsize;
    std::uintptr_t places = reinterpret_cast<std::uintptr_t>(array.data);
    for (int axis = 0; axis < array.rank; ++axis) places |= static_cast<std::uintptr_t>(array.strides[axis]);
    return places % itemsize == 0;
}

// False if the arguments are not supported.
bool read(PyObject* const* args, std::size_t count, std::int64_t needed, Tensors* tensors, Rows* rows,
          View* indices, View* views, Item* items) {
    std::int64_t length = 0, inner = 0;
    if (!read_integer(args[2], &length) || !read_integer(args[3], &inner) || length < 1 || inner < 1 ||
        !read_flag(args[5], &rows->by_offsets))
        return false;
    rows->length = static_cast<std::size_t>(length);
    rows->inner = static_cast<std::size_t>(inner);
    std::size_t most = 0;
    for (std::size_t k = 0; k < count + 2; ++k) {
        if (!tensors->read(args[6 + k], views + k, items + k) || !views[k].contiguous || views[k].swapped ||
            !is_aligned(views[k]) || (k != 1 && views[k].type != views[0].type))
            return false;
        if (k >= 2) most = std::max(most, views[k].elements());
    }
    const std::size_t maxima = views[0].elements();
    if (views[1].elements() != maxima || maxima % rows->inner != 0 || most % rows->inner != 0) return false;
    rows->cells = maxima / rows->inner;
    rows->count = most / rows->inner;
    for (std::size_t k = 0; k < count; ++k) {
        if (views[2 + k].elements() == most) continue;
        if (views[2 + k].elements() != 1 || rows->count != 1 || (needed >> k & 1) != 0) return false;
        rows->repeated |= 1U << k;
    }
    if (!is_given(args[4]))
        return rows->count % rows->length == 0 && rows->count / rows->length == rows->cells;
    if (!tensors->read(args[4], indices, items) || indices->rank != 1 || indices->swapped ||
        !is_aligned(*indices) ||
        (indices->type != static_cast<int>(Type::int32_) && indices->type != static_cast<int>(Type::int64_)))
        return false;
    rows->indices = indices;
    return indices->elements() == (rows->by_offsets ? rows->cells + 1 : rows->count) && rows->are_valid();
}

// The results of a call. No destructor: see Output.
struct Results {
    Made of[kMostData];

    PyObject* fail() {
        for (Made& each : of) each.drop();
        return nullptr;
    }
    PyObject* give(std::size_t count) {
        PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(count));
        bool is_given = tuple != nullptr;
        for (std::size_t k = 0; is_given && k < count; ++k) {
            PyObject* const each = of[k] ? of[k].give() : Py_NewRef(Py_None);
            is_given = each != nullptr;
            if (is_given) PyTuple_SetItem(tuple, static_cast<Py_ssize_t>(k), each);
        }
        if (is_given) return tuple;
        Py_XDECREF(tuple);
        return fail();
    }
};

// Null without an error if Python must compute the gradients.
PyObject* run_spread(PyObject* const* args, std::size_t count) {
    bool to_first = false;
    std::int64_t needed = 0;
    Rows rows;
    View indices, views[kMostData + 2];
    Item items[kMostData + 2];
    Tensors tensors(Rules{}, args, static_cast<Py_ssize_t>(count) + 6 + 2, nullptr);
    if (!read_flag(args[0], &to_first) || !read_integer(args[1], &needed) ||
        !read(args, count, needed, &tensors, &rows, &indices, views, items))
        return nullptr;
    const int type = views[1].type;
    const Spreader spread_all = spreader(views[0].type, type);
    if (spread_all == nullptr || count * rows.elements() >> 31 != 0) return nullptr;
    std::size_t bytes = rows.indices != nullptr ? indices.bytes() : 0;
    for (std::size_t k = 0; k < count + 2; ++k) bytes += views[k].bytes();
    Release release(bytes);
    if (tensors.needs_python(release)) return nullptr;
    release.own(views, count + 2);
    if (rows.indices != nullptr) release.own(&indices);
    Results results;
    for (std::size_t k = 0; k < count; ++k) {
        if ((needed >> k & 1) == 0) continue;
        npy_intp dims[kMaxRank];
        const View& data = views[2 + k];
        std::copy(data.sizes, data.sizes + data.rank, dims);
        bool is_mapped = false;
        results.of[k] = tensors.framework() != nullptr
                            ? Made::tensor(tensors.framework(), type, data.rank, dims)
                            : Made::array(type, data.rank, dims, nullptr, &is_mapped);
        if (!results.of[k]) return results.fail();
    }
    const Fault fault = run_released(release, bytes, [&] {
        return guarded(
            [&] { return spread_all(rows, to_first, views[0], views[1], views + 2, results.of, count); });
    });
    return fault ? results.fail() : results.give(count);
}

}  // namespace

PyObject* py_spread(PyObject*, PyObject* const* args, Py_ssize_t count) {
    if (count < 9 || count > 8 + kMostData) Py_RETURN_NONE;
    try {
        PyObject* const results = run_spread(args, static_cast<std::size_t>(count) - 8);
        return results != nullptr || PyErr_Occurred() ? results : Py_NewRef(Py_None);
    } catch (const std::bad_alloc&) {
        set_out_of_memory();
        return nullptr;
    }
}

}  // namespace maxops
