#include "gradients.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include "../core/order.h"
#include "../drivers/guarded.h"
#include "../drivers/iterate.h"
#include "tensors.h"

namespace maxops {
namespace {

using MAXOPS_ISA::Float32, MAXOPS_ISA::Float64;
constexpr int kMostData = 8;

// The row of maxima (the cell) of each row of data.
struct Rows {
    std::size_t count = 0, cells = 0, inner = 1;
    std::size_t length = 1;  // rows of data in a cell, if there are no indices
    const View* indices = nullptr;
    bool by_offsets = false;

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

// The share of each of n elements in the gradient of its maximum. It computes on words without branches, so
// that compilers vectorize the loops.
template <class Order, class Float>
struct Step {
    using Bits = typename Order::Bits;

    // All ones if an element equals its maximum in the order. Every NaN equals the NaN of results.
    static Bits holds(Bits element, Bits maximum) {
        constexpr auto kMagnitude = static_cast<Bits>(Order::kSign - 1);
        constexpr auto kInfinity = static_cast<Bits>(Order::kInfinity);
        const Bits is_same = -static_cast<Bits>(element == maximum);
        const Bits is_nan = -static_cast<Bits>((element & kMagnitude) > kInfinity);
        return is_same | (is_nan & -static_cast<Bits>(maximum == Order::kNaN));
    }
    static Bits share(Bits gradient, Bits held) {
        Float value;
        std::memcpy(&value, &gradient, sizeof value);
        value /= static_cast<Float>(held + static_cast<Bits>(held == 0));
        std::memcpy(&gradient, &value, sizeof value);
        return gradient;
    }
    static void count(const Bits* __restrict data, const Bits* __restrict maxima, Bits* __restrict held,
                      std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) held[i] -= holds(data[i], maxima[i]);
    }
    static void divide(const Bits* __restrict gradient, const Bits* __restrict held, Bits* __restrict shares,
                       std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) shares[i] = share(gradient[i], held[i]);
    }
    static void give(const Bits* __restrict data, const Bits* __restrict maxima,
                     const Bits* __restrict shares, Bits* __restrict to, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) to[i] = holds(data[i], maxima[i]) & shares[i];
    }
    static void give_first(const Bits* __restrict data, const Bits* __restrict maxima,
                           const Bits* __restrict gradient, Bits* __restrict held, Bits* __restrict to,
                           std::size_t n) {
        for (std::size_t i = 0; i < n; ++i) {
            const Bits is_held = holds(data[i], maxima[i]);
            to[i] = is_held & -static_cast<Bits>(held[i] == 0) & gradient[i];
            held[i] -= is_held;
        }
    }
};

template <class Order, class Float>
struct Spread {
    using Bits = typename Order::Bits;
    using Steps = Step<Order, Float>;
    static constexpr std::size_t kBlock = 512;

    const Rows& rows;
    bool to_first;
    const Bits* maxima;
    const Bits* gradient;
    std::size_t count;
    const Bits* data[kMostData];
    Bits* to[kMostData];  // null if not needed

