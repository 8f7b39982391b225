/* Lines on POSIX systems for seustream_link.h. */
#ifndef SEUSTREAM_POSIX_H
#define SEUSTREAM_POSIX_H

#include "seustream_link.h"

/* Connects to a board on a network. Returns the line; on failure `read` is NULL and errno is set. `port`
 * is 21333 unless the board uses another. The line keeps its descriptor in `file`. */
seu_line seu_udp(const char *host, const char *port, int *file);

/* Opens a serial port as it was set up, for example by `stty -F /dev/ttyUSB0 raw 3000000`. */
seu_line seu_serial(const char *device, int *file);

#endif
