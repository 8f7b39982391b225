// Plain subsets: every sequence of events that fit one after the other, within a window.
//
// A state keeps the events that reached it. Each event holds the range of the previous state's
// events from which it can have come, and the latest start that any path back leads to. These
// starts never decrease along a state, so the paths still within the window form the end of each
// range: every path followed leads to a match.
//
// The matches that end at one time are found from their first events on, in the order in which they
// are given out. The events that lead to an end are marked from the end back; those that may come
// next are neighbours among the marked ones. So matches need not be in memory together.
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
        bool ends = false;  // whether it is among the keys with events that end matches at this time
        bool listed = false;
    };
    // The matches of one key that end at one time, one after the other.
    struct Ways {
        int64_t key;
        std::vector<std::vector<int64_t>> marked;  // by state: the nodes of matches, in order
        size_t first = 0;                          // of the marked nodes of state 0, the next to start from
        // A node on the way. Behind it come the marked nodes `next` to `next_end` of the next state,
        // then those from `loop` on of its own.
        struct Place {
            size_t state, at, next, next_end, loop;
            bool given;
        };
        std::vector<Place> path;
    };

    std::vector<State> states;
    std::vector<Key> keys;
    std::vector<int64_t> ending;  // keys with events that end matches at the present time
    std::vector<Ways> ways;       // a heap: the key whose match is the next one comes first
    int64_t rows = 0, held = 0, present = INT64_MIN;

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

    const Node &node(const Ways &one, size_t state, size_t at) const {
        return keys[static_cast<size_t>(one.key)].states[state].at(one.marked[state][at]);
    }

    // Marks the nodes of a key that lead to an end at this time.
    Ways marked(int64_t number, int64_t now) const {
        const Key &key = keys[static_cast<size_t>(number)];
        Ways found{number, std::vector<std::vector<int64_t>>(states.size()), 0, {}};
        int64_t earliest = window < 0 ? INT64_MIN : now - window;
        for (size_t s = states.size(); s-- > 0;) {
            const Reached &own = key.states[s];
            std::vector<int64_t> &mine = found.marked[s];
            int64_t from = std::max(own.base, own.reaching(earliest));
            if (s + 1 == states.size()) {
                int64_t first = own.end();
                while (first > from && own.at(first - 1).time == now) --first;
                for (int64_t one = first; one < own.end(); ++one) mine.push_back(one);
            } else {
                for (int64_t later : found.marked[s + 1]) {
                    const Node &to = key.states[s + 1].at(later);
                    for (from = std::max(from, to.low); from < to.high; ++from) mine.push_back(from);
                }
                from = std::max(own.base, own.reaching(earliest));
            }
            if (!states[s].loops || mine.empty()) continue;
            int64_t last = mine.back();
            mine.clear();
            for (; from <= last; ++from) mine.push_back(from);
        }
        return found;
    }

    void enter(Ways &one, size_t state, size_t at) const {
        const std::vector<int64_t> &mine = one.marked[state];
        Ways::Place place{state, at, 0, 0, states[state].loops ? at + 1 : mine.size(), false};
        if (state + 1 < states.size()) {
            const Reached &after = keys[static_cast<size_t>(one.key)].states[state + 1];
            const std::vector<int64_t> &next = one.marked[state + 1];
            auto begin = std::partition_point(next.begin(), next.end(),
                                              [&](int64_t later) { return after.at(later).high <= mine[at]; });
            auto end = std::partition_point(begin, next.end(),
                                            [&](int64_t later) { return after.at(later).low <= mine[at]; });
            place.next = static_cast<size_t>(begin - next.begin());
            place.next_end = static_cast<size_t>(end - next.begin());
        }
        one.path.push_back(place);
    }

    // Goes on to the next match of a key; returns false if there is none.
    bool another(Ways &one, int64_t now) const {
        for (;;) {
            if (one.path.empty()) {
                if (one.first == one.marked[0].size()) return false;
                enter(one, 0, one.first++);
            }
            Ways::Place &place = one.path.back();
            if (!place.given && place.state + 1 == states.size()) {
                place.given = true;
                if (node(one, place.state, place.at).time == now) return true;
            }
            if (place.next < place.next_end)
                enter(one, place.state + 1, place.next++);
            else if (place.loop < one.marked[place.state].size())
                enter(one, place.state, place.loop++);
            else
                one.path.pop_back();
        }
    }

    // Whether the present match of a key comes after that of another.
    bool later(const Ways &a, const Ways &b) const {
        for (size_t i = 0; i < a.path.size() && i < b.path.size(); ++i) {
            const Ways::Place &one = a.path[i], &other = b.path[i];
            int64_t stage = states[one.state].stage, than = states[other.state].stage;
            if (stage != than) return stage < than;  // a prefix comes before the longer group
            int64_t row = node(a, one.state, one.at).row, before = node(b, other.state, other.at).row;
            if (row != before) return row > before;
        }
        return a.path.size() > b.path.size();
    }

    // Records matches that end at the present time, in order, until `found` has so many events;
    // returns whether there are more.
    bool enumerate(size_t enough) {
        auto after = [this](const Ways &a, const Ways &b) { return later(a, b); };
        for (int64_t key : ending) {
            Ways one = marked(key, present);
            if (!another(one, present)) continue;
            ways.push_back(std::move(one));
            std::push_heap(ways.begin(), ways.end(), after);
        }
        ending.clear();
        while (!ways.empty()) {
            if (found.rows.size() >= enough) return true;
            if (ways.size() > 1) std::pop_heap(ways.begin(), ways.end(), after);
            record(ways.back());
            if (!another(ways.back(), present))
                ways.pop_back();
            else if (ways.size() > 1)
                std::push_heap(ways.begin(), ways.end(), after);
        }
        return false;
    }

    void record(const Ways &one) {
        found.determined.push_back(present);
        size_t count = found.counts.size();
        found.counts.resize(count + found.stages, 0);
        for (const Ways::Place &place : one.path) {
            found.rows.push_back(node(one, place.state, place.at).row);
            ++found.counts[count + static_cast<size_t>(states[place.state].stage)];
        }
    }

    void on_event(int64_t number, int64_t row, int64_t now, uint64_t fits) {
        Key &key = keys[static_cast<size_t>(number)];
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
            key.ends = false;
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
        if (which >> (states.size() - 1) & 1 && !key.ends) {
            key.ends = true;
            ending.push_back(number);
        }
    }

  public:
    // Arguments: states, then the numbers stages and window.
    PyObject *configure(PyObject *args) {
        PyObject *states_;
        long long count, within;
        if (!PyArg_ParseTuple(args, "OLL", &states_, &count, &within)) throw Raised();
        Ints given(states_);
        for (int64_t i = 0; i + 4 < given.size; i += 5) {
            const int64_t *d = given.data + i;
            if (d[0] < 0 || d[0] > 62 || d[1] < 0 || d[1] >= count)
                throw std::out_of_range("a state without a bit or a stage");
            states.push_back({d[0], d[1], static_cast<uint64_t>(d[2]), d[3] != 0, d[4] != 0});
        }
        if (states.empty() || states.size() > 64) throw std::out_of_range("no states, or more than 64");
        found.stages = static_cast<size_t>(count);
        window = within;
        Py_RETURN_NONE;
    }

    // Takes events in order: keys, times, the elements they fit. The last arguments are the event to
    // go on with, 0 in the first call, and how many events the matches of a part may have. Returns
    // a status, or the event to go on with once matches have been taken.
    PyObject *advance(PyObject *args) {
        PyObject *keys_, *times_, *fits_;
        long long first, part;
        if (!PyArg_ParseTuple(args, "OOOLL", &keys_, &times_, &fits_, &first, &part)) throw Raised();
        Ints of(keys_), when(times_), fits(fits_);
        if (states.empty()) throw std::out_of_range("no states");
        when.want(of.size), fits.want(of.size);
        if (first < 0 || first > of.size) throw std::out_of_range("an event that is not there");
        auto enough = static_cast<size_t>(std::max(part, 1LL));
        for (int64_t i = first; i < of.size; ++i) {
            if (when.data[i] != present) {
                if (enumerate(enough)) return PyLong_FromLongLong(i);
                next(when.data[i]);
                present = when.data[i];
            }
            int64_t row = rows++;
            Key &key = of_number(keys, of.data[i]);
            if (fits.data[i] == 0) continue;
            list(key, of.data[i]);
            on_event(of.data[i], row, when.data[i], static_cast<uint64_t>(fits.data[i]));
        }
        if (enumerate(enough)) return PyLong_FromLongLong(of.size);
        return PyLong_FromLong(THROUGH);
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
