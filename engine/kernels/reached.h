// Ways that have come so far, by what comes next compares them by: each has a begin and an end.
//
// Ways are added in the order of their ends, so those that end within some time are a range of
// numbers. A range is divided into whole runs, aligned at 64, 512, 4,096 ... ways, and fewer than two
// times 64 ways that are looked at one by one. A run is sorted by key and value, with a tree of the
// latest begins over that order. So ways of one key, with a value between two bounds, that begin after
// some time are found without looking at others. Runs are made when a long range is first asked for.
//
// A way is little more than the number of its event, whose time and values are looked up: there are
// several ways for each event.
#pragma once

#include "grown.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <vector>

// Events in order, by number; those before `gone` are forgotten.
struct Events {
    Grown<int64_t> times;
    std::vector<Grown<int64_t>> values;  // by column
    int64_t gone = 0;

    int64_t end() const { return gone + times.size(); }
    int64_t time(int64_t event) const { return times[event - gone]; }
    int64_t value(size_t column, int64_t event) const { return values[column][event - gone]; }
};

// What an event is compared by: columns that have to be equal, as one key, and another column.
struct Columns {
    static constexpr size_t none = SIZE_MAX;
    std::vector<size_t> equal;
    size_t other = none;

    // The key of one column is its number, that of several is hardly ever that of others, too.
    int64_t key(const Events &events, int64_t event) const {
        uint64_t key = 0;
        for (size_t column : equal) {
            key = key * 0x9e3779b97f4a7c15u;
            key = (key ^ (key >> 32)) + static_cast<uint64_t>(events.value(column, event));
        }
        return static_cast<int64_t>(key);
    }
};

// The heap of a run: node i is above 2i and 2i + 1. The leaves are its ways in order; any other node is
// the way that begins latest among those below it. Ways are counted from the first one of the run, in
// 16 bits if it is short.
class Heap {
    std::unique_ptr<uint16_t[]> near;
    std::unique_ptr<uint32_t[]> far;
    size_t count;

  public:
    explicit Heap(size_t count) : count(count) {
        if (count <= 1 << 16)
            near.reset(new uint16_t[2 * count]);
        else
            far.reset(new uint32_t[2 * count]);
    }
    size_t size() const { return count; }
    int64_t operator[](size_t node) const { return near ? near[node] : far[node]; }
    void set(size_t node, int64_t way) {
        if (near)
            near[node] = static_cast<uint16_t>(way);
        else
            far[node] = static_cast<uint32_t>(way);
    }
};

class Reached {
    static constexpr int64_t shortest = 64, growth = 8, scanned = 256;

    struct Level {
        int64_t size;   // ways per run
        int64_t first;  // number of the front run of this level, counted from way 0
        std::deque<Heap> runs;
    };
    // Keys and values of ways, to be read many times.
    struct View {
        const Reached &of;
        const uint32_t *ways;  // at way 0
        uint32_t first;        // the first event
        const int64_t *keys, *values;

        explicit View(const Reached &of)
            : of(of), ways(of.ways.data() - of.gone), first(static_cast<uint32_t>(of.events->gone)),
              keys(of.by.equal.size() == 1 ? of.events->values[of.by.equal[0]].data() : nullptr),
              values(of.by.other != Columns::none ? of.events->values[of.by.other].data() : nullptr) {}

        int64_t key(int64_t way) const {
            if (keys != nullptr) return keys[ways[way] - first];
            return of.by.equal.empty() ? 0 : of.by.key(*of.events, of.event(way));
        }
        int64_t value(int64_t way) const { return values != nullptr ? values[ways[way] - first] : 0; }
        bool less(int64_t a, int64_t b) const {
            int64_t one = key(a), two = key(b);
            if (one != two) return one < two;
            one = value(a), two = value(b);
            return one != two ? one < two : a < b;
        }
    };

    const Events *events = nullptr;
    Columns by;
    bool begun = false, ended = false;  // whether there are `begins` and `ends`; or they are the times of events
    Grown<uint32_t> ways;               // the numbers of their events, of which these bits say enough
    Grown<int64_t> begins, ends;
    int64_t gone = 0, *work = nullptr;
    std::deque<Level> levels;

    // Sorts the runs that are complete by now.
    void complete() {
        for (size_t depth = 0;; ++depth) {
            if (depth == levels.size()) {
                int64_t size = depth == 0 ? shortest : levels.back().size * growth;
                if (end() - gone < size) return;
                levels.push_back({size, (gone + size - 1) / size, {}});
            }
            Level &level = levels[depth];
            for (;;) {
                int64_t number = level.first + static_cast<int64_t>(level.runs.size());
                if ((number + 1) * level.size > end()) break;
                if (number * level.size < gone) {
                    level.first = number + 1;
                    level.runs.clear();
                    continue;
                }
                level.runs.push_back(made(depth, number));
            }
        }
    }

