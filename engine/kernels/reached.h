// Ways that have come so far, by what comes next compares them by: each has a begin and an end.
//
// Ways are added in the order of their ends, so those that end within some time are a range of
// numbers. A range is divided into whole runs, aligned at 64, 512, 4,096 ... ways, and fewer than two
// times 64 ways that are looked at one by one. A run is sorted by key and value, with a tree of the
// latest begins over that order. So ways of one key, with a value between two bounds, that begin after
// some time are found without looking at others. Runs are made when a long range is first asked for.
#pragma once

#include "grown.h"

#include <algorithm>
#include <deque>

class Reached {
    static constexpr int64_t shortest = 64, growth = 8, scanned = 256;

    struct Run {
        std::vector<uint32_t> order;  // counted from the first way of the run
        std::vector<int64_t> latest;  // node i is above 2i and 2i + 1; the leaves are the ways
    };
    struct Level {
        int64_t size;   // ways per run
        int64_t first;  // number of the front run of this level, counted from way 0
        std::deque<Run> runs;
    };

    Grown<int64_t> ends, begins, keys, values, events;
    int64_t gone = 0, *work;
    std::vector<Level> levels;

    bool less(int64_t a, int64_t b) const {
        const int64_t *key = keys.data() - gone, *value = values.data() - gone;
        if (key[a] != key[b]) return key[a] < key[b];
        return value[a] != value[b] ? value[a] < value[b] : a < b;
    }

    int64_t latest(const Run &run, int64_t at, size_t node) const {
        size_t size = run.order.size();
        return node < size ? run.latest[node] : begin(at + run.order[node - size]);
    }

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

    Run made(size_t depth, int64_t number) const {
        auto size = static_cast<size_t>(levels[depth].size);
        int64_t at = number * levels[depth].size;
        auto before = [&](uint32_t a, uint32_t b) { return less(at + a, at + b); };
        Run run{std::vector<uint32_t>(size), std::vector<int64_t>(size)};
        size_t width = depth == 0 ? 1 : static_cast<size_t>(levels[depth - 1].size);
        for (size_t i = 0; i < size; ++i) run.order[i] = static_cast<uint32_t>(i);
        if (depth == 0)
            std::sort(run.order.begin(), run.order.end(), before);
        else {
            const Level &below = levels[depth - 1];
            for (size_t i = 0; i < size; ++i) {
                auto part = static_cast<size_t>(number * growth - below.first) + i / width;
                run.order[i] = below.runs[part].order[i % width] + static_cast<uint32_t>(i / width * width);
            }
            for (; width < size; width *= 2)
                for (auto i = run.order.begin(); i < run.order.end(); i += 2 * static_cast<int64_t>(width))
                    std::inplace_merge(i, i + static_cast<int64_t>(width), i + 2 * static_cast<int64_t>(width),
                                       before);
        }
        for (size_t node = size - 1; node > 0; --node)
            run.latest[node] = std::max(latest(run, at, 2 * node), latest(run, at, 2 * node + 1));
        return run;
    }

  public:
    static constexpr int64_t never = INT64_MIN;

    // Values of one key, both bounds included, or `all` keys and values.
    struct Range {
        bool all;
        int64_t key = 0, low = INT64_MIN, high = INT64_MAX;
    };

    // Counts in `work`, roughly, the ways it looks at; those it looks at in a row count less.
    explicit Reached(int64_t &work) : work(&work) {}

    int64_t end() const { return gone + ends.size(); }
    int64_t begin(int64_t way) const { return begins.data()[way - gone]; }
    int64_t ending(int64_t way) const { return ends.data()[way - gone]; }
    int64_t event(int64_t way) const { return events.data()[way - gone]; }

    // Returns the number of the first way that ends at this time or later.
    int64_t from(int64_t time) const {
        return gone + (std::lower_bound(ends.data(), ends.data() + ends.size(), time) - ends.data());
    }

