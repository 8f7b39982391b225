// The bits that are set in all integers of a group, or in some.
#pragma once

#include "turns.h"

#include <algorithm>
#include <iterator>

enum BitsWanted : int { IN_ALL, IN_SOME };

class Bits {
    struct State {
        int64_t rows = 0;
        int64_t set[64] = {};  // by bit, the rows in which it is set
    };
    Groups<State> groups;

  public:
    // By point, the bits, and whether the group has rows.
    std::vector<int64_t> found;
    std::vector<uint8_t> known;

    // Adds the words of a group's state.
    void give(int64_t group, std::vector<int64_t> &words) {
        groups.want(group + 1);
        const State &mine = groups[group];
        words.push_back(mine.rows);
        words.insert(words.end(), std::begin(mine.set), std::end(mine.set));
    }

    // Takes a group's state from words; returns the first word after it.
    const int64_t *take(int64_t group, const int64_t *words, const int64_t *end) {
        if (end - words < 65) throw std::out_of_range("no words of a state");
        groups.want(group + 1);
        State &mine = groups[group];
        mine.rows = *words++;
        std::copy_n(words, 64, mine.set);
        return words + 64;
    }

    void forget(int64_t group) {
        if (groups.has(group)) groups[group] = {};
    }

    // Adds the state of a group of others.
    void add(int64_t group, Bits &others, int64_t of) {
        if (!others.groups.has(of)) return;
        groups.want(group + 1);
        State &mine = groups[group];
        const State &other = others.groups[of];
        mine.rows += other.rows;
        for (int bit = 0; bit < 64; ++bit) mine.set[bit] += other.set[bit];
    }

    // Takes turns of members whose flags are set.
    void run(const Turns &turns, Span<uint8_t> flags, Span<int64_t> words, int wanted) {
        groups.want(turns.groups());
        words.want(turns.group.size);
        found.clear(), known.clear();
        auto step = [&](int64_t place, int64_t group, bool leaves) {
            State &mine = groups[group];
            auto word = static_cast<uint64_t>(words.data[place]);
            int64_t by = leaves ? -1 : 1;
            mine.rows += by;
            for (int bit = 0; bit < 64; ++bit) mine.set[bit] += by * static_cast<int64_t>(word >> bit & 1);
        };
        auto answer = [&](int64_t, int64_t group) {
            const State &mine = groups[group];
            uint64_t word = 0;
            for (int bit = 0; bit < 64; ++bit) {
                bool set = wanted == IN_ALL ? mine.set[bit] == mine.rows : mine.set[bit] > 0;
                word |= static_cast<uint64_t>(set) << bit;
            }
            found.push_back(static_cast<int64_t>(word));
            known.push_back(mine.rows > 0);
        };
        turns.run(flags, step, answer);
    }
};
