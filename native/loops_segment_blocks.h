// SegmentMax of one column: short segments, a block of rows at a time. Included by loops_segment.h.

// A block's ids, copied before they are looked at: another thread may change them meanwhile, and what was
// checked must be what is used.
template <class Place, class Id>
struct IdBlock {
    static constexpr std::size_t kRows = 256, kMargin = 8;

    // Rows i to i + n; at most kRows.
    void copy(const Ids<Id>& from, std::size_t i, std::size_t n_) {
        n = n_;
        auto* __restrict source = from.ids + i;
        for (std::size_t k = 0; k < n; ++k) id[k] = source[k].value;
        __asm__ volatile(""
                         :
                         : "r"(id)
                         : "memory");  // from here on the compiler cannot read the source again
        for (std::size_t k = 1; k < n; ++k)
            steps |= static_cast<Unsigned>(static_cast<Unsigned>(id[k]) - static_cast<Unsigned>(id[k - 1]));
    }
    // Whether the ids are in order, none far from the next, and segments of the output. (Steps below kFar
    // add up to less than 2^31: ids that go past their type's highest come to a negative one, and stay
    // there.)
    bool is_right(std::int64_t previous, std::int64_t num_segments) const {
        return first() >= 0 && first() >= previous && last() >= first() && last() < num_segments &&
               steps < kFar;
    }
    bool has_gaps() const { return steps > 1; }
    bool is_single_rows() const {
        return !has_gaps() && last() - first() == static_cast<std::int64_t>(n) - 1;
    }
    bool begins_with(std::size_t run) const { return n >= run && id[run - 1] == id[0]; }
    std::int64_t first() const { return id[0]; }
    std::int64_t last() const { return id[n - 1]; }

    // Where the ids lie, counted from the first: for rows from -kMargin on and beyond the last, to the end of
    // its vector of `lanes`, they are of no segment and the last row's.
    Place* find_places(bool goes_on, std::size_t lanes) {
        auto* place = places + kMargin;
        for (std::size_t k = 0; k < n; ++k)
            place[k] = static_cast<Place>(
                static_cast<Unsigned>(static_cast<Unsigned>(id[k]) - static_cast<Unsigned>(id[0])));
        const std::size_t end = (n + lanes - 1) / lanes * lanes;
        for (std::size_t k = n; k < end; ++k) place[k] = place[n - 1];
        place[end] = place[-2] = -1;
        place[-1] = goes_on ? 0 : -1;
        return place;
    }

    using Unsigned = std::make_unsigned_t<Id>;
    static constexpr Unsigned kFar = 1U << 23;
    static_assert(kFar * kRows <= 1U << 31);

    std::size_t n;
    Unsigned steps = 0;  // the bits of all steps from an id to the next
    alignas(64) Id id[kRows];
    alignas(64) Place places[kMargin + kRows + kMargin];
};

// What a block comes to: its segments' keys and, counted from the first, their places.
template <class Lane, class Place>
struct SegmentBlock {
    static constexpr std::size_t kRows = 256, kMargin = 8;
    alignas(64) Lane best[kRows + kMargin];
    alignas(64) Place place[kRows + kMargin];  // unless they follow one another
};

// A block's scan, row by row. Keys are unsigned here, so that a mask makes the lowest of any.
template <class T>
struct PlainScan {
    using Key = typename T::Key;
    using Lane = std::conditional_t<sizeof(Key) == 8, std::uint64_t, std::uint32_t>;
    using Place = std::int32_t;
    static constexpr std::size_t kLanes = 1;
    static constexpr Lane kLowest = static_cast<Lane>(T::kLowestKey);

    static Lane lane(typename T::Bits bits) {
        return static_cast<Lane>(static_cast<Lane>(T::key(bits)) - kLowest);
    }
    static typename T::Bits bits(Lane lane) { return T::bits(static_cast<Key>(lane + kLowest)); }

    // The number of segments.
    template <bool gaps>
    static std::size_t scan(const Item<T>* items, const Place* place, std::size_t n, Lane carry,
                            SegmentBlock<Lane, Place>* to) {
        Lane keys[SegmentBlock<Lane, Place>::kRows];
        for (std::size_t k = 0; k < n; ++k) keys[k] = lane(items[k].value);
        std::size_t end = 0;
        Place previous = place[-1];
        Lane best = carry;
        for (std::size_t k = 0; k < n; ++k) {
            const Place here = place[k];
            best &= ~(static_cast<Lane>(here == previous) - 1);
            best = best < keys[k] ? keys[k] : best;
            if constexpr (gaps) {
                end += here != previous || k == 0;
                to->place[end - 1] = here;
                to->best[end - 1] = best;
            } else {
                to->best[here] = best;
            }
            previous = here;
        }
        return gaps ? end : static_cast<std::size_t>(previous) + 1;
    }
};

// Blocks of rows from i on, up to one that is another loop's: its ids are not in order, or not all of them
// segments of the output, or it begins with a long run or with single rows.
template <class T, class Id, class Scan>
struct BlockSegments {
    using Lane = typename Scan::Lane;
    using Place = typename Scan::Place;
    static constexpr std::size_t kFewest = 8, kRun = 64, kRows = SegmentBlock<Lane, Place>::kRows;

    static std::size_t take(const SegmentWalk* walk, const Item<T>* items, const Ids<Id>& ids, std::size_t i,
                            ColumnWalk<T>* at) {
        SegmentBlock<Lane, Place> segments;
        while (ids.n - i >= kFewest) {
            IdBlock<Place, Id> block;
            block.copy(ids, i, ids.n - i < kRows ? ids.n - i : kRows);
            if (!block.is_right(at->previous, ids.num_segments) || block.begins_with(kRun)) break;
            const bool goes_on = block.first() == at->previous;
            if (block.is_single_rows() && !goes_on && block.n >= kSingles) break;
            const Place* place = block.find_places(goes_on, Scan::kLanes);
            const Lane carry = Scan::lane(T::bits(at->best));
            std::size_t count;
            if (block.has_gaps()) {
                count = Scan::template scan<true>(items + i, place, block.n, carry, &segments);
                fill<T>(walk, at->previous + 1, block.last() + 1);
                scatter_segments(walk, block.first(), segments, count);
            } else {
                count = Scan::template scan<false>(items + i, place, block.n, carry, &segments);
                fill<T>(walk, at->previous + 1, block.first());
                store_segments(walk, block.first(), segments, count);
            }
            *at = {block.last(), T::key(Scan::bits(segments.best[count - 1]))};
            i += block.n;
        }
        return i;
    }

private:
    static void store_segments(const SegmentWalk* walk, std::int64_t first,
                               const SegmentBlock<Lane, Place>& segments, std::size_t count) {
        auto* __restrict out = reinterpret_cast<Item<T>*>(walk->out) + first;
        auto* __restrict best = segments.best;
        for (std::size_t k = 0; k < count; ++k) out[k].value = Scan::bits(best[k]);
    }
    static void scatter_segments(const SegmentWalk* walk, std::int64_t first,
                                 const SegmentBlock<Lane, Place>& segments, std::size_t count) {
        auto* __restrict out = reinterpret_cast<Item<T>*>(walk->out) + first;
        for (std::size_t k = 0; k < count; ++k) out[segments.place[k]].value = Scan::bits(segments.best[k]);
    }
};
