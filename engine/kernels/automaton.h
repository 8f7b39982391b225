// Runs of an automaton: sequences and groups of events under any of the three strategies.
//
// A run stands on the newest event it chose. Each event leads back to the event chosen before it,
// so runs with a common beginning share their events. A new event may advance a run, into the next
// stage or within a group; the strategy decides whether the run also stays. The stages that an
// event fits arrive as bits. Conditions that compare two events are evaluated here; all others call
// back into Python.
#pragma once

#include "matching.h"
#include "probes.h"

class Automaton : public Matching {
    enum Strategy : int64_t { ANY, NEXT, STRICT };
    enum When : int64_t { BEGIN, TAKE, ACCEPT };
    enum Over : int64_t { ONCE, LATEST, ALL };
    enum Pick : int64_t { ONE, EACH, FIRST, LAST, PREVIOUS, COUNT, CONSTANT };
    struct Side {
        int64_t column, stage, pick;  // CONSTANT: `column` is the value
    };
    // EACH iterates over the members of stage `through`, from the second on if `later`. If `op` is
    // -1, Python evaluates the test.
    struct Test {
        int64_t number, over, through, later, op;
        Side left, right;
    };
    struct Stage {
        int64_t bit, least, most;  // most -1: no maximum
        bool loops;
        std::vector<Test> tests[2];  // BEGIN, TAKE
    };
    // An event of a run. `group` is the first event of its stage, `count` the number of events
    // there so far.
    struct Node {
        int64_t row;
        int32_t before, group, count, stage, refs;
    };
    struct Run {
        int32_t node;
        int64_t start;  // the time of its first event
    };
    struct Key {
        std::vector<std::vector<Run>> runs;  // by the stage that the runs stand in
        int64_t live = 0;
        bool listed = false;
    };

    std::vector<Stage> stages;
    std::vector<Test> accept;
    int64_t width = 0, strategy = ANY, most_runs = -1;
    bool waits = false;
    PyObject *ask = nullptr;

    std::vector<Key> keys;
    std::vector<Node> nodes;
    std::vector<int32_t> unused;
    std::vector<std::pair<int32_t, Run>> made;
    // For the events from number `base` on.
    std::vector<int64_t> times, values;
    std::vector<uint8_t> flags;
    int64_t base = 0, live = 0;

    // --- events of runs -----------------------------------------------------------

    Node &at(int32_t node) { return nodes[static_cast<size_t>(node)]; }
    const Node &at(int32_t node) const { return nodes[static_cast<size_t>(node)]; }
    int64_t time(const Node &node) const { return times[static_cast<size_t>(node.row - base)]; }

    int32_t grown(int32_t before, int32_t stage, int64_t row) {
        bool same = before >= 0 && at(before).stage == stage;
        Node node{row, before, 0, 1, stage, 0};
        int32_t own;
        if (unused.empty()) {
            if (nodes.size() >= INT32_MAX) throw std::bad_alloc();
            own = static_cast<int32_t>(nodes.size());
            nodes.push_back(node);
        } else {
            own = unused.back();
            unused.pop_back();
            at(own) = node;
        }
        at(own).group = same ? at(before).group : own;
        if (same) at(own).count = at(before).count + 1;
        if (before >= 0) ++at(before).refs;
        return own;
    }

    // Drops one reference. An event without references is freed, and so are the events that only it
    // led to.
    void release(int32_t node) {
        while (node >= 0 && --at(node).refs <= 0) {
            unused.push_back(node);
            node = at(node).before;
        }
    }

    // Returns the newest event of a stage on the way back from an event.
    int32_t of(int32_t node, int64_t stage) const {
        while (at(node).stage > stage) node = at(at(node).group).before;
        return node;
    }

    // --- conditions -----------------------------------------------------------------

    // Returns 0 for NULL, 1 for a value, 2 for a value that only Python has.
    int value(const Side &side, int32_t node, int32_t member, int64_t &out) const {
        int64_t row = 0;
        switch (side.pick) {
        case CONSTANT: out = side.column; return 1;
        case COUNT: out = at(of(node, side.stage)).count; return 1;
        case EACH: row = at(member).row; break;
        case PREVIOUS: row = at(at(member).before).row; break;
        case FIRST: row = at(at(of(node, side.stage)).group).row; break;
        default: row = at(of(node, side.stage)).row;
        }
        auto place = static_cast<size_t>((row - base) * width + side.column);
        out = values[place];
        return flags[place];
    }

