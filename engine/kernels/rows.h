// Row pattern matching: MATCH_RECOGNIZE over the rows of each key.
//
// A pattern is a program. A search runs it depth first, the preferred branch first, and keeps the
// other branches on a stack. If the rows end before the outcome is decided, the search stops and
// resumes at the same place when more rows have come, so one branch never looks at a row twice. The
// variables that a row may be arrive as bits. Comparisons with other rows of the match are
// evaluated here; the rest of a condition calls back into Python.
#pragma once

#include "renumbered.h"
#include "track.h"

#include <algorithm>
#include <queue>

class Rows {
    enum Code : int64_t { ROW, SPLIT, JUMP, MARK, CHECK, FIRST, LAST, ACCEPT };
    enum Skip : int64_t { PAST_LAST, NEXT, TO_FIRST, TO_LAST };
    enum Kind : int64_t { MATCH, UNMATCHED, NO_ROW, NO_WAY };
    struct Step {
        int64_t code, a, b;
    };
    std::vector<Step> program;
    std::vector<int64_t> splits;  // by step: its number among the choices
    std::vector<std::vector<Test>> tests;  // by variable
    std::vector<uint8_t> asks;             // by variable: whether Python has conditions left
    int64_t variables = 0, width = 0, choices = 0, slots = 0;
    int64_t window = -1, lookback = 0, ahead = 0, skip = 0, target = 0;
    bool unmatched = false, recalls = false;
    int64_t watermark = INT64_MIN;
    bool finished = false;
    PyObject *ask = nullptr;

    using Dated = std::pair<int64_t, int64_t>;  // a time and a key
    struct Dates : std::priority_queue<Dated, std::vector<Dated>, std::greater<Dated>> {
        // Entries that are dropped leave the others in an order that is no heap.
        void change(const Renumbered &anew) {
            anew.change(c, [](Dated &one) -> int64_t & { return one.second; });
            std::make_heap(c.begin(), c.end(), comp);
        }
    };

    std::vector<Track> tracks;
    std::vector<int64_t> active;  // keys with rows
    std::vector<int64_t> due;     // keys whose search continues in the next run
    std::vector<int64_t> ran;     // keys searched since rows were last forgotten
    Dates ends;    // when a search that waits for rows ends: at most one time a key, which may be too early
    Dates firsts;  // times of rows at which a match may begin: at most one a key, which may be too early
    int64_t held = 0;  // rows kept
    // Matches found and not yet taken: the kind, key, number, first row and row count of each
    // match, and the rows and labels of all matches.
    std::vector<int64_t> heads, numbers, labels;

    Track &track(int64_t key) {
        if (key < 0 || key >= static_cast<int64_t>(tracks.size()))
            throw std::out_of_range("a key that was never seen");
        return tracks[static_cast<size_t>(key)];
    }

    // --- conditions -------------------------------------------------------------

    // Returns whether the current row, which already has its label, may have it.
    bool holds(const Track &t, size_t variable) {
        bool asking = asks[variable] != 0;
        for (const Test &test : tests[variable]) {
            int64_t a = 0, b = 0;
            int left = t.value(test.left, width, a), right = t.value(test.right, width, b);
            if (left == 2 || right == 2) {
                asking = true;
                continue;
            }
            if (left == 0 || right == 0 || !compared(test.op, a, b)) return false;
        }
        return !asking || asked(t, variable);
    }

    bool asked(const Track &t, size_t variable) const {
        std::vector<int64_t> rows;
        rows.reserve(t.labels.size());
        for (size_t i = 0; i < t.labels.size(); ++i)
            rows.push_back(t.row(t.start + static_cast<int64_t>(i)).number);
        PyObject *answer = PyObject_CallFunction(
            ask, "nLy#y#", static_cast<Py_ssize_t>(variable), static_cast<long long>(t.matches + 1),
            reinterpret_cast<const char *>(rows.data()), static_cast<Py_ssize_t>(8 * rows.size()),
            reinterpret_cast<const char *>(t.labels.data()),
            static_cast<Py_ssize_t>(4 * t.labels.size()));
        if (answer == nullptr) throw Raised();
        int truth = PyObject_IsTrue(answer);
        Py_DECREF(answer);
        if (truth < 0) throw Raised();
        return truth == 1;
    }

    // --- the search -------------------------------------------------------------

    static void unlabel(Track &t, int64_t length) {
        while (static_cast<int64_t>(t.labels.size()) > length) {
            t.where[static_cast<size_t>(t.labels.back() & 63)].pop_back();
            t.labels.pop_back();
        }
    }

