// A USB host at the two wires of a full-speed device: reset, enumeration, then bulk transfers both
// ways.
//
// It runs at 48 MHz, four ticks per bit. It sends packets as a real host does: synchronisation, bit
// stuffing, checksums, data toggles, handshakes, and a start of frame each millisecond. It repeats
// whatever is not acknowledged. `share` sets the proportion of packets, in either direction, in
// which one bit is inverted.

#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <utility>
#include <vector>

class UsbHost {
  public:
    using Bytes = std::vector<uint8_t>;

    std::deque<uint8_t> to_device;
    Bytes from_device;
    std::map<uint16_t, Bytes> descriptors;  // by type and index
    uint32_t share = 0;                     // damaged packets of 65,536
    std::mt19937 chance;
    uint64_t damaged = 0, again = 0;        // packets; transactions

    // The state of the line as the device sees it.
    bool dp = false, dn = false;

    UsbHost() { begin(); }

    // Starts over with a device that has just been plugged in.
    void begin() {
        phase = Phase::AWAY;
        left = 0;
        controls.clear();
        address = 0;
        out_toggle = in_toggle = 0;
        configured = false;
        stage = Stage::SETUP;
        get(1, 0, 0), set(5, 1), get(2, 0, 0), get(3, 0, 0), get(3, 1, 0x409), get(3, 2, 0x409);
        set(9, 1);
    }

    bool ready() const { return configured && controls.empty(); }

    // Sends CLEAR_FEATURE(ENDPOINT_HALT), after which both sides begin with DATA0.
    void clear_halt(uint8_t endpoint) { controls.push_back({2, 1, 0, 0, endpoint, 0, 0, 0}); }

    void tick(bool pull_up, bool driven, bool device_dp, bool device_dn) {
        ++now;
        switch (phase) {
            case Phase::AWAY:
                line(pull_up ? J : SE0);
                if (!pull_up) left = 4 * 100;
                else if (left) --left;
                else phase = Phase::RESET, left = 4 * 1200;
                return;
            case Phase::RESET:
                line(SE0);
                if (!--left) rest(200);
                return;
            case Phase::SENDING:
                line(states[place / 4]);
                if (++place == 4 * states.size()) sent();
                return;
            case Phase::WAITING:
                line(J);
                if (driven) {
                    phase = Phase::HEARING;
                    heard.clear();
                    left = 0;
                    hear(device_dp, device_dn);
                } else if (!--left) {
                    answered({});
                }
                return;
            case Phase::HEARING:
                dp = device_dp, dn = device_dn;
                if (driven) hear(device_dp, device_dn);
                else answered(decoded());
                return;
            case Phase::RESTING:
                line(J);
                if (!--left) next();
        }
    }

  private:
    enum class Phase { AWAY, RESET, SENDING, WAITING, HEARING, RESTING };
    enum State : uint8_t { SE0, J, K };
    enum Pid : uint8_t {
        OUT = 0xE1, IN = 0x69, SOF = 0xA5, SETUP = 0x2D, DATA0 = 0xC3, DATA1 = 0x4B, ACK = 0xD2, NAK = 0x5A
    };
    enum class Stage { SETUP, DATA, STATUS };
    using Setup = std::vector<uint8_t>;
    static constexpr uint64_t FRAME = 48000;
    static constexpr uint32_t TIMEOUT = 4 * 40, MOST_SILENT = 16, PACKET = 64, ENDPOINT = 1;

    Phase phase;
    uint64_t now = 0, frame_at = 0;
    uint32_t left, place = 0, frame = 0, silent = 0;
    std::vector<State> states;
    std::vector<Bytes> following;  // packets that follow this one at once
    std::vector<State> heard;
    std::deque<Setup> controls;
    Stage stage = Stage::SETUP;
    uint8_t address, out_toggle, in_toggle;
    bool configured, bulk_in = false;
    enum class Doing { NOTHING, SETUP, CONTROL_IN, CONTROL_OUT, BULK_OUT, BULK_IN } doing = Doing::NOTHING;
    uint32_t carried = 0;  // bytes of a bulk packet

    void line(State state) { dp = state == J, dn = state == K; }