    // Returns 0 for no, 1 for yes, 2 if Python has to decide.
    int compares(const Test &test, int32_t node, int32_t member) const {
        int64_t a = 0, b = 0;
        int left = value(test.left, node, member, a), right = value(test.right, node, member, b);
        if (left == 2 || right == 2) return 2;
        return left != 0 && right != 0 && compared(test.op, a, b);
    }

    bool holds(const Test &test, int32_t node) const {
        int answer = 2;
        if (test.op >= 0 && test.over != ALL) {
            answer = compares(test, node, test.over == LATEST ? node : -1);
        } else if (test.op >= 0) {
            answer = 1;
            for (int32_t one = of(node, test.through); answer == 1; one = at(one).before) {
                if (at(one).count == 1 && test.later) break;
                answer = compares(test, node, one);
                if (at(one).count == 1) break;
            }
        }
        return answer == 2 ? asked(test, node) : answer == 1;
    }

    bool asked(const Test &test, int32_t node) const {
        std::vector<int64_t> rows, of_stage;
        for (; node >= 0; node = at(node).before) {
            rows.push_back(at(node).row);
            of_stage.push_back(at(node).stage);
        }
        std::reverse(rows.begin(), rows.end());
        std::reverse(of_stage.begin(), of_stage.end());
        auto size = static_cast<Py_ssize_t>(8 * rows.size());
        PyObject *answer = PyObject_CallFunction(
            ask, "Ly#y#", static_cast<long long>(test.number),
            reinterpret_cast<const char *>(rows.data()), size,
            reinterpret_cast<const char *>(of_stage.data()), size);
        if (answer == nullptr) throw Raised();
        int truth = PyObject_IsTrue(answer);
        Py_DECREF(answer);
        if (truth < 0) throw Raised();
        return truth == 1;
    }

    bool all_hold(const std::vector<Test> &tests, int32_t node) const {
        for (const Test &test : tests)
            if (!holds(test, node)) return false;
        return true;
    }

    // --- runs -----------------------------------------------------------------------

    // Appends the event to a run if the conditions allow it; returns its node, or -1.
    int32_t allowed(int32_t before, int32_t stage, int64_t row) {
        bool takes = before >= 0 && at(before).stage == stage;
        const std::vector<Test> &tests = stages[static_cast<size_t>(stage)].tests[takes];
        int32_t node = grown(before, stage, row);
        ++at(node).refs;
        if (all_hold(tests, node)) return node;
        release(node);
        return -1;
    }

    // Places a run on a new event, which holds a reference. This may complete a match, and the run
    // may go on.
    void arrive(int32_t node, int64_t start) {
        const Node &top = at(node);
        int32_t place = top.stage;
        const Stage &stage = stages[static_cast<size_t>(place)];
        bool last = static_cast<size_t>(place) + 1 == stages.size();
        if (last && top.count >= stage.least && all_hold(accept, node)) record(node, start);
        if (last && (!stage.loops || at(node).count == stage.most))
            release(node);
        else
            made.push_back({place, {node, start}});
    }

    void record(int32_t node, int64_t start) {
        int64_t last = time(at(node));
        int64_t end = !waits ? last : window < 0 ? INT64_MAX : start + window;
        found.determined.push_back(end);
        size_t row = found.rows.size(), count = found.counts.size();
        found.counts.resize(count + stages.size(), 0);
        for (; node >= 0; node = at(node).before) {
            found.rows.push_back(at(node).row);
            ++found.counts[count + static_cast<size_t>(at(node).stage)];
        }
        std::reverse(found.rows.begin() + static_cast<ptrdiff_t>(row), found.rows.end());
    }

