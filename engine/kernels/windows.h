// Determines when the members of groups come and leave.
#pragma once

#include "aggregates.h"
#include "nearby.h"

#include <functional>
#include <utility>

// Members by number, and whether each has left. A point is a group to which an arrival adds members.
class Leaving {
  protected:
    Grown<uint8_t> left;          // by member from `base` on
    int64_t base = 0, first = 0;  // all members before `first` have left
    int64_t live = 0;
    size_t groups = 0;
    std::vector<int64_t> numbered;                       // the groups of new members
    std::vector<int64_t> events, until, at, who, points;  // see `Turns`; `who` is a point's first member

    // Takes new members into `keys` and `members`, forgets those that `members` no longer has.
    void begin(Keys &keys, PyObject *columns, Aggregates &members, PyObject *values, int64_t fresh) {
        numbered.resize(static_cast<size_t>(fresh));
        keys.number(given(columns), fresh, numbered.data());
        members.take_in(given(values), numbered.data(), fresh);
        if (base < members.base) {
            left.drop(std::min(members.base - base, left.size()));
            base = members.base;
            first = std::max(first, base);
        }
        if (base != members.base || members.size() - fresh != left.size())
            throw std::out_of_range("members that are not there");
        left.room(fresh);
        for (int64_t one : numbered) groups = std::max(groups, static_cast<size_t>(one) + 1);
        for (auto *some : {&events, &until, &at, &who, &points}) some->clear();
    }

    void come(int64_t member) {
        events.push_back(member);
        ++live;
    }

    void leave(int64_t member) {
        const int64_t place = member - base;
        if (left[place]) return;
        left[place] = 1;
        events.push_back(~member);
        --live;
    }

    void finish() {
        while (first - base < left.size() && left[first - base]) ++first;
    }

    virtual void forget(int64_t) {}

  public:
    virtual ~Leaving() = default;

    // Returns the number of members that have not left.
    PyObject *count(PyObject *) { return PyLong_FromLongLong(static_cast<long long>(live)); }

    // Returns the aggregates at the points of the latest new members.
    PyObject *found(PyObject *args) {
        PyObject *members_;
        if (!PyArg_ParseTuple(args, "O", &members_)) throw Raised();
        return Owner<Aggregates>::checked(members_).found_at(events, until, at);
    }

    // Drops members that have left, if they are a thirty-second of all. Returns by how much the members,
    // texts and keys that are still kept exceed twice the number of members needed.
    PyObject *settle(PyObject *args) {
        PyObject *keys_, *members_;
        if (!PyArg_ParseTuple(args, "OO", &keys_, &members_)) throw Raised();
        Keys &keys = Owner<Keys>::checked(keys_);
        Aggregates &members = Owner<Aggregates>::checked(members_);
        int64_t past = first - members.base;
        if (32 * past > members.size()) {
            members.drop(past);
            forget(past);
        }
        int64_t kept = std::max({members.size(), keys.size(), members.distinct()});
        return PyLong_FromLongLong(static_cast<long long>(kept - 2 * live));
    }

    // Returns the places of the members that have not left, from the first that is kept on.
    PyObject *held(PyObject *args) {
        PyObject *members_;
        if (!PyArg_ParseTuple(args, "O", &members_)) throw Raised();
        const Aggregates &members = Owner<Aggregates>::checked(members_);
        std::vector<int64_t> found;
        for (int64_t place = 0; place < members.size(); ++place)
            if (!left[members.base + place - base]) found.push_back(place);
        return handed(found);
    }
};

// Members that leave when a clock has passed their end. Each clock has a reading at each arrival,
// which never decreases; each member has, by clock, the last reading at which it is there. The points
// of one arrival follow the order of its members.
class Windows : public Leaving {
    struct Clock {
        int64_t next = 0, stop = 0;  // the members between leave one after the other
        int64_t last = 0;            // the end of the last of them when it came
        std::vector<std::pair<int64_t, int64_t>> heap;  // of other members: the end and the member
        Nearby ends;                                    // by member that is kept
    };
    std::vector<Clock> clocks;
    std::vector<int64_t> met;  // by group: its newest point in this run, or -1

