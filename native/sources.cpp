// A file of its own, since it is compiled again whenever any other changes.
#include "sources.h"

#include "sources_digest.h"

namespace maxops {

const char* sources() {
    return MAXOPS_SOURCES;
}

}  // namespace maxops
