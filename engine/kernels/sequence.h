// Sequences of single events: finds the matches that end with one of the newest events, event by
// event, without dead ends.
//
// The elements are the nodes of a tree. The last one is its root; each other one hangs on the element
// that it is compared with. No two edges cross, so what hangs on an element, directly or not, is with
// it a range of neighbours: its stretch. Of all ways to fill the stretch around an event, the one that
// begins latest and the one that ends earliest decide whether the event can be in a match. They do not
// depend on each other, since one concerns what is before the event, the other what is after it. An
// event is `Reached` once it has both; so what a search looks up there is part of some match.
#pragma once

#include "probes.h"
#include "reached.h"

class Sequence {
    using Range = Reached::Range;
    static constexpr int64_t most_events = UINT32_MAX;

    // `own op other`, columns of two elements.
    struct Link {
        int64_t op;
        size_t element, own, other, column;
    };
    // How events of one element are found from an event of another: all `equal` columns are, and the
    // value of a column is within all bounds.
    struct Lookup {
        Columns own, theirs;
        std::vector<Link> equal, bounds;

        void add(const Link &link) {
            if (link.op != EQ) {
                own.other = link.own;
                bounds.push_back(link);
                return;
            }
            own.equal.push_back(link.own), theirs.equal.push_back(link.column);
            equal.push_back(link);
        }
        Range range(const Events &events, int64_t event) const {
            Range range{equal.empty() && bounds.empty(), theirs.key(events, event)};
            for (const Link &link : bounds) {
                int64_t than = events.value(link.column, event);
                bool none = (link.op == LT && than == INT64_MIN) || (link.op == GT && than == INT64_MAX);
                if (none) return {false, 0, INT64_MAX, INT64_MIN};
                if (link.op == LT || link.op == LE)
                    range.high = std::min(range.high, than - (link.op == LT));
                else
                    range.low = std::max(range.low, than + (link.op == GT));
            }
            return range;
        }
    };
    struct Node {
        size_t parent = 0, place = 0;  // its place among those that hang on its parent on that side
        size_t last = 0;               // the last element of its stretch
        std::vector<size_t> before, after;  // what hangs on it
        Lookup lookup, back;                // from the parent's event to its own ones, and back
        std::vector<Link> checks;           // what else has to hold when it is bound
        Reached reached;
        std::vector<Reached> waiting;  // events that have so many of `after`, not the next
        int64_t beyond = 0;            // its stretch must begin after this time
        std::vector<size_t> compared;  // the columns by which its events are compared
        Grown<int64_t> fresh;          // its events that are yet to be reached; of the last one, the newest
    };

    Events events;  // of all elements: most streams have events that fit several
    std::vector<Node> nodes;
    std::vector<size_t> order;  // in which elements are bound; whatever follows a stretch comes first
    std::vector<int64_t> bound, found;  // the events of a match, and those of all matches
    std::vector<int64_t> ways;          // what an event completes
    int64_t window = 0, earliest = INT64_MIN / 2, work = 0, most_work = 0;
    size_t most_found = 0;

    int64_t time(size_t element) const { return events.time(bound[element]); }

    // Returns the number of the first event at this time or later.
    int64_t from(int64_t time) const {
        return events.gone + (std::lower_bound(events.times.begin(), events.times.end(), time) - events.times.begin());
    }

    // Adds to an element the events that fit it, without those that lack what they are compared by.
    static void add(Node &node, const std::vector<std::pair<Ints, Bytes>> &columns, const Ints &fits, int64_t first) {
        std::vector<const uint8_t *> flags;
        for (size_t column : node.compared)
            if (columns[column].second.data) flags.push_back(columns[column].second.data);
        for (int64_t i = 0; i < fits.size; ++i) {
            int64_t place = fits.data[i];
            if (std::all_of(flags.begin(), flags.end(), [=](const uint8_t *known) { return known[place] != 0; }))
                node.fresh.add(first + place);
        }
    }

    // --- reaching ---------------------------------------------------------------

    void reach(size_t element, int64_t event) {
        int64_t now = events.time(event), begin = now;
        const auto &before = nodes[element].before;
        for (auto one = before.rbegin(); one != before.rend(); ++one) {
            Node &node = nodes[*one];
            Reached &from = node.reached;
            begin = from.latest(node.lookup.range(events, event), from.from(now - window), from.from(begin));
            if (begin < now - window) return;
        }
        settle(element, event, begin, now, 0);
    }

