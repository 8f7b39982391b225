// The common part of all ways to find partners: windows, further comparisons, and results.
#pragma once

#include "binding.h"
#include "formula.h"

enum Op : int64_t { LT, EQ, GT, GE, LE, NE };

inline bool compared(int64_t op, int64_t a, int64_t b) {
    switch (op) {
    case LT: return a < b;
    case EQ: return a == b;
    case GT: return a > b;
    case GE: return a >= b;
    case LE: return a <= b;
    default: return a != b;
    }
}

// `theirs op ours`, with one value per stored row and one per probe; a value is NULL if its flag is
// 0.
struct Comparison {
    int64_t op;
    Ints theirs;
    Bytes theirs_valid;
    Ints ours;
    Bytes ours_valid;

    bool holds(int64_t row, int64_t probe) const {
        if (theirs_valid.data && !theirs_valid.data[row]) return false;
        if (ours_valid.data && !ours_valid.data[probe]) return false;
        int64_t a = theirs.data[row], b = ours.data[probe];
        return compared(op, a, b);
    }
};

// Runs the probes from `start` on. Probe i meets the stored rows from low[i] up to but excluding
// high[i], numbered in order of arrival. Pairs (probe, row) are written to `who` and `row`, ordered
// by probe, then row, for as many whole probes as fit.
struct Probes {
    int64_t start;
    Ints low, high;
    int64_t base;  // the number of the row whose values come first in the comparisons
    std::vector<Comparison> rest;
    std::vector<Formula> formulas;
    Out who, row;
    int64_t filled = 0, tested = 0;  // pairs; those that meet all formulas
    bool full = false;

    Probes(long long start_, PyObject *low_, PyObject *high_, long long base_, PyObject *rest_,
           PyObject *who_, PyObject *row_, PyObject *formulas_)
        : start(start_), low(low_), high(high_), base(base_), who(who_, true), row(row_, true) {
        high.want(low.size);
        row.want(who.size);
        if (start < 0) throw std::out_of_range("probes before the first");
        Py_ssize_t count = PyTuple_Size(rest_);
        if (count < 0) throw Raised();
        int64_t least = INT64_MAX, most = base;
        for (int64_t i = 0; i < low.size; ++i) {
            if (low.data[i] >= high.data[i]) continue;
            if (low.data[i] < least) least = low.data[i];
            if (high.data[i] > most) most = high.data[i];
        }
        if (least < base) throw std::out_of_range("a window before the first stored row");
        rest.reserve(static_cast<size_t>(count));
        for (Py_ssize_t i = 0; i < count; ++i) {
            long long op;
            PyObject *a, *b, *c, *d;
            if (!PyArg_ParseTuple(PyTuple_GetItem(rest_, i), "LOOOO", &op, &a, &b, &c, &d))
                throw Raised();
            rest.push_back({op, Ints(a), Bytes(b), Ints(c), Bytes(d)});
            rest.back().theirs.want(most - base);
            rest.back().theirs_valid.want(most - base);
            rest.back().ours.want(low.size);
            rest.back().ours_valid.want(low.size);
        }
        if (formulas_ == nullptr) return;
        count = PyTuple_Size(formulas_);
        if (count < 0) throw Raised();
        for (Py_ssize_t i = 0; i < count; ++i)
            formulas.emplace_back(PyTuple_GetItem(formulas_, i), most - base, low.size);
    }

    // Refuses windows that reach beyond the stored rows.
    void stored(int64_t first, int64_t end) const {
        for (int64_t i = start; i < low.size; ++i)
            if (low.data[i] < high.data[i] && (low.data[i] < first || high.data[i] > end))
                throw std::out_of_range("a window of rows that are not stored");
    }

    bool fits(int64_t probe, int64_t number) const {
        for (const Comparison &one : rest)
            if (!one.holds(number - base, probe)) return false;
        return true;
    }

    void add(int64_t probe, int64_t number) {
        if (filled == who.size) {
            full = true;
            return;
        }
        who.data[filled] = probe;
        row.data[filled++] = number;
    }

    // Adds the rows from `number` up to but excluding `high` that meet all formulas.
    void all(int64_t probe, int64_t number, int64_t high) {
        for (Formula &one : formulas) one.meet(probe, std::min(block, high - number));
        uint8_t kept[block];
        for (; number < high && !full && !formulas.empty(); number += block) {
            int64_t count = std::min(block, high - number);
            std::memset(kept, 1, block);
            for (Formula &one : formulas) one.consecutive(number - base, count, kept);
            for (int64_t k = 0; k < count; ++k)
                if (kept[k]) add(probe, number + k);
        }
        for (; number < high && !full; ++number) add(probe, number);
        tested = filled;
    }

    // Drops the pairs that do not meet all formulas.
    void test() {
        const int64_t end = filled;
        if (formulas.empty()) tested = end;
        uint8_t kept[block];
        for (filled = tested; tested < end; tested += block) {
            int64_t count = std::min(block, end - tested);
            std::memset(kept, 1, block);
            for (Formula &one : formulas) one.pairs(who.data + tested, row.data + tested, base, count, kept);
            for (int64_t k = 0; k < count; ++k) {
                who.data[filled] = who.data[tested + k];
                row.data[filled] = row.data[tested + k];
                filled += kept[k];
            }
        }
        tested = filled;
    }

    // Runs `find(probe)` for one probe after the other. Returns the first probe whose pairs did not
    // fit, and the number of pairs before it.
    template <typename Find>
    PyObject *run(Find find) {
        int64_t probe = start;
        for (; probe < low.size; ++probe) {
            int64_t before = filled;
            if (low.data[probe] < high.data[probe]) find(probe);
            if (full) {
                filled = before;
                tested = std::min(tested, filled);
                test();
                if (filled == before) break;
                full = false;
                --probe;  // there is room now
            } else if (filled - tested >= block) {
                test();
            }
        }
        test();
        return Py_BuildValue("LL", static_cast<long long>(probe), static_cast<long long>(filled));
    }
};

#define PROBES "LOOLOOO|O"
struct ProbeArguments {
    long long start, base;
    PyObject *low, *high, *rest, *who, *row, *formulas = nullptr;
    Probes open() const { return Probes(start, low, high, base, rest, who, row, formulas); }
};
