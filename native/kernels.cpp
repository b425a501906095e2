// Fills the table of kernels for one instruction set. The build compiles this file once for each,
// with MAXOPS_ISA set to its name and the compiler's flags to match.
#include "kernels.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace maxops {
namespace MAXOPS_ISA {
namespace {

#include "order.h"
#include "loops.h"
#include "loops_segment.h"
#include "loops_scatter.h"
#include "loops_locate.h"
#ifdef MAXOPS_SIMD
#include MAXOPS_SIMD
#endif

template <class T>
constexpr Kernels kernels_for() {
    Kernels k{};
    k.itemsize = sizeof(typename T::Bits);
    k.lowest = static_cast<Word<T>>(T::bits(T::kLowestKey));
    k.lowest_finite = static_cast<Word<T>>(T::kLowestFinite);
    k.highest = static_cast<Word<T>>(T::bits(T::kHighestKey));
    if constexpr (T::is_float) k.nan = static_cast<Word<T>>(T::kNaN);
    k.fold[1] = Folds<T>::template of<0>;
    k.fold[2] = Folds<T>::template of<0, 1>;
    k.fold[3] = Folds<T>::template of<0, 1, 2>;
    k.fold[4] = Folds<T>::template of<0, 1, 2, 3>;
    k.fold[8] = Folds<T>::template of<0, 1, 2, 3, 4, 5, 6, 7>;
    k.fold_rows_with = Folds<T>::rows_with;
    k.start = start<T>;
    k.rows = Reduction<T>::rows;
    k.columns = Reduction<T>::columns;
    k.merge = merge<T>;
    k.finish = finish<T>;
    k.segment[0] = segment<T, std::int32_t>;
    k.segment[1] = segment<T, std::int64_t>;
    k.one_segment = one_segment<T>;
    k.lay_keys = lay_keys<T>;
    k.take_rows[0] = Scattering<T, std::int32_t>::take;
    k.take_rows[1] = Scattering<T, std::int64_t>::take;
    k.join_keys = join_keys<T>;
    k.settle = settle<T>;
    k.locate_in_rows = locate_in_rows<T>;
    k.locate_in_columns = locate_in_columns<T>;
    k.locate_in_segments[0] = locate_in_segments<T, std::int32_t>;
    k.locate_in_segments[1] = locate_in_segments<T, std::int64_t>;
    k.fill = fill<T>;
    if constexpr (!T::is_float) k.sorted = sorted<typename T::Bits>;
    k.gather = gather<Word<T>>;
    k.gather_rows = gather_rows<Word<T>>;
    k.turn = turn<Word<T>>;
    k.scatter = scatter<Word<T>>;
    k.stream = stream;
    return k;
}

constexpr Kernels kTable[kTypes] = {
#define MAXOPS_TYPE(name, order) kernels_for<order>(),
#include "types.def"
#undef MAXOPS_TYPE
};

}  // namespace

const Kernels* kernels(Type type) {
    return &kTable[static_cast<int>(type)];
}

}  // namespace MAXOPS_ISA
}  // namespace maxops
