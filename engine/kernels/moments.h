// Sums of values and of their products, of groups of rows with one or two reals.
#pragma once

#include "exact.h"
#include "turns.h"

#include <string>

class Moments {
    struct State {
        int64_t count = 0, infinite = 0;
        Exact x, xx, y, yy, xy;
    };
    Groups<State> groups;

    void give(Exact &sum) {
        lows.push_back(sum.bytes(bytes));
        ends.push_back(static_cast<int64_t>(bytes.size()));
    }

  public:
    // By point: the rows and those of them with infinite values; then, by sum, the limb of its first bytes and
    // where they end.
    std::vector<int64_t> counts, lows, ends;
    std::string bytes;

    // Takes turns of members whose flags are set; of one real, `ys` is empty.
    void run(const Turns &turns, Span<uint8_t> flags, Span<int64_t> xs, Span<int64_t> ys) {
        groups.want(turns.groups());
        counts.clear(), lows.clear(), ends.clear(), bytes.clear();
        auto real = [](Span<int64_t> of, int64_t place) {
            double value;
            std::memcpy(&value, of.data + place, 8);
            return value;
        };
        auto step = [&](int64_t place, int64_t group, bool leaves) {
            State &mine = groups[group];
            mine.count += leaves ? -1 : 1;
            double x = real(xs, place), y = ys.data ? real(ys, place) : 0;
            if (!std::isfinite(x) || !std::isfinite(y)) {
                mine.infinite += leaves ? -1 : 1;
                return;
            }
            mine.x.add(x, leaves);
            mine.xx.add_product(x, x, leaves);
            if (!ys.data) return;
            mine.y.add(y, leaves);
            mine.yy.add_product(y, y, leaves);
            mine.xy.add_product(x, y, leaves);
        };
        auto answer = [&](int64_t, int64_t group) {
            State &mine = groups[group];
            counts.insert(counts.end(), {mine.count, mine.infinite});
            give(mine.x);
            give(mine.xx);
            if (!ys.data) return;
            give(mine.y);
            give(mine.yy);
            give(mine.xy);
        };
        turns.run(flags, step, answer);
    }
};
