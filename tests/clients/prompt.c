/* A board in memory that acknowledges each byte within a millisecond, and a host with a clock of its own:
 * `prompt PROTOCOL IDENTITY PAUSE` prints what opening, pushing with pauses, and finishing return. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seustream_link.h"

enum { FLAG = 0x7e, ESCAPE = 0x7d, HEADER = 10, OPEN = 1, OPENED = 2, DATA = 3, RESPONSE = 1, MARK_IN = 3, MARK_OUT = 4 };

static uint64_t clock_ms = 1000;
static uint8_t answers[1 << 16], frame[600], identity[64];
static size_t waiting, held, commands, got;
static uint16_t next_in, next_out;
static int length;

static void reply(int kind, uint16_t session, const uint8_t *payload, int n) {
  uint8_t body[300] = {(uint8_t)kind};
  uint16_t numbers[4] = {session, kind == OPENED ? 0 : next_out, next_in, 4096};
  int size = 1;
  for (int i = 0; i < 4; i++, size += 2) body[size] = (uint8_t)numbers[i], body[size + 1] = (uint8_t)(numbers[i] >> 8);
  body[size++] = (uint8_t)n;
  if (n) memcpy(body + size, payload, (size_t)n);
  size += n;
  uint32_t crc = ~0u;
  for (int i = 0; i < size; i++) {
    crc ^= body[i];
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  for (int i = 0; i < 4; i++) body[size++] = (uint8_t)(~crc >> 8 * i);
  answers[waiting++] = FLAG;
  for (int i = 0; i < size; i++) {
    bool escaped = body[i] == FLAG || body[i] == ESCAPE;
    if (escaped) answers[waiting++] = ESCAPE;
    answers[waiting++] = escaped ? body[i] ^ 0x20 : body[i];
  }
  answers[waiting++] = FLAG;
  if (kind != OPENED) next_out = (uint16_t)(next_out + n);
}

static void take(void) {
  uint8_t body[600], out[64];
  size_t n = 0;
  int size = 0;
  for (size_t i = 0; i < held; i++) body[n++] = frame[i] == ESCAPE ? frame[++i] ^ 0x20 : frame[i];
  if (n < HEADER + 4) return;
  uint16_t session = (uint16_t)(body[1] | body[2] << 8), place = (uint16_t)(body[3] | body[4] << 8);
  size_t bytes = body[HEADER - 1];
  if (body[0] == OPEN) {
    next_in = next_out = 0, got = commands = 0;
    reply(OPENED, session, identity, length);
    return;
  }
  if (place == next_in) got += bytes, next_in = (uint16_t)(next_in + bytes);
  for (; commands < 3 && got >= 13 * (commands + 1); commands++, size += 10) /* those of an opening */
    memset(out + size, 0, 10), out[size] = RESPONSE;
  const uint8_t *end = body + HEADER + bytes;
  if (bytes >= 3 && end[-3] == MARK_IN && !end[-2])
    out[size] = MARK_OUT, out[size + 1] = 0, out[size + 2] = end[-1], size += 3;
  reply(DATA, session, out, size);
}

static int read_line(void *context, uint8_t *to, size_t most, unsigned milliseconds) {
  (void)context;
  clock_ms += waiting && milliseconds ? 1 : milliseconds;
  size_t n = !milliseconds ? 0 : waiting < most ? waiting : most;
  memcpy(to, answers, n);
  memmove(answers, answers + n, waiting -= n);
  return (int)n;
}

static int write_line(void *context, const uint8_t *data, size_t bytes) {
  (void)context;
  for (size_t i = 0; i < bytes; i++) {
    if (data[i] != FLAG) {
      frame[held++] = data[i];
    } else {
      if (held) take();
      held = 0;
    }
  }
  return (int)bytes;
}

static uint64_t now(void *context) {
  (void)context;
  return clock_ms;
}

int main(int argc, char **argv) {
  static seu_link link;
  const seu_line line = {read_line, write_line, now, NULL};
  const seu_shape tiny = {4, 16, 24, 16};
  const seu_sink sink = {NULL, NULL, NULL};
  if (argc != 4) return 2;
  identity[0] = (uint8_t)atoi(argv[1]);
  length = atoi(argv[2]);
  unsigned pause = (unsigned)atoi(argv[3]);
  seu_init(&link, &line, &tiny, &sink);
  int error = seu_open(&link, 4711);
  printf("open %d\n", error);
  for (unsigned i = 0; !error && i < 2000; i++) {
    const seu_tuple tuple = {0, true, (uint64_t)i * 100, i + 1, {5}};
    error = seu_push(&link, &tuple);
    clock_ms += pause;
  }
  if (!error) error = seu_finish(&link);
  printf("all %d\n", error);
  return 0;
}
