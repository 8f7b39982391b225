// Sequences of single events: finds the matches that end with one of the newest events, event by
// event.
#pragma once

#include "scan.h"

#include <algorithm>
#include <vector>

class Sequence {
    // The events of one element, in order; those before `begin` are forgotten.
    struct List {
        std::vector<int64_t> times, rows;
        std::vector<std::vector<int64_t>> values;
        std::vector<std::vector<uint8_t>> flags;
        size_t begin = 0;
    };
    // `own op other`: a column of the element being bound, and one of an element bound before.
    struct Link {
        int64_t op;
        size_t own, element, other;
    };
    // Binds one element, between the times of two that are already bound; the earlier one may be
    // missing.
    struct Step {
        size_t element;
        int64_t below, above;
        std::vector<Link> links;
    };

    std::vector<List> lists;
    std::vector<Step> steps;
    std::vector<size_t> bound;
    std::vector<int64_t> found;
    int64_t window = 0, work = 0, most_work = 0;
    size_t most_found = 0;

    int64_t time(int64_t element) const {
        auto e = static_cast<size_t>(element);
        return lists[e].times[bound[e]];
    }

    bool fits(const List &own, size_t at, const Link &link) const {
        const List &other = lists[link.element];
        size_t there = bound[link.element];
        return own.flags[link.own][at] && other.flags[link.other][there] &&
               compared(link.op, own.values[link.own][at], other.values[link.other][there]);
    }

    // Binds the remaining elements; returns false if a limit is exceeded.
    bool extend(size_t number) {
        if (number == steps.size()) {
            if (found.size() >= most_found) return false;
            for (size_t e = 0; e < lists.size(); ++e) found.push_back(lists[e].rows[bound[e]]);
            return true;
        }
        const Step &step = steps[number];
        const List &own = lists[step.element];
        int64_t last = time(static_cast<int64_t>(lists.size()) - 1);
        int64_t earliest = step.below < 0 ? last - window : time(step.below) + 1;
        auto begin = own.times.begin() + static_cast<int64_t>(own.begin);
        auto at = static_cast<size_t>(std::lower_bound(begin, own.times.end(), earliest) -
                                      own.times.begin());
        auto end = static_cast<size_t>(std::lower_bound(begin, own.times.end(), time(step.above)) -
                                       own.times.begin());
        if (at >= end) return true;
        work += 16 + static_cast<int64_t>(end - at) / (step.links.empty() ? 1 : 8);
        if (work > most_work) return false;
        if (step.links.empty()) {
            for (; at < end; ++at) {
                bound[step.element] = at;
                if (!extend(number + 1)) return false;
            }
            return true;
        }
        const Link &first = step.links.front();
        const List &other = lists[first.element];
        if (!other.flags[first.other][bound[first.element]]) return true;
        int64_t than = other.values[first.other][bound[first.element]];
        int32_t places[block];
        for (; at < end; at += block) {
            auto rows = static_cast<int64_t>(std::min<size_t>(block, end - at));
            const int64_t *values = own.values[first.own].data() + at;
            if (counts[first.op](values, rows, than) == 0) continue;
            int64_t some = picks[first.op](values, rows, than, places);
            for (int64_t k = 0; k < some; ++k) {
                size_t one = at + static_cast<size_t>(places[k]);
                bool good = true;
                for (const Link &link : step.links) good = good && fits(own, one, link);
                if (!good) continue;
                bound[step.element] = one;
                if (!extend(number + 1)) return false;
            }
        }
        return true;
    }

  public:
    // Arguments: the elements in the order in which they are bound, the last first; links of op,
    // element, column, other element and its column; the number of columns of each element; the
    // window.
    PyObject *configure(PyObject *args) {
        PyObject *order_, *links_, *widths_;
        long long window_;
        if (!PyArg_ParseTuple(args, "OOOL", &order_, &links_, &widths_, &window_)) throw Raised();
        Ints order(order_), links(links_), widths(widths_);
        size_t count = static_cast<size_t>(order.size);
        widths.want(order.size);
        if (count == 0 || order.data[0] + 1 != order.size || window_ < 0)
            throw std::out_of_range("a sequence without an end");
        window = window_;
        lists.assign(count, List());
        bound.assign(count, 0);
        steps.clear();
        std::vector<uint8_t> known(count, 0);
        for (size_t e = 0; e < count; ++e) {
            lists[e].values.resize(static_cast<size_t>(std::max<int64_t>(widths.data[e], 0)));
            lists[e].flags.resize(lists[e].values.size());
        }
        for (int64_t k = 0; k < order.size; ++k) {
            int64_t e = order.data[k];
            if (e < 0 || e >= order.size || known[static_cast<size_t>(e)])
                throw std::out_of_range("an element that is bound twice");
            Step step{static_cast<size_t>(e), -1, -1, {}};
            for (int64_t i = 0; i < order.size; ++i) {
                if (!known[static_cast<size_t>(i)]) continue;
                if (i < e) step.below = i;
                if (i > e && step.above < 0) step.above = i;
            }
            for (int64_t i = 0; i + 4 < links.size; i += 5) {
                const int64_t *d = links.data + i;
                if (d[1] != e) continue;
                Link link{d[0], static_cast<size_t>(d[2]), static_cast<size_t>(d[3]),
                          static_cast<size_t>(d[4])};
                if (d[0] < LT || d[0] > NE || link.element >= count || !known[link.element] ||
                    link.own >= lists[step.element].values.size() ||
                    link.other >= lists[link.element].values.size())
                    throw std::out_of_range("a link to nowhere");
                step.links.push_back(link);
            }
            known[step.element] = 1;
            steps.push_back(step);
        }
        Py_RETURN_NONE;
    }

