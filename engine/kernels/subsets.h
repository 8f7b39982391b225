// Plain subsets: every sequence of events that fit one after the other, within a window.
//
// A state keeps the events that reached it. Each event holds the range of the previous state's
// events from which it can have come, and the latest start that any path back leads to. These
// starts never decrease along a state, so the paths still within the window form the end of each
// range: every path followed leads to a match.
#pragma once

#include "matching.h"

class Subsets : public Matching {
    struct State {
        int64_t bit, stage;
        uint64_t absences;  // elements that may not occur between the previous state and this one
        bool enters, loops;
    };
    // An event can be reached from nodes `low` to `high` of the previous state and, in a loop, from
    // all nodes of its own state up to `own`.
    struct Node {
        int64_t row, time, low, high, own, start;
    };
    // Nodes before number `base` are forgotten. Nodes before `committed` are earlier than the
    // present time. An absence cuts off the previous state's nodes before `low`.
    struct Reached {
        std::vector<Node> nodes;
        size_t first = 0;  // nodes before it are forgotten
        int64_t base = 0, committed = 0, low = 0;
        bool cut = false;

        int64_t end() const { return base + static_cast<int64_t>(nodes.size() - first); }
        const Node &at(int64_t number) const { return nodes[first + static_cast<size_t>(number - base)]; }
        int64_t reaching(int64_t earliest) const {
            auto begin = nodes.begin() + static_cast<ptrdiff_t>(first);
            auto found = std::partition_point(begin, nodes.end(),
                                              [&](const Node &node) { return node.start < earliest; });
            return base + (found - begin);
        }
        int64_t drop(int64_t before) {
            auto gone = static_cast<size_t>(reaching(before) - base);
            first += gone;
            base += static_cast<int64_t>(gone);
            if (2 * first > nodes.size()) {
                nodes.erase(nodes.begin(), nodes.begin() + static_cast<ptrdiff_t>(first));
                first = 0;
            }
            return static_cast<int64_t>(gone);
        }
    };
    struct Key {
        std::vector<Reached> states;
        int64_t now = INT64_MIN;
        bool listed = false;
    };
    struct Way {
        int32_t state, depth;
        int64_t node;
    };

    std::vector<State> states;
    std::vector<Key> keys;
    std::vector<Way> stack, path;
    int64_t rows = 0, held = 0;

    // Makes the event a node of a state; returns false if no path leads there.
    bool reached(const Key &key, size_t number, Node &node) const {
        const State &state = states[number];
        const Reached &own = key.states[number];
        bool any = false;
        node.low = node.high = 0;
        node.own = state.loops ? own.end() : own.base;
        auto starts = [&](int64_t start) {
            node.start = any ? std::max(node.start, start) : start;
            any = true;
        };
        if (state.loops && own.end() > own.base) starts(own.nodes.back().start);
        if (number == 0) {
            starts(node.time);
        } else {
            const Reached &before = key.states[number - 1];
            node.high = state.enters ? before.committed : before.end();
            node.low = std::max(own.low, before.base);
            if (node.low < node.high) starts(before.at(node.high - 1).start);
        }
        return any;
    }

    // Records every path back from a node of the last state that stays within the window; returns
    // false if there are too many.
    bool enumerate(const Key &key, int64_t last) {
        auto top = static_cast<int32_t>(states.size()) - 1;
        int64_t end = key.states.back().at(last).time;
        int64_t earliest = window < 0 ? INT64_MIN : end - window;
        stack.assign(1, {top, 0, last});
        while (!stack.empty()) {
            Way way = stack.back();
            stack.pop_back();
            path.resize(static_cast<size_t>(way.depth));
            path.push_back(way);
            const State &state = states[static_cast<size_t>(way.state)];
            const Reached &own = key.states[static_cast<size_t>(way.state)];
            const Node &node = own.at(way.node);
            if (way.state == 0) {
                if (node.time >= earliest && !record(key, end)) return false;
            } else {
                const Reached &before = key.states[static_cast<size_t>(way.state) - 1];
                int64_t from = std::max({node.low, before.base, before.reaching(earliest)});
                for (int64_t one = from; one < node.high; ++one)
                    stack.push_back({way.state - 1, way.depth + 1, one});
            }
            if (state.loops)
                for (int64_t one = own.reaching(earliest); one < node.own; ++one)
                    stack.push_back({way.state, way.depth + 1, one});
        }
        return true;
    }

