"""A WJASIP on an off-the-shelf board: everything between the processor's ports and the pins.

Plain Python, also for the host:

protocol    frames and messages of the host link, field by field
identity    how a bitstream identifies itself
board       properties of a board: part, oscillator, pins, clock; the boards supported

Gateware, one component per file, in the order in which a byte passes in and out:

uart        pins <-> bytes
deframer    bytes -> intact frames
receiver    frames -> a stream of bytes without loss or repetition
port        bytes <-> the streams of the processor
sender      bytes -> payloads to send, again if necessary
framer      frames -> bytes
link        deframer, receiver, sender and framer: one session with a host
counts      counters of received traffic, for the host to read
mac, packets, network   bytes of an Ethernet PHY <-> bytes of the link
rgmii       pins of the PHY
usb         two wires of a USB port <-> bytes of the link
linked      link, port and processor: all of a board except pins and clock
pll, reset, leds   parts that a board top adds; `tops` puts them around a `linked`

and `flow`, from a top to a bitstream.
"""
