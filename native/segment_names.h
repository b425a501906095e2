// What names the segments of a call, ids or offsets, as NumPy's arrays; and whether they are right.
#pragma once
#include "calls.h"

namespace maxops {

// Fills the call's ids, their type, and bounds; false if the array is not 1-D, of int32 or int64, and, for
// offsets, of one element or more.
bool find_names(PyArrayObject* names, bool by_offsets, Segments* call);

// Offsets run from 0 to `rows` without a step down. False if the poll stopped it.
bool offsets_are_right(const Kernels& id_kernels, const Segments& call, npy_intp rows, bool* right);

// One more than the last id, which is the highest of sorted ones: 0 if there is none or it is negative, and
// -1 if there is no such number.
npy_intp segments_of_last(const Kernels& id_kernels, const Segments& call, npy_intp rows);

// The highest id, or -1 without any. With `no_negative` a negative one is not `right`; else the result may be
// lower than -1 no more than that.
bool find_highest(const Segments& call, npy_intp rows, bool no_negative, std::int64_t* highest, bool* right);

// The bits of an item, in the low end, and the other way round.
std::uint64_t bits_of(const char* item, std::size_t itemsize);

}  // namespace maxops
