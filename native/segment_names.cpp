#include "segment_names.h"

#include <cstring>

namespace maxops {
namespace {

template <class Word>
std::uint64_t word_at(const char* item) {
    Word word;
    std::memcpy(&word, item, sizeof word);
    return word;
}

std::int64_t name_at(const Kernels& id_kernels, const Segments& call, npy_intp i) {
    char native[8];
    id_kernels.gather(native, call.ids.data + i * call.ids.strides[0], 0, 1, call.ids.swapped);
    const std::uint64_t bits = bits_of(native, id_kernels.itemsize);
    return call.id_type == 0 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(bits))
                             : static_cast<std::int64_t>(bits);
}

}  // namespace

std::uint64_t bits_of(const char* item, std::size_t itemsize) {
    if (itemsize == 1) return word_at<std::uint8_t>(item);
    if (itemsize == 2) return word_at<std::uint16_t>(item);
    return itemsize == 4 ? word_at<std::uint32_t>(item) : word_at<std::uint64_t>(item);
}

bool find_names(PyArrayObject* names, bool by_offsets, Segments* call) {
    const int type = type_of(names);
    const bool is_wide = type == static_cast<int>(Type::int64_);
    if ((!is_wide && type != static_cast<int>(Type::int32_)) || PyArray_NDIM(names) != 1) return false;
    if (by_offsets && PyArray_DIM(names, 0) == 0) return false;
    call->ids = operand_of(names, 1);
    call->id_type = is_wide ? 1 : 0;
    call->bounds = by_offsets ? static_cast<std::size_t>(PyArray_DIM(names, 0)) : 0;
    return true;
}

bool offsets_are_right(const Kernels& id_kernels, const Segments& call, npy_intp rows, bool* right) {
    *right = name_at(id_kernels, call, 0) == 0 &&
             name_at(id_kernels, call, static_cast<npy_intp>(call.bounds) - 1) == rows;
    return !*right || ids_are_sorted({id_kernels, poll_signals}, call.ids, call.bounds, right);
}

npy_intp segments_of_last(const Kernels& id_kernels, const Segments& call, npy_intp rows) {
    if (rows == 0) return 0;
    const std::int64_t last = name_at(id_kernels, call, rows - 1);
    if (last == INT64_MAX) return -1;
    return last < 0 ? 0 : last + 1;
}

bool find_highest(const Segments& call, npy_intp rows, bool no_negative, std::int64_t* highest, bool* right) {
    *highest = -1;
    *right = true;
    if (rows == 0) return true;
    // As unsigned numbers, negative ids are the highest.
    const Type as_signed = call.id_type == 0 ? Type::int32_ : Type::int64_,
               as_unsigned = call.id_type == 0 ? Type::uint32_ : Type::uint64_;
    const Kernels& kernels = kernels_of(static_cast<int>(no_negative ? as_unsigned : as_signed));
    char native[8];
    Shape shape{1, {static_cast<std::size_t>(rows)}};
    Operand operands[2] = {call.ids, {native, {0}, false}};
    if (!reduce({kernels, poll_signals}, shape, operands)) return false;
    const std::uint64_t bits = bits_of(native, kernels.itemsize);
    const std::int64_t value = call.id_type == 0 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(bits))
                                                 : static_cast<std::int64_t>(bits);
    *right = !no_negative || value >= 0;
    *highest = std::max<std::int64_t>(value, -1);
    return true;
}

}  // namespace maxops
