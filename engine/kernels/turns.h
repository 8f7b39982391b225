// The events of groups, in order: members come and leave, and groups are asked for results.
#pragma once

#include "binding.h"

#include <algorithm>

// Event m: member m comes; ~m: it leaves. The events up to `until[p]` precede point p, which asks
// group `at[p]`. `group[m - base]` is the group of member m.
struct Turns {
    Span<int64_t> events, until, at;
    int64_t base;
    Span<uint32_t> group;

    Turns(Span<int64_t> events, Span<int64_t> until, Span<int64_t> at, int64_t base, Span<uint32_t> group)
        : events(events), until(until), at(at), base(base), group(group) {
        at.want(until.size);
        for (int64_t i = 0; i < events.size; ++i) {
            int64_t member = events.data[i] < 0 ? ~events.data[i] : events.data[i];
            if (member < base || member - base >= group.size)
                throw std::out_of_range("a member that is not there");
        }
        for (int64_t p = 0, last = 0; p < until.size; last = until.data[p++])
            if (until.data[p] < last || until.data[p] > events.size)
                throw std::out_of_range("points out of order");
    }

    int64_t groups() const {
        int64_t most = -1;
        auto widen = [&](int64_t one) {
            if (one < 0) throw std::out_of_range("a group below 0");
            most = std::max(most, one);
        };
        for (int64_t i = 0; i < events.size; ++i)
            widen(group.data[(events.data[i] < 0 ? ~events.data[i] : events.data[i]) - base]);
        for (int64_t p = 0; p < at.size; ++p) widen(at.data[p]);
        return most + 1;
    }

    // Calls `step(member - base, group, leaves)` for members whose flag is set, and `answer(point,
    // group)`.
    template <typename Step, typename Answer>
    void run(Span<uint8_t> flags, Step step, Answer answer) const {
        flags.want(group.size);
        int64_t done = 0;
        auto up_to = [&](int64_t end) {
            for (; done < end; ++done) {
                int64_t event = events.data[done];
                int64_t place = (event < 0 ? ~event : event) - base;
                if (!flags.data || flags.data[place]) step(place, group.data[place], event < 0);
            }
        };
        for (int64_t p = 0; p < until.size; ++p) {
            up_to(until.data[p]);
            answer(p, at.data[p]);
        }
        up_to(events.size);
    }
};

// The state of each group, by its number.
template <typename State>
struct Groups {
    std::vector<State> states;

    void want(int64_t count) {
        auto most = static_cast<size_t>(count);
        if (states.capacity() < most) states.reserve(most + most / 3);
        if (states.size() < most) states.resize(most);
    }
    bool has(int64_t group) const { return group < static_cast<int64_t>(states.size()); }
    State &operator[](int64_t group) { return states[static_cast<size_t>(group)]; }
};

// Hands a result to Python: the bytes of some integers.
inline PyObject *handed(const std::vector<int64_t> &numbers) {
    PyObject *made = PyBytes_FromStringAndSize(reinterpret_cast<const char *>(numbers.data()),
                                               static_cast<Py_ssize_t>(8 * numbers.size()));
    if (made == nullptr) throw Raised();
    return made;
}
