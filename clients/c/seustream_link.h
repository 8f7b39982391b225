/* Host side of the SEUSTREAM host link, for embedded hosts: C99, no allocation, no threads.
 *
 * A board holds a processor; the link loads images into it, pushes tuples, and delivers results through
 * callbacks. docs/reference/host-link.md defines frames and messages. A `seu_line` carries the bytes:
 * `seustream_posix.c` has serial ports and UDP for POSIX systems. */
#ifndef SEUSTREAM_LINK_H
#define SEUSTREAM_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEU_STREAMS = 4, SEU_ATTRIBUTES = 4, SEU_IDENTITY = 28 };

/* Errors; a positive number is the verdict of the board on a command. */
enum { SEU_OK = 0, SEU_NO_ANSWER = -1, SEU_LOST = -2, SEU_LINE = -3, SEU_PROTOCOL = -4 };

/* Carries bytes; some may be lost or changed. */
typedef struct {
  /* Returns the number of bytes read, 0 if none came within `milliseconds`, or less than 0 if the line
   * is gone. */
  int (*read)(void *context, uint8_t *to, size_t most, unsigned milliseconds);
  int (*write)(void *context, const uint8_t *data, size_t bytes);
  uint64_t (*now)(void *context); /* in milliseconds, from any starting point */
  void *context;
} seu_line;

/* Parameters of the board's configuration on which messages depend. */
typedef struct {
  unsigned streams, attribute_width, timestamp_width, sequence_width;
} seu_shape;

/* Timestamps have all their bits, and never decrease. */
typedef struct {
  unsigned stream;
  bool admit;
  uint64_t timestamp, sequence;
  uint32_t attributes[SEU_ATTRIBUTES];
} seu_tuple;

/* Timestamps and sequence numbers wrap around at the widths of the configuration. `queries` has a bit
 * for each query that the combination satisfies, `carries` a bit for each stream with a tuple in it; the
 * sequence numbers of other streams mean nothing. */
typedef struct {
  unsigned carries;
  uint64_t queries, newest, oldest, sequences[SEU_STREAMS];
} seu_result;

/* A stored tuple that left early, and the arrival that displaced it. */
typedef struct {
  unsigned stream, taker;
  uint64_t sequence, taken_by;
} seu_handed_over;

typedef struct {
  void (*result)(void *context, const seu_result *result);
  void (*handed_over)(void *context, const seu_handed_over *left);
  void *context;
} seu_sink;

/* A session. Its members belong to the library, except `wait` and `patience`, which may be set before
 * `seu_open`: the milliseconds before it asks again, and before a silent board counts as gone. */
typedef struct {
  unsigned wait, patience;
  seu_line line;
  seu_shape shape;
  seu_sink sink;
  uint8_t identity[SEU_IDENTITY];
  uint16_t number, first, limit, next;
  uint8_t out[2048], between[540], message[80];
  size_t waiting, sent, most, held, filled;
  bool opened, lost, broken, gap, gap_asked, owes, silent, begun;
  uint64_t heard, asks_at, time, newest, now, last[SEU_STREAMS];
  unsigned waits, pending, refused;
  uint64_t answer;
  int marked;
  uint8_t mark;
} seu_link;

/* Sets `wait` to 100 and `patience` to 5,000. */
void seu_init(seu_link *link, const seu_line *line, const seu_shape *shape, const seu_sink *sink);

/* Opens a session under two numbers drawn from `chance`, and empties the board's windows. Fills
 * `identity`: protocol, board, configuration, version, clock. */
int seu_open(seu_link *link, uint16_t chance);

/* Sends a command as written by `seustream compile --words`: COMMAND, DATA_LOW, DATA_HIGH. */
int seu_command(seu_link *link, const uint32_t words[3], uint64_t *data);

/* Loads an image; on a verdict other than 0 the board keeps what it had. */
int seu_load(seu_link *link, const uint32_t *words, size_t commands);

/* Sends a tuple. The sink may receive results meanwhile. */
int seu_push(seu_link *link, const seu_tuple *tuple);

/* Returns when the sink has received all results of the tuples so far. */
int seu_finish(seu_link *link);

#endif