    // Takes an event with the first few of what hangs on it afterwards, which end at this time.
    void settle(size_t element, int64_t event, int64_t begin, int64_t end, size_t afterwards) {
        Node &node = nodes[element];
        if (afterwards < node.after.size()) {
            node.waiting[afterwards].add(end, begin, event);
            return;
        }
        node.reached.add(end, begin, event);
        if (element < node.parent) return;
        Reached &waiting = nodes[node.parent].waiting[node.place];
        size_t first = ways.size();
        int64_t beyond = std::max(end - window, earliest) - 1;
        waiting.each(node.back.range(events, event), waiting.from(beyond + 1), waiting.from(begin), beyond,
                     [&](int64_t way) {
                         ways.push_back(way);
                         return true;
                     });
        while (ways.size() > first) {
            int64_t way = ways.back(), from = waiting.begin(way);
            ways.pop_back();
            waiting.remove(way);
            settle(node.parent, waiting.event(way), from, end, node.place + 1);
        }
    }

    // Reaches all events, one element after the other: what an event looks up is bounded by times, so
    // that later events of earlier elements do not matter.
    void reach() {
        for (size_t element = 0; element + 1 < nodes.size(); ++element) {
            Grown<int64_t> &fresh = nodes[element].fresh;
            for (int64_t event : fresh) reach(element, event);
            fresh.drop(fresh.size());
        }
    }

    // --- search -----------------------------------------------------------------

    // Bounds the stretches of what hangs on a bound element on one side, so that all fit in from
    // this time on.
    bool limit(const std::vector<size_t> &side, size_t element, int64_t beyond) {
        for (size_t one : side) {
            Node &node = nodes[one];
            node.beyond = beyond;
            if (one == side.back()) break;
            Reached &from = node.reached;
            int64_t end = from.end();
            Range range = node.lookup.range(events, bound[element]);
            int64_t way = from.first(range, from.from(beyond + 1), end, beyond);
            if (way == end) return false;
            beyond = from.ending(way);
        }
        return true;
    }

    bool limit(size_t element) {
        const Node &node = nodes[element];
        return limit(node.after, element, time(element)) && limit(node.before, element, node.beyond);
    }

    // Binds the remaining elements; returns false if a limit is exceeded.
    bool extend(size_t number) {
        if (number == order.size()) {
            if (found.size() >= most_found) return false;
            found.insert(found.end(), bound.begin(), bound.end());
            return true;
        }
        size_t element = order[number];
        Node &node = nodes[element];
        Reached &from = node.reached;
        Range range = node.lookup.range(events, bound[node.parent]);
        int64_t begin = from.from(node.beyond + 1), end = from.from(time(node.last + 1));
        return from.each(range, begin, end, node.beyond, [&](int64_t way) {
            bound[element] = from.event(way);
            for (const Link &link : node.checks)
                if (!fits(link)) return work < most_work;
            return work < most_work && (!limit(element) || extend(number + 1));
        });
    }

    bool fits(const Link &link) const {
        return compared(link.op, events.value(link.own, bound[link.element]),
                        events.value(link.column, bound[link.other]));
    }

    // --- the tree ---------------------------------------------------------------

    void hang(const Ints &parents) {
        size_t count = nodes.size();
        for (size_t e = 0; e + 1 < count; ++e) {
            int64_t parent = parents.data[e];
            if (parent < 0 || parent >= parents.size) throw std::out_of_range("an element that hangs on nothing");
            nodes[e].parent = static_cast<size_t>(parent);
            Node &on = nodes[nodes[e].parent];
            auto &side = e < nodes[e].parent ? on.before : on.after;
            nodes[e].place = side.size();
            side.push_back(e);
        }
        order.clear();
        if (arrange(count - 1, count - 1) != 0 || order.size() != count)
            throw std::out_of_range("elements that hang on each other");
    }

    // Puts an element whose stretch ends with `last` into the order, and then what hangs on it, from
    // right to left. Returns the first element of the stretch.
    size_t arrange(size_t element, size_t last) {
        Node &node = nodes[element];
        node.last = last;
        order.push_back(element);
        for (auto one = node.after.rbegin(); one != node.after.rend(); ++one) last = arrange(*one, last) - 1;
        if (last != element) throw std::out_of_range("elements that hang on each other crosswise");
        --last;
        for (auto one = node.before.rbegin(); one != node.before.rend(); ++one) last = arrange(*one, last) - 1;
        return last + 1;
    }

