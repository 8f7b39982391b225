// The clock loop around the gateware of a board, with a C interface that moves bytes.
//
// PINS: the top is a board, and bytes cross its pins from start bit to stop bit, each bit as many
// cycles long as the gateware was built for. NETWORK: the top is a Networked, and whole Ethernet
// frames pass to and from the side of its PHY, which has a clock of 125 MHz. RGMII: the top also
// has the pins of the PHY, four bits at each edge. USB: the top is a UsbLinked, with a host on its
// two wires. Otherwise the top is a LinkedWjasip, which takes bytes.

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#if USB
#include "usb_host.h"
#endif
#include "Vboard.h"
#include "verilated.h"

struct Board {
    VerilatedContext context;
    std::unique_ptr<Vboard> top;
    uint64_t cycles = 0;  // of the PHY, if there is one; for a USB port, bits
    std::deque<uint8_t> in;
    std::vector<uint8_t> out;
#if PINS
    uint32_t divisor = 1;
    uint32_t sending = 0, send_left = 0;   // bits yet to send, the next one lowest; 0: none
    uint32_t receiving = 0, bits = 0, receive_left = 0;
#endif

    // Starts the board as if it were switched on.
    void begin() {
        top.reset(new Vboard(&context));
#if PINS
        top->rx = 1;
#elif USB
        host.begin();
#endif
    }

#if NETWORK || RGMII
    // A frame is its length in two bytes, followed by its bytes from the preamble to the checksum.
    static constexpr uint32_t PHY_PERIOD = 8000, GAP = 12;
    uint32_t divisor = PHY_PERIOD;  // of the processor's clock, in picoseconds
    uint64_t now = 0, clk_at = 1700, phy_at = 0;
    uint32_t coming = 0, gap = 0;
    std::vector<uint8_t> going;

    void at_phy() {
#if RGMII
        // A PHY in reset has no clock.
        if (!top->reset_n) {
            top->eval();
            ++cycles;
            return;
        }
#endif
        uint8_t byte = 0;
        bool comes = false;
        if (gap) {
            --gap;
        } else {
            if (!coming && in.size() > 2) {
                coming = in[0] | in[1] << 8;
                in.erase(in.begin(), in.begin() + 2);
            }
            if (coming) {
                byte = in.front();
                in.pop_front();
                comes = true;
                if (!--coming) gap = GAP;
            }
        }
#if RGMII
        // Each side's clock edges fall in the middle of the data that they sample.
        top->rx_data = byte & 15;
        top->rx_ctl = comes;
        top->eval();
        top->rx_clock = 1;
        top->eval();
        bool goes = top->tx_ctl;
        uint8_t sent = top->tx_data;
        top->rx_data = byte >> 4;
        top->eval();
        top->rx_clock = 0;
        top->eval();
        sent |= top->tx_data << 4;
#else
        top->received = byte;
        top->receiving = comes;
        bool goes = top->sending;
        uint8_t sent = top->sent;
        top->phy_clk = 0;
        top->eval();
        top->phy_clk = 1;
        top->eval();
#endif
        if (goes) {
            going.push_back(sent);
        } else if (!going.empty()) {
            out.push_back(uint8_t(going.size()));
            out.push_back(uint8_t(going.size() >> 8));
            out.insert(out.end(), going.begin(), going.end());
            going.clear();
        }
        ++cycles;
    }

    // Runs one cycle of the PHY, and the processor's cycles meanwhile.
    void cycle() {
        for (phy_at += PHY_PERIOD; clk_at < phy_at; clk_at += divisor) {
            top->clk = 0;
            top->eval();
            top->clk = 1;
            top->eval();
        }
        at_phy();
    }
#elif USB
    static constexpr uint32_t LINE_PERIOD = 20833;
    UsbHost host;
    uint32_t divisor = 4 * LINE_PERIOD;  // of the processor's clock, in picoseconds
    uint64_t clk_at = 1700, line_at = 0;

