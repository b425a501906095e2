#include "arguments.h"

#include <cmath>
#include <cstddef>
#include <cstring>

#include "element_types.h"
#include "../core/item.h"
#include <numpy/arrayscalars.h>

namespace maxops {

PyTypeObject* memory_map;

namespace {

constexpr std::ptrdiff_t kNoSizes[1] = {};

// The offset of the element in NumPy's scalars.
constexpr std::size_t kScalarOffset = offsetof(PyDoubleScalarObject, obval);
static_assert(offsetof(PyBoolScalarObject, obval) == kScalarOffset);
static_assert(offsetof(PyByteScalarObject, obval) == kScalarOffset);
static_assert(offsetof(PyHalfScalarObject, obval) == kScalarOffset);
static_assert(offsetof(PyFloatScalarObject, obval) == kScalarOffset);
static_assert(offsetof(PyLongScalarObject, obval) == kScalarOffset);
static_assert(offsetof(PyLongLongScalarObject, obval) == kScalarOffset);
const char* scalar_bytes(PyObject* scalar) {
    return reinterpret_cast<const char*>(scalar) + kScalarOffset;
}

View scalar_view(int type, Item* item) {
    return {item->bytes, kNoSizes, kNoSizes, 0, type, false, true};
}

// ---------------------------------------------------------------------------- Python's numbers

// A float format. It is derived from the bits of the quiet NaN: the lowest bit that is set in the NaN is the
// highest bit of the mantissa.
struct Format {
    int mantissa_bits, exponent_bits;