    void begin(Track &t) const {
        unlabel(t, 0);
        t.stack.clear();
        t.where.resize(static_cast<size_t>(variables));
        t.marks.assign(static_cast<size_t>(slots), -1);
        t.seen.clear();
        t.met.clear();
        t.step = 0;
        t.running = true;
    }

    // Returns to the last branch not taken; returns false if there is none.
    static bool back(Track &t) {
        while (!t.stack.empty()) {
            Frame frame = t.stack.back();
            t.stack.pop_back();
            if (frame.mark >= 0) {
                t.marks[static_cast<size_t>(frame.mark)] = frame.at;
                continue;
            }
            unlabel(t, frame.at);
            t.step = frame.step;
            return true;
        }
        return false;
    }

    // Returns whether this choice has been made here before. What follows depends on nothing else but on
    // which iterations have consumed a row by now, since marks are only compared with later places.
    bool again(Track &t, int64_t length, int64_t choice) const {
        if (!recalls) return false;
        auto at = static_cast<size_t>(length * choices + choice);
        if (slots) {
            uint64_t key = at << slots;
            for (int64_t i = 0; i < slots; ++i)
                key |= static_cast<uint64_t>(t.marks[static_cast<size_t>(i)] < length) << i;
            return !t.met.insert(key).second;
        }
        if (at >= t.seen.size()) t.seen.resize(at + static_cast<size_t>(choices) * 64, 0);
        bool found = t.seen[at] != 0;
        t.seen[at] = 1;
        return found;
    }

    enum Outcome { FOUND, NONE, WAITS };

    Outcome attempt(Track &t) {
        if (!t.running) begin(t);
        int64_t first = t.row(t.start).ts;
        for (;;) {
            const Step &step = program[static_cast<size_t>(t.step)];
            auto length = static_cast<int64_t>(t.labels.size());
            int64_t place = t.start + length;
            bool good = true;
            switch (step.code) {
            case ROW:
                if (place >= t.end()) {
                    bool over = finished || (window >= 0 && watermark - first >= window);
                    if (!over) return WAITS;
                    good = false;
                } else if (window >= 0 && t.row(place).ts - first > window) {
                    good = false;
                } else if (place >= t.judged) {
                    return WAITS;
                } else {
                    good = t.row(place).may >> step.a & 1;
                    if (good) {
                        t.labels.push_back(static_cast<int32_t>(step.a | (step.b ? 64 : 0)));
                        t.where[static_cast<size_t>(step.a)].push_back(place);
                        good = holds(t, static_cast<size_t>(step.a));
                        if (!good) unlabel(t, length);
                    }
                }
                ++t.step;
                break;
            case SPLIT:
                good = !again(t, length, splits[static_cast<size_t>(t.step)]);
                if (good) t.stack.push_back({static_cast<int32_t>(step.b), -1, length});
                t.step = step.a;
                break;
            case JUMP:
                t.step = step.a;
                break;
            case MARK:
                t.stack.push_back({0, static_cast<int32_t>(step.a), t.marks[static_cast<size_t>(step.a)]});
                t.marks[static_cast<size_t>(step.a)] = length;
                ++t.step;
                break;
            case CHECK:
                good = t.marks[static_cast<size_t>(step.a)] < length;
                ++t.step;
                break;
            case FIRST:
                good = place == 0;
                ++t.step;
                break;
            case LAST:
                if (place >= t.end() && !finished) return WAITS;
                good = place >= t.end();
                ++t.step;
                break;
            default:
                if (!finished && place - 1 + ahead >= t.end()) return WAITS;
                return FOUND;
            }
            if (!good && !back(t)) return NONE;
        }
    }

    void record(int64_t key, Track &t, Kind kind, int64_t count) {
        heads.insert(heads.end(), {kind, key, t.matches, t.row(t.start).number, count});
        for (int64_t i = 0; i < count; ++i) {
            numbers.push_back(t.row(t.start + i).number);
            labels.push_back(t.labels[static_cast<size_t>(i)]);
        }
    }

    // Returns the place at which the next match may begin, after a match of `count` rows.
    int64_t after(int64_t key, Track &t, int64_t count) {
        if (count == 0 || skip == NEXT) return t.start + 1;
        if (skip == PAST_LAST) return t.start + count;
        Operand to{0, target, skip == TO_FIRST, 0};
        int64_t place = t.placed(to);
        if (place > t.start) return place;
        record(key, t, place < 0 ? NO_ROW : NO_WAY, 0);
        return t.start + 1;
    }

