// The sources of this build.
#pragma once

namespace maxops {

struct Build {
    const char* sources;   // their digest, from native/digest.py
    const char* compiler;  // its name and version
    const char* flags;     // except those that CMakeLists.txt adds for each instruction set
};
Build build();

}  // namespace maxops