    // Runs one bit of the line, and the processor's cycles meanwhile.
    void cycle() {
        host.to_device.insert(host.to_device.end(), in.begin(), in.end());
        in.clear();
        for (int quarter = 0; quarter < 4; ++quarter) {
            for (line_at += LINE_PERIOD; clk_at < line_at; clk_at += divisor) {
                top->clk = 0;
                top->eval();
                top->clk = 1;
                top->eval();
            }
            host.tick(top->pull_up, top->driven, top->dp_out, top->dn_out);
            top->dp = host.dp;
            top->dn = host.dn;
            top->usb_io_clk = 0;
            if (quarter == 2) top->usb_clk = 0;
            top->eval();
            top->usb_io_clk = 1;
            if (quarter == 0) top->usb_clk = 1;
            top->eval();
        }
        out.insert(out.end(), host.from_device.begin(), host.from_device.end());
        host.from_device.clear();
        ++cycles;
    }
#else
    void cycle() {
#if PINS
        if (send_left) {
            --send_left;
        } else if (sending > 1) {
            top->rx = sending & 1;
            sending >>= 1;
            send_left = divisor - 1;
        } else if (!in.empty()) {
            // A one above the stop bit marks the end.
            sending = 1 << 9 | uint32_t(in.front()) | 1 << 8;
            in.pop_front();
            top->rx = 0;
            send_left = divisor - 1;
        } else {
            top->rx = 1;
        }
#else
        top->received___05Fvalid = !in.empty();
        if (!in.empty()) top->received___05Fpayload = in.front();
        top->transmitted___05Fready = 1;
#endif
        top->clk = 0;
        top->eval();
#if PINS
        if (!bits) {
            if (!top->tx) {
                bits = 9;
                receive_left = divisor + divisor / 2 - 1;
            }
        } else if (receive_left) {
            --receive_left;
        } else {
            if (bits == 1) {
                if (top->tx) out.push_back(uint8_t(receiving));
            } else {
                receiving = receiving >> 1 | (top->tx ? 0x80 : 0);
            }
            --bits;
            receive_left = divisor - 1;
        }
#else
        if (!in.empty() && top->received___05Fready) in.pop_front();
        if (top->transmitted___05Fvalid) out.push_back(top->transmitted___05Fpayload);
#endif
        top->clk = 1;
        top->eval();
        ++cycles;
    }
#endif
};

extern "C" {

Board *board_new(uint32_t divisor) {
    auto *board = new Board;
    board->context.randReset(0);
#if PINS || NETWORK || RGMII || USB
    board->divisor = divisor;
#endif
    board->begin();
    return board;
}

void board_delete(Board *board) {
    board->top->final();
    delete board;
}

void board_put(Board *board, const uint8_t *data, uint64_t count) {
    board->in.insert(board->in.end(), data, data + count);
}

// Returns the number of bytes that have not gone in yet.
uint64_t board_waiting(Board *board) {
#if USB
    return board->in.size() + board->host.to_device.size();
#else
    return board->in.size();
#endif
}

void board_run(Board *board, uint64_t cycles) {
    while (cycles--) board->cycle();
}

// Switches the board off and on. Bytes on the line stay there.
void board_reset(Board *board) {
    board->top->final();
    board->begin();
}

uint64_t board_count(Board *board) { return board->out.size(); }

void board_take(Board *board, uint8_t *to) {
    std::memcpy(to, board->out.data(), board->out.size());
    board->out.clear();
}

uint64_t board_cycles(Board *board) { return board->cycles; }

#if USB
// Returns whether the host has configured the device and no control request is pending.
bool usb_ready(Board *board) { return board->host.ready(); }

void usb_clear_halt(Board *board, uint8_t endpoint) { board->host.clear_halt(endpoint); }

// Damages `share` of 65,536 packets.
void usb_damage(Board *board, uint32_t share, uint32_t seed) {
    board->host.share = share;
    board->host.chance.seed(seed);
}

uint64_t usb_damaged(Board *board) { return board->host.damaged; }

// Copies a descriptor; returns its number of bytes, at most 255, or 0 if the device has none.
uint64_t usb_descriptor(Board *board, uint16_t which, uint8_t *to) {
    const auto &found = board->host.descriptors[which];
    if (!found.empty()) std::memcpy(to, found.data(), found.size());
    return found.size();
}
#endif

}
