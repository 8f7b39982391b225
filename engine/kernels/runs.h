// Rows by value: aligned runs of 64, 512, 4,096 ... rows, each sorted.
//
// A window is a range of row numbers. It is divided into as few whole runs as possible, each
// searched by bisection, and fewer than two times 64 rows that are checked one by one. When the
// last row of a run has come, the run is merged from eight shorter ones. A run whose first row is gone
// is in no window as a whole, and goes.
#pragma once

#include "grown.h"
#include "probes.h"

#include <deque>
#include <vector>

class Runs {
    static constexpr int64_t shortest = 64, growth = 8, longest_near = 1 << 16;
    struct Entry {
        int64_t value;
        int64_t number;
    };
    // The rows of a run in order of their values: in a short one by their places in it, as their values are
    // close together anyway; in a long one with these.
    struct Run {
        std::vector<uint16_t> near;
        std::vector<Entry> far;
    };
    struct Level {
        int64_t size;   // rows per run
        int64_t first;  // number of the front run of this level, counted from row 0
        std::deque<Run> runs;
    };

    int64_t first = 0;  // rows before this one are gone
    Grown<int64_t> values;
    Grown<uint8_t> valid;
    std::vector<Level> levels;

    int64_t end() const { return first + values.size(); }

    // Builds the runs that are complete by now.
    void complete() {
        for (size_t depth = 0;; ++depth) {
            if (depth == levels.size()) {
                int64_t size = depth == 0 ? shortest : levels.back().size * growth;
                if (end() - first < size) return;
                levels.push_back({size, (first + size - 1) / size, {}});
            }
            Level &level = levels[depth];
            for (;;) {
                int64_t number = level.first + static_cast<int64_t>(level.runs.size());
                if ((number + 1) * level.size > end()) break;
                if (number * level.size < first) {  // it was dropped in part before it was complete
                    ++level.first;
                    continue;
                }
                level.runs.push_back(depth == 0 ? sorted(number * shortest) : merged(levels[depth - 1], number * growth));
            }
        }
    }

    Run sorted(int64_t from) const {
        const int64_t *mine = values.data() + (from - first);
        Run run;
        run.near.reserve(shortest);
        for (int64_t i = 0; i < shortest; ++i)
            if (valid[from - first + i]) run.near.push_back(static_cast<uint16_t>(i));
        std::stable_sort(run.near.begin(), run.near.end(), [=](uint16_t a, uint16_t b) { return mine[a] < mine[b]; });
        return run;
    }

    // Merges runs of a level from one on.
    Run merged(const Level &below, int64_t from) const {
        const int64_t *mine = values.data() + (from * below.size - first);
        std::vector<size_t> ends{0};
        Run run;
        for (int64_t i = 0; i < growth; ++i) {
            const Run &part = below.runs[static_cast<size_t>(from + i - below.first)];
            const int64_t start = i * below.size;
            if (growth * below.size <= longest_near) {
                for (uint16_t place : part.near) run.near.push_back(static_cast<uint16_t>(start + place));
            } else {
                for (uint16_t place : part.near)
                    run.far.push_back({mine[start + place], from * below.size + start + place});
                run.far.insert(run.far.end(), part.far.begin(), part.far.end());
            }
            ends.push_back(std::max(run.near.size(), run.far.size()));
        }
        merge(run.near, ends, [=](uint16_t a, uint16_t b) { return mine[a] < mine[b]; });
        merge(run.far, ends, [](const Entry &a, const Entry &b) { return a.value < b.value; });
        run.near.shrink_to_fit();
        run.far.shrink_to_fit();
        return run;
    }

    // Merges sorted parts that follow one another. Those with equal values stay in their order.
    template <typename T, typename Less>
    static void merge(std::vector<T> &all, const std::vector<size_t> &ends, Less less) {
        if (all.empty()) return;
        for (size_t step = 1; step < growth; step *= 2)
            for (size_t i = 0; i + step < ends.size(); i += 2 * step) {
                size_t stop = std::min(i + 2 * step, ends.size() - 1);
                std::inplace_merge(all.begin() + static_cast<int64_t>(ends[i]),
                                   all.begin() + static_cast<int64_t>(ends[i + step]),
                                   all.begin() + static_cast<int64_t>(ends[stop]), less);
            }
    }

