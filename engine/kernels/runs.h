// Rows by value: aligned runs of 64, 512, 4,096 ... rows, each sorted.
//
// A window is a range of row numbers. It is divided into as few whole runs as possible, each
// searched by bisection, and fewer than two times 64 rows that are checked one by one. When the
// last row of a run has come, the run is merged from eight shorter ones.
#pragma once

#include "numbered.h"

#include <deque>

class Runs : public Numbered {
    static constexpr int64_t shortest = 64, growth = 8;
    struct Entry {
        int64_t value;
        int64_t number;
        bool operator<(const Entry &other) const {
            return value < other.value || (value == other.value && number < other.number);
        }
    };
    struct Level {
        int64_t size;   // rows per run
        int64_t first;  // number of the front run of this level, counted from row 0
        std::deque<std::vector<Entry>> runs;
    };

    std::vector<Level> levels;

    // Sorts the runs that are complete by now.
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
                std::vector<Entry> run;
                if (depth == 0)
                    sorted(number * level.size, level.size, run);
                else if (!merged(levels[depth - 1], number * growth, run)) {
                    // Some of its rows were dropped before it was complete: the level begins after
                    // them.
                    level.first = number + 1;
                    level.runs.clear();
                    continue;
                }
                level.runs.push_back(std::move(run));
            }
        }
    }

    void sorted(int64_t from, int64_t count, std::vector<Entry> &run) const {
        for (int64_t number = from; number < from + count; ++number) {
            size_t at = static_cast<size_t>(number - base);
            if (number >= base && valid[at]) run.push_back({values[at], number});
        }
        std::sort(run.begin(), run.end());
    }

    static bool merged(const Level &below, int64_t from, std::vector<Entry> &run) {
        if (from < below.first) return false;
        std::vector<size_t> ends{0};
        for (int64_t i = 0; i < growth; ++i) {
            const std::vector<Entry> &part = below.runs[static_cast<size_t>(from + i - below.first)];
            run.insert(run.end(), part.begin(), part.end());
            ends.push_back(run.size());
        }
        for (size_t step = 1; step < growth; step *= 2)
            for (size_t i = 0; i + step < ends.size(); i += 2 * step) {
                size_t stop = std::min(i + 2 * step, ends.size() - 1);
                std::inplace_merge(run.begin() + static_cast<int64_t>(ends[i]),
                                   run.begin() + static_cast<int64_t>(ends[i + step]),
                                   run.begin() + static_cast<int64_t>(ends[stop]));
            }
        return true;
    }

    // Returns the longest run that begins with row `from` and ends by row `to`; null if there is
    // none.
    const std::vector<Entry> *run_at(int64_t from, int64_t to, int64_t &size) const {
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
        add(args);
        complete();
        Py_RETURN_NONE;
    }

    PyObject *drop(PyObject *args) {
        bool all;
        drop_before(args, all);
        if (all) levels.clear();
        for (Level &level : levels)
            while (!level.runs.empty() && (level.first + 1) * level.size <= first) {
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
                              &a.high, &a.base, &a.rest, &a.who, &a.row))
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
                if (const std::vector<Entry> *run = run_at(number, high, size)) {
                    auto at = std::lower_bound(run->begin(), run->end(), Entry{from, INT64_MIN});
                    for (; at != run->end() && at->value <= to && !probes.full; ++at)
                        if (probes.fits(i, at->number)) probes.add(i, at->number);
                    number += size;
                    continue;
                }
                size_t place = static_cast<size_t>(number - base);
                if (valid[place] && values[place] >= from && values[place] <= to &&
                    probes.fits(i, number))
                    probes.add(i, number);
                ++number;
            }
            std::sort(probes.row.data + found, probes.row.data + probes.filled);
        });
    }
};