    // Advances a run; returns whether it also stays.
    bool step(const Run &run, int64_t row, int64_t now, uint64_t fits) {
        if (window >= 0 && now - run.start > window) return false;
        // Copies: a reference into `nodes` would not survive the next insertion.
        int32_t place = at(run.node).stage;
        int64_t count = at(run.node).count, chosen = time(at(run.node));
        const Stage &stage = stages[static_cast<size_t>(place)];
        int32_t taken = -1, begun = -1;
        if (stage.loops && (fits >> stage.bit & 1) && (stage.most < 0 || count < stage.most))
            taken = allowed(run.node, place, row);
        size_t onward = static_cast<size_t>(place) + 1;
        if (onward < stages.size() && (fits >> stages[onward].bit & 1) && count >= stage.least &&
            now > chosen)
            begun = allowed(run.node, place + 1, row);
        if (taken >= 0) arrive(taken, run.start);
        if (begun >= 0) arrive(begun, run.start);
        return strategy == ANY || (strategy == NEXT && taken < 0 && begun < 0);
    }

    void on_event(Key &key, int64_t row, int64_t now, uint64_t fits) {
        made.clear();  // the event is offered only to runs that existed before it
        for (size_t place = 0; place < key.runs.size(); ++place) {
            std::vector<Run> &runs = key.runs[place];
            bool onward = place + 1 < stages.size() && (fits >> stages[place + 1].bit & 1);
            bool looped = stages[place].loops && (fits >> stages[place].bit & 1);
            if (runs.empty() || !(onward || looped || strategy == STRICT)) continue;
            size_t kept = 0;
            for (const Run &run : runs) {
                if (step(run, row, now, fits))
                    runs[kept++] = run;
                else
                    release(run.node);
            }
            fewer(key, runs, kept);
        }
        if (fits >> stages[0].bit & 1) {
            int32_t node = allowed(-1, 0, row);
            if (node >= 0) arrive(node, now);
        }
        if (made.empty()) return;
        key.runs.resize(stages.size());
        for (const auto &[place, run] : made) key.runs[static_cast<size_t>(place)].push_back(run);
        key.live += static_cast<int64_t>(made.size());
        live += static_cast<int64_t>(made.size());
    }

    void fewer(Key &key, std::vector<Run> &runs, size_t kept) {
        auto gone = static_cast<int64_t>(runs.size() - kept);
        key.live -= gone;
        live -= gone;
        runs.resize(kept);
    }

  public:
    Automaton() = default;
    Automaton(const Automaton &) = delete;
    Automaton &operator=(const Automaton &) = delete;
    ~Automaton() { Py_XDECREF(ask); }

    // Arguments: stages, tests, ask, then the numbers width, window, strategy, waits, most_runs,
    // most_matches.
    PyObject *configure(PyObject *args) {
        PyObject *stages_, *tests_, *ask_;
        long long n[6];
        if (!PyArg_ParseTuple(args, "OOOLLLLLL", &stages_, &tests_, &ask_, &n[0], &n[1], &n[2], &n[3],
                              &n[4], &n[5]))
            throw Raised();
        width = n[0], window = n[1], strategy = n[2], waits = n[3] != 0;
        most_runs = n[4], most_matches = n[5];
        Ints given(stages_), tests(tests_);
        for (int64_t i = 0; i + 3 < given.size; i += 4) {
            const int64_t *d = given.data + i;
            if (d[0] < 0 || d[0] > 62) throw std::out_of_range("a stage without a bit");
            stages.push_back({d[0], d[1], d[2], d[3] != 0, {}});
        }
        if (stages.empty()) throw std::out_of_range("no stages");
        auto count = static_cast<int64_t>(stages.size());
        for (int64_t i = 0; i + 12 < tests.size; i += 13) {
            const int64_t *d = tests.data + i;
            Test test{d[2], d[3], d[4], d[5], d[6], {d[7], d[8], d[9]}, {d[10], d[11], d[12]}};
            if (d[0] < 0 || d[0] >= count || d[1] < BEGIN || d[1] > ACCEPT || test.over < ONCE ||
                test.over > ALL || test.op > NE || test.through >= d[0] + (d[1] != BEGIN || test.over == LATEST))
                throw std::out_of_range("a test that cannot be made");
            for (const Side *side : {&test.left, &test.right})
                if (test.op >= 0 && side->pick != CONSTANT &&
                    (side->stage < 0 || side->stage > d[0] || side->pick < ONE || side->pick > CONSTANT ||
                     (side->pick != COUNT && (side->column < 0 || side->column >= width)) ||
                     ((side->pick == EACH || side->pick == PREVIOUS) && (test.over == ONCE || test.through < 0)) ||
                     (side->pick == PREVIOUS && !test.later)))
                    throw std::out_of_range("a value that is nowhere");
            if (d[1] == ACCEPT)
                accept.push_back(test);
            else
                stages[static_cast<size_t>(d[0])].tests[d[1]].push_back(test);
        }
        found.stages = stages.size();
        Py_INCREF(ask_);
        Py_XDECREF(ask);
        ask = ask_;
        Py_RETURN_NONE;
    }

