// The part common to all matchers of events by key: their order, the matches found, and the sweep.
#pragma once

#include "found.h"
#include "renumbered.h"

#include <optional>

class Matching {
  protected:
    // What `advance` returns once all events are taken, or where it cannot go on: a key has too many
    // runs, or there are too many matches.
    enum Status : int64_t { THROUGH = -1, TOO_MANY_RUNS = -2, TOO_MANY_MATCHES = -3 };

    std::vector<int64_t> active;  // the listed keys, which have partial matches
    FoundMatches found;
    int64_t window = -1, most_matches = -1, swept = INT64_MIN, newest = INT64_MIN;

    void next(int64_t time) {
        if (time < newest) throw std::out_of_range("an event before the newest");
        newest = time;
    }

    template <typename Key>
    static Key &of_number(std::vector<Key> &keys, int64_t number) {
        if (number < 0) throw std::out_of_range("a key below 0");
        if (number >= static_cast<int64_t>(keys.size())) keys.resize(static_cast<size_t>(number) + 1);
        return keys[static_cast<size_t>(number)];
    }

    template <typename Key>
    void list(Key &key, int64_t number) {
        if (!key.listed) active.push_back(number);
        key.listed = true;
    }

    // Forgets the keys that `needed` does not name, and numbers the others anew, in their order.
    // Writes their old numbers; returns how many they are.
    template <typename Key, typename Needed>
    PyObject *retained(PyObject *args, std::vector<Key> &keys, Needed needed) {
        PyObject *out_;
        if (!PyArg_ParseTuple(args, "O", &out_)) throw Raised();
        Out out(out_, true);
        Renumbered anew(keys, out, needed);
        anew.change(active, [](int64_t &number) -> int64_t & { return number; });
        return PyLong_FromLongLong(static_cast<long long>(keys.size()));
    }

    // `args` are the present time, and whether no more events come. If a sweep is due, `keep` drops
    // what began before the returned time from a key, and returns whether anything is left.
    template <typename Key, typename Keep>
    std::optional<int64_t> sweep(PyObject *args, std::vector<Key> &keys, Keep keep) {
        long long now;
        int over;
        if (!PyArg_ParseTuple(args, "Lp", &now, &over)) throw Raised();
        if (!over && (window < 0 || (swept != INT64_MIN && now - swept <= window / 4))) return std::nullopt;
        int64_t from = over ? INT64_MAX : now - window + 1;
        size_t left = 0;
        for (int64_t number : active) {
            Key &key = keys[static_cast<size_t>(number)];
            key.listed = keep(key, from);
            if (key.listed) active[left++] = number;
        }
        active.resize(left);
        swept = now;
        return from;
    }

  public:
    PyObject *certain(PyObject *args) {
        long long to;
        if (!PyArg_ParseTuple(args, "L", &to)) throw Raised();
        return PyLong_FromLongLong(found.certain(to));
    }

    // Arguments: a time, the numbers of the events from event `gone` on, `gone`, whether the matches
    // come in order as they are.
    PyObject *take(PyObject *args) {
        PyObject *numbers_;
        long long to, gone;
        int ordered;
        if (!PyArg_ParseTuple(args, "LOLp", &to, &numbers_, &gone, &ordered)) throw Raised();
        return found.take(to, Ints(numbers_), gone, ordered != 0);
    }

    // Returns a time up to which so many matches are certain, or those of one time, but none after
    // `to`.
    PyObject *until(PyObject *args) {
        long long to, most;
        if (!PyArg_ParseTuple(args, "LL", &to, &most)) throw Raised();
        return PyLong_FromLongLong(found.until(to, std::max(most, 1LL)));
    }
};
