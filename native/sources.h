// Which sources this build was made of.
#pragma once

namespace maxops {

// Their digest, as native/digest.py has it.
const char* sources();

}  // namespace maxops
