// Intervals of numbers, and the values that fall into each.
//
// The bounds of all intervals divide the numbers into leaves. Each interval is stored at a few
// nodes of a binary tree over the leaves, so the intervals at a leaf and at its ancestors are those
// that contain it. Each call builds the list of intervals for every leaf that some value falls
// into; then it appends each row, in order, to the intervals of its leaf. An interval with at least
// a quarter of the rows finds them by scanning all rows. If the bounds lie close together, a table
// maps each number between them to its leaf.
#pragma once

#include "binding.h"

#include <algorithm>
#include <climits>

// Finds the rows whose value lies between two bounds, both included.
inline PyObject *inside(PyObject *args) {
    PyObject *values_, *flags_, *rows_;
    long long low, high;
    if (!PyArg_ParseTuple(args, "OOLLO", &values_, &flags_, &low, &high, &rows_)) throw Raised();
    Ints values(values_);
    Bytes flags(flags_);
    View<int32_t> rows(rows_, true);
    flags.want(values.size);
    rows.want(values.size);
    if (values.size > INT32_MAX) throw std::length_error("more than 2^31 rows");
    int64_t found = 0;
    for (int64_t i = 0; i < values.size; ++i) {
        bool there = flags.data == nullptr || flags.data[i];
        bool fits = there && values.data[i] >= low && values.data[i] <= high;
        rows.data[found] = static_cast<int32_t>(i);
        found += fits;
    }
    return PyLong_FromLongLong(found);
}

class Intervals {
    struct Run {
        size_t begin = 0, end = 0;
    };

    std::vector<int64_t> cuts;  // the starts of all leaves but the first, which has no lower bound
    size_t leaves = 1;
    std::vector<int32_t> near;  // each number's leaf, from the first to the last cut; may be empty
    std::vector<Run> spans;     // by interval: its leaves
    std::vector<Run> nodes;     // by node of the tree, from 1 on; the leaves come last
    std::vector<int32_t> at_nodes;

    // The results of a call.
    std::vector<int32_t> leaf_of;   // by row; -1 if the row has no value
    std::vector<int32_t> present;   // leaves with at least one row
    std::vector<int64_t> sizes;     // rows by leaf
    std::vector<Run> lists;         // by leaf
    std::vector<int32_t> at_leaves;
    std::vector<int32_t> found;     // intervals with at least one row
    std::vector<int64_t> counts;    // rows by interval

    // Searches without a branch that depends on the value.
    size_t leaf(int64_t value) const {
        if (!near.empty()) {
            if (value < cuts.front()) return 0;
            return value >= cuts.back() ? cuts.size() : static_cast<size_t>(near[static_cast<size_t>(value - cuts.front())]);
        }
        const int64_t *at = cuts.data();
        for (size_t rest = cuts.size(); rest > 0;) {
            size_t half = (rest + 1) / 2;
            at += half * static_cast<size_t>(at[half - 1] <= value);
            rest -= half;
        }
        return static_cast<size_t>(at - cuts.data());
    }

    template <typename Visit>
    void cover(const Run &span, Visit visit) const {
        size_t from = span.begin + leaves, to = span.end + leaves;
        for (; from < to; from /= 2, to /= 2) {
            if (from % 2) visit(from++);
            if (to % 2) visit(--to);
        }
    }

    void forget() {
        for (int32_t one : present) sizes[static_cast<size_t>(one)] = 0;
        for (int32_t one : found) counts[static_cast<size_t>(one)] = 0;
        present.clear();
        at_leaves.clear();
        found.clear();
    }

    void tabulate() {
        near.clear();
        if (cuts.empty()) return;
        uint64_t width = static_cast<uint64_t>(cuts.back()) - static_cast<uint64_t>(cuts.front());
        if (width > 16 * static_cast<uint64_t>(cuts.size())) return;
        for (size_t at = 1; at < cuts.size(); ++at)
            near.resize(static_cast<size_t>(cuts[at] - cuts.front()), static_cast<int32_t>(at));
    }

    template <typename Visit>
    void visit_leaf(size_t at, Visit visit) const {
        for (size_t node = at + leaves; node > 0; node /= 2)
            for (size_t i = nodes[node].begin; i < nodes[node].end; ++i)
                visit(static_cast<size_t>(at_nodes[i]));
    }

    int64_t rows() const { return static_cast<int64_t>(leaf_of.size()); }

    void look_at_all(const Run &span, int64_t count, int32_t *out) const {
        uint32_t from = static_cast<uint32_t>(span.begin), width = static_cast<uint32_t>(span.end) - from;
        int64_t row = 0;
        for (int64_t at = 0; at < count; ++row) {
            out[at] = static_cast<int32_t>(row);
            at += static_cast<uint32_t>(leaf_of[static_cast<size_t>(row)]) - from < width;
        }
    }