    // Appends events of an element, in order: times, rows, and for each column values and flags.
    PyObject *append(PyObject *args) {
        long long element;
        PyObject *times_, *rows_, *columns_;
        if (!PyArg_ParseTuple(args, "LOOO", &element, &times_, &rows_, &columns_)) throw Raised();
        if (element < 0 || element >= static_cast<int64_t>(lists.size()))
            throw std::out_of_range("an element that is not there");
        List &own = lists[static_cast<size_t>(element)];
        Ints times(times_), rows(rows_);
        rows.want(times.size);
        Py_ssize_t columns = PyTuple_Size(columns_);
        if (columns < 0) throw Raised();
        if (static_cast<size_t>(columns) != own.values.size())
            throw std::out_of_range("columns of another element");
        std::vector<std::pair<Ints, Bytes>> given;
        for (Py_ssize_t i = 0; i < columns; ++i) {
            PyObject *values_, *flags_;
            if (!PyArg_ParseTuple(PyTuple_GetItem(columns_, i), "OO", &values_, &flags_)) throw Raised();
            given.emplace_back(Ints(values_), Bytes(flags_));
            given.back().first.want(times.size);
            given.back().second.want(times.size);
        }
        own.times.insert(own.times.end(), times.data, times.data + times.size);
        own.rows.insert(own.rows.end(), rows.data, rows.data + times.size);
        for (size_t i = 0; i < given.size(); ++i) {
            const Ints &values = given[i].first;
            const Bytes &flags = given[i].second;
            own.values[i].insert(own.values[i].end(), values.data, values.data + times.size);
            if (flags.data)
                own.flags[i].insert(own.flags[i].end(), flags.data, flags.data + times.size);
            else
                own.flags[i].resize(own.times.size(), 1);
        }
        Py_RETURN_NONE;
    }

    // Returns the rows of the matches whose last event is one of the newest `ends`; None if that
    // takes more than `most_work`, or there are more than `most` matches.
    PyObject *search(PyObject *args) {
        long long ends, work_, most;
        if (!PyArg_ParseTuple(args, "LLL", &ends, &work_, &most)) throw Raised();
        if (lists.empty()) throw std::out_of_range("a sequence without an end");
        most_work = work_, work = 0, most_found = static_cast<size_t>(most) * lists.size();
        found.clear();
        const List &last = lists.back();
        if (ends < 0 || static_cast<size_t>(ends) > last.times.size() - last.begin)
            throw std::out_of_range("more events than there are");
        for (size_t i = last.times.size() - static_cast<size_t>(ends); i < last.times.size(); ++i) {
            bound.back() = i;
            if (!extend(1)) Py_RETURN_NONE;
        }
        return PyBytes_FromStringAndSize(reinterpret_cast<const char *>(found.data()),
                                         static_cast<Py_ssize_t>(found.size() * sizeof(int64_t)));
    }

    // Forgets events before a time; copies the rest once it is the smaller part.
    PyObject *forget(PyObject *args) {
        long long earliest;
        if (!PyArg_ParseTuple(args, "L", &earliest)) throw Raised();
        for (List &own : lists) {
            while (own.begin < own.times.size() && own.times[own.begin] < earliest) ++own.begin;
            if (own.begin < 64 || 2 * own.begin < own.times.size()) continue;
            auto gone = static_cast<int64_t>(own.begin);
            own.times.erase(own.times.begin(), own.times.begin() + gone);
            own.rows.erase(own.rows.begin(), own.rows.begin() + gone);
            for (auto &values : own.values) values.erase(values.begin(), values.begin() + gone);
            for (auto &flags : own.flags) flags.erase(flags.begin(), flags.begin() + gone);
            own.begin = 0;
        }
        Py_RETURN_NONE;
    }
};
