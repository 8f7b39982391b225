"""The host's side of the host link: a board on a serial port or a network as a device.

errors      what can go wrong on a line
session     frames to and from two streams of bytes, over anything that carries bytes
messages    rows of words <-> messages
processor   a processor at the other end of a line
device      the device contract
serial      a serial port
udp         a port on a network
usb         a USB port
"""
