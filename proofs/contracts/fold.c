// Max of any number of inputs of one shape or stretched along it, as native/fold.cpp has it: Fold::fold_block(), with
// the kernels fold[arity] of native/kernels/elementwise.h.
//
// Restated in C, since Frama-C reads no C++. What differs: elements are their keys (here int32_t); an input is read
// where it lies, `strides[k]` elements apart, and not through a buffer; the maximum so far of one element is a variable
// and not one of two scratch blocks.
#include <stddef.h>
#include <stdint.h>

typedef int32_t Key;

enum { kMost = 8 };

/*@ // The element of input k at i, and where it lies.
    logic Key *place{L}(Key **in, size_t *strides, integer k, integer i) = in[k] + i * strides[k];
    logic integer element{L}(Key **in, size_t *strides, integer k, integer i) = *place(in, strides, k, i);
    // No input's element at i is above m; one of them is m.
    predicate Bound{L}(Key **in, size_t *strides, integer count, integer i, integer m) =
      \forall integer k; 0 <= k < count ==> element(in, strides, k, i) <= m;
    predicate Member{L}(Key **in, size_t *strides, integer count, integer i, integer m) =
      \exists integer k; 0 <= k < count && element(in, strides, k, i) == m;
    predicate Readable(Key **in, size_t *strides, integer count, integer i) =
      \valid_read(in + (0 .. count - 1)) && \valid_read(strides + (0 .. count - 1)) &&
      \forall integer k; 0 <= k < count ==> strides[k] <= 1 && \valid_read(place(in, strides, k, i));
*/

/*@ assigns \nothing;
    ensures \result >= a && \result >= b && (\result == a || \result == b); */
static Key highest(Key a, Key b) { return a < b ? b : a; }

// Inputs k to k + arity of one element; `sum` is that of those before, if there are any.
/*@ requires 0 < arity && k + arity <= count && Readable(in, strides, count, i) && i < 0x4000000000000000;
    requires k > 0 ==> Bound(in, strides, k, i, sum) && Member(in, strides, k, i, sum);
    assigns \nothing;
    ensures Bound(in, strides, k + arity, i, \result);
    ensures Member(in, strides, k + arity, i, \result); */
static Key fold_few(Key **in, const size_t *strides, size_t count, size_t k, size_t arity, size_t i, Key sum) {
    Key best = k > 0 ? sum : in[0][i * strides[0]];
    /*@ loop invariant 0 <= a <= arity;
        loop invariant k + a > 0 ==> Bound(in, strides, k + a, i, best);
        loop invariant k + a > 0 ==> Member(in, strides, k + a, i, best);
        loop invariant k + a == 0 ==> best == element(in, strides, 0, i);
        loop assigns a, best;
        loop variant arity - a; */
    for (size_t a = 0; a < arity; ++a) best = highest(best, in[k + a][i * strides[k + a]]);
    return best;
}

// All inputs of one element, at most kMost at a time, the maximum so far among them.
/*@ requires 0 < count <= 0x7fffffff && Readable(in, strides, count, i) && i < 0x4000000000000000;
    assigns \nothing;
    ensures Bound(in, strides, count, i, \result);
    ensures Member(in, strides, count, i, \result); */
static Key fold_element(Key **in, const size_t *strides, size_t count, size_t i) {
    Key sum = 0;
    /*@ loop invariant 0 <= k <= count;
        loop invariant k > 0 ==> Bound(in, strides, k, i, sum);
        loop invariant k > 0 ==> Member(in, strides, k, i, sum);
        loop assigns k, sum;
        loop variant count - k; */
    for (size_t k = 0; k < count;) {
        const size_t left = count - k + (k > 0);
        const size_t arity = left >= kMost ? kMost : left >= 4 ? 4 : left;
        const size_t taken = arity - (k > 0);
        sum = fold_few(in, strides, count, k, taken, i, sum);
        k += taken;
    }
    return sum;
}

// Each output is written once, in order: before its turn it is as it was, and after it, it stays.
/*@ requires 0 < count <= 0x7fffffff && n < 0x4000000000000000;
    requires \forall integer i; 0 <= i < n ==> Readable(in, strides, count, i);
    requires \valid(out + (0 .. n - 1));
    requires \separated(out + (0 .. n - 1), in + (0 .. count - 1));
    requires \separated(out + (0 .. n - 1), strides + (0 .. count - 1));
    requires \forall integer k, i, j; 0 <= k < count && 0 <= i < n && 0 <= j < n ==>
      \separated(out + j, place(in, strides, k, i));
    assigns out[0 .. n - 1];
    ensures Bound: \forall integer i; 0 <= i < n ==> Bound{Pre}(in, strides, count, i, out[i]);
    ensures Member: \forall integer i; 0 <= i < n ==> Member{Pre}(in, strides, count, i, out[i]); */
void fold_block(Key *out, Key **in, const size_t *strides, size_t count, size_t n) {
    /*@ loop invariant 0 <= i <= n;
        loop invariant Inputs: \forall integer k, j; 0 <= k < count && 0 <= j < n ==>
          element(in, strides, k, j) == \at(element(in, strides, k, j), Pre);
        loop invariant Ahead: \forall integer j; i <= j < n ==> out[j] == \at(out[j], Pre);
        loop invariant Bound: \forall integer j; 0 <= j < i ==> Bound{Pre}(in, strides, count, j, out[j]);
        loop invariant Member: \forall integer j; 0 <= j < i ==> Member{Pre}(in, strides, count, j, out[j]);
        loop assigns i, out[0 .. n - 1];
        loop variant n - i; */
    for (size_t i = 0; i < n; ++i) {
        const Key best = fold_element(in, strides, count, i);
        /*@ assert Bound{Pre}(in, strides, count, i, best); */
        /*@ assert Member{Pre}(in, strides, count, i, best); */
        out[i] = best;
    }
}