    void get(uint8_t type, uint8_t index, uint16_t language) {
        controls.push_back({0x80, 6, index, type, uint8_t(language), uint8_t(language >> 8), 255, 0});
    }
    void set(uint8_t request, uint8_t value) { controls.push_back({0, request, value, 0, 0, 0, 0, 0}); }

    // --- packets ---------------------------------------------------------------

    static Bytes token(Pid pid, uint16_t value) {
        uint8_t crc = 0x1F;
        for (int bit = 0; bit < 11; ++bit) {
            bool feeds = (value >> bit & 1) ^ (crc & 1);
            crc = crc >> 1 ^ (feeds ? 0x14 : 0);
        }
        value |= uint16_t(crc ^ 0x1F) << 11;
        return {pid, uint8_t(value), uint8_t(value >> 8)};
    }
    Bytes token_to(Pid pid, uint32_t endpoint) const {
        return token(pid, uint16_t(address | endpoint << 7));
    }
    static uint16_t crc16(const uint8_t *data, size_t count) {
        uint16_t crc = 0xFFFF;
        while (count--) {
            crc ^= *data++;
            for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xA001 : 0);
        }
        return ~crc;
    }
    template <typename Iterator> static Bytes data(uint8_t toggle, Iterator from, Iterator to) {
        Bytes packet(1, toggle ? DATA1 : DATA0);
        packet.insert(packet.end(), from, to);
        uint16_t crc = crc16(packet.data() + 1, packet.size() - 1);
        packet.push_back(uint8_t(crc));
        packet.push_back(uint8_t(crc >> 8));
        return packet;
    }

    bool damages() {
        bool does = share && (chance() & 0xFFFF) < share;
        damaged += does;
        return does;
    }

    void send(const Bytes &packet) {
        states.assign({K, J, K, J, K, J, K, K});
        State now_at = K;
        int ones = 1;
        for (uint8_t byte : packet) {
            for (int bit = 0; bit < 8; ++bit) {
                bool one = byte >> bit & 1;
                if (!one) now_at = now_at == J ? K : J;
                states.push_back(now_at);
                ones = one ? ones + 1 : 0;
                if (ones == 6) {
                    now_at = now_at == J ? K : J;
                    states.push_back(now_at);
                    ones = 0;
                }
            }
        }
        if (damages()) {
            State &state = states[8 + chance() % (states.size() - 8)];
            state = state == J ? K : J;
        }
        states.insert(states.end(), {SE0, SE0, J});
        place = 0;
        phase = Phase::SENDING;
    }

    void hear(bool p, bool n) {
        // The device changes the line at every fourth tick after it begins.
        if (left++ % 4 == 2) heard.push_back(p == n ? SE0 : p ? J : K);
    }

    // Returns an empty packet unless a whole one was received.
    Bytes decoded() {
        if (damages() && heard.size() > 12) {
            State &state = heard[8 + chance() % (heard.size() - 12)];
            state = state == J ? K : J;
        }
        Bytes packet;
        State before = J;
        int ones = 0, count = -1;  // bits since the synchronisation
        uint32_t byte = 0;
        for (State state : heard) {
            if (state == SE0) break;
            bool one = state == before;
            before = state;
            if (count < 0) {
                if (one) count = 0, ones = 1;
                continue;
            }
            if (ones == 6) {
                if (one) return {};
                ones = 0;
                continue;
            }
            ones = one ? ones + 1 : 0;
            byte = byte >> 1 | uint32_t(one) << 7;
            if (++count % 8 == 0) packet.push_back(uint8_t(byte)), byte = 0;
        }
        if (packet.empty() || count % 8 || (packet[0] >> 4 ^ 0xF) != (packet[0] & 0xF)) return {};
        bool is_data = packet[0] == DATA0 || packet[0] == DATA1;
        if (is_data) {
            size_t size = packet.size();
            if (size < 3) return {};
            if (crc16(packet.data() + 1, size - 3) != (packet[size - 2] | packet[size - 1] << 8)) return {};
            packet.resize(size - 2);
        } else if (packet.size() != 1) {
            return {};
        }
        return packet;
    }

    // --- transactions ----------------------------------------------------------

    void rest(uint32_t bits) {
        phase = Phase::RESTING;
        left = 4 * bits;
        doing = Doing::NOTHING;
    }

    void sent() {
        if (!following.empty()) {
            Bytes packet = std::move(following.front());
            following.erase(following.begin());
            send(packet);
        } else if (doing == Doing::NOTHING) {
            rest(4);
        } else {
            phase = Phase::WAITING;
            left = TIMEOUT;
        }
    }

    void next() {
        if (now >= frame_at) {
            frame_at = now + FRAME;
            send(token(SOF, frame++ & 0x7FF));
        } else if (!controls.empty()) {
            control();
        } else {
            configured = true;
            bulk_in = !bulk_in;
            if (!bulk_in && !to_device.empty()) {
                doing = Doing::BULK_OUT;
                carried = to_device.size() < PACKET ? to_device.size() : PACKET;
                following.assign(1, data(out_toggle, to_device.begin(), to_device.begin() + carried));
                send(token_to(OUT, ENDPOINT));
            } else {
                doing = Doing::BULK_IN;
                send(token_to(IN, ENDPOINT));
            }
        }
    }

    void control() {
        const Setup &setup = controls.front();
        bool reads = setup[0] & 0x80;
        if (stage == Stage::SETUP) {
            doing = Doing::SETUP;
            following.assign(1, data(0, setup.begin(), setup.end()));
            send(token_to(SETUP, 0));
        } else if ((stage == Stage::DATA) == reads) {
            doing = Doing::CONTROL_IN;
            send(token_to(IN, 0));
        } else {
            doing = Doing::CONTROL_OUT;
            following.assign(1, data(1, setup.end(), setup.end()));
            send(token_to(OUT, 0));
        }
    }

    // Takes the device's answer; `packet` is empty if none came, or a damaged one.
    void answered(const Bytes &packet) {
        uint8_t pid = packet.empty() ? 0 : packet[0];
        bool is_data = pid == DATA0 || pid == DATA1;
        Doing done = doing;
        rest(4);
        again += !pid;
        silent = pid ? 0 : silent + 1;
        if (silent == MOST_SILENT && !configured) {
            // A host does the same with a device that lost its way: it resets it and begins anew.
            silent = 0;
            begin();
            return;
        }
        switch (done) {
            case Doing::NOTHING:
                break;
            case Doing::SETUP:
                if (pid == ACK) stage = controls.front()[0] & 0x80 ? Stage::DATA : Stage::STATUS;
                break;
            case Doing::CONTROL_IN:
                if (is_data) {
                    const Setup &setup = controls.front();
                    acknowledge();
                    if (stage == Stage::STATUS) complete();
                    else {
                        descriptors[setup[3] << 8 | setup[2]].assign(packet.begin() + 1, packet.end());
                        stage = Stage::STATUS;
                    }
                } else if (pid && pid != NAK) {
                    complete();  // the device has no such thing
                }
                break;
            case Doing::CONTROL_OUT:
                if (pid && pid != NAK) complete();
                break;
            case Doing::BULK_OUT:
                if (pid == ACK) {
                    to_device.erase(to_device.begin(), to_device.begin() + carried);
                    out_toggle ^= 1;
                }
                break;
            case Doing::BULK_IN:
                if (is_data) {
                    // A repeated toggle means that the device missed the acknowledgement.
                    if (pid == (in_toggle ? DATA1 : DATA0)) {
                        from_device.insert(from_device.end(), packet.begin() + 1, packet.end());
                        in_toggle ^= 1;
                    }
                    acknowledge();
                }
        }
    }

    void acknowledge() {
        doing = Doing::NOTHING;
        send({ACK});
        // Inserts a pause, which each side needs to release the line.
        states.insert(states.begin(), 3, J);
    }

    void complete() {
        const Setup &setup = controls.front();
        if (setup[1] == 5) address = setup[2];
        if (setup[1] == 9) out_toggle = in_toggle = 0;
        if (setup[1] == 1) (setup[4] & 0x80 ? in_toggle : out_toggle) = 0;
        controls.pop_front();
        stage = Stage::SETUP;
    }
};
