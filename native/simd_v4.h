// What AVX-512 does better than the loops. Included by kernels.cpp for x86-64-v4 alone, after loops.h.
#include "simd_float_modes.h"
#include "simd_v4_maxima.h"
#include "simd_v4_fold.h"
#include "simd_v4_reduce.h"
#include "simd_v4_segments.h"
