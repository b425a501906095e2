// A separate file, because it is recompiled whenever another source file changes.
#include "sources.h"

#include "sources_digest.h"

namespace maxops {

Build build() {
    return {MAXOPS_SOURCES, MAXOPS_COMPILER, MAXOPS_FLAGS};
}

}  // namespace maxops
