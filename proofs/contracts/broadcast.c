// Broadcasting: shapes, strides and places, as native/api.cpp and native/iterate.cpp have them.
//
// Restated in C, since Frama-C reads no C++:
//   broadcast        native/api.cpp, broadcast(), with Broadcasting::kNumpy and kStrict
//   get_operand      native/api.cpp, View::get_operand()
//   position_offset  native/iterate.cpp, Position::offset()
//   advance          native/iterate.cpp, Position::advance() by one along the last axis
// What differs: a view is two arrays, sizes and strides; has_one is written for one axis at a time, since the axes'
// loop stands outside of the inputs' (no axis's result depends on another's).
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { kMaxRank = 64 };

// ---------------------------------------------------------------------------- the sizes along one axis

/*@ predicate Fits(int64_t *sizes, integer n, integer whole) =
      \forall integer k; 0 <= k < n ==> sizes[k] == whole || sizes[k] == 1;
    predicate IsSize(int64_t *sizes, integer n, integer whole) =
      whole == 1 || \exists integer k; 0 <= k < n && sizes[k] == whole;
    predicate HasOne(int64_t *sizes, integer n) = \exists integer k; 0 <= k < n && sizes[k] == 1;
    predicate Differ(int64_t *sizes, integer n) =
      \exists integer j, k; 0 <= j < n && 0 <= k < n && sizes[j] != 1 && sizes[k] != 1 && sizes[j] != sizes[k];
*/

// The common size of `count` inputs; false: they have none. To the letter of SONNX, 0 does not go with 1.
/*@ requires \valid_read(sizes + (0 .. count - 1)) && \valid(whole) && \separated(whole, sizes + (0 .. count - 1));
    requires \forall integer k; 0 <= k < count ==> sizes[k] >= 0;
    assigns *whole;
    ensures Common: \result ==> Fits(sizes, count, *whole) && IsSize(sizes, count, *whole) && *whole >= 0;
    ensures Strict: \result && strict ==> !(*whole == 0 && HasOne(sizes, count));
    ensures Refused: !\result ==> Differ(sizes, count) ||
      (strict && HasOne(sizes, count) && \exists integer k; 0 <= k < count && sizes[k] == 0); */
bool broadcast_axis(const int64_t *sizes, size_t count, bool strict, int64_t *whole) {
    bool has_one = false;
    *whole = 1;
    /*@ loop invariant 0 <= k <= count && *whole >= 0;
        loop invariant Fits(sizes, k, *whole) && IsSize(sizes, k, *whole);
        loop invariant has_one <==> HasOne(sizes, k);
        loop invariant strict ==> !(*whole == 0 && has_one);
        loop assigns k, has_one, *whole;
        loop variant count - k; */
    for (size_t k = 0; k < count; ++k) {
        const int64_t size = sizes[k];
        has_one = has_one || size == 1;
        if (size != *whole && size != 1) {
            if (*whole != 1) return false;
            *whole = size;
        }
        if (strict && *whole == 0 && has_one) return false;
    }
    return true;
}

// ---------------------------------------------------------------------------- strides and places

// Strides along the axes of the whole: 0 along those that the view has not, or of size 1.
/*@ requires 0 <= rank <= shape_rank <= kMaxRank;
    requires \valid_read(sizes + (0 .. rank - 1)) && \valid_read(strides + (0 .. rank - 1));
    requires \valid(to + (0 .. shape_rank - 1));
    requires \separated(to + (0 .. shape_rank - 1), sizes + (0 .. rank - 1));
    requires \separated(to + (0 .. shape_rank - 1), strides + (0 .. rank - 1));
    assigns to[0 .. shape_rank - 1];
    ensures Lead: \forall integer a; 0 <= a < shape_rank - rank ==> to[a] == 0;
    ensures Own: \forall integer a; 0 <= a < rank ==>
      to[shape_rank - rank + a] == (sizes[a] == 1 ? 0 : strides[a]); */
void get_operand(const int64_t *sizes, const int64_t *strides, int rank, int shape_rank, int64_t *to) {
    const int lead = shape_rank - rank;
    /*@ loop invariant 0 <= axis <= lead;
        loop invariant \forall integer a; 0 <= a < axis ==> to[a] == 0;
        loop assigns axis, to[0 .. lead - 1];
        loop variant lead - axis; */
    for (int axis = 0; axis < lead; ++axis) to[axis] = 0;
    /*@ loop invariant 0 <= axis <= rank;
        loop invariant \forall integer a; 0 <= a < lead ==> to[a] == 0;
        loop invariant \forall integer a; 0 <= a < axis ==> to[lead + a] == (sizes[a] == 1 ? 0 : strides[a]);
        loop assigns axis, to[lead .. shape_rank - 1];
        loop variant rank - axis; */
    for (int axis = 0; axis < rank; ++axis) to[lead + axis] = sizes[axis] == 1 ? 0 : strides[axis];
}

