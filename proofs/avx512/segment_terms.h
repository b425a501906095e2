// Compiles the shipped kernels/segment_avx512.h with vectors whose lanes are terms.
#pragma once
#include <limits>

#include "terms.h"
#include "../../native/kernels/segment.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {
namespace avx512 {  // hides the names in segment_scan.h and, with the using directive, the compiler's intrinsics

using namespace terms;
#include "../../native/kernels/segment_avx512.h"

}  // namespace avx512
}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