    // Returns the links that a lookup leaves to be checked.
    static std::vector<Link> looked_up(Lookup &lookup, const std::vector<Link> &links) {
        std::vector<Link> rest;
        auto bounds = [](const Link &link) { return link.op != EQ && link.op != NE; };
        auto alike = [&](const Link &link) {
            return std::count_if(links.begin(), links.end(),
                                 [&](const Link &one) { return bounds(one) && one.own == link.own; });
        };
        const Link *best = nullptr;
        for (const Link &link : links)
            if (bounds(link) && (best == nullptr || alike(link) > alike(*best))) best = &link;
        for (const Link &link : links) {
            if (link.op == EQ || (bounds(link) && link.own == best->own))
                lookup.add(link);
            else
                rest.push_back(link);
        }
        return rest;
    }

    // Returns whether lookups decide all links.
    bool tie(const Ints &links) {
        bool decided = true;
        size_t count = nodes.size();
        std::vector<std::vector<Link>> from(count), back(count);
        std::vector<size_t> place(count);
        for (size_t i = 0; i < count; ++i) place[order[i]] = i;
        for (int64_t i = 0; i + 4 < links.size; i += 5) {
            const int64_t *d = links.data + i;
            Link link{d[0], static_cast<size_t>(d[1]), static_cast<size_t>(d[2]), static_cast<size_t>(d[3]),
                      static_cast<size_t>(d[4])};
            if (d[0] < LT || d[0] > NE || link.element >= count || link.other >= count ||
                link.element == link.other || link.own >= events.values.size() ||
                link.column >= events.values.size())
                throw std::out_of_range("a link to nowhere");
            nodes[link.element].compared.push_back(link.own);
            nodes[link.other].compared.push_back(link.column);
            if (link.element + 1 < count && nodes[link.element].parent == link.other)
                from[link.element].push_back(link);
            else if (link.other + 1 < count && nodes[link.other].parent == link.element)
                back[link.other].push_back(link);
            else
                nodes[place[link.element] < place[link.other] ? link.other : link.element].checks.push_back(link);
        }
        for (size_t e = 0; e + 1 < count; ++e) {
            Node &node = nodes[e];
            decided = looked_up(node.back, back[e]).empty() && decided;
            for (const Link &link : looked_up(node.lookup, from[e])) node.checks.push_back(link);
            decided = decided && node.checks.empty();
            // Several values are mixed into one key, which hardly ever is that of others, too.
            const std::vector<Link> &equal = node.lookup.equal;
            if (equal.size() > 1) node.checks.insert(node.checks.end(), equal.begin(), equal.end());
        }
        for (Node &node : nodes) {
            std::sort(node.compared.begin(), node.compared.end());
            node.compared.erase(std::unique(node.compared.begin(), node.compared.end()), node.compared.end());
            bool begun = !node.before.empty(), ended = !node.after.empty();
            node.reached = Reached(events, node.lookup.own, begun, ended, work);
            for (size_t i = 0; i < node.after.size(); ++i)
                node.waiting.emplace_back(events, nodes[node.after[i]].back.own, true, i > 0, work);
        }
        return decided;
    }

  public:
    // Arguments: for each element the one on which it hangs; links of op, element, column, other
    // element and its column; the number of columns of an event; the window.
    // Returns whether lookups decide all links.
    PyObject *configure(PyObject *args) {
        PyObject *parents_, *links_;
        long long width, window_;
        if (!PyArg_ParseTuple(args, "OOLL", &parents_, &links_, &width, &window_)) throw Raised();
        Ints parents(parents_), links(links_);
        if (parents.size == 0 || width < 0 || window_ < 0) throw std::out_of_range("a sequence without an end");
        window = window_;
        auto count = static_cast<size_t>(parents.size);
        events = Events();
        events.values.resize(static_cast<size_t>(width));
        nodes = std::vector<Node>(count);
        bound.assign(count, 0);
        hang(parents);
        return PyBool_FromLong(tie(links));
    }

