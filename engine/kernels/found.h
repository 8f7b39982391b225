// Matches of events: for each, the time at which it is certain, the number of events of each stage,
// and the events.
#pragma once

#include "binding.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

// Orders matches that are certain at the same time, by the numbers of their events, stage by stage,
// a prefix before the longer match.
//
// The numbers of a match are a text. Texts are sorted a number at a time: three-way quicksort by one
// number, then the texts with an equal one by the next. No common beginning is compared twice.
class MatchOrder {
    static constexpr int64_t STOP = INT64_MIN;  // ends a stage, before any number
    static constexpr size_t FEW = 12;

    struct Text {
        const int64_t *numbers;
        int64_t match;
    };
    struct Part {  // texts that agree in the first `depth` numbers, which have `stops` stops
        size_t begin, end, depth, stops;
    };
    std::vector<int64_t> numbers;
    std::vector<size_t> begins;
    std::vector<Text> texts;
    std::vector<Part> parts;
    size_t stages;

    bool less(const Text &a, const Text &b, size_t depth, size_t stops) const {
        for (;; ++depth) {
            if (a.numbers[depth] != b.numbers[depth]) return a.numbers[depth] < b.numbers[depth];
            if (a.numbers[depth] == STOP && ++stops == stages) return false;
        }
    }

    void insert_each(const Part &part) {
        for (size_t i = part.begin + 1; i < part.end; ++i) {
            Text one = texts[i];
            size_t at = i;
            for (; at > part.begin && less(one, texts[at - 1], part.depth, part.stops); --at)
                texts[at] = texts[at - 1];
            texts[at] = one;
        }
    }

    void divide(const Part &part) {
        auto number = [&](size_t i) { return texts[i].numbers[part.depth]; };
        int64_t a = number(part.begin), b = number((part.begin + part.end) / 2), c = number(part.end - 1);
        int64_t pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
        size_t low = part.begin, high = part.end;
        for (size_t i = low; i < high;) {
            int64_t one = number(i);
            if (one < pivot)
                std::swap(texts[i++], texts[low++]);
            else if (one > pivot)
                std::swap(texts[i], texts[--high]);
            else
                ++i;
        }
        parts.push_back({part.begin, low, part.depth, part.stops});
        parts.push_back({high, part.end, part.depth, part.stops});
        size_t stops = part.stops + (pivot == STOP ? 1 : 0);
        if (stops < stages) parts.push_back({low, high, part.depth + 1, stops});
    }

  public:
    explicit MatchOrder(size_t stages) : stages(stages) {}

    // Orders these matches. `write(match, numbers)` appends the numbers of a match, each stage
    // ended by `stop`.
    template <typename Write>
    void sort(int64_t *first, int64_t *last, Write write) {
        if (last - first < 2) return;
        numbers.clear(), begins.clear(), texts.clear();
        for (int64_t *match = first; match != last; ++match) {
            begins.push_back(numbers.size());
            write(*match, numbers);
        }
        for (int64_t *match = first; match != last; ++match)
            texts.push_back({numbers.data() + begins[static_cast<size_t>(match - first)], *match});
        parts.assign(1, {0, texts.size(), 0, 0});
        while (!parts.empty()) {
            Part part = parts.back();
            parts.pop_back();
            if (part.end - part.begin <= FEW)
                insert_each(part);
            else
                divide(part);
        }
        for (const Text &text : texts) *first++ = text.match;
    }

    static void stop(std::vector<int64_t> &numbers) { numbers.push_back(STOP); }
};

// Orders matches by the time at which they are certain, and those of one time by their numbers.
template <typename Time, typename Write>
void order_matches(std::vector<int64_t> &matches, size_t stages, Time time, Write write) {
    auto earlier = [&](int64_t a, int64_t b) { return time(a) < time(b); };
    if (!std::is_sorted(matches.begin(), matches.end(), earlier))
        std::stable_sort(matches.begin(), matches.end(), earlier);
    MatchOrder order(stages);
    int64_t *end = matches.data() + matches.size();
    for (int64_t *first = matches.data(), *last; first != end; first = last) {
        last = std::find_if(first, end, [&](int64_t one) { return time(one) != time(*first); });
        order.sort(first, last, write);
    }
}

struct FoundMatches {
    std::vector<int64_t> determined, counts, rows;
    size_t stages = 0;

    size_t size() const { return determined.size(); }

    int64_t certain(int64_t to) const {
        return std::count_if(determined.begin(), determined.end(), [=](int64_t at) { return at <= to; });
    }

    int64_t until(int64_t to, int64_t most) const {
        std::vector<int64_t> times;
        for (int64_t at : determined)
            if (at <= to) times.push_back(at);
        if (static_cast<int64_t>(times.size()) <= most) return to;
        auto first = std::min_element(times.begin(), times.end());
        int64_t earliest = *first;
        std::nth_element(times.begin(), times.begin() + most, times.end());
        return std::max(earliest, times[static_cast<size_t>(most)] - 1);
    }