  public:
    PyObject *configure(PyObject *args) {
        PyObject *low_, *high_;
        if (!PyArg_ParseTuple(args, "OO", &low_, &high_)) throw Raised();
        Ints low(low_), high(high_);
        high.want(low.size);
        forget();
        cuts.clear();
        for (int64_t i = 0; i < low.size; ++i) {
            cuts.push_back(low.data[i]);
            if (high.data[i] < INT64_MAX) cuts.push_back(high.data[i] + 1);
        }
        std::sort(cuts.begin(), cuts.end());
        cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
        leaves = cuts.size() + 1;
        tabulate();
        spans.clear();
        for (int64_t i = 0; i < low.size; ++i) {
            bool some = low.data[i] <= high.data[i];
            spans.push_back(some ? Run{leaf(low.data[i]), leaf(high.data[i]) + 1} : Run{});
        }
        nodes.assign(2 * leaves, {});
        for (int64_t i = 0; i < low.size; ++i)
            cover(spans[static_cast<size_t>(i)], [&](size_t node) { ++nodes[node].end; });
        size_t total = 0;
        for (Run &run : nodes) {
            run.begin = total;
            total += run.end;
            run.end = run.begin;
        }
        at_nodes.resize(total);
        for (int64_t i = 0; i < low.size; ++i)
            cover(spans[static_cast<size_t>(i)],
                  [&](size_t node) { at_nodes[nodes[node].end++] = static_cast<int32_t>(i); });
        sizes.assign(leaves, 0);
        lists.assign(leaves, {});
        counts.assign(static_cast<size_t>(low.size), 0);
        Py_RETURN_NONE;
    }

    PyObject *find(PyObject *args) {
        PyObject *values_, *flags_;
        if (!PyArg_ParseTuple(args, "OO", &values_, &flags_)) throw Raised();
        Ints values(values_);
        Bytes flags(flags_);
        flags.want(values.size);
        forget();
        leaf_of.resize(static_cast<size_t>(values.size));
        for (int64_t row = 0; row < values.size; ++row) {
            int32_t &its = leaf_of[static_cast<size_t>(row)];
            its = -1;
            if (flags.data && !flags.data[row]) continue;
            size_t at = leaf(values.data[row]);
            its = static_cast<int32_t>(at);
            if (sizes[at]++ == 0) present.push_back(its);
        }
        for (int32_t one : present) {
            size_t at = static_cast<size_t>(one);
            visit_leaf(at, [&](size_t interval) {
                if (counts[interval] == 0) found.push_back(static_cast<int32_t>(interval));
                counts[interval] += sizes[at];
            });
        }
        std::sort(found.begin(), found.end());
        int64_t pairs = 0;
        for (int32_t one : found) {
            int64_t count = counts[static_cast<size_t>(one)];
            pairs += count < values.size ? count : 0;
        }
        return Py_BuildValue("nL", static_cast<Py_ssize_t>(found.size()),
                             static_cast<long long>(pairs));
    }

    PyObject *take(PyObject *args) {
        PyObject *numbers_, *counts_, *rows_;
        if (!PyArg_ParseTuple(args, "OOO", &numbers_, &counts_, &rows_)) throw Raised();
        Out numbers(numbers_, true), sums(counts_, true);
        View<int32_t> out(rows_, true);
        numbers.want(static_cast<int64_t>(found.size()));
        sums.want(static_cast<int64_t>(found.size()));
        auto many = [&](int64_t count) { return 4 * count >= rows(); };
        for (int32_t one : present) {
            Run &run = lists[static_cast<size_t>(one)];
            run.begin = at_leaves.size();
            visit_leaf(static_cast<size_t>(one), [&](size_t interval) {
                if (!many(counts[interval])) at_leaves.push_back(static_cast<int32_t>(interval));
            });
            run.end = at_leaves.size();
        }
        int64_t pairs = 0;
        for (size_t i = 0; i < found.size(); ++i) {
            size_t interval = static_cast<size_t>(found[i]);
            int64_t count = counts[interval], begin = pairs;
            numbers.data[i] = found[i];
            sums.data[i] = count;
            counts[interval] = begin;  // from here on, the place for its next row
            if (count == rows()) continue;
            pairs += count;
            out.want(pairs);
            if (many(count)) look_at_all(spans[interval], count, out.data + begin);
        }
        for (int64_t row = 0; row < rows(); ++row) {
            int32_t its = leaf_of[static_cast<size_t>(row)];
            if (its < 0) continue;
            const Run &run = lists[static_cast<size_t>(its)];
            for (size_t i = run.begin; i < run.end; ++i)
                out.data[counts[static_cast<size_t>(at_leaves[i])]++] = static_cast<int32_t>(row);
        }
        leaf_of.clear();
        forget();
        Py_RETURN_NONE;
    }
};