    Heap made(size_t depth, int64_t number) const {
        auto size = static_cast<size_t>(levels[depth].size);
        int64_t at = number * levels[depth].size;
        const View view(*this);
        auto before = [&](uint32_t a, uint32_t b) { return view.less(at + a, at + b); };
        std::vector<uint32_t> order(size);
        if (depth == 0) {
            std::iota(order.begin(), order.end(), 0);
            std::sort(order.begin(), order.end(), before);
        } else {
            const Level &below = levels[depth - 1];
            auto width = static_cast<size_t>(below.size);
            for (size_t i = 0; i < size; ++i) {
                const Heap &part = below.runs[static_cast<size_t>(number * growth - below.first) + i / width];
                order[i] = static_cast<uint32_t>(part[width + i % width]) + static_cast<uint32_t>(i / width * width);
            }
            for (; width < size; width *= 2)
                for (auto i = order.begin(); i < order.end(); i += 2 * static_cast<int64_t>(width))
                    std::inplace_merge(i, i + static_cast<int64_t>(width), i + 2 * static_cast<int64_t>(width),
                                       before);
        }
        Heap run(size);
        for (size_t i = 0; i < size; ++i) run.set(size + i, order[i]);
        for (size_t node = size - 1; node > 0; --node) settle(run, at, node);
        return run;
    }

    // Sets a node to the later one of those below it.
    void settle(Heap &run, int64_t at, size_t node) const {
        int64_t one = run[2 * node], other = run[2 * node + 1];
        run.set(node, begin(at + one) < begin(at + other) ? other : one);
    }

    int64_t latest(const Heap &run, int64_t at, size_t node) const { return begin(at + run[node]); }

  public:
    static constexpr int64_t never = INT64_MIN;

    // Values of one key, both bounds included, or `all` keys and values.
    struct Range {
        bool all;
        int64_t key = 0, low = INT64_MIN, high = INT64_MAX;
    };

    // `begun` and `ended` are whether ways begin and end elsewhere than at their events, or are removed.
    // Counts in `work`, roughly, the ways it looks at; those it looks at in a row count less.
    Reached() = default;
    Reached(const Events &events, Columns by, bool begun, bool ended, int64_t &work)
        : events(&events), by(std::move(by)), begun(begun), ended(ended), work(&work) {}

    int64_t end() const { return gone + ways.size(); }
    int64_t begin(int64_t way) const { return begun ? begins[way - gone] : time(way); }
    int64_t ending(int64_t way) const { return ended ? ends[way - gone] : time(way); }
    int64_t event(int64_t way) const { return events->gone + place(ways[way - gone]); }

    // Returns the number of the first way that ends at this time or later.
    int64_t from(int64_t time) const {
        if (ended) return gone + (std::lower_bound(ends.begin(), ends.end(), time) - ends.begin());
        const int64_t *times = events->times.data();
        auto before = [&](uint32_t way, int64_t than) { return times[place(way)] < than; };
        return gone + (std::lower_bound(ways.begin(), ways.end(), time, before) - ways.begin());
    }

    void add(int64_t ending, int64_t begin, int64_t event) {
        ways.add(static_cast<uint32_t>(event));
        if (begun) begins.add(begin);
        if (ended) ends.add(ending);
    }

    // Calls `visit` for each way of [low, high) in a range of values that begins after a time, until
    // it returns false.
    template <typename Visit>
    bool each(const Range &range, int64_t low, int64_t high, int64_t after, Visit visit) {
        return parts(
            range, low, high, SIZE_MAX,
            [&](const Heap &run, int64_t at, size_t a, size_t b, size_t) {
                return covered(run, a, b, [&](size_t node) { return below(run, at, node, after, visit); });
            },
            [&](int64_t way) { return begin(way) <= after || visit(way); });
    }

    // Returns the latest begin among the ways of [low, high) in a range of values.
    int64_t latest(const Range &range, int64_t low, int64_t high) {
        int64_t found = never;
        parts(
            range, low, high, SIZE_MAX,
            [&](const Heap &run, int64_t at, size_t a, size_t b, size_t) {
                return covered(run, a, b, [&](size_t node) {
                    found = std::max(found, latest(run, at, node));
                    return true;
                });
            },
            [&](int64_t way) {
                found = std::max(found, begin(way));
                return true;
            });
        return found;
    }

    // Returns the first way of [low, high) in a range of values that begins after a time, or `high`.
    int64_t first(const Range &range, int64_t low, int64_t high, int64_t after, size_t depth = SIZE_MAX) {
        int64_t found = high;
        parts(
            range, low, high, depth,
            [&](const Heap &run, int64_t at, size_t a, size_t b, size_t level) {
                bool none = covered(run, a, b, [&](size_t node) { return latest(run, at, node) <= after; });
                if (!none) found = first(range, at, at + levels[level].size, after, level);
                return none;
            },
            [&](int64_t way) {
                if (begin(way) > after) found = way;
                return found == high;
            });
        return found;
    }