    void add(int64_t ending, int64_t begin, int64_t key, int64_t value, int64_t event) {
        ends.add(ending);
        begins.add(begin);
        keys.add(key);
        values.add(value);
        events.add(event);
    }

    // Calls `visit` for each way of [low, high) in a range of values that begins after a time, until
    // it returns false.
    template <typename Visit>
    bool each(const Range &range, int64_t low, int64_t high, int64_t after, Visit visit) {
        return parts(
            range, low, high, SIZE_MAX,
            [&](const Run &run, int64_t at, size_t a, size_t b, size_t) {
                return covered(run, a, b, [&](size_t node) { return below(run, at, node, after, visit); });
            },
            [&](int64_t way) { return begin(way) <= after || visit(way); });
    }

    // Returns the latest begin among the ways of [low, high) in a range of values.
    int64_t latest(const Range &range, int64_t low, int64_t high) {
        int64_t found = never;
        parts(
            range, low, high, SIZE_MAX,
            [&](const Run &run, int64_t at, size_t a, size_t b, size_t) {
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
            [&](const Run &run, int64_t at, size_t a, size_t b, size_t level) {
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
        begins.data()[way - gone] = never;
        for (Level &level : levels) {
            int64_t number = way / level.size - level.first, at = way / level.size * level.size;
            if (number < 0 || number >= static_cast<int64_t>(level.runs.size())) return;
            Run &run = level.runs[static_cast<size_t>(number)];
            auto place = std::lower_bound(run.order.begin(), run.order.end(), way,
                                          [&](uint32_t one, int64_t than) { return less(at + one, than); });
            auto node = run.order.size() + static_cast<size_t>(place - run.order.begin());
            while ((node /= 2) > 0)
                run.latest[node] = std::max(latest(run, at, 2 * node), latest(run, at, 2 * node + 1));
        }
    }

    // Forgets the ways that end before a time.
    void forget(int64_t time) {
        int64_t count = from(time) - gone;
        for (auto *one : {&ends, &begins, &keys, &values, &events}) one->drop(count);
        gone += count;
        for (Level &level : levels)
            while (!level.runs.empty() && level.first * level.size < gone) {
                level.runs.pop_front();
                ++level.first;
            }
    }

  private:
    // Returns the places of a range of values in the order of a run.
    std::pair<size_t, size_t> places(const Run &run, int64_t at, const Range &range) {
        if (range.all) return {0, run.order.size()};
        const int64_t *key = keys.data() + (at - gone), *value = values.data() + (at - gone);
        auto low = std::partition_point(run.order.begin(), run.order.end(), [&](uint32_t one) {
            return key[one] != range.key ? key[one] < range.key : value[one] < range.low;
        });
        auto high = std::partition_point(low, run.order.end(), [&](uint32_t one) {
            return key[one] == range.key && value[one] <= range.high;
        });
        ++*work;
        return {low - run.order.begin(), high - run.order.begin()};
    }

    // Calls `each` for the fewest nodes that cover the places [a, b), until it returns false.
    template <typename Each>
    bool covered(const Run &run, size_t a, size_t b, Each each) {
        for (a += run.order.size(), b += run.order.size(); a < b; a /= 2, b /= 2) {
            ++*work;
            if (a % 2 != 0 && !each(a++)) return false;
            if (b % 2 != 0 && !each(--b)) return false;
        }
        return true;
    }

    // Visits the ways below a node that begin after a time.
    template <typename Visit>
    bool below(const Run &run, int64_t at, size_t node, int64_t after, Visit &visit) {
        if (latest(run, at, node) <= after) return true;
        ++*work;
        if (node >= run.order.size()) return visit(at + run.order[node - run.order.size()]);
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
            const Run *run = nullptr;
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
            const int64_t *key = keys.data() - gone, *value = values.data() - gone;
            if (range.all) {
                for (; low < until; ++low)
                    if (!single(low)) return false;
                continue;
            }
            for (; low < until; ++low)
                if (key[low] == range.key && value[low] >= range.low && value[low] <= range.high && !single(low))
                    return false;
        }
        return true;
    }
};
