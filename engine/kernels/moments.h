// Sums of values and of their products, of groups of rows with one or two reals.
#pragma once

#include "exact.h"
#include "turns.h"

#include <array>
#include <string>

class Moments {
    struct State {
        int64_t count = 0, infinite = 0;
        Exact x, xx, y, yy, xy;

        std::array<Exact *, 5> sums() { return {&x, &xx, &y, &yy, &xy}; }
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

    // Adds the words of a group's state.
    void give(int64_t group, std::vector<int64_t> &words) {
        groups.want(group + 1);
        State &mine = groups[group];
        words.insert(words.end(), {mine.count, mine.infinite});
        for (Exact *sum : mine.sums()) sum->give(words);
    }

    // Takes a group's state from words; returns the first word after it.
    const int64_t *take(int64_t group, const int64_t *words, const int64_t *end) {
        if (end - words < 2) throw std::out_of_range("no words of a state");
        groups.want(group + 1);
        State &mine = groups[group];
        mine.count = *words++, mine.infinite = *words++;
        for (Exact *sum : mine.sums()) words = sum->take(words, end);
        return words;
    }

    void forget(int64_t group) {
        if (groups.has(group)) groups[group] = {};
    }

    // Adds the state of a group of others.
    void add(int64_t group, Moments &others, int64_t of) {
        if (!others.groups.has(of)) return;
        groups.want(group + 1);
        State &mine = groups[group], &other = others.groups[of];
        mine.count += other.count, mine.infinite += other.infinite;
        auto to = mine.sums(), from = other.sums();
        for (size_t i = 0; i < to.size(); ++i) to[i]->add(*from[i]);
    }

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
