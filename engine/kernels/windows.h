// Determines when the members of groups come and leave.
#pragma once

#include "turns.h"

#include <functional>
#include <utility>

// Members by number, and whether each has left.
class Leaving {
  protected:
    std::vector<uint8_t> left;    // by member from `base` on
    int64_t base = 0, first = 0;  // all members before `first` have left
    size_t groups = 0;
    std::vector<int64_t> events;

    // Adds `fresh` new members, whose groups come last in `group`; forgets members before `from`.
    void begin(int64_t from, const Ints &group, int64_t fresh) {
        if (base < from) {
            auto past = std::min(static_cast<size_t>(from - base), left.size());
            left.erase(left.begin(), left.begin() + static_cast<int64_t>(past));
            base = from;
            first = std::max(first, base);
        }
        if (base != from || group.size - fresh != static_cast<int64_t>(left.size()))
            throw std::out_of_range("members that are not there");
        left.resize(static_cast<size_t>(group.size), 0);
        for (int64_t i = group.size - fresh; i < group.size; ++i) {
            if (group.data[i] < 0) throw std::out_of_range("a group below 0");
            groups = std::max(groups, static_cast<size_t>(group.data[i]) + 1);
        }
        events.clear();
    }

    void leave(int64_t member) {
        auto place = static_cast<size_t>(member - base);
        if (left[place]) return;
        left[place] = 1;
        events.push_back(~member);
    }

    void finish() {
        while (first - base < static_cast<int64_t>(left.size()) &&
               left[static_cast<size_t>(first - base)])
            ++first;
    }

  public:
    // Returns the number of the first member that has not left.
    PyObject *oldest(PyObject *) { return PyLong_FromLongLong(static_cast<long long>(first)); }

    // Writes 1 for each member that has not left, from a number on.
    PyObject *live(PyObject *args) {
        PyObject *found_;
        long long from;
        if (!PyArg_ParseTuple(args, "LO", &from, &found_)) throw Raised();
        View<uint8_t> found(found_, true);
        int64_t end = base + static_cast<int64_t>(left.size());
        if (from < base || from > end) throw std::out_of_range("members that are not there");
        found.want(end - from);
        for (int64_t i = from; i < end; ++i)
            found.data[i - from] = !left[static_cast<size_t>(i - base)];
        Py_RETURN_NONE;
    }
};

// Members that leave when a clock has passed their end. `arrival` has the arrival with which each
// new member comes. Each of `clocks` has the clock's reading at each arrival, which never
// decreases. Each of `ends`, by member from `base` on, has the last reading at which the member is
// there. A point is a group to which an arrival adds members; the points of one arrival follow the
// order of its members.
class Windows : public Leaving {
    struct Clock {
        int64_t next = 0, stop = 0;  // the members between leave one after the other
        int64_t last = 0;            // the end of the last of them when it came
        std::vector<std::pair<int64_t, int64_t>> heap;  // of other members: the end and the member
    };
    std::vector<Clock> clocks;
    std::vector<int64_t> met;  // by group: its newest point in this run, or -1

    std::vector<int64_t> until, at, who, points;

  public:
    // Returns events, until, at; for each point its first member, counted from the first new one;
    // and for each new member its point.
    PyObject *run(PyObject *args) {
        PyObject *arrival_, *clocks_, *ends_, *group_;
        long long from;
        int silent;
        if (!PyArg_ParseTuple(args, "OOOLOp", &arrival_, &clocks_, &ends_, &from, &group_, &silent))
            throw Raised();
        Ints arrival(arrival_), group(group_);
        Py_ssize_t count = PyTuple_Size(clocks_);
        if (count < 0 || PyTuple_Size(ends_) != count) throw Raised();
        std::vector<Ints> shown, ends;
        for (Py_ssize_t i = 0; i < count; ++i) {
            shown.emplace_back(PyTuple_GetItem(clocks_, i));
            ends.emplace_back(PyTuple_GetItem(ends_, i));
            ends.back().want(group.size);
        }
        begin(from, group, arrival.size);
        clocks.resize(static_cast<size_t>(count));
        int64_t fresh = group.size - arrival.size;  // place of the first new member
        for (auto *some : {&until, &at, &who, &points}) some->clear();
        if (met.size() < groups) met.resize(groups, -1);
        int64_t asked = 0;
        for (int64_t i = 0; i < arrival.size;) {
            int64_t now = arrival.data[i], to = i;
            while (to < arrival.size && arrival.data[to] == now) ++to;
            for (size_t k = 0; k < clocks.size(); ++k) {
                if (silent) break;
                if (now < 0 || now >= shown[k].size) throw std::out_of_range("an arrival unknown");
                pass(clocks[k], ends[k], shown[k].data[now]);
            }
            asked = static_cast<int64_t>(at.size());
            for (; i < to; ++i) {
                int64_t place = fresh + i, mine = group.data[place];
                bool stays = true;
                for (size_t k = 0; k < clocks.size() && !silent; ++k)
                    stays = stays && ends[k].data[place] >= shown[k].data[now];
                if (stays) {
                    for (size_t k = 0; k < clocks.size(); ++k)
                        enter(clocks[k], ends[k], base + place);
                    events.push_back(base + place);
                } else {
                    left[static_cast<size_t>(place)] = 1;
                }
                if (silent) continue;
                auto number = static_cast<size_t>(mine);
                if (met[number] < asked) {  // first member of this group in this arrival
                    met[number] = static_cast<int64_t>(at.size());
                    at.push_back(mine);
                    who.push_back(i);
                }
                points.push_back(met[number]);
            }
            until.resize(at.size(), static_cast<int64_t>(events.size()));
        }
        for (int64_t one : at) met[static_cast<size_t>(one)] = -1;
        finish();
        return Py_BuildValue("NNNNN", handed(events), handed(until), handed(at), handed(who),
                             handed(points));
    }