    // Removes the matches that are certain at a time and returns them in order: when each is
    // certain, and for each stage the number of its events and the events. `numbers` are those of
    // the events from event `gone` on, which is event 0 of the result.
    PyObject *take(int64_t to, const Ints &numbers, int64_t gone, bool in_order) {
        std::vector<size_t> begins;
        std::vector<int64_t> given, rest;
        size_t row = 0;
        for (size_t i = 0; i < size(); ++i) {
            begins.push_back(row);
            for (size_t s = 0; s < stages; ++s) row += static_cast<size_t>(counts[i * stages + s]);
            (determined[i] <= to ? given : rest).push_back(static_cast<int64_t>(i));
        }
        auto each = [&](int64_t match, auto stage) {  // calls stage(s, its first event, its end)
            const int64_t *first = rows.data() + begins[static_cast<size_t>(match)];
            for (size_t s = 0; s < stages; ++s) {
                const int64_t *last = first + counts[static_cast<size_t>(match) * stages + s];
                stage(s, first, last);
                first = last;
            }
        };
        std::vector<size_t> sizes(stages);
        for (int64_t match : given)
            each(match, [&](size_t s, const int64_t *first, const int64_t *last) {
                sizes[s] += static_cast<size_t>(last - first);
                for (; first != last; ++first)
                    if (*first < gone || *first - gone >= numbers.size)
                        throw std::out_of_range("an event without a number");
            });
        if (!in_order) order_matches(
            given, stages, [&](int64_t match) { return determined[static_cast<size_t>(match)]; },
            [&](int64_t match, std::vector<int64_t> &text) {
                each(match, [&](size_t, const int64_t *first, const int64_t *last) {
                    for (; first != last; ++first) text.push_back(numbers.data[*first - gone]);
                    MatchOrder::stop(text);
                });
            });
        Given result(given.size(), sizes);
        for (int64_t match : given) {
            *result.when++ = determined[static_cast<size_t>(match)];
            each(match, [&](size_t s, const int64_t *first, const int64_t *last) {
                *result.counts[s]++ = last - first;
                for (; first != last; ++first) *result.events[s]++ = *first - gone;
            });
        }
        keep(rest, begins);
        return result.handed();
    }

  private:
    // The bytes of a result, and where in them to write.
    class Given {
        PyObject *tuple;

        static int64_t *numbers(PyObject *bytes) {
            return reinterpret_cast<int64_t *>(PyBytes_AsString(bytes));
        }

      public:
        int64_t *when;
        std::vector<int64_t *> counts, events;

        Given(size_t matches, const std::vector<size_t> &sizes) {
            auto bytes = [](size_t count) {
                return PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(8 * count));
            };
            auto stages = static_cast<Py_ssize_t>(sizes.size());
            tuple = Py_BuildValue("NN", bytes(matches), PyTuple_New(stages));
            if (tuple == nullptr) throw Raised();
            when = numbers(PyTuple_GetItem(tuple, 0));
            for (Py_ssize_t s = 0; s < stages; ++s) {
                PyObject *pair = Py_BuildValue("NN", bytes(matches), bytes(sizes[static_cast<size_t>(s)]));
                if (pair == nullptr || PyTuple_SetItem(PyTuple_GetItem(tuple, 1), s, pair) != 0) {
                    Py_DECREF(tuple);
                    throw Raised();
                }
                counts.push_back(numbers(PyTuple_GetItem(pair, 0)));
                events.push_back(numbers(PyTuple_GetItem(pair, 1)));
            }
        }
        Given(const Given &) = delete;
        Given &operator=(const Given &) = delete;
        ~Given() { Py_XDECREF(tuple); }

        PyObject *handed() { return std::exchange(tuple, nullptr); }
    };

    void keep(const std::vector<int64_t> &matches, const std::vector<size_t> &begins) {
        FoundMatches left;
        left.stages = stages;
        for (int64_t match : matches) {
            auto i = static_cast<size_t>(match);
            left.determined.push_back(determined[i]);
            auto count = counts.begin() + static_cast<ptrdiff_t>(i * stages);
            left.counts.insert(left.counts.end(), count, count + static_cast<ptrdiff_t>(stages));
            auto end = i + 1 < begins.size() ? begins[i + 1] : rows.size();
            left.rows.insert(left.rows.end(), rows.begin() + static_cast<ptrdiff_t>(begins[i]),
                             rows.begin() + static_cast<ptrdiff_t>(end));
        }
        std::swap(*this, left);
    }
};

// Orders matches by `determined`, then by the numbers of the events of each stage, a prefix before
// the longer match. `counts` and `numbers` have one array per stage.
inline PyObject *ordered(PyObject *args) {
    PyObject *determined_, *counts_, *numbers_, *out_;
    if (!PyArg_ParseTuple(args, "OOOO", &determined_, &counts_, &numbers_, &out_)) throw Raised();
    Ints determined(determined_);
    Out out(out_, true);
    out.want(determined.size);
    Py_ssize_t stages = PyTuple_Size(counts_);
    if (stages < 0 || PyTuple_Size(numbers_) != stages) throw std::out_of_range("arrays of other stages");
    std::vector<Ints> numbers;
    std::vector<std::vector<int64_t>> ends;
    for (Py_ssize_t s = 0; s < stages; ++s) {
        Ints mine(PyTuple_GetItem(counts_, s));
        numbers.emplace_back(PyTuple_GetItem(numbers_, s));
        mine.want(determined.size);
        std::vector<int64_t> end{0};
        for (int64_t i = 0; i < determined.size; ++i) {
            if (mine.data[i] < 0) throw std::out_of_range("a count below 0");
            end.push_back(end.back() + mine.data[i]);
        }
        numbers.back().want(end.back());
        ends.push_back(std::move(end));
    }
    std::vector<int64_t> matches(static_cast<size_t>(determined.size));
    std::iota(matches.begin(), matches.end(), int64_t{0});
    order_matches(
        matches, ends.size(), [&](int64_t match) { return determined.data[match]; },
        [&](int64_t match, std::vector<int64_t> &text) {
            for (size_t s = 0; s < ends.size(); ++s) {
                const int64_t *end = ends[s].data() + match;
                text.insert(text.end(), numbers[s].data + end[0], numbers[s].data + end[1]);
                MatchOrder::stop(text);
            }
        });
    std::copy(matches.begin(), matches.end(), out.data);
    Py_RETURN_NONE;
}