    explicit Format(const Kernels& kernels)
        : mantissa_bits(__builtin_ctzll(kernels.nan) + 1),
          exponent_bits(static_cast<int>(8 * kernels.itemsize) - 1 - mantissa_bits) {}
};

// Rounds a number to a format that is equal or narrower: to nearest, ties to even. False if the number is
// finite and rounds to infinity.
bool encode(double number, const Kernels& kernels, std::uint64_t* bits) {
    if (std::isnan(number)) {
        *bits = kernels.nan;
        return true;
    }
    std::uint64_t wide;
    std::memcpy(&wide, &number, sizeof wide);
    constexpr int kMantissa = 52, kBias = 1023;
    const Format format(kernels);
    if (format.mantissa_bits == kMantissa) {
        *bits = wide;
        return true;
    }
    const std::uint64_t sign = (wide >> 63) << (8 * kernels.itemsize - 1);
    const std::uint64_t infinity = ((std::uint64_t{1} << format.exponent_bits) - 1) << format.mantissa_bits;
    if (std::isinf(number)) {
        *bits = sign | infinity;
        return true;
    }
    const int exponent = static_cast<int>(wide >> kMantissa & 0x7FF) - kBias;
    const std::uint64_t fraction = wide & ((std::uint64_t{1} << kMantissa) - 1);
    const std::uint64_t significand =
        exponent == -kBias ? fraction : fraction | std::uint64_t{1} << kMantissa;
    const int lowest = 2 - (1 << (format.exponent_bits - 1));  // the lowest exponent of normal numbers
    const int below = exponent < lowest ? lowest - exponent : 0;
    const int dropped = kMantissa - format.mantissa_bits + below;
    std::uint64_t kept = 0;
    if (dropped <= kMantissa + 1) {  // otherwise it is less than half of the smallest number
        const std::uint64_t half = std::uint64_t{1} << (dropped - 1), rest = significand & (2 * half - 1);
        kept = significand >> dropped;
        kept += rest > half || (rest == half && kept % 2 == 1);
    }
    // The significand's first bit adds 1 to the exponent, and so does a carry.
    const auto normal = static_cast<std::uint64_t>(below > 0 ? 0 : exponent - lowest);
    *bits = (normal << format.mantissa_bits) + kept;
    const bool is_finite = *bits < infinity;
    *bits |= sign;
    return is_finite;
}

// Whether a float format has enough digits for an integer, regardless of its range.
bool holds_digits(long long value, const Kernels& kernels) {
    const auto unsigned_value = static_cast<std::uint64_t>(value);
    const std::uint64_t magnitude = value < 0 ? 0 - unsigned_value : unsigned_value;
    if (magnitude == 0) return true;
    const int digits = 64 - __builtin_clzll(magnitude) - __builtin_ctzll(magnitude);
    return digits <= Format(kernels).mantissa_bits + 1;
}

bool encode_integer(PyObject* object, int type, std::uint64_t* bits) {
    int overflow = 0;
    const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
    const Kernels& kernels = kernels_of(type);
    const bool is_float = kernels.nan != 0, is_signed = kernels.lowest != 0;
    if (is_float)
        return overflow == 0 && holds_digits(value, kernels) &&
               encode(static_cast<double>(value), kernels, bits);
    const int width = static_cast<int>(8 * kernels.itemsize);
    if (!is_signed && width == 64 && overflow > 0) {
        *bits = PyLong_AsUnsignedLongLong(object);
        if (!PyErr_Occurred()) return true;
        PyErr_Clear();
        return false;
    }
    const long long highest = is_signed || width == 64 ? static_cast<long long>(~std::uint64_t{0} >> 1) >>
                                                             (is_signed ? 64 - width : 0)
                                                       : (1LL << width) - 1;
    const long long lowest = is_signed ? -highest - 1 : 0;
    *bits = static_cast<std::uint64_t>(value);
    return overflow == 0 && lowest <= value && value <= highest;
}

}  // namespace

bool find_argument_types() {
    PyObject* numpy = PyImport_ImportModule("numpy");
    PyObject* found = numpy == nullptr ? nullptr : PyObject_GetAttrString(numpy, "memmap");
    Py_XDECREF(numpy);
    memory_map = reinterpret_cast<PyTypeObject*>(found);  // never freed
    return found != nullptr;
}

bool read_numpy_scalar(PyObject* object, View* view, Item* item) {
    const int type = object == nullptr ? -1 : type_of_scalar(object);
    if (type < 0) return false;
    *view = scalar_view(type, item);
    const std::size_t itemsize = kernels_of(type).itemsize;
    if (type != static_cast<int>(Type::bfloat16_)) {
        std::memcpy(item->bytes, scalar_bytes(object), itemsize);
        return true;
    }
    PyObject* array = PyArray_FromScalar(object, nullptr);  // not a type of NumPy itself
    if (array == nullptr) {
        PyErr_Clear();
        return false;
    }
    std::memcpy(item->bytes, PyArray_DATA(reinterpret_cast<PyArrayObject*>(array)), itemsize);
    Py_DECREF(array);
    return true;
}

bool read_python_scalar(PyObject* object, int type, View* view, Item* item) {
    const Kernels& kernels = kernels_of(type);
    const bool is_bool = type == static_cast<int>(Type::bool_);
    std::uint64_t bits = 0;
    if (PyBool_Check(object) || is_bool) {
        if (!PyBool_Check(object) || !is_bool) return false;
        bits = object == Py_True ? 1 : 0;
    } else if (PyFloat_CheckExact(object)) {
        if (kernels.nan == 0 || !encode(PyFloat_AsDouble(object), kernels, &bits)) return false;
    } else if (!PyLong_CheckExact(object) || !encode_integer(object, type, &bits)) {
        return false;
    }
    put_bits(bits, kernels.itemsize, item->bytes);
    *view = scalar_view(type, item);
    return true;
}

bool read_scalar(const View& view, int type, Item* item) {
    if (view.rank != 0 || view.type != type) return false;
    char native[8];
    kernels_of(type).gather(native, view.data, 0, 1, view.swapped);
    std::memcpy(item->bytes, native, sizeof native);
    return true;
}

// The value of an integer's bits; false if it exceeds the maximum of int64.
static bool read_bits(const Kernels& kernels, std::uint64_t bits, std::int64_t* value) {
    const auto unused = static_cast<int>(64 - 8 * kernels.itemsize);
    const bool is_signed = kernels.lowest != 0;
    *value =
        is_signed ? static_cast<std::int64_t>(bits << unused) >> unused : static_cast<std::int64_t>(bits);
    return is_signed || *value >= 0;
}

bool read_numpy_integer(PyObject* object, std::int64_t* value) {
    const int type = type_of_scalar(object);
    if (type < 0 || !is_integer(type)) return false;
    const Kernels& kernels = kernels_of(type);
    return read_bits(kernels, bits_of(scalar_bytes(object), kernels.itemsize), value);
}

bool read_integer_item(const View& item, std::int64_t* value) {
    const Kernels& kernels = kernels_of(item.type);
    char native[8];
    kernels.gather(native, item.data, 0, 1, item.swapped);
    return read_bits(kernels, bits_of(native, kernels.itemsize), value);
}

bool read_flag(PyObject* object, bool* value) {
    if (object == nullptr) return true;
    if (PyBool_Check(object)) {
        *value = object == Py_True;
        return true;
    }
    std::int64_t number = 0;
    if (PyArray_IsScalar(object, Bool))
        number = PyObject_IsTrue(object);
    else if (!read_integer(object, &number))
        return false;
    *value = number == 1;
    return number == 0 || number == 1;
}

bool read_axes(PyObject* object, std::uint32_t types, std::int64_t* axes, std::size_t* count) {
    *count = 0;
    if (!is_given(object)) return true;
    if (PyArrayObject* array = plain_array(object)) {
        const int type = type_of(array);
        if (type < 0 || (types >> type & 1) == 0 || PyArray_NDIM(array) != 1) return false;
        const npy_intp size = PyArray_DIM(array, 0);
        if (size > kMaxRank) return false;
        *count = static_cast<std::size_t>(size);
        const Kernels& kernels = kernels_of(type);
        alignas(8) char native[kMaxRank * 8];
        kernels.gather(native, PyArray_BYTES(array), PyArray_STRIDE(array, 0), *count,
                       !PyArray_ISNOTSWAPPED(array));
        for (std::size_t i = 0; i < *count; ++i)
            if (!read_bits(kernels, bits_of(native + i * kernels.itemsize, kernels.itemsize), axes + i))
                return false;
        return true;
    }
    if (PyRange_Check(object)) {
        const Py_ssize_t size = PySequence_Size(object);  // -1 if it overflows
        PyObject* listed = 0 <= size && size <= kMaxRank ? PySequence_Tuple(object) : nullptr;
        if (listed == nullptr) {
            PyErr_Clear();
            return false;
        }
        const bool is_read = read_axes(listed, types, axes, count);
        Py_DECREF(listed);
        return is_read;
    }
    if (!PyTuple_CheckExact(object) && !PyList_CheckExact(object)) {
        *count = 1;
        return read_integer(object, axes);
    }
    // Another thread may change a list, so its size is read each time.
    Py_ssize_t i = 0;
    for (; i < PySequence_Size(object); ++i) {
        if (i == kMaxRank) return false;
        PyObject* item = PySequence_GetItem(object, i);
        if (item == nullptr) {  // the list has become shorter
            PyErr_Clear();
            return false;
        }
        const bool is_read = read_integer(item, axes + i);
        Py_DECREF(item);
        if (!is_read) return false;
    }
    *count = static_cast<std::size_t>(i);
    return true;
}

bool is_word(PyObject* object, const char* lower) {
    if (!PyUnicode_CheckExact(object)) return false;
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object, &size);
    if (text == nullptr) PyErr_Clear();  // a lone surrogate
    if (text == nullptr || static_cast<std::size_t>(size) != std::strlen(lower)) return false;
    for (Py_ssize_t i = 0; i < size; ++i) {
        const bool is_upper = 'A' <= text[i] && text[i] <= 'Z';
        if ((is_upper ? text[i] - 'A' + 'a' : text[i]) != lower[i]) return false;
    }
    return true;
}

}  // namespace maxops
