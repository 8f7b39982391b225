// New numbers for the keys that are still needed.
#pragma once

#include "binding.h"

#include <utility>
#include <vector>

class Renumbered {
    std::vector<int64_t> places;  // by old number: the new one, -1 for a key that is forgotten

  public:
    // Forgets the keys that are not `needed` and moves the others together, in their order; writes
    // the old numbers of these.
    template <typename Key, typename Needed>
    Renumbered(std::vector<Key> &keys, Out &out, Needed needed) : places(keys.size(), -1) {
        out.want(static_cast<int64_t>(keys.size()));
        size_t left = 0;
        for (size_t i = 0; i < keys.size(); ++i) {
            if (!needed(keys[i])) continue;
            out.data[left] = static_cast<int64_t>(i);
            places[i] = static_cast<int64_t>(left);
            if (left != i) keys[left] = std::move(keys[i]);
            ++left;
        }
        keys.resize(left);
        keys.shrink_to_fit();
    }

    // Changes the numbers in some entries, and drops the entries of forgotten keys.
    template <typename Entry, typename Number>
    void change(std::vector<Entry> &entries, Number number) const {
        size_t left = 0;
        for (Entry &entry : entries) {
            int64_t place = places[static_cast<size_t>(number(entry))];
            if (place < 0) continue;
            number(entry) = place;
            entries[left++] = entry;
        }
        entries.resize(left);
    }
};