    // Moves the ends of members on a clock to earlier readings.
    PyObject *moved(PyObject *args) {
        PyObject *members_, *ends_;
        long long clock;
        if (!PyArg_ParseTuple(args, "LOO", &clock, &members_, &ends_)) throw Raised();
        Ints members(members_), ends(ends_);
        ends.want(members.size);
        if (clock < 0 || clock >= static_cast<long long>(clocks.size()))
            throw std::out_of_range("there is no such clock");
        for (int64_t i = 0; i < members.size; ++i)
            await(clocks[static_cast<size_t>(clock)], ends.data[i], members.data[i]);
        Py_RETURN_NONE;
    }

  private:
    static constexpr int64_t NEVER = INT64_MAX;  // no clock passes it

    void await(Clock &clock, int64_t end, int64_t member) {
        if (end == NEVER) return;
        clock.heap.emplace_back(end, member);
        std::push_heap(clock.heap.begin(), clock.heap.end(), std::greater<>());
    }

    void enter(Clock &clock, const Ints &ends, int64_t member) {
        if (clock.next == clock.stop && clock.heap.empty()) clock.next = clock.stop = member;
        int64_t end = ends.data[member - base];
        // Compares with `last`, as the previous member's end may have moved since; then it says
        // nothing about the members before it.
        bool follows = clock.stop == member && clock.heap.empty() &&
                       (clock.next == clock.stop || clock.last <= end);
        if (follows) {
            ++clock.stop;
            clock.last = end;
            return;
        }
        await(clock, end, member);
    }

    // Removes members whose end lies before `now`.
    void pass(Clock &clock, const Ints &ends, int64_t now) {
        for (; clock.next < clock.stop; ++clock.next) {
            if (clock.next >= base && ends.data[clock.next - base] >= now) break;
            if (clock.next >= base) leave(clock.next);
        }
        while (!clock.heap.empty() && clock.heap.front().first < now) {
            int64_t member = clock.heap.front().second;
            std::pop_heap(clock.heap.begin(), clock.heap.end(), std::greater<>());
            clock.heap.pop_back();
            if (member >= base) leave(member);
        }
    }
};

// Members that leave after `size` later ones of their group have come; each new member is an
// arrival.
class LastRows : public Leaving {
    struct State {
        int64_t oldest = 0, newest = 0, count = 0;
    };
    Groups<State> states;
    std::vector<int64_t> after;  // by member from `base` on: the next one of its group

  public:
    // Returns events and until; point p belongs to new member p.
    PyObject *run(PyObject *args) {
        PyObject *group_;
        long long size, fresh, from;
        if (!PyArg_ParseTuple(args, "LLLO", &size, &fresh, &from, &group_)) throw Raised();
        Ints group(group_);
        if (size < 1 || fresh < 0 || fresh > group.size) throw std::out_of_range("no rows");
        int64_t past = from - base;
        begin(from, group, fresh);
        if (past > 0)
            after.erase(after.begin(),
                        after.begin() + std::min(past, static_cast<int64_t>(after.size())));
        after.resize(left.size(), -1);
        states.want(static_cast<int64_t>(groups));
        std::vector<int64_t> until;
        for (int64_t place = group.size - fresh; place < group.size; ++place) {
            State &mine = states[group.data[place]];
            int64_t member = base + place;
            if (mine.count == size) {
                int64_t next = after[static_cast<size_t>(mine.oldest - base)];
                leave(mine.oldest);
                mine.oldest = next;
                --mine.count;
            }
            if (mine.count)
                after[static_cast<size_t>(mine.newest - base)] = member;
            else
                mine.oldest = member;
            mine.newest = member;
            ++mine.count;
            events.push_back(member);
            until.push_back(static_cast<int64_t>(events.size()));
        }
        finish();
        return Py_BuildValue("NN", handed(events), handed(until));
    }
};