    // Appends events, in order: the number of the first one, times, for each column values and flags, and
    // for each element the places among them of those that fit it.
    PyObject *append(PyObject *args) {
        long long first;
        PyObject *times_, *columns_, *fits_;
        if (!PyArg_ParseTuple(args, "LOOO", &first, &times_, &columns_, &fits_)) throw Raised();
        Ints times(times_);
        if (events.end() == 0) events.gone = first;
        if (first != events.end()) throw std::out_of_range("events that do not follow");
        if (events.times.size() + times.size > most_events) throw std::length_error("too many events");
        Py_ssize_t columns = PyTuple_Size(columns_), elements = columns < 0 ? -1 : PyTuple_Size(fits_);
        if (elements < 0) throw Raised();
        if (static_cast<size_t>(columns) != events.values.size() || static_cast<size_t>(elements) != nodes.size())
            throw std::out_of_range("events of another sequence");
        std::vector<std::pair<Ints, Bytes>> given;
        for (Py_ssize_t i = 0; i < columns; ++i) {
            PyObject *values_, *flags_;
            if (!PyArg_ParseTuple(PyTuple_GetItem(columns_, i), "OO", &values_, &flags_)) throw Raised();
            given.emplace_back(Ints(values_), Bytes(flags_));
            given.back().first.want(times.size);
            given.back().second.want(times.size);
        }
        std::vector<Ints> fits;
        for (Py_ssize_t e = 0; e < elements; ++e) {
            fits.emplace_back(PyTuple_GetItem(fits_, e));
            for (int64_t i = 0; i < fits.back().size; ++i)
                if (fits.back().data[i] < 0 || fits.back().data[i] >= times.size)
                    throw std::out_of_range("an event that is not there");
        }
        events.times.add(times.data, times.size);
        for (size_t i = 0; i < given.size(); ++i) events.values[i].add(given[i].first.data, times.size);
        Grown<int64_t> &last = nodes.back().fresh;
        last.drop(last.size());
        for (size_t e = 0; e < nodes.size(); ++e) add(nodes[e], given, fits[e], first);
        Py_RETURN_NONE;
    }

    // Finds the matches whose last event is of the newest that were appended, and has this number or a
    // higher one; returns how many, or None if that takes more work than `most_work`, or there are more
    // than `most` matches.
    PyObject *search(PyObject *args) {
        long long first, work_, most;
        if (!PyArg_ParseTuple(args, "LLL", &first, &work_, &most)) throw Raised();
        if (nodes.empty()) throw std::out_of_range("a sequence without an end");
        reach();
        auto count = static_cast<int64_t>(nodes.size());
        most_work = work + work_, most_found = static_cast<size_t>(std::min<int64_t>(most, INT64_MAX / count) * count);
        found.clear();
        size_t last = nodes.size() - 1;
        for (int64_t event : nodes[last].fresh) {
            if (event < first) continue;
            bound[last] = event;
            nodes[last].beyond = std::max(events.time(event) - window, earliest) - 1;
            if (limit(last) && !extend(1)) {
                std::vector<int64_t>().swap(found);
                Py_RETURN_NONE;
            }
        }
        return PyLong_FromSize_t(found.size() / nodes.size());
    }

    // Writes the events of the matches found, element by element, counted from `gone`.
    PyObject *take(PyObject *args) {
        PyObject *out_;
        long long gone;
        if (!PyArg_ParseTuple(args, "OL", &out_, &gone)) throw Raised();
        Out out(out_, true);
        out.want(static_cast<int64_t>(found.size()));
        size_t count = nodes.empty() ? 0 : found.size() / nodes.size();
        for (size_t e = 0; e < nodes.size(); ++e)
            for (size_t i = 0; i < count; ++i) out.data[e * count + i] = found[i * nodes.size() + e] - gone;
        std::vector<int64_t>().swap(found);
        Py_RETURN_NONE;
    }

    // Returns how much was looked at so far.
    PyObject *looked_at(PyObject *) { return PyLong_FromLongLong(work); }

    // Forgets events before a time.
    PyObject *forget(PyObject *args) {
        long long earliest_;
        if (!PyArg_ParseTuple(args, "L", &earliest_)) throw Raised();
        earliest = std::max<int64_t>(earliest, earliest_);
        int64_t needed = earliest;  // events that wait for later ones are found by the end of these
        for (Node &node : nodes) {
            node.reached.forget(earliest);
            for (Reached &one : node.waiting) one.forget(earliest);
            if (!node.waiting.empty()) needed = earliest - window;
            node.fresh.drop(std::lower_bound(node.fresh.begin(), node.fresh.end(), from(earliest)) - node.fresh.begin());
        }
        int64_t count = from(needed) - events.gone;
        events.times.drop(count);
        for (auto &values : events.values) values.drop(count);
        events.gone += count;
        Py_RETURN_NONE;
    }
};
