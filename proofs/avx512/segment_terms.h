// kernels/segment_avx512.h as it ships, on vectors whose lanes are terms.
#pragma once
#include <limits>

#include "terms.h"
#include "../../native/kernels/segment.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {
namespace avx512 {  // hides the names of segment_scan.h, and by the next line those of the compiler

using namespace terms;
#include "../../native/kernels/segment_avx512.h"

}  // namespace avx512
}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
