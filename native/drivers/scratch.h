// The working memory of each thread. It is not on the stack, which may be small (128 KiB by default with
// musl). It is allocated before a call writes anything, because allocation may fail.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "../kernels/kernels.h"
#include "../core/parameters.h"

namespace maxops {

// The scratch memory of each kind of task.
struct FoldBuffers {
    alignas(64) char inputs[Kernels::kMostInputs][kBlockBytes];
    alignas(64) char maxima[2][kBlockBytes];
};
struct TileBuffers {
    alignas(64) char tiles[kTileInputs][kTileColumns * kTileRunBytes];
};
struct SmallReduceBuffers {
    alignas(64) char keys[kKeepsGilBytes];  // the maximum size of the data
};
struct ReduceBuffers {
    alignas(64) char keys[kKeyBytes];
    alignas(64) char values[kKeyBytes];
    alignas(64) char gathered[kBlockBytes];
};
struct IndexBuffers {
    alignas(64) char results[kIndexStrip * 8];
    alignas(64) std::int64_t indices[kIndexStrip];
    alignas(64) char run[kBlockBytes];
    alignas(64) char rows[kIndexGatheredRows * kIndexStrip * 8];
};

struct SegmentBuffers {
    alignas(64) char rows[kGatheredRowsBytes];
    alignas(64) char ids[kBlockBytes + kOffsetsStore * 8];  // plus the stores past a block's last id
    alignas(64) char kernel[kSegmentScratchBytes];
};

constexpr std::size_t kScratchAlignment = 64;
constexpr std::size_t kScratchBytes =
    std::max({sizeof(FoldBuffers), sizeof(TileBuffers), sizeof(SmallReduceBuffers), sizeof(ReduceBuffers),
              sizeof(IndexBuffers), sizeof(SegmentBuffers)});

// Allocates the scratch memory of the calling thread if it has none; false on failure. Calls and workers
// begin with this.
bool reserve_scratch();

// The scratch memory of the calling thread.
char* scratch_bytes();

// The scratch memory as the uninitialized state of one task. Tasks are not nested, so a task may use all of
// it.
template <class Buffers>
Buffers& scratch() {
    static_assert(sizeof(Buffers) <= kScratchBytes && alignof(Buffers) <= kScratchAlignment);
    return *reinterpret_cast<Buffers*>(scratch_bytes());
}

}  // namespace maxops
