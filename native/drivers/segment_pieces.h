// SegmentMax along any axis, split into pieces of the data whose first axis is the segment axis.
#pragma once
#include "../api.h"

namespace maxops {

// One piece for each index along the axes outside the segment axis in memory. The axes inside it form the
// rows. If pieces would be small, all other axes form the rows.
class SegmentPieces {
public:
    explicit SegmentPieces(const Segmentation& call);

    // True if a call is certainly one piece. Does not loop over the axes.
    static bool is_one(const Segmentation& call) { return call.data.contiguous && call.axis == 0; }

    std::size_t count() const { return outer_.elements(); }
    std::size_t row_width() const { return width_; }
    // The axes of the data from outermost to innermost, as in the pieces: the layout of the output.
    const int* axes() const { return axes_; }

    // Shape and data of the first piece.
    void get_first(Segments* segments) const;

    // Calls each(segments, piece) for pieces [begin, end), until it or the poll returns false. On entry,
    // `segments` has the data of the very first piece; each() gets it with the data of its piece.
    template <class Each>
    bool operator()(Poll poll, std::size_t begin, std::size_t end, Segments& segments,
                    const Each& each) const {
        if (outer_.rank == 0) return each(segments, begin);
        char* const first = segments.data.data;
        Position position(outer_, begin);
        Polling polling(poll);
        for (std::size_t piece = begin; piece < end; ++piece) {
            if (!polling.goes_on()) return false;
            segments.data.data = first + position.offset(outer_data_);
            if (!each(segments, piece)) return false;
            position.advance(outer_, outer_.rank - 1, 1);
        }
        return true;
    }

private:
    const Segmentation& call_;
    int axes_[kMaxRank];
    Shape outer_;
    Operand outer_data_;
    std::size_t width_ = 1;
};

}  // namespace maxops
