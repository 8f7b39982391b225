// Matches of events: for each, the time at which it is certain, the number of events of each stage,
// and the events.
#pragma once

#include "binding.h"

#include <algorithm>
#include <numeric>
#include <vector>

struct FoundMatches {
    std::vector<int64_t> determined, counts, rows;
    size_t stages = 0;

    size_t size() const { return determined.size(); }

    // Removes the matches that are certain at a time and returns them, as the bytes of
    // `determined`, `counts` and `rows`.
    PyObject *take(int64_t to) {
        FoundMatches given, rest;
        size_t row = 0;
        for (size_t i = 0; i < size(); ++i) {
            FoundMatches &one = determined[i] <= to ? given : rest;
            one.determined.push_back(determined[i]);
            size_t end = row;
            for (size_t s = 0; s < stages; ++s) {
                one.counts.push_back(counts[i * stages + s]);
                end += static_cast<size_t>(one.counts.back());
            }
            one.rows.insert(one.rows.end(), rows.begin() + static_cast<ptrdiff_t>(row),
                            rows.begin() + static_cast<ptrdiff_t>(end));
            row = end;
        }
        determined.swap(rest.determined), counts.swap(rest.counts), rows.swap(rest.rows);
        auto bytes = [](const std::vector<int64_t> &v) {
            return PyBytes_FromStringAndSize(reinterpret_cast<const char *>(v.data()),
                                             static_cast<Py_ssize_t>(8 * v.size()));
        };
        return Py_BuildValue("NNN", bytes(given.determined), bytes(given.counts), bytes(given.rows));
    }
};

// Orders matches by `determined`, then by the numbers of the events of each stage, a prefix before
// the longer match. `counts` and `numbers` have one array per stage.
inline PyObject *ordered(PyObject *args) {
    PyObject *determined_, *counts_, *numbers_, *out_;
    if (!PyArg_ParseTuple(args, "OOOO", &determined_, &counts_, &numbers_, &out_)) throw Raised();
    Ints determined(determined_);
    Out out(out_, true);
    out.want(determined.size);
    Py_ssize_t stages = PyTuple_Size(counts_);
    if (stages < 0 || PyTuple_Size(numbers_) != stages) throw std::out_of_range("arrays of other stages");
    std::vector<Ints> numbers;
    std::vector<std::vector<int64_t>> ends;
    for (Py_ssize_t s = 0; s < stages; ++s) {
        Ints mine(PyTuple_GetItem(counts_, s));
        numbers.emplace_back(PyTuple_GetItem(numbers_, s));
        mine.want(determined.size);
        std::vector<int64_t> end{0};
        for (int64_t i = 0; i < determined.size; ++i) {
            if (mine.data[i] < 0) throw std::out_of_range("a count below 0");
            end.push_back(end.back() + mine.data[i]);
        }
        numbers.back().want(end.back());
        ends.push_back(std::move(end));
    }
    std::iota(out.data, out.data + determined.size, int64_t{0});
    std::stable_sort(out.data, out.data + determined.size, [&](int64_t a, int64_t b) {
        if (determined.data[a] != determined.data[b]) return determined.data[a] < determined.data[b];
        for (size_t s = 0; s < ends.size(); ++s) {
            const int64_t *data = numbers[s].data, *end = ends[s].data();
            const int64_t *a0 = data + end[a], *a1 = data + end[a + 1];
            const int64_t *b0 = data + end[b], *b1 = data + end[b + 1];
            for (; a0 != a1 && b0 != b1; ++a0, ++b0)
                if (*a0 != *b0) return *a0 < *b0;
            if ((a0 == a1) != (b0 == b1)) return a0 == a1;
        }
        return false;
    });
    Py_RETURN_NONE;
}
