// Counts, sums and means of groups, and the members that count among equal values.
#pragma once

#include "exact.h"
#include "turns.h"

enum Summed : int { COUNTED, WHOLE, REAL, SPAN, DECIMAL, WIDE };

class Totals {
    struct Infinite {
        int64_t above = 0, below = 0;
    };
    Groups<int64_t> numbers;
    Groups<Exact> sums;          // as far as anything is added up
    Groups<Infinite> infinites;  // of reals: infinite values are counted apart

  public:
    // The numbers to add up, where their flags are set, and the results by point. A missing result
    // is not asked for. Decimals have two words; their mean is that of `scale` times the sum.
    struct Work {
        int kind = COUNTED, scale = 1;
        Span<int64_t> words;
        Span<uint8_t> flags;
        int64_t *counts = nullptr, *sums = nullptr, *means = nullptr;
        uint8_t *known = nullptr;  // 1 if there is a sum, plus 2 if there is a mean
    };

    // Adds the words of a group's state.
    void give(int64_t group, std::vector<int64_t> &words) {
        numbers.want(group + 1);
        const Infinite apart = infinites.has(group) ? infinites[group] : Infinite();
        words.insert(words.end(), {numbers[group], apart.above, apart.below});
        if (sums.has(group))
            sums[group].give(words);
        else
            Exact().give(words);
    }

    // Takes a group's state from words; returns the first word after it.
    const int64_t *take(int64_t group, const int64_t *words, const int64_t *end) {
        if (end - words < 3) throw std::out_of_range("no words of a state");
        numbers.want(group + 1);
        numbers[group] = words[0];
        if (words[1] || words[2] || infinites.has(group)) {
            infinites.want(group + 1);
            infinites[group] = {words[1], words[2]};
        }
        Exact sum;
        const int64_t *next = sum.take(words + 3, end);
        if (!sum.is_new() || sums.has(group)) {
            sums.want(group + 1);
            sums[group] = std::move(sum);
        }
        return next;
    }

    void forget(int64_t group) {
        if (numbers.has(group)) numbers[group] = 0;
        if (sums.has(group)) sums[group] = {};
        if (infinites.has(group)) infinites[group] = {};
    }

    // Adds the state of a group of others.
    void add(int64_t group, Totals &others, int64_t of) {
        if (!others.numbers.has(of)) return;
        numbers.want(group + 1);
        numbers[group] += others.numbers[of];
        if (others.sums.has(of)) {
            sums.want(group + 1);
            sums[group].add(others.sums[of]);
        }
        if (others.infinites.has(of)) {
            infinites.want(group + 1);
            infinites[group].above += others.infinites[of].above;
            infinites[group].below += others.infinites[of].below;
        }
    }

    PyObject *run(PyObject *args) {
        PyObject *events_, *until_, *at_, *group_, *words_, *flags_;
        PyObject *counts_, *sums_, *means_, *known_;
        long long base;
        Work work;
        if (!PyArg_ParseTuple(args, "OOOLOOOiiOOOO", &events_, &until_, &at_, &base, &group_, &words_,
                              &flags_, &work.kind, &work.scale, &counts_, &sums_, &means_, &known_))
            throw Raised();
        Ints events(events_), until(until_), at(at_), words(words_);
        View<const uint32_t> group(group_);
        Bytes flags(flags_);
        Out counts(counts_, true), sums(sums_, true), means(means_, true);
        View<uint8_t> known(known_, true);
        Turns turns(events, until, at, base, group);
        int64_t points = turns.until.size, width = work.kind >= DECIMAL ? 2 : 1;
        counts.want(points);
        sums.want(width * points);
        means.want(width * points);
        known.want(points);
        work.words = words;
        work.flags = flags;
        work.counts = counts.data, work.sums = sums.data, work.means = means.data, work.known = known.data;
        compute(turns, work);
        Py_RETURN_NONE;
    }