    // Searches a key until its rows end, or matches with so many rows are found; returns whether it
    // is through.
    bool search(int64_t key, Track &t, size_t enough) {
        while (t.start < t.end()) {
            if (numbers.size() >= enough) return false;
            Outcome outcome = attempt(t);
            if (outcome == WAITS) return true;
            t.running = false;
            int64_t next = t.start + 1;
            if (outcome == FOUND) {
                auto count = static_cast<int64_t>(t.labels.size());
                ++t.matches;
                record(key, t, MATCH, count);
                t.covered = std::max(t.covered, t.start + count);
                next = after(key, t, count);
            } else if (unmatched && t.start >= t.covered) {
                record(key, t, UNMATCHED, 0);
            }
            unlabel(t, 0);
            t.start = next;
        }
        return true;
    }

    void wake(int64_t key, Track &t) {
        if (t.due) return;
        t.due = true;
        due.push_back(key);
    }

    // Continues a search when its window is over: without new rows nothing else can decide it.
    void time(int64_t key, Track &t) {
        if (window < 0 || t.timed || t.start >= t.end()) return;
        int64_t over = t.row(t.start).ts + window;
        if (over <= watermark) return;
        t.timed = true;
        ends.push({over, key});
    }

    // Returns the time of the oldest row at which a match may begin.
    int64_t oldest() {
        while (!firsts.empty()) {
            auto [ts, key] = firsts.top();
            Track &t = track(key);
            if (t.start < t.end() && t.row(t.start).ts == ts) return ts;
            firsts.pop();
            t.dated = false;
            date(key, t);
        }
        return INT64_MAX;
    }

    void date(int64_t key, Track &t) {
        if (t.dated || t.start >= t.end()) return;
        t.dated = true;
        firsts.push({t.row(t.start).ts, key});
    }

    void unlist(Track &t) {
        track(active.back()).at = t.at;
        active[static_cast<size_t>(t.at)] = active.back();
        active.pop_back();
        t.at = -1;
    }

    // Forgets rows that no match can need.
    void trim(Track &t) {
        int64_t needed = std::min(t.start, t.judged) - lookback;
        int64_t gone = std::min(needed - t.base, static_cast<int64_t>(t.rows.size()));
        if (gone <= 0) return;
        t.rows.drop(static_cast<size_t>(gone));
        t.values.drop(static_cast<size_t>(gone * width));
        t.flags.drop(static_cast<size_t>(gone * width));
        t.base += gone;
        held -= gone;
    }

  public:
    Rows() = default;
    Rows(const Rows &) = delete;
    Rows &operator=(const Rows &) = delete;
    ~Rows() { Py_XDECREF(ask); }

    // Arguments: program, tests, asks, ask, then the numbers width, slots, window, lookback, ahead,
    // skip, target, unmatched, recalls.
    PyObject *configure(PyObject *args) {
        PyObject *program_, *tests_, *asks_, *ask_;
        long long n[9];
        if (!PyArg_ParseTuple(args, "OOOOLLLLLLLLL", &program_, &tests_, &asks_, &ask_, &n[0], &n[1],
                              &n[2], &n[3], &n[4], &n[5], &n[6], &n[7], &n[8]))
            throw Raised();
        Ints steps(program_), given(tests_);
        Bytes asking(asks_);
        variables = asking.size;
        width = n[0], slots = n[1], window = n[2], lookback = n[3], ahead = n[4], skip = n[5];
        target = n[6], unmatched = n[7] != 0;
        recalls = n[8] != 0 && slots <= 24;  // the rest of a key is for places and choices
        asks.assign(asking.data, asking.data + asking.size);
        tests.resize(static_cast<size_t>(variables));
        for (int64_t i = 0; i + 2 < steps.size; i += 3) {
            Step step{steps.data[i], steps.data[i + 1], steps.data[i + 2]};
            int64_t most = steps.size / 3;
            bool good = step.code >= ROW && step.code <= ACCEPT;
            if (step.code == ROW) good = step.a >= 0 && step.a < variables;
            if (step.code == SPLIT) good = step.a >= 0 && step.a < most && step.b >= 0 && step.b < most;
            if (step.code == JUMP) good = step.a >= 0 && step.a < most;
            if (step.code == MARK || step.code == CHECK) good = step.a >= 0 && step.a < slots;
            if (!good) throw std::out_of_range("a step that leads nowhere");
            splits.push_back(step.code == SPLIT ? choices++ : 0);
            program.push_back(step);
        }
        if (program.empty() || program.back().code != ACCEPT)
            throw std::out_of_range("a program without an end");
        uint64_t all = variables >= 64 ? ~uint64_t{0} : (uint64_t{1} << variables) - 1;
        for (int64_t i = 0; i + 9 < given.size; i += 10) {
            const int64_t *d = given.data + i;
            Test test{d[1], {d[2], d[3], d[4], d[5]}, {d[6], d[7], d[8], d[9]}};
            for (const Operand *one : {&test.left, &test.right})
                if (one->column >= width ||
                    (one->column >= 0 &&
                     (one->back < 0 || one->among == 0 || (static_cast<uint64_t>(one->among) & ~all))))
                    throw std::out_of_range("an operand that is nowhere");
            if (d[0] < 0 || d[0] >= variables) throw std::out_of_range("a test of no variable");
            tests[static_cast<size_t>(d[0])].push_back(test);
        }
        if (skip > NEXT && (target == 0 || (static_cast<uint64_t>(target) & ~all)))
            throw std::out_of_range("a skip to no variable");
        Py_INCREF(ask_);
        Py_XDECREF(ask);
        ask = ask_;
        Py_RETURN_NONE;
    }