    // No way that begins after any time is this one from now on.
    void remove(int64_t way) {
        begins[way - gone] = never;
        const View view(*this);
        for (Level &level : levels) {
            int64_t number = way / level.size - level.first, at = way / level.size * level.size;
            if (number < 0 || number >= static_cast<int64_t>(level.runs.size())) return;
            Heap &run = level.runs[static_cast<size_t>(number)];
            size_t node = run.size() + first_of(run, 0, run.size(), [&](int64_t one) { return !view.less(at + one, way); });
            while ((node /= 2) > 0) settle(run, at, node);
        }
    }

    // Forgets the ways that end before a time. Must be called before their events are forgotten.
    void forget(int64_t time) {
        int64_t count = from(time) - gone;
        ways.drop(count);
        if (begun) begins.drop(count);
        if (ended) ends.drop(count);
        gone += count;
        for (Level &level : levels)
            while (!level.runs.empty() && level.first * level.size < gone) {
                level.runs.pop_front();
                ++level.first;
            }
    }

  private:
    // Returns the place of an event of which a way holds some bits.
    int64_t place(uint32_t way) const { return way - static_cast<uint32_t>(events->gone); }

    int64_t time(int64_t way) const { return events->times[place(ways[way - gone])]; }

    // Returns the first place of [low, high) in the order of a run whose way meets a test that all later
    // ones meet, too, or `high`.
    template <typename Meets> static size_t first_of(const Heap &run, size_t low, size_t high, Meets meets) {
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (meets(run[run.size() + middle]))
                high = middle;
            else
                low = middle + 1;
        }
        return low;
    }

    // Does the same; is fast where this place is near `low`.
    template <typename Meets> static size_t near_first_of(const Heap &run, size_t low, size_t high, Meets meets) {
        for (size_t step = 1; low + step < high; step *= 2) {
            if (meets(run[run.size() + low + step - 1])) return first_of(run, low, low + step - 1, meets);
            low += step;
        }
        return first_of(run, low, high, meets);
    }

    // Returns the places of a range of values in the order of a run.
    std::pair<size_t, size_t> places(const Heap &run, int64_t at, const Range &range) {
        if (range.all) return {0, run.size()};
        const View view(*this);
        ++*work;
        size_t low = first_of(run, 0, run.size(), [&](int64_t one) {
            int64_t key = view.key(at + one);
            return key != range.key ? key > range.key : view.value(at + one) >= range.low;
        });
        return {low, near_first_of(run, low, run.size(), [&](int64_t one) {
                    return view.key(at + one) != range.key || view.value(at + one) > range.high;
                })};
    }

    // Calls `each` for the fewest nodes that cover the places [a, b), until it returns false.
    template <typename Each>
    bool covered(const Heap &run, size_t a, size_t b, Each each) {
        for (a += run.size(), b += run.size(); a < b; a /= 2, b /= 2) {
            ++*work;
            if (a % 2 != 0 && !each(a++)) return false;
            if (b % 2 != 0 && !each(--b)) return false;
        }
        return true;
    }

    // Visits the ways below a node that begin after a time.
    template <typename Visit>
    bool below(const Heap &run, int64_t at, size_t node, int64_t after, Visit &visit) {
        if (latest(run, at, node) <= after) return true;
        ++*work;
        if (node >= run.size()) return visit(at + run[node]);
        return below(run, at, 2 * node, after, visit) && below(run, at, 2 * node + 1, after, visit);
    }

    // Divides [low, high) into runs of less than this depth, with the places of a range of values in
    // their order, and single ways in the range; until one of both returns false.
    template <typename Whole, typename Single>
    bool parts(const Range &range, int64_t low, int64_t high, size_t depth, Whole whole, Single single) {
        if (range.low > range.high) return true;
        if (high - low > scanned) complete();
        depth = std::min(depth, levels.size());
        while (low < high) {
            size_t level = 0;
            const Heap *run = nullptr;
            for (; level < depth && low % levels[level].size == 0 && low + levels[level].size <= high; ++level) {
                int64_t number = low / levels[level].size - levels[level].first;
                if (number < 0 || number >= static_cast<int64_t>(levels[level].runs.size())) break;
                run = &levels[level].runs[static_cast<size_t>(number)];
            }
            if (run != nullptr) {
                auto [a, b] = places(*run, low, range);
                if (a < b && !whole(*run, low, a, b, level - 1)) return false;
                low += levels[level - 1].size;
                continue;
            }
            int64_t until = std::min(high, (low / shortest + 1) * shortest);
            *work += 1 + (until - low) / 8;
            if (range.all) {
                for (; low < until; ++low)
                    if (!single(low)) return false;
                continue;
            }
            const View view(*this);
            for (; low < until; ++low) {
                if (view.key(low) != range.key) continue;
                int64_t value = view.value(low);
                if (value >= range.low && value <= range.high && !single(low)) return false;
            }
        }
        return true;
    }
};
