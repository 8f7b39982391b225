// The clock loop around a verilated WJASIP, with a C interface that moves whole batches.
//
// Verilator writes the second of two underscores in a name as __05F, hence the names of the ports.
// Payloads cross as rows of 32-bit words, least significant word first. In every cycle each port
// may be held back at random, so that a test meets all kinds of bursts and back-pressure.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "Vwjasip.h"
#include "verilated.h"
#if COVERAGE
#include "verilated_cov.h"
#endif
#if WAVES
#include "verilated_fst_c.h"
#endif

namespace {

void put(CData &port, const uint32_t *words) { port = words[0]; }
void put(SData &port, const uint32_t *words) { port = words[0]; }
void put(IData &port, const uint32_t *words) { port = words[0]; }
void put(QData &port, const uint32_t *words) { port = words[0] | uint64_t(words[1]) << 32; }
template <std::size_t N> void put(VlWide<N> &port, const uint32_t *words) {
    for (std::size_t i = 0; i < N; ++i) port[i] = words[i];
}

void get(CData port, std::vector<uint32_t> &to) { to.push_back(port); }
void get(SData port, std::vector<uint32_t> &to) { to.push_back(port); }
void get(IData port, std::vector<uint32_t> &to) { to.push_back(port); }
void get(QData port, std::vector<uint32_t> &to) {
    to.push_back(uint32_t(port));
    to.push_back(uint32_t(port >> 32));
}
template <std::size_t N> void get(const VlWide<N> &port, std::vector<uint32_t> &to) {
    for (std::size_t i = 0; i < N; ++i) to.push_back(port[i]);
}

}  // namespace

struct Device {
    VerilatedContext context;
    std::unique_ptr<Vwjasip> top;
#if WAVES
    VerilatedFstC waves;
    bool recording = false;
#endif
    uint64_t cycles = 0;
    uint64_t random = 1;
    bool tracing = false;
    uint32_t hold_in = 0, hold_out = 0;  // chances of 2^32 that a port is held back in a cycle
    std::vector<uint32_t> results, handed_over, trace;

    uint32_t chance() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return uint32_t(random >> 16);
    }

    // Ends a cycle. The outputs read here do not depend on inputs of the same cycle, except that
    // `idle` depends on whether a tuple is offered; it is read only when none is.
    void edge() {
        top->clk = 0;
        top->eval();
#if WAVES
        if (recording) waves.dump(2 * cycles);
#endif
        top->clk = 1;
        top->eval();
#if WAVES
        if (recording) waves.dump(2 * cycles + 1);
#endif
        ++cycles;
    }

    // Collects the outputs of this cycle; returns whether there were any.
    bool collect() {
        bool came = false;
        if (top->results___05Fvalid && top->results___05Fready) {
            get(top->results___05Fpayload, results);
            came = true;
        }
        if (top->handed_over___05Fvalid && top->handed_over___05Fready) {
            get(top->handed_over___05Fpayload, handed_over);
            came = true;
        }
        if (tracing && top->executed) {
            trace.push_back(top->executed);
            trace.push_back(uint32_t(cycles));
            get(top->traces, trace);
        }
        return came;
    }

    void open_outputs() {
        top->results___05Fready = !hold_out || chance() >= hold_out;
        top->handed_over___05Fready = !hold_out || chance() >= hold_out;
    }
};

extern "C" {

Device *device_new(const char *waves) {
    auto *device = new Device;
    device->context.randReset(0);
#if WAVES
    device->context.traceEverOn(true);
#endif
    device->top.reset(new Vwjasip(&device->context));
#if WAVES
    if (waves && *waves) {
        device->top->trace(&device->waves, 99);
        device->waves.open(waves);
        device->recording = true;
    }
#else
    if (waves && *waves) {
        delete device;
        return nullptr;
    }
#endif
    device->edge();
    return device;
}

void device_delete(Device *device) {
#if WAVES
    if (device->recording) device->waves.close();
#endif
    device->top->final();
    delete device;
}

void device_hold(Device *device, uint64_t seed, uint32_t in, uint32_t out) {
    device->random = seed * 0x9E3779B97F4A7C15ull | 1;
    device->hold_in = in;
    device->hold_out = out;
}

// Sends commands one after the other, up to the first whose verdict is not 0. Returns how many were
// answered; `answer` is the last answer. Fewer than `rows` with verdict 0 means that nothing
// happened for `patience` cycles.
uint64_t device_commands(Device *device, const uint32_t *commands, uint64_t rows, uint64_t words,
                         uint32_t *answer, uint64_t patience) {
    auto &top = *device->top;
    uint64_t next = 0, waited = 0;
    bool sent = false;
    std::vector<uint32_t> got;
    while (next < rows && waited++ < patience) {
        put(top.commands___05Fpayload, commands + next * words);
        top.commands___05Fvalid = !sent;
        top.responses___05Fready = sent && (!device->hold_out ||
                                            device->chance() >= device->hold_out);
        device->open_outputs();
        if (device->collect()) waited = 0;
        sent = sent || top.commands___05Fready;
        bool answered = top.responses___05Fvalid && top.responses___05Fready;
        if (answered) {
            got.clear();
            get(top.responses___05Fpayload, got);
        }
        device->edge();
        if (answered) {
            std::memcpy(answer, got.data(), got.size() * sizeof(uint32_t));
            sent = false;
            waited = 0;
            ++next;
            if (answer[0] & 15) break;
        }
    }
    top.commands___05Fvalid = 0;
    top.responses___05Fready = 0;
    return next;
}

// Pushes `rows` raw tuples of `words` words and runs until nothing is in flight. Returns 1 on
// success, 0 if nothing went in or came out for `patience` cycles.
int device_run(Device *device, const uint32_t *raw, uint64_t rows, uint64_t words,
               uint64_t patience) {
    auto &top = *device->top;
    uint64_t next = 0, waited = 0;
    bool offered = false;
    while (waited++ < patience) {
        // A tuple stays offered until it is taken.
        offered = offered || (next < rows && (!device->hold_in ||
                                              device->chance() >= device->hold_in));
        if (offered) put(top.raw___05Fpayload, raw + next * words);
        top.raw___05Fvalid = offered;
        device->open_outputs();
        if (device->collect()) waited = 0;
        bool taken = offered && top.raw___05Fready;
        bool idle = next == rows && top.idle;
        device->edge();
        if (taken) {
            ++next;
            offered = false;
            waited = 0;
        }
        if (idle) {
            top.raw___05Fvalid = 0;
            return 1;
        }
    }
    return 0;
}

void device_record(Device *device, int on) { device->tracing = on; }

uint64_t device_cycles(Device *device) { return device->cycles; }

// The words collected so far: 0 results, 1 tuples handed over, 2 trace.
static std::vector<uint32_t> &collected(Device *device, int what) {
    return what == 0 ? device->results : what == 1 ? device->handed_over : device->trace;
}

uint64_t device_count(Device *device, int what) { return collected(device, what).size(); }

void device_take(Device *device, int what, uint32_t *to) {
    auto &from = collected(device, what);
    std::memcpy(to, from.data(), from.size() * sizeof(uint32_t));
    from.clear();
}

#if COVERAGE
// Writes the coverage since the process began to a file in Verilator's format.
void device_coverage(Device *device, const char *name) {
    device->context.coveragep()->write(name);
}
#endif

}
