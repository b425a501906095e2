// The C of proofs/contracts beside the functions of the core that it restates, in one program: on every small input, with
// the miniature's parameters, both must do the same. The core is included as it is.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "../native/kernels/copy.h"
#include "../native/kernels/segment.h"

#include "../native/api.cpp"
#include "../native/fold.cpp"
#include "../native/iterate.cpp"
#include "../native/scratch.cpp"
#include "../native/system.cpp"

namespace restated {
namespace segments {
#include "contracts/segments.c"
#include "contracts/run_end.c"
const std::size_t kRunScan = maxops::kRunScan, kGallopRows = maxops::kGallopRows, kShort = maxops::kShort,
                  kOrderBlock = maxops::kOrderBlock;
}  // namespace segments
namespace broadcasting {
#include "contracts/broadcast.c"
}
namespace folding {
#include "contracts/fold.c"
}
}  // namespace restated

namespace maxops {
namespace MAXOPS_ISA {
const ReduceKernels reduce[kTypes] = {};  // of wide rows, which are not restated
namespace {

using T = IntegerOrder<std::int32_t>;
using Id = std::int64_t;
namespace c = restated::segments;
using Row = Item<T>;
using Column = std::vector<std::int32_t>;
using IdColumn = std::vector<std::int64_t>;

unsigned long long states = 0, wrong = 0;

void expect(bool same, const char* function, const std::vector<std::int64_t>& of) {
    states += 1;
    if (same || wrong++ > 20) return;
    std::fprintf(stderr, "%s:", function);
    for (const std::int64_t number : of) std::fprintf(stderr, " %lld", static_cast<long long>(number));
    std::fprintf(stderr, "\n");
}

// visit(word) for each word of up to `most` numbers from `low` to `high`, from `least` numbers on.
template <class Visit>
void for_words(std::size_t least, std::size_t most, std::int64_t low, std::int64_t high, const Visit& visit) {
    for (std::size_t n = least; n <= most; ++n) {
        IdColumn word(n, low);
        for (std::size_t k = 0; k < n || n == 0;) {
            visit(const_cast<const IdColumn&>(word));
            if (n == 0) break;
            for (k = 0; k < n && word[k] == high; ++k) word[k] = low;
            if (k < n) word[k] += 1;
        }
    }
}

// Elements that differ, rise and fall: which one an output has can be told.
std::int32_t element(std::size_t i) { return static_cast<std::int32_t>(i * 5 % 7) - 3; }
Column elements(std::size_t n) {
    Column x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = element(i);
    return x;
}

Ids<Id> ids_of(const IdColumn& ids, std::size_t from, std::size_t n, std::int64_t num_segments, bool gallops) {
    return {reinterpret_cast<const Unaligned<Id>*>(ids.data() + from), n - from, num_segments, gallops};
}
const Row* items(const Column& x) { return reinterpret_cast<const Row*>(x.data()); }

bool are_good(const IdColumn& ids) {
    for (std::size_t i = 0; i < ids.size(); ++i)
        if (ids[i] < (i == 0 ? 0 : ids[i - 1])) return false;
    return true;
}

// ---------------------------------------------------------------------------- segments

// A walk of either text, whose state is the same.
struct Both {
    SegmentWalk walk{};
    Column ours, theirs;
    alignas(64) static inline char scratch[kSegmentScratchBytes];