/*@ logic integer low(integer size, integer stride) = stride < 0 ? (size - 1) * stride : 0;
    logic integer high(integer size, integer stride) = stride > 0 ? (size - 1) * stride : 0;
    // The first and the last byte's element that an array has, from its address.
    logic integer first(int64_t *sizes, int64_t *strides, integer n) =
      n <= 0 ? 0 : first(sizes, strides, n - 1) + low(sizes[n - 1], strides[n - 1]);
    logic integer last(int64_t *sizes, int64_t *strides, integer n) =
      n <= 0 ? 0 : last(sizes, strides, n - 1) + high(sizes[n - 1], strides[n - 1]);
    logic integer place(int64_t *index, int64_t *strides, integer n) =
      n <= 0 ? 0 : place(index, strides, n - 1) + index[n - 1] * strides[n - 1];
    lemma between: \forall integer i, size, stride; 0 <= i < size ==>
      low(size, stride) <= i * stride <= high(size, stride);
*/

// An index of the whole, along a view's own axes and sizes, never leaves the view: `index` is the whole's, and 0
// along an axis of stride 0.
/*@ requires 0 <= rank <= kMaxRank && \valid_read(index + (0 .. rank - 1)) && \valid_read(strides + (0 .. rank - 1));
    requires \valid_read(sizes + (0 .. rank - 1));
    requires \forall integer a; 0 <= a < rank ==> sizes[a] >= 1;
    requires In: \forall integer a; 0 <= a < rank ==> 0 <= index[a] && (index[a] < sizes[a] || strides[a] == 0);
    requires Small: \forall integer a; 0 <= a <= rank ==>
      -0x4000000000000000 <= first(sizes, strides, a) && last(sizes, strides, a) <= 0x4000000000000000;
    requires Short: \forall integer a; 0 <= a < rank ==>
      -0x4000000000000000 <= low(sizes[a], strides[a]) && high(sizes[a], strides[a]) <= 0x4000000000000000;
    assigns \nothing;
    ensures Place: \result == place(index, strides, rank);
    ensures Inside: first(sizes, strides, rank) <= \result <= last(sizes, strides, rank); */
int64_t position_offset(const int64_t *index, const int64_t *sizes, const int64_t *strides, int rank) {
    int64_t bytes = 0;
    /*@ loop invariant 0 <= axis <= rank && bytes == place(index, strides, axis);
        loop invariant first(sizes, strides, axis) <= bytes <= last(sizes, strides, axis);
        loop assigns axis, bytes;
        loop variant rank - axis; */
    for (int axis = 0; axis < rank; ++axis) {
        /*@ assert One: low(sizes[axis], strides[axis]) <= index[axis] * strides[axis] <=
              high(sizes[axis], strides[axis]); */
        /*@ assert Next: first(sizes, strides, axis + 1) ==
              first(sizes, strides, axis) + low(sizes[axis], strides[axis]); */
        /*@ assert Last: last(sizes, strides, axis + 1) ==
              last(sizes, strides, axis) + high(sizes[axis], strides[axis]); */
        bytes += index[axis] * strides[axis];
    }
    return bytes;
}

// ---------------------------------------------------------------------------- the next place


// The next place in C order: the last axis runs fastest. Past the end, the first index is its size.
/*@ requires 1 <= rank <= kMaxRank && \valid(index + (0 .. rank - 1)) && \valid_read(sizes + (0 .. rank - 1));
    requires \separated(index + (0 .. rank - 1), sizes + (0 .. rank - 1));
    requires \forall integer a; 0 <= a < rank ==> 0 <= index[a] < sizes[a] <= 0x4000000000000000;
    assigns index[0 .. rank - 1];
    ensures Valid: \forall integer a; 1 <= a < rank ==> 0 <= index[a] < sizes[a];
    ensures First: 0 <= index[0] <= sizes[0]; */
void advance(int64_t *index, const int64_t *sizes, int rank) {
    int axis = rank - 1;
    index[axis] += 1;
    /*@ loop invariant 0 <= axis < rank;
        loop invariant 0 <= index[axis] <= sizes[axis];
        loop invariant \forall integer a; 0 <= a < rank && a != axis ==> 0 <= index[a] < sizes[a];
        loop assigns axis, index[0 .. rank - 1];
        loop variant axis; */
    for (; axis > 0 && index[axis] == sizes[axis]; --axis) {
        index[axis] = 0;
        index[axis - 1] += 1;
    }
}
