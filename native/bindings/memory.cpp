#include "memory.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "../drivers/cache.h"

namespace maxops {
namespace {

std::atomic<std::size_t> largest_output{SIZE_MAX};

// The range of bytes of an array's elements: [first, last).
struct Extent {
    std::uintptr_t first, last;

    explicit Extent(const View& array) {
        first = last = reinterpret_cast<std::uintptr_t>(array.data);
        if (array.elements() == 0) return;
        for (int axis = 0; axis < array.rank; ++axis) {
            const std::ptrdiff_t reach = (array.sizes[axis] - 1) * array.strides[axis];
            (reach < 0 ? first : last) += static_cast<std::uintptr_t>(reach);
        }
        last += kernels_of(array.type).itemsize;
    }
    bool overlaps(const Extent& other) const { return first < other.last && other.first < last; }
};

// A sufficient condition: from the innermost axis outwards, each stride is larger than the extent of the axes
// inside it.
bool has_no_internal_overlap(const View& array) {
    if (array.contiguous) return true;
    struct Axis {
        std::ptrdiff_t stride, size;
    };
    Axis axes[kMaxRank];
    int rank = 0;
    for (int axis = 0; axis < array.rank; ++axis)
        if (array.sizes[axis] > 1) axes[rank++] = {std::abs(array.strides[axis]), array.sizes[axis]};
    std::sort(axes, axes + rank, [](const Axis& a, const Axis& b) { return a.stride < b.stride; });
    auto within = static_cast<std::ptrdiff_t>(kernels_of(array.type).itemsize);
    for (int i = 0; i < rank; ++i) {
        if (axes[i].stride < within) return false;
        within += axes[i].stride * (axes[i].size - 1);
    }
    return true;
}

bool is_same_array(const View& a, const View& b) {
    return a.data == b.data && a.swapped == b.swapped && a.has_shape_of(b) &&
           std::equal(a.strides, a.strides + a.rank, b.strides);
}

}  // namespace

void set_largest_output(std::size_t bytes) {
    largest_output = bytes;
}

// The size in bytes as a double, which cannot wrap around. Exact up to 2^53 bytes.
static double byte_count(std::size_t itemsize, int rank, const npy_intp* dims) {
    if (std::find(dims, dims + rank, 0) != dims + rank) return 0;  // infinity times 0 is NaN
    return std::accumulate(dims, dims + rank, static_cast<double>(itemsize), std::multiplies<double>());
}

bool fits_memory(std::size_t itemsize, int rank, const npy_intp* dims) {
    return byte_count(itemsize, rank, dims) <= static_cast<double>(largest_output);
}

PyObject* out_of_memory_error() {
    static PyObject* const error = PyErr_NewExceptionWithDoc(
        "maxops._native.OutOfMemoryError", "A call ran out of memory.", PyExc_MemoryError, nullptr);
    return error;
}

void set_out_of_memory() {
    PyErr_SetString(out_of_memory_error(), "out of memory");
}

// Replaces NumPy's error for a failed allocation or a size that overflows.
static void set_out_of_memory_from_numpy() {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject* text = value == nullptr ? nullptr : PyObject_Str(value);
    if (text == nullptr) {
        PyErr_Clear();
        set_out_of_memory();
    } else {
        PyErr_SetObject(out_of_memory_error(), text);
    }
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

PyArrayObject* new_output(int type_number, int rank, const npy_intp* dims, const int* axes, bool* is_mapped) {
    PyArray_Descr* descr = PyArray_DescrFromType(type_number);
    const auto itemsize = static_cast<std::size_t>(PyDataType_ELSIZE(descr));
    if (!fits_memory(itemsize, rank, dims)) {
        Py_DECREF(descr);
        PyErr_Format(out_of_memory_error(), "the size is larger than the %zu bytes of memory of this machine",
                     largest_output.load());
        return nullptr;
    }
    npy_intp strides[kMaxRank];
    if (axes != nullptr) {
        std::size_t bytes = itemsize;
        for (int i = rank - 1; i >= 0; --i) {
            strides[axes[i]] = static_cast<npy_intp>(bytes);
            if (dims[axes[i]] > 1) bytes *= static_cast<std::size_t>(dims[axes[i]]);
        }
    }
    CacheInfo cache{};
    if (byte_count(itemsize, rank, dims) >= static_cast<double>(kCachedBytes)) cache = cache_info();
    const bool is_cached = cache.limit != 0;
    PyObject* before = nullptr;
    if (is_cached) {
        PyObject* ours = output_handler();
        before = ours == nullptr ? nullptr : PyDataMem_SetHandler(ours);
        if (before == nullptr) {
            Py_DECREF(descr);
            set_out_of_memory_from_numpy();
            return nullptr;
        }
    }
    const npy_intp* const laid_out = axes == nullptr ? nullptr : strides;
    auto* array = reinterpret_cast<PyArrayObject*>(
        PyArray_NewFromDescr(&PyArray_Type, descr, rank, dims, laid_out, nullptr, 0, nullptr));
    if (array == nullptr && empty_cache()) {
        PyErr_Clear();
        array = reinterpret_cast<PyArrayObject*>(PyArray_NewFromDescr(
            &PyArray_Type, PyArray_DescrFromType(type_number), rank, dims, laid_out, nullptr, 0, nullptr));
    }
    *is_mapped = is_cached && cache_info().reused > cache.reused;
    if (is_cached) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        // if this fails, maxops' handler stays set in this context, and new arrays in it use the cache
        Py_XDECREF(PyDataMem_SetHandler(before));
        PyErr_Restore(type, value, trace);
        Py_DECREF(before);
    }
    if (array == nullptr) set_out_of_memory_from_numpy();
    return array;
}

bool can_write_through(const View& out, const View* inputs, std::size_t count, bool in_place) {
    if (!has_no_internal_overlap(out)) return false;
    const Extent written(out);
    for (std::size_t i = 0; i < count; ++i) {
        if (!written.overlaps(Extent(inputs[i]))) continue;
        if (!in_place || !is_same_array(out, inputs[i])) return false;
    }
    return true;
}

}  // namespace maxops