    Both(std::int64_t num_segments, std::int64_t previous, std::int64_t written, bool is_filled, bool checks, bool gallops)
        : ours(static_cast<std::size_t>(num_segments), -99), theirs(ours) {
        if (is_filled)
            for (auto& value : ours) value = -50;
        if (0 <= previous && previous < num_segments) ours[static_cast<std::size_t>(previous)] = 1;
        theirs = ours;
        walk.out = reinterpret_cast<char*>(ours.data());
        walk.out_stride = sizeof(Row);
        walk.width = 1;
        walk.num_segments = num_segments;
        walk.fill = static_cast<std::uint64_t>(std::int64_t{-50});
        walk.is_filled = is_filled;
        walk.gallops = gallops;
        walk.checks = checks;
        walk.previous = previous;
        walk.written = written;
        walk.scratch = scratch;
        if (0 <= previous && previous < num_segments) walk.target = walk.out + previous * walk.out_stride;
        c::walk = {theirs.data(), num_segments, -50, is_filled, gallops, checks, false, 0, previous, written};
    }
    bool is_same() const {
        return ours == theirs && walk.is_unsorted == c::walk.is_unsorted && walk.last_id == c::walk.last_id &&
               walk.previous == c::walk.previous && walk.written == c::walk.written;
    }
};

// visit(walk's state) for each that the contracts allow, of up to so many segments.
template <class Visit>
void for_states(std::int64_t most, const Visit& visit) {
    for (std::int64_t segments = 1; segments <= most; ++segments)
        for (std::int64_t previous = -1; previous <= segments; ++previous)
            for (std::int64_t written = 0; written <= segments + 1; ++written)
                for (int flags = 0; flags < 4; ++flags)
                    visit(segments, previous, written, flags % 2 != 0, flags / 2 != 0);
}

void run_ends() {
    const auto look = [](const IdColumn& ids) {
        for (std::size_t i = 0; i < ids.size(); ++i)
            for (const bool gallops : {false, true})
                expect(ids_of(ids, 0, ids.size(), 3, gallops).run_end(i) == c::run_end(ids.data(), i, ids.size(), gallops),
                       "run_end", ids);
    };
    for_words(1, 15, 0, 1, look);
    for_words(1, 7, -1, 1, look);
}

void orders() {
    for_words(1, 6, -1, 3, [](const IdColumn& ids) {
        for (std::size_t begin = 0; begin < ids.size(); ++begin)
            expect(sorted<Id>(ids.data() + begin, ids.size() - begin) == c::sorted(ids.data(), begin, ids.size()), "sorted",
                   ids);
    });
}

void single_functions() {
    for_states(3, [](std::int64_t segments, std::int64_t previous, std::int64_t written, bool is_filled, bool checks) {
        for (std::int64_t from = 0; from <= segments + 1; ++from)
            for (std::int64_t to = -1; to <= segments; ++to) {
                Both both(segments, previous, written, is_filled, checks, false);
                fill<T>(&both.walk, from, to);
                c::fill(from, to);
                expect(both.is_same(), "fill", {segments, previous, written, is_filled, from, to});
            }
        for (std::int64_t id = -1; id <= segments + 1; ++id) {
            Both both(segments, previous, written, is_filled, checks, false);
            const IdColumn none;
            expect(ids_of(none, 0, 0, segments, false).has_row(id) == c::has_row(id), "has_row", {segments, id});
            const bool same = steps_to(&both.walk, previous, id) == c::steps_to(previous, id);
            expect(same && both.is_same(), "steps_to", {segments, previous, written, checks, id});
        }
        for (std::int64_t id = 0; id < segments; ++id)
            for (std::size_t rows = 1; rows <= 9; ++rows) {
                Both both(segments, previous, written, is_filled, checks, false);
                const Column x = elements(rows);
                const IdColumn ids(rows, id);
                const char* data = reinterpret_cast<const char*>(x.data());
                one_segment<T>(&both.walk, id, data, sizeof(Row), rows);
                c::one_segment(id, x.data(), ids.data(), 0, rows, rows);
                expect(both.is_same(), "one_segment", {segments, previous, written, is_filled, id, std::int64_t(rows)});
            }
    });
    for (std::int32_t a = -2; a <= 2; ++a)
        for (std::int32_t b = -2; b <= 2; ++b) expect(highest(a, b) == c::highest(a, b), "highest", {a, b});
    for_words(1, 7, -1, 1, [](const IdColumn& word) {
        const Column x(word.begin(), word.end());
        expect(highest_of<T>(items(x), x.size()) == c::highest_of(x.data(), 0, x.size()), "highest_of", word);
    });
}

void columns_of_short_segments() {
    for_states(2, [](std::int64_t segments, std::int64_t previous, std::int64_t written, bool is_filled, bool checks) {
        for_words(1, 4, -1, segments + 1, [&](const IdColumn& ids) {
            const std::size_t n = ids.size();
            const Column x = elements(n);
            for (std::size_t i = 0; i < n; ++i) {
                Both both(segments, previous, written, is_filled, checks, false);
                ColumnWalk<T> at{previous, -2};
                c::at = {previous, -2};
                const std::size_t ours = short_segments<T>(&both.walk, items(x), ids_of(ids, 0, n, segments, false), i, n, &at);
                const std::size_t theirs = c::short_segments(x.data(), ids.data(), n, i, n);
                expect(ours == theirs && at.previous == c::at.previous && at.best == c::at.best && both.is_same(),
                       "short_segments", ids);
            }
            if (0 <= ids[0] && ids[0] < segments) return;
            Both both(segments, previous, written, is_filled, checks, false);
            std::int64_t ours = previous;
            c::at = {previous, -2};
            const bool goes_on = goes_on_after<T>(&both.walk, ids_of(ids, 0, n, segments, false), 0, &ours);
            expect(goes_on == c::goes_on_after(x.data(), ids.data(), 0, n, n) && ours == c::at.previous && both.is_same(),
                   "goes_on_after", ids);
        });
    });
}

// Blocks of a column, by segment_rows with all of its paths; then what segment.cpp fills at the end. Of wrong ids it is
// compared whether they are found, and in which block; what the output then holds is left open.
void whole_columns(std::size_t most, std::int64_t segments) {
    for_words(0, most, -1, segments, [&](const IdColumn& ids) {
        const std::size_t n = ids.size();
        const Column x = elements(n);
        const bool good = are_good(ids);
        for (int flags = 0; flags < 6; ++flags) {
            const bool is_filled = flags % 2 != 0, checks = flags / 2 == 0, gallops = flags / 2 == 1;
            if (!checks && !good) continue;
            for (std::size_t block = 1; block <= n || block == 1; ++block) {
                Both both(segments, -1, 0, is_filled, checks, gallops);
                Both whole(segments, -1, 0, is_filled, checks, gallops);
                bool same = true;
                c::walk.out = both.theirs.data();
                for (std::size_t row = 0; row < n && same && !both.walk.is_unsorted; row += block) {
                    const std::size_t end = n - row < block ? n : row + block;
                    segment_rows<T, Id>(&both.walk, x.data() + row, sizeof(Row), ids.data() + row, end - row);
                    c::segment_rows(x.data(), ids.data(), row, end, n);
                    same = both.walk.is_unsorted ? c::walk.is_unsorted : both.is_same();
                }
                expect(same, "segment_rows", ids);
                if (!both.walk.is_unsorted) fill<T>(&both.walk, both.walk.previous + 1, segments);
                Both afresh(segments, -1, 0, is_filled, checks, gallops);
                const bool is_sorted = c::segment(x.data(), ids.data(), n, block);
                expect(is_sorted != both.walk.is_unsorted && (!is_sorted || afresh.theirs == both.ours), "segment", ids);
            }
        }
    });
}

// ---------------------------------------------------------------------------- broadcasting

void shapes(const std::vector<IdColumn>& of) {
    std::vector<View> views(of.size());
    std::size_t rank = 0;
    for (std::size_t k = 0; k < of.size(); ++k) {
        views[k].sizes = of[k].data();
        views[k].rank = static_cast<int>(of[k].size());
        rank = std::max(rank, of[k].size());
    }
    for (const bool strict : {false, true}) {
        Shape shape;
        const auto how = strict ? Broadcasting::kStrict : Broadcasting::kNumpy;
        const Fault fault = broadcast(views.data(), views.size(), how, &shape);
        bool goes = true, same = true;
        for (std::size_t axis = 0; axis < rank; ++axis) {
            IdColumn sizes;
            for (const IdColumn& own : of) {
                const std::size_t lead = rank - own.size();
                sizes.push_back(axis < lead ? 1 : own[axis - lead]);
            }
            std::int64_t whole = -1;
            goes = restated::broadcasting::broadcast_axis(sizes.data(), sizes.size(), strict, &whole) && goes;
            same = same && (fault || shape.size[axis] == static_cast<std::size_t>(whole));
        }
        expect(goes == !fault && (fault || same), "broadcast", of[0]);
    }
}

void broadcasts() {
    std::vector<IdColumn> all;
    for_words(0, 2, 0, 3, [&](const IdColumn& shape) { all.push_back(shape); });
    for (const IdColumn& a : all)
        for (const IdColumn& b : all) {
            shapes({a, b});
            for (const IdColumn& d : all) shapes({a, b, d});
        }
    for_words(3, 3, 0, 2, [&](const IdColumn& a) {
        shapes({a});
        for (const IdColumn& b : all) shapes({b, a});
    });
}

void places() {
    for_words(0, 3, 1, 3, [](const IdColumn& sizes) {
        const auto rank = static_cast<int>(sizes.size());
        for_words(sizes.size(), sizes.size(), -2, 2, [&](const IdColumn& strides) {
            View view{};
            view.sizes = sizes.data();
            view.strides = strides.data();
            view.rank = rank;
            for (int whole = rank; whole <= rank + 2; ++whole) {
                Operand operand;
                view.get_operand(whole, &operand);
                IdColumn to(static_cast<std::size_t>(whole), -7);
                restated::broadcasting::get_operand(sizes.data(), strides.data(), rank, whole, to.data());
                expect(std::equal(to.begin(), to.end(), operand.strides), "get_operand", sizes);
            }
            if (rank == 0) return;
            Shape shape;
            Operand operand;
            shape.rank = rank;
            std::copy(sizes.begin(), sizes.end(), shape.size);
            std::copy(strides.begin(), strides.end(), operand.strides);
            Position position(shape);
            IdColumn index(sizes.size(), 0);
            for (std::size_t flat = 0; flat < shape.elements(); ++flat) {
                bool same = position.offset(operand) ==
                            restated::broadcasting::position_offset(index.data(), sizes.data(), strides.data(), rank);
                position.advance(shape, rank - 1, 1);
                restated::broadcasting::advance(index.data(), sizes.data(), rank);
                for (int axis = 0; axis < rank; ++axis)
                    same = same && position[axis] == static_cast<std::size_t>(index[static_cast<std::size_t>(axis)]);
                expect(same, "offset, advance", sizes);
            }
        });
    });
}

// ---------------------------------------------------------------------------- the fold

Kernels kernels() {
    Kernels table{};
    table.itemsize = sizeof(Row);
    table.fold[1] = fold<T, 1>;
    table.fold[2] = fold<T, 2>;
    table.fold[3] = fold<T, 3>;
    table.fold[4] = fold<T, 4>;
    table.fold[8] = fold<T, 8>;
    table.gather_rows = gather_rows<Word<T>>;
    table.scatter = scatter<Word<T>>;
    return table;
}

// Any number of inputs of n elements, some of which are one element that is stretched.
void folds() {
    const Kernels table = kernels();
    if (!reserve_scratch()) std::abort();
    for (std::size_t count = 1; count <= 20; ++count)
        for (std::size_t n = 1; n <= 9; ++n)
            for (std::size_t stretched = 0; stretched <= count; ++stretched)
                for (std::size_t top = 0; top < count; ++top) {
                    std::vector<Column> in(count, elements(n));
                    for (std::size_t k = 0; k < count; ++k)
                        for (std::size_t i = 0; i < n; ++i) in[k][i] = element(i + 3 * k);
                    in[top][n / 2] = 9;
                    Column ours(n, -99), theirs(n, -99);
                    std::vector<Operand> operands;
                    std::vector<std::int32_t*> from;
                    std::vector<std::size_t> strides;
                    for (std::size_t k = 0; k < count; ++k) {
                        const bool is_one = k == stretched;
                        operands.emplace_back(reinterpret_cast<char*>(in[k].data()));
                        operands[k].strides[0] = is_one ? 0 : sizeof(Row);
                        from.push_back(in[k].data());
                        strides.push_back(is_one ? 0 : 1);
                    }
                    operands.emplace_back(reinterpret_cast<char*>(ours.data()));
                    operands.back().strides[0] = sizeof(Row);
                    const Shape shape(n);
                    Fold(table, shape, operands, false)(0, n);
                    restated::folding::fold_block(theirs.data(), from.data(), strides.data(), count, n);
                    expect(ours == theirs, "fold_block", {std::int64_t(count), std::int64_t(n), std::int64_t(stretched)});
                }
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops

int main() {
    using namespace maxops::MAXOPS_ISA;
    run_ends();
    orders();
    single_functions();
    columns_of_short_segments();
    for (std::int64_t segments = 1; segments <= 3; ++segments) whole_columns(segments == 3 ? 6 : 7, segments);
    whole_columns(10, 0);
    broadcasts();
    places();
    folds();
    std::printf("{\"states\":%llu,\"wrong\":%llu}\n", states, wrong);
    return wrong != 0;
}