    // For n maxima from `base` on. each(use) calls use(index in the data, index in the maxima, count).
    template <class Each>
    void run(const Each& each, std::size_t base, std::size_t n, Bits* held, Bits* share) const {
        for (std::size_t k = 0; k < count; ++k)
            each([&](std::size_t at, std::size_t cell, std::size_t width) {
                if (to_first && to[k] != nullptr)
                    Steps::give_first(data[k] + at, maxima + cell, gradient + cell, held + (cell - base),
                                      to[k] + at, width);
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
        Bits held = 0;
        for (std::size_t k = 0; k < count && !to_first; ++k)
            for (std::size_t i = at; i < at + n; ++i) held -= Steps::holds(data[k][i], maximum);
        const Bits share = Steps::share(gradient[cell], held);
        for (std::size_t k = 0; k < count; ++k) {
            const Bits* __restrict const from = data[k] + at;
            Bits* __restrict const gets = to[k] == nullptr ? nullptr : to[k] + at;
            if (gets != nullptr)
                for (std::size_t i = 0; i < n; ++i)
                    gets[i] = to_first ? 0 : Steps::holds(from[i], maximum) & share;
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
        Bits held[kBlock];
        Bits share[kBlock];
        for (std::size_t at = begin; at < end;) {
            const std::size_t cell = at / rows.inner, column = at % rows.inner;
            const std::size_t n = std::min({end - at, rows.inner - column, kBlock});
            const std::size_t first = rows.begin(cell), last = rows.begin(cell + 1);
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
        const auto held = std::make_unique<Bits[]>(n);
        const auto share = std::make_unique<Bits[]>(to_first ? 0 : n);
        for (std::size_t k = 0; k < count; ++k)
            if (to[k] != nullptr)
                std::fill(to[k], to[k] + rows.count * rows.inner, 0);  // for rows in no segment
        const auto each = [&](const auto& use) {
            for (std::size_t row = 0; row < rows.count; ++row) {
                const auto cell = static_cast<std::size_t>(rows.index(row));
                if (cell < rows.cells) use(row * rows.inner, cell * rows.inner, rows.inner);
            }
        };
        run(each, 0, n, held.get(), share.get());
    }
};

template <class Order, class Float>
Fault spread(const Rows& rows, bool to_first, const View& maxima, const View& gradient, const View* data,
             const Made* made, std::size_t count) {
    using All = Spread<Order, Float>;
    using Bits = typename Order::Bits;
    All all{rows,
            to_first,
            reinterpret_cast<const Bits*>(maxima.data),
            reinterpret_cast<const Bits*>(gradient.data),
            count,
            {},
            {}};
    std::size_t bytes = 2 * maxima.bytes();
    for (std::size_t k = 0; k < count; ++k) {
        all.data[k] = reinterpret_cast<const Bits*>(data[k].data);
        all.to[k] = made[k] ? reinterpret_cast<Bits*>(made[k].data()) : nullptr;
        bytes += 2 * data[k].bytes();
    }
    if (rows.indices != nullptr && !rows.by_offsets) {
        all.run_ids();
        return {};
    }
    const std::size_t n = maxima.elements();
    if (n == 0) return {};
    return finished(parallel_for({kernels_of(maxima.type), poll_signals}, n, task_items(n, bytes / n + 1),
                                 bytes,
                                 [&](std::size_t begin, std::size_t end) { all.run_cells(begin, end); }));
}

// Whether each element is aligned to its size.
bool is_aligned(const View& array) {
    const std::size_t itemsize = kernels_of(array.type).itemsize;
    std::uintptr_t places = reinterpret_cast<std::uintptr_t>(array.data);
    for (int axis = 0; axis < array.rank; ++axis) places |= static_cast<std::uintptr_t>(array.strides[axis]);
    return places % itemsize == 0;
}

// False if the arguments are not supported.
bool read(PyObject* const* args, std::size_t count, Tensors* tensors, Rows* rows, View* indices, View* views,
          Item* items) {
    std::int64_t length = 0, inner = 0;
    if (!read_integer(args[2], &length) || !read_integer(args[3], &inner) || length < 1 || inner < 1 ||
        !read_flag(args[5], &rows->by_offsets))
        return false;
    rows->length = static_cast<std::size_t>(length);
    rows->inner = static_cast<std::size_t>(inner);
    for (std::size_t k = 0; k < count + 2; ++k)
        if (!tensors->read(args[6 + k], views + k, items + k) || !views[k].contiguous || views[k].swapped ||
            !is_aligned(views[k]) || views[k].type != views[0].type || views[k].elements() % rows->inner != 0)
            return false;
    if (views[0].elements() != views[1].elements()) return false;
    rows->cells = views[0].elements() / rows->inner;
    rows->count = views[2].elements() / rows->inner;
    for (std::size_t k = 3; k < count + 2; ++k)
        if (views[k].elements() != views[2].elements()) return false;
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
        !read(args, count, &tensors, &rows, &indices, views, items))
        return nullptr;
    const int type = views[0].type;
    if ((type != static_cast<int>(Type::float32_) && type != static_cast<int>(Type::float64_)) ||
        count * views[2].elements() >> 31 != 0)
        return nullptr;
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
    const bool is_single = type == static_cast<int>(Type::float32_);
    const Fault fault = run_released(release, bytes, [&] {
        return guarded([&] {
            return (is_single ? spread<Float32, float> : spread<Float64, double>)(rows, to_first, views[0],
                                                                                  views[1], views + 2,
                                                                                  results.of, count);
        });
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
