// The events of groups that their states need.
#pragma once

#include "turns.h"

// A group that all its members have left starts over, so what came since it was last asked for a result is
// passed over.
class Needed {
    std::vector<int64_t> live;  // by group, its members

  public:
    // The latest turns without the events that are passed over, and by event 1 if the group starts over with
    // it: its last member leaves.
    std::vector<int64_t> events, until, over;

    // Takes turns of the members whose flags are set.
    void run(const Turns &turns, Span<uint8_t> flags) {
        auto count = static_cast<size_t>(turns.groups());
        if (live.size() < count) live.resize(count, 0);
        std::vector<int64_t> all, ends;
        std::vector<uint8_t> kept;  // by event; 2 if its group starts over
        // By event the one before it since its group was last asked, and by group the last one.
        std::vector<int64_t> before, last(count, -1);
        auto step = [&](int64_t place, int64_t group, bool leaves) {
            int64_t &latest = last[static_cast<size_t>(group)], member = turns.base + place;
            bool none = (live[static_cast<size_t>(group)] += leaves ? -1 : 1) == 0;
            for (; none && latest >= 0; latest = before[static_cast<size_t>(latest)])
                kept[static_cast<size_t>(latest)] = 0;
            before.push_back(latest);
            latest = static_cast<int64_t>(all.size());
            all.push_back(leaves ? ~member : member);
            kept.push_back(none ? 2 : 1);
        };
        auto answer = [&](int64_t, int64_t group) {
            last[static_cast<size_t>(group)] = -1;
            ends.push_back(static_cast<int64_t>(all.size()));
        };
        turns.run(flags, step, answer);
        events.clear(), until.clear(), over.clear();
        size_t done = 0;
        auto up_to = [&](size_t end) {
            for (; done < end; ++done) {
                if (!kept[done]) continue;
                events.push_back(all[done]);
                over.push_back(kept[done] == 2);
            }
        };
        for (int64_t end : ends) {
            up_to(static_cast<size_t>(end));
            until.push_back(static_cast<int64_t>(events.size()));
        }
        up_to(all.size());
    }
};
