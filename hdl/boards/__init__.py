"""A WJASIP on a board that people own: what stands between its ports and the pins.

Plain Python, for the host too:

protocol    frames and messages of the host link, field by field
identity    what a bitstream says it is
board       what a board is: part, oscillator, pins, clock; the boards there are

Gateware, one component a file, in the order a byte takes on its way in and out:

uart        pins <-> bytes
deframer    bytes -> frames that arrived whole
receiver    frames -> a stream of bytes without loss or repeat
port        bytes <-> the streams of the processor
sender      bytes -> what goes out, again if need be
framer      frames -> bytes
link        deframer, receiver, sender and framer: one session with a host
counts      what came, for the host to ask
mac, packets, network   bytes of an Ethernet PHY <-> bytes of the link
rgmii       its pins
usb         two wires of a USB port <-> bytes of the link
linked      link, port and processor: all of a board but pins and clock
pll, reset, leds   what a board top adds; `tops` puts it around a `linked`

and `flow`, from a top to a bitstream.
"""
