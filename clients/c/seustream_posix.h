/* Lines of POSIX systems for seustream_link.h. */
#ifndef SEUSTREAM_POSIX_H
#define SEUSTREAM_POSIX_H

#include "seustream_link.h"

/* Connects to a board on a network; the line, or one with `read` NULL and errno set. `port` 21333
 * unless the board's is another. `file` is where the line keeps its descriptor. */
seu_line seu_udp(const char *host, const char *port, int *file);

/* Opens a serial port as it was set up, for example by `stty -F /dev/ttyUSB0 raw 3000000`. */
seu_line seu_serial(const char *device, int *file);

#endif