    // Returns the longest run that begins with row `from` and ends by row `to`; null if there is
    // none.
    const Run *run_at(int64_t from, int64_t to, int64_t &size) const {
        for (size_t depth = levels.size(); depth-- > 0;) {
            const Level &level = levels[depth];
            if (from % level.size != 0 || from + level.size > to) continue;
            int64_t place = from / level.size - level.first;
            if (place < 0 || place >= static_cast<int64_t>(level.runs.size())) continue;
            size = level.size;
            return &level.runs[static_cast<size_t>(place)];
        }
        return nullptr;
    }

  public:
    PyObject *append(PyObject *args) {
        PyObject *values_, *valid_;
        if (!PyArg_ParseTuple(args, "OO", &values_, &valid_)) throw Raised();
        Ints more(values_);
        Bytes there(valid_);
        there.want(more.size);
        values.add(more.data, more.size);
        if (there.data)
            valid.add(there.data, more.size);
        else
            valid.add(more.size, 1);
        complete();
        Py_RETURN_NONE;
    }

    PyObject *drop(PyObject *args) {
        long long to;
        if (!PyArg_ParseTuple(args, "L", &to)) throw Raised();
        if (to <= first) Py_RETURN_NONE;
        const int64_t dead = std::min<int64_t>(to, end()) - first;
        values.drop(dead);
        valid.drop(dead);
        first = to;
        if (values.size() == 0) levels.clear();
        for (Level &level : levels)
            while (!level.runs.empty() && level.first * level.size < first) {
                level.runs.pop_front();
                ++level.first;
            }
        Py_RETURN_NONE;
    }

    // Finds rows whose value lies from least[i] to greatest[i], both included.
    PyObject *probe(PyObject *args) {
        PyObject *least_, *greatest_, *valid_;
        ProbeArguments a;
        if (!PyArg_ParseTuple(args, "OOO" PROBES, &least_, &greatest_, &valid_, &a.start, &a.low,
                              &a.high, &a.base, &a.rest, &a.who, &a.row, &a.formulas))
            throw Raised();
        Ints least(least_), greatest(greatest_);
        Bytes there(valid_);
        Probes probes = a.open();
        least.want(probes.low.size);
        greatest.want(probes.low.size);
        there.want(probes.low.size);
        probes.stored(first, end());
        return probes.run([&](int64_t i) {
            if (there.data && !there.data[i]) return;
            int64_t from = least.data[i], to = greatest.data[i], found = probes.filled;
            if (from > to) return;
            int64_t number = probes.low.data[i], high = probes.high.data[i];
            while (number < high && !probes.full) {
                int64_t size;
                if (const Run *run = run_at(number, high, size)) {
                    const int64_t *mine = values.data() + (number - first);
                    auto at = std::lower_bound(run->near.begin(), run->near.end(), from,
                                               [=](uint16_t one, int64_t value) { return mine[one] < value; });
                    for (; at != run->near.end() && mine[*at] <= to && !probes.full; ++at)
                        if (probes.fits(i, number + *at)) probes.add(i, number + *at);
                    auto far = std::lower_bound(run->far.begin(), run->far.end(), from,
                                                [](const Entry &one, int64_t value) { return one.value < value; });
                    for (; far != run->far.end() && far->value <= to && !probes.full; ++far)
                        if (probes.fits(i, far->number)) probes.add(i, far->number);
                    number += size;
                    continue;
                }
                const int64_t place = number - first;
                if (valid[place] && values[place] >= from && values[place] <= to && probes.fits(i, number))
                    probes.add(i, number);
                ++number;
            }
            std::sort(probes.row.data + found, probes.row.data + probes.filled);
        });
    }
};
