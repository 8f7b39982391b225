// The rows of one key that a search visits, and its position.
#pragma once

#include "probes.h"

#include <unordered_set>

// A queue that takes no memory while it is empty: there is one for each key that was ever seen.
template <typename T> struct Queue {
    std::vector<T> all;
    size_t head = 0;

    size_t size() const { return all.size() - head; }
    bool empty() const { return head == all.size(); }
    const T &operator[](size_t at) const { return all[head + at]; }
    T &operator[](size_t at) { return all[head + at]; }
    auto begin() const { return all.begin() + static_cast<std::ptrdiff_t>(head); }
    auto end() const { return all.end(); }
    void push_back(const T &one) { all.push_back(one); }
    void append(const T *from, const T *to) { all.insert(all.end(), from, to); }
    void drop(size_t count) {
        head += count;
        if (empty())
            std::vector<T>().swap(all), head = 0;
        else if (2 * head > all.size())
            all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(head)), head = 0;
    }
};

// A constant, or a column of a row of the match: the row `back` rows from the first or the last one
// of some variables.
struct Operand {
    int64_t column, among, first, back;  // column -1: `back` is the constant
};
struct Test {
    int64_t op;
    Operand left, right;
};

struct Row {
    int64_t number, ts;
    uint64_t may;
};
struct Frame {
    int32_t step, mark;  // mark -1: go on at `step`; otherwise restore the mark to `at`
    int64_t at;
};
struct Track {
    Queue<Row> rows;
    Queue<int64_t> values;  // of judged rows, `width` each
    Queue<uint8_t> flags;
    int64_t base = 0;     // the place of rows[0] in the partition
    int64_t judged = 0;   // rows before this place are judged
    int64_t start = 0;    // where the match that is searched for begins
    int64_t matches = 0;  // found so far
    int64_t covered = 0;  // rows before this place are in a match
    int64_t number = -1;  // number of the newest row
    int64_t at = -1;      // among the keys with rows, -1 while it has none
    bool running = false;
    bool due = false;     // the search is to continue
    bool timed = false, dated = false;  // whether it is in the queue of ends, and of first rows
    int64_t step = 0;
    std::vector<int32_t> labels;  // the variables of the rows from `start` on, plus 64 if excluded
    std::vector<std::vector<int64_t>> where;  // by variable: the places of its rows
    std::vector<Frame> stack;
    std::vector<int64_t> marks;
    std::vector<uint8_t> seen;  // by place from `start` on and choice: whether it was made here
    std::unordered_set<uint64_t> met;  // the same where iterations may be empty: with those that are

    // Gives back what a search needs, while there are no rows.
    void rest() {
        labels = decltype(labels)(), where = decltype(where)(), stack = decltype(stack)();
        marks = decltype(marks)(), seen = decltype(seen)(), met = decltype(met)();
    }

    int64_t end() const { return base + static_cast<int64_t>(rows.size()); }
    const Row &row(int64_t place) const { return rows[static_cast<size_t>(place - base)]; }

    // Returns the place of a row in the match so far, which includes the current row; -1 if there
    // is none.
    int64_t placed(const Operand &of) const {
        if ((of.among & (of.among - 1)) == 0) {
            const std::vector<int64_t> &mine = where[static_cast<size_t>(__builtin_ctzll(
                static_cast<unsigned long long>(of.among)))];
            auto count = static_cast<int64_t>(mine.size());
            if (of.back >= count) return -1;
            return mine[static_cast<size_t>(of.first ? of.back : count - 1 - of.back)];
        }
        auto count = static_cast<int64_t>(labels.size());
        int64_t left = of.back;
        for (int64_t i = 0; i < count; ++i) {
            int64_t at = of.first ? i : count - 1 - i;
            if ((of.among >> (labels[static_cast<size_t>(at)] & 63) & 1) && left-- == 0)
                return start + at;
        }
        return -1;
    }

    // Returns 0 for NULL, 1 for a value, 2 for a value that only Python has.
    int value(const Operand &of, int64_t width, int64_t &found) const {
        if (of.column < 0) {
            found = of.back;
            return 1;
        }
        int64_t place = placed(of);
        if (place < 0) return 0;
        auto at = static_cast<size_t>((place - base) * width + of.column);
        found = values[at];
        return flags[at];
    }
};
