// Scans all rows, a block at a time. The first comparison decides whether the others are made.
#pragma once

#include "blocks.h"
#include "probes.h"

#include <algorithm>

#define COMPARED(NAME, OP)                                                                         \
    WIDEST inline int64_t count_##NAME(const int64_t *values, int64_t rows, int64_t than) {        \
        int64_t found = 0;                                                                         \
        for (int64_t i = 0; i < rows; ++i) found += values[i] OP than;                             \
        return found;                                                                              \
    }                                                                                              \
    WIDEST inline void mark_##NAME(const int64_t *values, int64_t rows, int64_t than, int64_t *marks) { \
        for (int64_t i = 0; i < rows; ++i) marks[i] &= values[i] OP than;                          \
    }                                                                                              \
    inline int64_t pick_##NAME(const int64_t *values, int64_t rows, int64_t than, int32_t *out) {  \
        int64_t found = 0;                                                                         \
        for (int64_t i = 0; i < rows; ++i) {                                                       \
            out[found] = static_cast<int32_t>(i);                                                  \
            found += values[i] OP than;                                                            \
        }                                                                                          \
        return found;                                                                              \
    }
COMPARED(lt, <)
COMPARED(eq, ==)
COMPARED(gt, >)
COMPARED(ge, >=)
COMPARED(le, <=)
COMPARED(ne, !=)
#undef COMPARED

using Count = int64_t (*)(const int64_t *, int64_t, int64_t);
using Mark = void (*)(const int64_t *, int64_t, int64_t, int64_t *);
using Pick = int64_t (*)(const int64_t *, int64_t, int64_t, int32_t *);
static const Count counts[] = {count_lt, count_eq, count_gt, count_ge, count_le, count_ne};
static const Mark marks_of[] = {mark_lt, mark_eq, mark_gt, mark_ge, mark_le, mark_ne};
static const Pick picks[] = {pick_lt, pick_eq, pick_gt, pick_ge, pick_le, pick_ne};

constexpr int64_t few = 16;  // rows of a block that are compared one by one

// Finds the rows of each probe's window for which all comparisons hold.
inline PyObject *scan(PyObject *args) {
    ProbeArguments a;
    if (!PyArg_ParseTuple(args, PROBES, &a.start, &a.low, &a.high, &a.base, &a.rest, &a.who, &a.row, &a.formulas))
        throw Raised();
    Probes probes = a.open();
    for (const Comparison &one : probes.rest)
        if (one.op < LT || one.op > NE) throw std::out_of_range("there is no such comparison");
    int32_t places[block];
    int64_t marks[block];
    return probes.run([&](int64_t i) {
        int64_t number = probes.low.data[i], high = probes.high.data[i];
        if (probes.rest.empty()) return probes.all(i, number, high);
        const Comparison &first = probes.rest.front();
        for (const Comparison &one : probes.rest)
            if (one.ours_valid.data && !one.ours_valid.data[i]) return;
        const bool simple = probes.rest.size() == 1 && !first.theirs_valid.data;
        for (; number < high && !probes.full; number += block) {
            int64_t rows = std::min(block, high - number), place = number - probes.base;
            const int64_t *values = first.theirs.data + place, than = first.ours.data[i];
            int64_t count = counts[first.op](values, rows, than);
            if (count == 0) continue;
            if (simple || count <= few) {
                int64_t found = picks[first.op](values, rows, than, places);
                for (int64_t k = 0; k < found; ++k)
                    if (simple || probes.fits(i, number + places[k])) probes.add(i, number + places[k]);
                continue;
            }
            std::fill(marks, marks + rows, 1);
            for (const Comparison &one : probes.rest) {
                marks_of[one.op](one.theirs.data + place, rows, one.ours.data[i], marks);
                if (!one.theirs_valid.data) continue;
                for (int64_t k = 0; k < rows; ++k) marks[k] &= one.theirs_valid.data[place + k] != 0;
            }
            if (count_ne(marks, rows, 0) == 0) continue;
            int64_t found = pick_ne(marks, rows, 0, places);
            for (int64_t k = 0; k < found; ++k) probes.add(i, number + places[k]);
        }
    });
}

// Finds where each number would go in a sorted array: before equal ones, or behind them with
// `after`. As long as numbers do not decrease, the search goes on from the previous place. What the array holds
// of 32 bits is above `base`.
template <typename T>
void write_places(const View<const T> &sorted, int64_t base, const Ints &numbers, bool after, Out &out) {
    const T *begin = sorted.data, *end = begin + sorted.size, *at = begin;
    for (int64_t i = 0; i < numbers.size; ++i) {
        int64_t number = numbers.data[i];
        if constexpr (sizeof(T) < sizeof(int64_t)) { // the distance of any two numbers fits into 64 unsigned bits
            uint64_t above = static_cast<uint64_t>(number) - static_cast<uint64_t>(base);
            number = number < base ? -1 : static_cast<int64_t>(std::min<uint64_t>(above, INT64_MAX));
        }
        auto below = [&](T one) {
            return after ? static_cast<int64_t>(one) <= number : static_cast<int64_t>(one) < number;
        };
        const T *low = begin, *high = end;
        if (at == begin || below(at[-1])) {
            low = at;
            int64_t step = 1;
            while (low + step <= end && below(low[step - 1])) {
                low += step;
                step *= 2;
            }
            high = std::min(end, low + step);
        }
        at = std::partition_point(low, high, below);
        out.data[i] = at - begin;
    }
}

inline PyObject *places(PyObject *args) {
    PyObject *sorted_, *base_, *numbers_, *out_;
    int after;
    if (!PyArg_ParseTuple(args, "OOOpO", &sorted_, &base_, &numbers_, &after, &out_)) throw Raised();
    Ints numbers(numbers_);
    Out out(out_, true);
    out.want(numbers.size);
    if (base_ == Py_None) {
        write_places<int64_t>(Ints(sorted_), 0, numbers, after != 0, out);
    } else {
        const int64_t base = PyLong_AsLongLong(base_);
        if (base == -1 && PyErr_Occurred()) throw Raised();
        write_places<uint32_t>(View<const uint32_t>(sorted_), base, numbers, after != 0, out);
    }
    Py_RETURN_NONE;
}