    // Appends rows in order: keys, times, numbers. Writes for each the number of its key's previous
    // row, or -1.
    PyObject *append(PyObject *args) {
        PyObject *keys_, *times_, *numbers_, *before_;
        if (!PyArg_ParseTuple(args, "OOOO", &keys_, &times_, &numbers_, &before_)) throw Raised();
        Ints keys(keys_), times(times_), rows(numbers_);
        Out before(before_, true);
        times.want(keys.size);
        rows.want(keys.size);
        before.want(keys.size);
        for (int64_t i = 0; i < keys.size; ++i) {
            int64_t key = keys.data[i];
            if (key < 0) throw std::out_of_range("a key below 0");
            if (key >= static_cast<int64_t>(tracks.size())) tracks.resize(static_cast<size_t>(key) + 1);
            Track &t = track(key);
            before.data[i] = t.number;
            t.number = rows.data[i];
            t.rows.push_back({rows.data[i], times.data[i], 0});
            ++held;
            if (t.at < 0) {
                t.at = static_cast<int64_t>(active.size());
                active.push_back(key);
            }
            wake(key, t);
        }
        Py_RETURN_NONE;
    }

    // Sets, for the next rows of some keys, the variables they may be and their values, `width` per
    // row.
    PyObject *judge(PyObject *args) {
        PyObject *keys_, *may_, *values_, *flags_;
        if (!PyArg_ParseTuple(args, "OOOO", &keys_, &may_, &values_, &flags_)) throw Raised();
        Ints keys(keys_), may(may_), values(values_);
        Bytes flags(flags_);
        may.want(keys.size);
        values.want(keys.size * width);
        flags.want(keys.size * width);
        for (int64_t i = 0; i < keys.size; ++i) {
            Track &t = track(keys.data[i]);
            if (t.judged >= t.end()) throw std::out_of_range("a row that has not come");
            t.rows[static_cast<size_t>(t.judged++ - t.base)].may = static_cast<uint64_t>(may.data[i]);
            t.values.append(values.data + i * width, values.data + (i + 1) * width);
            t.flags.append(flags.data + i * width, flags.data + (i + 1) * width);
        }
        Py_RETURN_NONE;
    }

    // Continues the searches that new rows or the watermark may decide, until they are through or
    // matches with so many rows are found; returns the number of matches found, of rows in them,
    // and whether they are through.
    PyObject *run(PyObject *args) {
        long long to, part;
        int over;
        if (!PyArg_ParseTuple(args, "LpL", &to, &over, &part)) throw Raised();
        auto enough = static_cast<size_t>(std::max(part, 1LL));
        watermark = to;
        finished = over != 0;
        while (!ends.empty() && ends.top().first <= watermark) {
            int64_t key = ends.top().second;
            ends.pop();
            track(key).timed = false;
            wake(key, track(key));
        }
        if (finished)
            for (int64_t key : active) wake(key, track(key));
        size_t done = 0;
        for (; done < due.size(); ++done) {
            int64_t key = due[done];
            Track &t = track(key);
            if (!search(key, t, enough)) break;
            time(key, t);
            date(key, t);
            t.due = false;
            ran.push_back(key);
        }
        due.erase(due.begin(), due.begin() + static_cast<std::ptrdiff_t>(done));
        return Py_BuildValue("nnN", static_cast<Py_ssize_t>(heads.size() / 5),
                             static_cast<Py_ssize_t>(numbers.size()), PyBool_FromLong(due.empty()));
    }