    // Takes events in order: keys, times, the stages they fit, values, flags. The last arguments are
    // the event to go on with, 0 in the first call, and how many events the matches of a part may
    // have. Returns a status, or the event to go on with once matches have been taken: it stops
    // before a later time if there are enough.
    PyObject *advance(PyObject *args) {
        PyObject *keys_, *times_, *fits_, *values_, *flags_;
        long long first, part;
        if (!PyArg_ParseTuple(args, "OOOOOLL", &keys_, &times_, &fits_, &values_, &flags_, &first, &part))
            throw Raised();
        Ints of(keys_), when(times_), fits(fits_), given(values_);
        Bytes known(flags_);
        if (stages.empty()) throw std::out_of_range("no stages");
        when.want(of.size), fits.want(of.size);
        given.want(of.size * width), known.want(of.size * width);
        if (first < 0 || first > of.size) throw std::out_of_range("an event that is not there");
        if (first == 0) {
            for (int64_t i = 0; i < of.size; ++i) next(when.data[i]);
            times.insert(times.end(), when.data, when.data + of.size);
            values.insert(values.end(), given.data, given.data + of.size * width);
            flags.insert(flags.end(), known.data, known.data + of.size * width);
        }
        int64_t row = base + static_cast<int64_t>(times.size()) - of.size + first;
        size_t enough = found.rows.size() + static_cast<size_t>(std::max(part, 1LL));
        // Matches that wait are looked through with each part.
        if (waits) enough = std::max(enough, 2 * found.rows.size());
        for (int64_t i = first; i < of.size; ++i, ++row) {
            if (i > first && found.rows.size() >= enough && when.data[i] > when.data[i - 1])
                return PyLong_FromLongLong(i);
            Key &key = of_number(keys, of.data[i]);
            if (fits.data[i] == 0 && strategy != STRICT) continue;
            on_event(key, row, when.data[i], static_cast<uint64_t>(fits.data[i]));
            if (key.live) list(key, of.data[i]);
            if (most_runs >= 0 && key.live > most_runs) return PyLong_FromLong(TOO_MANY_RUNS);
            if (most_matches >= 0 && static_cast<int64_t>(found.size()) > most_matches)
                return PyLong_FromLong(TOO_MANY_MATCHES);
        }
        return PyLong_FromLong(THROUGH);
    }

    PyObject *retain(PyObject *args) {
        return retained(args, keys, [](const Key &key) { return key.live > 0; });
    }

    // Drops the runs that no event can advance, from time to time; returns the number of runs and
    // of matches not yet taken.
    PyObject *forget(PyObject *args) {
        auto from = sweep(args, keys, [&](Key &key, int64_t earliest) {
            for (std::vector<Run> &runs : key.runs) {
                size_t kept = 0;
                for (const Run &run : runs) {
                    if (run.start >= earliest)
                        runs[kept++] = run;
                    else
                        release(run.node);
                }
                fewer(key, runs, kept);
            }
            return key.live > 0;
        });
        if (from) {
            auto gone = std::lower_bound(times.begin(), times.end(), *from) - times.begin();
            times.erase(times.begin(), times.begin() + gone);
            values.erase(values.begin(), values.begin() + gone * width);
            flags.erase(flags.begin(), flags.begin() + gone * width);
            base += gone;
        }
        return PyLong_FromLongLong(static_cast<long long>(live + static_cast<int64_t>(found.size())));
    }
};
