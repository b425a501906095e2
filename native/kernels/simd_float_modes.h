#pragma once
// Whether this thread's processor modes leave floats as they are. Included by the simd_*.h that compute with
// the processor's own floats.

// Floating-point instructions obey the processor's modes: they would flush subnormals under "denormals are
// zero", and trap on a signalling NaN if somebody unmasked that. In such a thread the integer loops do the
// work. (In others a signalling NaN sets the sticky "invalid" flag, as NumPy's own maximum does.)
static inline bool float_modes_are_plain() {
    constexpr unsigned kDenormalsAreZero = 0x0040, kMasks = 0x1F80;
    return (_mm_getcsr() & (kDenormalsAreZero | kMasks)) == kMasks;
}
template <class T>
static inline bool needs_plain_loops() {
    return T::is_float && sizeof(Item<T>) >= 4 && !float_modes_are_plain();
}
