// The least, greatest, first or last member of each group.
#pragma once

#include "codes.h"
#include "few.h"
#include "turns.h"

enum Compared : int { BY_WHOLE, BY_REAL, BY_WIDE, BY_TEXT };
enum Wanted : int { LEAST, GREATEST, FIRST, LAST };

// Of equal members, the first is the best. If members leave in the order in which they came, each
// group keeps those that may still become the best (a monotone queue). Otherwise it keeps a heap,
// whose departed members are removed when they reach the top.
class Best {
    struct State {
        Few<uint32_t, 4> members;  // of their numbers, 32 bits
        int64_t gone = 0;          // departed members in the heap
    };
    Groups<State> groups;
    std::vector<uint8_t> left;  // by member: whether it has left; only for heaps
    int64_t base = 0;           // no member is before this one, with which `left` begins

    int64_t number(uint32_t bits) const { return base + static_cast<uint32_t>(bits - static_cast<uint32_t>(base)); }
    bool has_left(uint32_t bits) const { return left[static_cast<size_t>(number(bits) - base)] != 0; }

    template <typename Better>
    void in_order(const Turns &turns, Span<uint8_t> flags, int64_t *found, Better better) {
        base = turns.base;
        turns.run(
            flags,
            [&](int64_t place, int64_t group, bool leaves) {
                int64_t member = place + turns.base;
                auto &queue = groups[group].members;
                if (leaves) {
                    if (queue.size() > 0 && number(queue[0]) == member) queue.drop(1);
                    return;
                }
                while (queue.size() > 0 && better(member, number(queue[queue.size() - 1]))) queue.pop();
                queue.add(static_cast<uint32_t>(member));
            },
            [&](int64_t point, int64_t group) {
                const auto &queue = groups[group].members;
                found[point] = queue.size() > 0 ? number(queue[0]) : -1;
            });
    }

    template <typename Better>
    void by_heap(const Turns &turns, Span<uint8_t> flags, int64_t *found, Better better) {
        auto worse = [&](uint32_t one, uint32_t other) {
            int64_t a = number(one), b = number(other);
            return better(b, a) || (!better(a, b) && b < a);
        };
        // Members before the new base are never looked up again.
        if (base < turns.base) {
            for (State &mine : groups.states) without_left(mine, worse);
            auto past = std::min(static_cast<size_t>(turns.base - base), left.size());
            left.erase(left.begin(), left.begin() + static_cast<int64_t>(past));
            base = turns.base;
        }
        left.resize(static_cast<size_t>(turns.group.size), 0);
        turns.run(
            flags,
            [&](int64_t place, int64_t group, bool leaves) {
                State &mine = groups[group];
                auto &heap = mine.members;
                if (leaves) {
                    left[static_cast<size_t>(place)] = 1;
                    if (2 * ++mine.gone > heap.size() + 16) without_left(mine, worse);
                    return;
                }
                heap.add(static_cast<uint32_t>(place + turns.base));
                std::push_heap(heap.begin(), heap.end(), worse);
            },
            [&](int64_t point, int64_t group) {
                State &mine = groups[group];
                auto &heap = mine.members;
                while (heap.size() > 0 && has_left(heap[0])) {
                    std::pop_heap(heap.begin(), heap.end(), worse);
                    heap.pop();
                    --mine.gone;
                }
                found[point] = heap.size() > 0 ? number(heap[0]) : -1;
            });
    }

    template <typename Worse>
    void without_left(State &mine, Worse worse) {
        auto &heap = mine.members;
        heap.pop(heap.end() - std::remove_if(heap.begin(), heap.end(), [&](uint32_t one) { return has_left(one); }));
        std::make_heap(heap.begin(), heap.end(), worse);
        mine.gone = 0;
    }

  public:
    // The members' values, whose flags are set, and what is asked of them. Members of a group that
    // are `ordered` leave in the order in which they came.
    struct Work {
        int kind = BY_WHOLE, wanted = LEAST;
        bool ordered = false;
        Span<int64_t> words;
        Span<uint8_t> flags;
        const Codes *codes = nullptr;
    };

    // Where no member leaves: forgets all but the best of each group. Calls `needs(member)` for these.
    template <typename Needs>
    void forget_others(Needs needs) {
        for (State &mine : groups.states) {
            if (mine.members.size() == 0) continue;
            mine.members.pop(mine.members.size() - 1);
            needs(number(mine.members[0]));
        }
    }

    // Gives the members that are left the numbers from `first` on. `kept` has their old ones, in order.
    void renumber(const std::vector<int64_t> &kept, int64_t first) {
        for (State &mine : groups.states)
            for (uint32_t &bits : mine.members) {
                auto place = std::lower_bound(kept.begin(), kept.end(), number(bits)) - kept.begin();
                bits = static_cast<uint32_t>(first + place);
            }
        left.assign(kept.size(), 0);
        base = first;
    }

    // Writes the best member at each point; -1 if there is none.
    void run(const Turns &turns, const Work &work, int64_t *found) {
        const int kind = work.kind, wanted = work.wanted;
        const int64_t *data = work.words.data, from = turns.base;
        if (wanted < FIRST) {
            if (!data) throw std::invalid_argument("the least of nothing");
            work.words.want((kind == BY_WIDE ? 2 : 1) * turns.group.size);
        }
        groups.want(turns.groups());
        auto go = [&](auto better) {
            if (work.ordered)
                in_order(turns, work.flags, found, better);
            else
                by_heap(turns, work.flags, found, better);
        };
        auto by = [&](auto less) {
            bool greatest = wanted == GREATEST;
            go([=](int64_t a, int64_t b) {
                return greatest ? less(b - from, a - from) : less(a - from, b - from);
            });
        };
        if (wanted == FIRST)
            go([](int64_t a, int64_t b) { return a < b; });
        else if (wanted == LAST)
            go([](int64_t a, int64_t b) { return a > b; });
        else if (kind == BY_WHOLE)
            by([=](int64_t a, int64_t b) { return data[a] < data[b]; });
        else if (kind == BY_REAL)
            by([=](int64_t a, int64_t b) {
                double one, other;
                std::memcpy(&one, data + a, 8);
                std::memcpy(&other, data + b, 8);
                return one < other;
            });
        else if (kind == BY_WIDE)
            by([=](int64_t a, int64_t b) {
                int64_t one = data[2 * a + 1], other = data[2 * b + 1];
                if (one != other) return one < other;
                return static_cast<uint64_t>(data[2 * a]) < static_cast<uint64_t>(data[2 * b]);
            });
        else if (work.codes == nullptr)
            throw std::invalid_argument("texts without codes");
        else
            by([codes = work.codes, data](int64_t a, int64_t b) { return codes->less(data[a], data[b]); });
    }
};