    void forget(int64_t count) override {
        for (Clock &one : clocks) one.ends.drop(count);
    }

    // Adds the ends of new members: given by member, or each a number of readings after its arrival.
    static void add_ends(Clock &clock, PyObject *ends_, const Ints *shown, const Ints &arrival, int64_t fresh) {
        if (!PyLong_Check(ends_)) {
            Ints ends(ends_);
            if (ends.size < fresh) throw std::out_of_range("members without an end");
            for (int64_t i = 0; i < fresh; ++i) clock.ends.add(ends.data[i]);
            return;
        }
        long long by = PyLong_AsLongLong(ends_);
        if (by < 0 || shown == nullptr) throw std::out_of_range("ends without a clock");
        for (int64_t i = 0; i < fresh; ++i) {
            int64_t now = arrival.data ? arrival.data[i] : i;
            if (now < 0 || now >= shown->size) throw std::out_of_range("an arrival unknown");
            clock.ends.add(std::min<int64_t>(shown->data[now], NEVER - by) + by);
        }
    }

  public:
    // Takes `fresh` members with their keys and arguments; the arrivals they come with, None if each
    // has its own; the readings of the clocks, None if no points are wanted and no clock moves; and
    // by clock their ends. Returns for each point its first member, counted from the first new one,
    // and for each new member its point; None if each new member is a point of its own.
    PyObject *enter(PyObject *args) {
        PyObject *keys_, *columns_, *members_, *values_, *arrival_, *clocks_, *ends_;
        long long fresh;
        if (!PyArg_ParseTuple(args, "OOOOLOOO!", &keys_, &columns_, &members_, &values_, &fresh, &arrival_,
                              &clocks_, &PyTuple_Type, &ends_))
            throw Raised();
        const bool silent = clocks_ == Py_None;
        Ints arrival(arrival_);
        Py_ssize_t count = PyTuple_Size(ends_);
        if (!silent && PyTuple_Size(clocks_) != count) throw std::invalid_argument("clocks without ends");
        if (fresh < 0) throw std::out_of_range("fewer than no members");
        arrival.want(fresh);
        Aggregates &members = Owner<Aggregates>::checked(members_);
        begin(Owner<Keys>::checked(keys_), columns_, members, values_, fresh);
        std::vector<Ints> shown;
        clocks.resize(static_cast<size_t>(count));
        for (Py_ssize_t i = 0; i < count; ++i) {
            if (!silent) shown.emplace_back(PyTuple_GetItem(clocks_, i));
            add_ends(clocks[static_cast<size_t>(i)], PyTuple_GetItem(ends_, i), silent ? nullptr : &shown.back(),
                     arrival, fresh);
        }
        auto with = [&](int64_t i) { return arrival.data ? arrival.data[i] : i; };
        const int64_t start = members.size() - fresh;  // place of the first new member
        if (met.size() < groups) met.resize(groups, -1);
        int64_t asked = 0;
        for (int64_t i = 0; i < fresh;) {
            int64_t now = with(i), to = i;
            while (to < fresh && with(to) == now) ++to;
            for (size_t k = 0; k < clocks.size(); ++k) {
                if (silent) break;
                if (now < 0 || now >= shown[k].size) throw std::out_of_range("an arrival unknown");
                pass(clocks[k], shown[k].data[now]);
            }
            asked = static_cast<int64_t>(at.size());
            for (; i < to; ++i) {
                int64_t place = start + i;
                bool stays = true;
                for (size_t k = 0; k < clocks.size() && !silent; ++k)
                    stays = stays && clocks[k].ends[place] >= shown[k].data[now];
                if (stays) {
                    for (Clock &one : clocks) stay(one, base + place);
                    come(base + place);
                } else {
                    left[place] = 1;
                }
                if (silent) continue;
                auto number = static_cast<size_t>(numbered[static_cast<size_t>(i)]);
                if (met[number] < asked) {  // first member of this group in this arrival
                    met[number] = static_cast<int64_t>(at.size());
                    at.push_back(numbered[static_cast<size_t>(i)]);
                    who.push_back(i);
                }
                points.push_back(met[number]);
            }
            until.resize(at.size(), static_cast<int64_t>(events.size()));
        }
        for (int64_t one : at) met[static_cast<size_t>(one)] = -1;
        finish();
        if (static_cast<int64_t>(at.size()) == fresh) Py_RETURN_NONE;
        return Py_BuildValue("NN", handed(who), handed(points));
    }

