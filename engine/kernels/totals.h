// Counts, sums and means of groups, and the members that count among equal values.
#pragma once

#include "exact.h"
#include "turns.h"

enum Summed : int { COUNTED, WHOLE, REAL, SPAN, DECIMAL, WIDE };

class Totals {
    struct State {
        int64_t count = 0, above = 0, below = 0;  // infinite values are counted apart
        Exact sum;
    };
    Groups<State> groups;

  public:
    PyObject *run(PyObject *args) {
        PyObject *events_, *until_, *at_, *group_, *words_, *flags_;
        PyObject *counts_, *sums_, *means_, *known_;
        long long base;
        int kind, scale;
        if (!PyArg_ParseTuple(args, TURNS "OOiiOOOO", &events_, &until_, &at_, &base, &group_,
                              &words_, &flags_, &kind, &scale, &counts_, &sums_, &means_, &known_))
            throw Raised();
        Turns turns(events_, until_, at_, base, group_);
        Ints words(words_);
        Bytes flags(flags_);
        Out counts(counts_, true), sums(sums_, true), means(means_, true);
        View<uint8_t> known(known_, true);
        int64_t points = turns.until.size, width = kind >= DECIMAL ? 2 : 1;
        counts.want(points);
        sums.want(width * points);
        means.want(width * points);
        known.want(points);
        if (kind != COUNTED) {
            if (!words.data || !known.data) throw std::invalid_argument("sums of nothing");
            words.want((kind == WIDE ? 2 : 1) * turns.group.size);
        }
        groups.want(turns.groups());
        std::vector<uint32_t> number;
        auto step = [&](int64_t place, int64_t group, bool leaves) {
            State &mine = groups[group];
            mine.count += leaves ? -1 : 1;
            if (kind == COUNTED) return;
            if (kind == WIDE)
                return mine.sum.add(words.data[2 * place], words.data[2 * place + 1], leaves);
            if (kind != REAL) return mine.sum.add(words.data[place], leaves);
            double value;
            std::memcpy(&value, words.data + place, 8);
            if (std::isfinite(value))
                mine.sum.add(value, leaves);
            else
                (value > 0 ? mine.above : mine.below) += leaves ? -1 : 1;
        };
        auto answer = [&](int64_t point, int64_t group) {
            State &mine = groups[group];
            if (counts.data) counts.data[point] = mine.count;
            if (kind == COUNTED) return;
            uint8_t fine = 0;
            auto by = static_cast<uint64_t>(mine.count);
            if (by >> 32) throw std::length_error("a group of 2^32 rows");
            int64_t *sum = sums.data ? sums.data + width * point : nullptr;
            int64_t *mean = means.data ? means.data + width * point : nullptr;
            if (mine.count == 0) {
                for (int64_t i = 0; i < width; ++i) {
                    if (sum) sum[i] = 0;
                    if (mean) mean[i] = 0;
                }
            } else if (kind == REAL) {
                if (!(mine.above && mine.below)) fine = 3;
                auto put = [&](int64_t *to, uint64_t over) {
                    double value = mine.above   ? HUGE_VAL
                                   : mine.below ? -HUGE_VAL
                                                : mine.sum.real(over, number);
                    if (to) std::memcpy(to, &value, 8);
                };
                if (sum) put(sum, 1);
                if (mean) put(mean, by);
            } else if (kind == WHOLE || kind == SPAN) {
                int64_t total = 0;
                fine = mine.sum.whole(1, number, total) ? 3 : 0;
                if (sum) *sum = total;
                if (mean && kind == WHOLE) {
                    double value = mine.sum.real(by, number);
                    std::memcpy(mean, &value, 8);
                } else if (mean) {
                    fine = static_cast<uint8_t>((fine & 1) | (mine.sum.whole(by, number, *mean) << 1));
                }
            } else {
                if (sum && mine.sum.wide(1, 1, number, sum)) fine = 1;
                if (mean && mine.sum.wide(static_cast<uint32_t>(scale), by, number, mean)) fine |= 2;
            }
            known.data[point] = fine;
        };
        turns.run(flags, step, answer);
        Py_RETURN_NONE;
    }
};

// Of the members with one code, one counts: it comes with the first of them and leaves with the
// last.
class Repeats {
    std::vector<int64_t> counts;

  public:
    PyObject *run(PyObject *args) {
        PyObject *events_, *codes_, *flags_, *kept_;
        long long base;
        if (!PyArg_ParseTuple(args, "OLOOO", &events_, &base, &codes_, &flags_, &kept_))
            throw Raised();
        Ints events(events_), codes(codes_);
        Bytes flags(flags_);
        View<uint8_t> kept(kept_, true);
        kept.want(events.size);
        flags.want(codes.size);
        for (int64_t i = 0; i < events.size; ++i) {
            int64_t event = events.data[i], place = (event < 0 ? ~event : event) - base;
            if (place < 0 || place >= codes.size || codes.data[place] < 0)
                throw std::out_of_range("a member that is not there");
            kept.data[i] = 0;
            if (flags.data && !flags.data[place]) continue;
            auto code = static_cast<size_t>(codes.data[place]);
            if (code >= counts.size()) counts.resize(std::max(code + 1, 2 * counts.size()), 0);
            kept.data[i] = event < 0 ? --counts[code] == 0 : counts[code]++ == 0;
        }
        Py_RETURN_NONE;
    }
};
