// Scans a block of short segments, one vector of 32 bytes at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../core/vec.h"
#include "segment_blocks.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

// Keys in lanes of 64 bits, or of 32 bits for all narrower types. 16-bit floats move to the top half of their
// lane. Lanes of 32 bits compare as unsigned integers, so that an AND with a mask yields the lowest key.
// Lanes of 64 bits compare as signed integers, because AVX2 has no other comparison.
template <class T>
struct KeyLanes {
    using Bits = typename T::Bits;
    static constexpr std::size_t kSize = sizeof(Bits);
    using Lane = std::conditional_t<kSize == 8, std::int64_t, std::uint32_t>;
    using Place = std::make_signed_t<Lane>;
    using V = Vec<Lane>;

    static Lane lane(Bits bits) {
        if constexpr (T::is_float)
            return moved(Order::key(static_cast<Int>(static_cast<Int>(bits) * (Int{1} << kUp))));
        else
            return moved(static_cast<Int>(T::key(bits)));
    }
    static Bits bits(Lane lane) {
        const auto key = static_cast<Int>(static_cast<Unsigned>(lane) ^ kMove);
        if constexpr (T::is_float)
            return static_cast<Bits>(Order::bits(key) >> kUp);
        else
            return static_cast<Bits>(key);
    }
    MAXOPS_INLINE static V load(const Item<T>* from) {
        const V items = shift_left<kUp>(load_widened<V, Bits>(from));
        if constexpr (T::is_float) {
            // Flips the magnitude bits of negative lanes, and adds FloatOrder's step.
            const V sign = sign_lanes(items);
            return add(bit_xor(items, unsigned_shift_right<1>(sign)),
                       V::splat(static_cast<Lane>(static_cast<Unsigned>(Order::kPositiveStep) ^ kMove)));
        } else {
            return bit_xor(T::keys(items), V::splat(static_cast<Lane>(kMove)));
        }
    }

private:
    using Int = std::make_signed_t<Lane>;
    using Unsigned = std::make_unsigned_t<Lane>;
    static constexpr int kUp = T::is_float && kSize == 2 ? 16 : 0;
    static constexpr Unsigned kHalfRange = Unsigned{1} << (8 * sizeof(Lane) - 1);
    static constexpr Unsigned kMove = std::is_signed_v<Bits> == std::is_signed_v<Lane> ? 0 : kHalfRange;

    // T's order at the width of a lane; for floats only.
    template <class Narrow, bool is_float>
    struct Widened {
        using type =
            typename Narrow::template Widened<Int,
                                              static_cast<Int>(static_cast<Int>(Narrow::kInfinity) << kUp)>;
    };
    template <class Narrow>
    struct Widened<Narrow, false> {
        using type = Narrow;
    };
    using Order = typename Widened<T, T::is_float>::type;
    static constexpr Lane moved(Int key) { return static_cast<Lane>(static_cast<Unsigned>(key) ^ kMove); }
};

// A segmented scan: each lane's key becomes the highest so far of its segment, perhaps with some lanes after
// it, in steps within 16 bytes and then across. A lane without a lane before it in a step is compared with
// itself, or with another lane of its segment.
template <class V, class Places>
MAXOPS_INLINE V scanned(V keys, Places here, const typename Places::Lane* place) {
    constexpr std::size_t kBlock = 16 / sizeof(typename V::Lane);
    keys = max_where(same_lanes<V>(equal(here, Places::load(place - 1))), keys, moved_up<1>(keys));
    if constexpr (kBlock == 4)
        keys = max_where(same_lanes<V>(equal(here, Places::load(place - 2))), keys, moved_up<2>(keys));
    return max_where(same_lanes<V>(equal(here, Places::splat(place[kBlock - 1]))), keys,
                     splat_low_last(keys));
}

template <class T>
struct VectorScan : KeyLanes<T> {
    using Keys = KeyLanes<T>;
    using Lane = typename Keys::Lane;
    using Place = typename Keys::Place;
    using V = typename Keys::V;
    using Places = Vec<Place>;
    static constexpr std::size_t kLanes = V::kLanes, kRows = kBlockRows;

    template <bool gaps>
    static void scan(const Item<T>* items, const Place* place, std::size_t n, Lane carry,
                     SegmentBlock<Lane, Place>* to) {
        VectorScan scan{V::splat(carry), to};
        std::size_t k = 0;
        for (; n - k >= kLanes; k += kLanes) scan.template step<gaps>(items + k, place + k);
        if (k < n) {  // the tail, padded with the last row
            Item<T> rest[kLanes];
            for (std::size_t lane = 0; lane < kLanes; ++lane)
                rest[lane] = items[k + lane < n ? k + lane : n - 1];
            scan.template step<gaps>(rest, place + k);
        }
        to->count = scan.end;
        to->steps = any_bits(scan.steps);
    }

private:
    VectorScan(V first, SegmentBlock<Lane, Place>* block)
        : carry(first), steps(Places::splat(0)), to(block) {}

    template <bool gaps>
    MAXOPS_INLINE void step(const Item<T>* items, const Place* place) {
        const Places here = Places::load(place);
        steps = bit_or(steps, sub(here, Places::load(place - 1)));
        // The carry from the rows before is merged after the scan, not before, so that a step waits for few
        // instructions of the step before.
        V keys = scanned(Keys::load(items), here, place);
        keys = max_where(same_lanes<V>(equal(here, Places::splat(place[-1]))), keys, carry);
        carry = splat_last(keys);

        // Moves the lanes where a segment ends to the front and stores all lanes. The next vector overwrites
        // the others.
        const Compression<V> ends{same_lanes<V>(equal(here, Places::load(place + 1)))};
        store(to->best + end, ends.compress(keys));
        if constexpr (gaps) store(to->place + end, ends.compress(here));
        end += ends.count();
    }

    V carry;  // the last row's key, in all lanes
    Places steps;
    std::size_t end = 0;
    SegmentBlock<Lane, Place>* to;
};

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