    bool record(const Key &key, int64_t end) {
        found.determined.push_back(end);
        size_t count = found.counts.size();
        found.counts.resize(count + found.stages, 0);
        for (auto way = path.rbegin(); way != path.rend(); ++way) {
            found.rows.push_back(key.states[static_cast<size_t>(way->state)].at(way->node).row);
            ++found.counts[count + static_cast<size_t>(states[static_cast<size_t>(way->state)].stage)];
        }
        return most_matches < 0 || static_cast<int64_t>(found.size()) <= most_matches;
    }

    bool on_event(Key &key, int64_t row, int64_t now, uint64_t fits) {
        key.states.resize(states.size());
        if (now != key.now) {
            // An absence affects only later events, because the gap is open at both ends.
            for (size_t i = 1; i < states.size(); ++i)
                if (key.states[i].cut) {
                    key.states[i].low = std::max(key.states[i].low, key.states[i - 1].committed);
                    key.states[i].cut = false;
                }
            for (Reached &one : key.states) one.committed = one.end();
            key.now = now;
        }
        Node made[64];
        uint64_t which = 0;
        for (size_t i = 0; i < states.size(); ++i) {
            if (states[i].absences & fits) key.states[i].cut = true;
            made[i].row = row, made[i].time = now;
            if ((fits >> states[i].bit & 1) && reached(key, i, made[i])) which |= uint64_t{1} << i;
        }
        for (size_t i = 0; i < states.size(); ++i)
            if (which >> i & 1) {
                key.states[i].nodes.push_back(made[i]);
                ++held;
            }
        return !(which >> (states.size() - 1) & 1) || enumerate(key, key.states.back().end() - 1);
    }

  public:
    // Arguments: states, then the numbers stages, window, most_matches.
    PyObject *configure(PyObject *args) {
        PyObject *states_;
        long long count, within, most;
        if (!PyArg_ParseTuple(args, "OLLL", &states_, &count, &within, &most)) throw Raised();
        Ints given(states_);
        for (int64_t i = 0; i + 4 < given.size; i += 5) {
            const int64_t *d = given.data + i;
            if (d[0] < 0 || d[0] > 62 || d[1] < 0 || d[1] >= count)
                throw std::out_of_range("a state without a bit or a stage");
            states.push_back({d[0], d[1], static_cast<uint64_t>(d[2]), d[3] != 0, d[4] != 0});
        }
        if (states.empty() || states.size() > 64) throw std::out_of_range("no states, or more than 64");
        found.stages = static_cast<size_t>(count);
        window = within, most_matches = most;
        Py_RETURN_NONE;
    }

    // Takes events in order: keys, times, the elements they fit. Returns 0, or 2 if there are too
    // many matches.
    PyObject *advance(PyObject *args) {
        PyObject *keys_, *times_, *fits_;
        if (!PyArg_ParseTuple(args, "OOO", &keys_, &times_, &fits_)) throw Raised();
        Ints of(keys_), when(times_), fits(fits_);
        if (states.empty()) throw std::out_of_range("no states");
        when.want(of.size), fits.want(of.size);
        for (int64_t i = 0; i < of.size; ++i) {
            int64_t row = rows++;
            next(when.data[i]);
            Key &key = of_number(keys, of.data[i]);
            if (fits.data[i] == 0) continue;
            list(key, of.data[i]);
            if (!on_event(key, row, when.data[i], static_cast<uint64_t>(fits.data[i])))
                return PyLong_FromLong(2);
        }
        return PyLong_FromLong(0);
    }

    PyObject *retain(PyObject *args) {
        return retained(args, keys, [](const Key &key) { return key.listed; });
    }

    // Drops the events that no match can reach, from time to time; returns the number of nodes
    // held.
    PyObject *forget(PyObject *args) {
        sweep(args, keys, [&](Key &key, int64_t earliest) {
            bool left = false;
            for (Reached &one : key.states) {
                held -= one.drop(earliest);
                left |= one.end() > one.base;
            }
            return left;
        });
        return PyLong_FromLongLong(static_cast<long long>(held));
    }
};