    // Returns the ends of the members that are kept on a clock.
    PyObject *ends(PyObject *args) {
        long long clock;
        if (!PyArg_ParseTuple(args, "L", &clock)) throw Raised();
        if (clock < 0 || clock >= static_cast<long long>(clocks.size())) return handed({});
        const Nearby &some = clocks[static_cast<size_t>(clock)].ends;
        std::vector<int64_t> found(static_cast<size_t>(some.size()));
        for (size_t i = 0; i < found.size(); ++i) found[i] = some[static_cast<int64_t>(i)];
        return handed(found);
    }

    // Moves the ends of members on a clock, by their places, to earlier readings.
    PyObject *move(PyObject *args) {
        PyObject *places_, *ends_;
        long long number;
        if (!PyArg_ParseTuple(args, "LOO", &number, &places_, &ends_)) throw Raised();
        Ints places(places_), ends(ends_);
        ends.want(places.size);
        if (number < 0 || number >= static_cast<long long>(clocks.size()))
            throw std::out_of_range("there is no such clock");
        Clock &clock = clocks[static_cast<size_t>(number)];
        int64_t begin = base + left.size() - clock.ends.size();
        for (int64_t i = 0; i < places.size; ++i) {
            if (places.data[i] < 0 || places.data[i] >= clock.ends.size())
                throw std::out_of_range("a member that is not there");
            clock.ends.set(places.data[i], ends.data[i]);
            await(clock, ends.data[i], begin + places.data[i]);
        }
        Py_RETURN_NONE;
    }

  private:
    static constexpr int64_t NEVER = INT64_MAX;  // no clock passes it

    void await(Clock &clock, int64_t end, int64_t member) {
        if (end == NEVER) return;
        clock.heap.emplace_back(end, member);
        std::push_heap(clock.heap.begin(), clock.heap.end(), std::greater<>());
    }

    void stay(Clock &clock, int64_t member) {
        if (clock.next == clock.stop && clock.heap.empty()) clock.next = clock.stop = member;
        int64_t end = clock.ends[member - base];
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
    void pass(Clock &clock, int64_t now) {
        for (; clock.next < clock.stop; ++clock.next) {
            if (clock.next >= base && clock.ends[clock.next - base] >= now) break;
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
    Grown<int64_t> after;  // by member from `base` on: the next one of its group

    void forget(int64_t count) override {
        after.drop(std::min(count, after.size()));
    }

  public:
    // Takes `fresh` members with their keys and arguments, each with an arrival of its own; if not
    // `silent`, each is a point.
    PyObject *enter(PyObject *args) {
        PyObject *keys_, *columns_, *members_, *values_;
        long long fresh, size;
        int silent;
        if (!PyArg_ParseTuple(args, "OOOOLLp", &keys_, &columns_, &members_, &values_, &fresh, &size, &silent))
            throw Raised();
        if (size < 1 || fresh < 0) throw std::out_of_range("no rows");
        Aggregates &members = Owner<Aggregates>::checked(members_);
        begin(Owner<Keys>::checked(keys_), columns_, members, values_, fresh);
        after.add(left.size() - after.size(), -1);
        states.want(static_cast<int64_t>(groups));
        for (int64_t i = 0; i < fresh; ++i) {
            int64_t group = numbered[static_cast<size_t>(i)], member = base + members.size() - fresh + i;
            State &mine = states[group];
            if (mine.count == size) {
                int64_t next = after[mine.oldest - base];
                leave(mine.oldest);
                mine.oldest = next;
                --mine.count;
            }
            if (mine.count)
                after[mine.newest - base] = member;
            else
                mine.oldest = member;
            mine.newest = member;
            ++mine.count;
            come(member);
            if (silent) continue;
            at.push_back(group);
            until.push_back(static_cast<int64_t>(events.size()));
        }
        finish();
        Py_RETURN_NONE;
    }
};
