// What AVX2 does better than the loops. Included by kernels.cpp for x86-64-v3 alone, after loops.h.
#include "simd_float_modes.h"
#include "simd_v3_maxima.h"
#include "simd_v3_fold.h"
#include "simd_v3_reduce.h"
#include "simd_v3_segments.h"