    // Takes the matches found: the kind, key, number, first row and row count of each, with their
    // rows and labels.
    PyObject *take(PyObject *args) {
        PyObject *heads_, *numbers_, *labels_;
        if (!PyArg_ParseTuple(args, "OOO", &heads_, &numbers_, &labels_)) throw Raised();
        Out first(heads_, true), second(numbers_, true), third(labels_, true);
        first.want(static_cast<int64_t>(heads.size()));
        second.want(static_cast<int64_t>(numbers.size()));
        third.want(static_cast<int64_t>(labels.size()));
        std::copy(heads.begin(), heads.end(), first.data);
        std::copy(numbers.begin(), numbers.end(), second.data);
        std::copy(labels.begin(), labels.end(), third.data);
        heads.clear(), numbers.clear(), labels.clear();
        Py_RETURN_NONE;
    }

    // Forgets rows no longer needed. Returns the number of rows kept, and the time of the oldest
    // row at which a match may begin, or None.
    PyObject *forget(PyObject *) {
        for (int64_t key : ran) {
            Track &t = track(key);
            trim(t);
            if (t.at < 0 || !t.rows.empty() || t.running) continue;
            t.rest();
            unlist(t);
        }
        ran.clear();
        int64_t first = oldest();
        if (first == INT64_MAX) return Py_BuildValue("LO", static_cast<long long>(held), Py_None);
        return Py_BuildValue("LL", static_cast<long long>(held), static_cast<long long>(first));
    }

    // Between runs, forgets the keys without rows, where `counted` only those without matches, and
    // numbers the others anew, in their order. Writes their old numbers; returns how many they are.
    PyObject *retain(PyObject *args) {
        PyObject *out_;
        int counted;
        if (!PyArg_ParseTuple(args, "pO", &counted, &out_)) throw Raised();
        Out out(out_, true);
        Renumbered anew(tracks, out, [&](const Track &t) {
            return t.at >= 0 || t.due || (counted && t.matches > 0);
        });
        for (std::vector<int64_t> *numbers : {&active, &due, &ran})
            anew.change(*numbers, [](int64_t &number) -> int64_t & { return number; });
        for (size_t i = 0; i < active.size(); ++i) track(active[i]).at = static_cast<int64_t>(i);
        ends.change(anew), firsts.change(anew);
        return PyLong_FromLongLong(static_cast<long long>(tracks.size()));
    }

    // Writes the numbers of the rows that are kept.
    PyObject *kept(PyObject *args) {
        PyObject *out_;
        if (!PyArg_ParseTuple(args, "O", &out_)) throw Raised();
        Out out(out_, true);
        int64_t at = 0;
        for (int64_t key : active)
            for (const Row &row : track(key).rows) {
                out.want(at + 1);
                out.data[at++] = row.number;
            }
        return PyLong_FromLongLong(static_cast<long long>(at));
    }

    // For a snapshot, writes for each key the place of its first kept row, the place where its next
    // match may begin, the number of its matches, and the end of the rows they cover.
    PyObject *places(PyObject *args) {
        PyObject *out_;
        if (!PyArg_ParseTuple(args, "O", &out_)) throw Raised();
        Out out(out_, true);
        out.want(static_cast<int64_t>(tracks.size()) * 4);
        int64_t at = 0;
        for (const Track &t : tracks)
            for (int64_t one : {t.base, t.start, t.matches, t.covered}) out.data[at++] = one;
        return PyLong_FromLongLong(static_cast<long long>(tracks.size()));
    }

    PyObject *resume(PyObject *args) {
        PyObject *from_;
        if (!PyArg_ParseTuple(args, "O", &from_)) throw Raised();
        Ints from(from_);
        tracks.clear(), active.clear(), due.clear(), ran.clear();
        ends = firsts = Dates();
        held = 0;
        tracks.resize(static_cast<size_t>(from.size / 4));
        for (size_t i = 0; i < tracks.size(); ++i) {
            const int64_t *d = from.data + 4 * i;
            Track &t = tracks[i];
            if (d[0] < 0 || d[1] < d[0]) throw std::out_of_range("a start before the first row");
            t.base = t.judged = d[0], t.start = d[1], t.matches = d[2], t.covered = d[3];
        }
        Py_RETURN_NONE;
    }

    PyObject *count(PyObject *) {
        return PyLong_FromLongLong(static_cast<long long>(tracks.size()));
    }
};
