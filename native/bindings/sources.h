// The sources of this build.
#pragma once

namespace maxops {

struct Build {
    const char* sources;   // their digest, as native/digest.py has it
    const char* compiler;  // its name and version
    const char* flags;     // beside those that CMakeLists.txt gives to each instruction set
};
Build build();

}  // namespace maxops