    void compute(const Turns &turns, const Work &work) {
        const int kind = work.kind;
        const int64_t *words = work.words.data, width = kind >= DECIMAL ? 2 : 1;
        if (kind != COUNTED) {
            if (!words || !work.known) throw std::invalid_argument("sums of nothing");
            work.words.want((kind == WIDE ? 2 : 1) * turns.group.size);
        }
        const int64_t count = turns.groups();
        numbers.want(count);
        if (kind != COUNTED) sums.want(count);
        if (kind == REAL) infinites.want(count);
        std::vector<uint32_t> number;
        auto step = [&](int64_t place, int64_t group, bool leaves) {
            numbers[group] += leaves ? -1 : 1;
            if (kind == COUNTED) return;
            Exact &sum = sums[group];
            if (kind == WIDE) return sum.add(words[2 * place], words[2 * place + 1], leaves);
            if (kind != REAL) return sum.add(words[place], leaves);
            double value;
            std::memcpy(&value, words + place, 8);
            if (std::isfinite(value))
                sum.add(value, leaves);
            else
                (value > 0 ? infinites[group].above : infinites[group].below) += leaves ? -1 : 1;
        };
        auto answer = [&](int64_t point, int64_t group) {
            const int64_t members = numbers[group];
            if (work.counts) work.counts[point] = members;
            if (kind == COUNTED) return;
            Exact &total = sums[group];
            uint8_t fine = 0;
            auto by = static_cast<uint64_t>(members);
            if (by >> 32) throw std::length_error("a group of 2^32 rows");
            int64_t *sum = work.sums ? work.sums + width * point : nullptr;
            int64_t *mean = work.means ? work.means + width * point : nullptr;
            if (members == 0) {
                for (int64_t i = 0; i < width; ++i) {
                    if (sum) sum[i] = 0;
                    if (mean) mean[i] = 0;
                }
            } else if (kind == REAL) {
                const Infinite &apart = infinites[group];
                if (!(apart.above && apart.below)) fine = 3;
                auto put = [&](int64_t *to, uint64_t over) {
                    double value = apart.above   ? HUGE_VAL
                                   : apart.below ? -HUGE_VAL
                                                 : total.real(over, number);
                    if (to) std::memcpy(to, &value, 8);
                };
                if (sum) put(sum, 1);
                if (mean) put(mean, by);
            } else if (kind == WHOLE || kind == SPAN) {
                int64_t whole = 0;
                fine = total.whole(1, number, whole) ? 3 : 0;
                if (sum) *sum = whole;
                if (mean && kind == WHOLE) {
                    double value = total.real(by, number);
                    std::memcpy(mean, &value, 8);
                } else if (mean) {
                    fine = static_cast<uint8_t>((fine & 1) | (total.whole(by, number, *mean) << 1));
                }
            } else {
                if (sum && total.wide(1, 1, number, sum)) fine = 1;
                if (mean && total.wide(static_cast<uint32_t>(work.scale), by, number, mean)) fine |= 2;
            }
            work.known[point] = fine;
        };
        turns.run(work.flags, step, answer);
    }
};

// Of the members with one code, one counts: it comes with the first of them and leaves with the
// last.
class Repeats {
    std::vector<int64_t> counts;

  public:
    // Writes 1 for each event by which a code first comes to a group or finally leaves it. Codes and
    // flags are those of members from `base` on.
    void run(Span<int64_t> events, int64_t base, Span<int64_t> codes, Span<uint8_t> flags, uint8_t *kept) {
        flags.want(codes.size);
        for (int64_t i = 0; i < events.size; ++i) {
            int64_t event = events.data[i], place = (event < 0 ? ~event : event) - base;
            if (place < 0 || place >= codes.size || codes.data[place] < 0)
                throw std::out_of_range("a member that is not there");
            kept[i] = 0;
            if (flags.data && !flags.data[place]) continue;
            auto code = static_cast<size_t>(codes.data[place]);
            if (code >= counts.size()) counts.resize(std::max(code + 1, 2 * counts.size()), 0);
            kept[i] = event < 0 ? --counts[code] == 0 : counts[code]++ == 0;
        }
    }
};
