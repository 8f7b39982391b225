#include "seustream_link.h"

#include <string.h>

enum { VERSION = 3, FLAG = 0x7e, ESCAPE = 0x7d, ESCAPED = 0x20 };
enum { OPEN = 1, OPENED = 2, DATA = 3, ASK = 4, LOST = 5, GAP = 6 };
enum { COMMAND = 1, RAW = 2, MARK_IN = 3 };
enum { RESPONSE = 1, RESULT = 2, HANDED_OVER = 3, MARK_OUT = 4, RESULTS = 5 };
enum { WRITE = 1, ABORT = 3, RESET = 4, RESUME = 6 };
enum { HEADER = 10, TRAILER = 4, MOST = 248, LEAST = 16, STEP = 8, AHEAD = 8, CREDIT = 4096 };

/* --- numbers ---------------------------------------------------------------------------------- */

static size_t bytes_of(unsigned bits) { return (bits + 7) / 8; }

static uint64_t low_bits(uint64_t value, unsigned bits) { return bits < 64 ? value & ((1ull << bits) - 1) : value; }

static void put_number(uint8_t **to, size_t bytes, uint64_t value) {
  for (; bytes--; value >>= 8) *(*to)++ = (uint8_t)value;
}

static uint64_t get_number(const uint8_t **from, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; i++) value |= (uint64_t) * (*from)++ << 8 * i;
  return value;
}

static uint32_t crc32_of(const uint8_t *data, size_t bytes) {
  uint32_t crc = 0xffffffffu;
  while (bytes--) {
    crc ^= *data++;
    for (int i = 0; i < 8; i++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

static unsigned get16(const uint8_t *from) { return from[0] | (unsigned)from[1] << 8; }

/* --- frames ----------------------------------------------------------------------------------- */

static int send_frame(seu_link *link, int kind, uint16_t place, const uint8_t *payload, size_t bytes) {
  uint8_t body[HEADER + MOST + TRAILER], line[2 * sizeof body + 2];
  const uint16_t numbers[] = {link->number, place, link->next, CREDIT};
  size_t n = 0, m = 0;
  body[n++] = (uint8_t)kind;
  for (int i = 0; i < 4; i++) {
    body[n++] = (uint8_t)numbers[i];
    body[n++] = (uint8_t)(numbers[i] >> 8);
  }
  body[n++] = (uint8_t)bytes;
  if (bytes) memcpy(body + n, payload, bytes);
  n += bytes;
  uint32_t crc = crc32_of(body, n);
  for (int i = 0; i < 4; i++) body[n++] = (uint8_t)(crc >> 8 * i);
  line[m++] = FLAG;
  for (size_t i = 0; i < n; i++) {
    bool special = body[i] == FLAG || body[i] == ESCAPE;
    if (special) line[m++] = ESCAPE;
    line[m++] = special ? body[i] ^ ESCAPED : body[i];
  }
  line[m++] = FLAG;
  if (kind != OPEN) link->owes = false;
  return link->line.write(link->line.context, line, m) < 0 ? SEU_LINE : SEU_OK;
}

/* Returns the number of bytes after the head of a message, or -1 if no board sends such a message. */
static int message_bytes(const seu_link *link, unsigned head) {
  size_t time = bytes_of(link->shape.timestamp_width), sequence = bytes_of(link->shape.sequence_width), bytes;
  switch (head & 7) {
    case RESPONSE: return 8;
    case RESULT:
    case RESULTS:
      bytes = 1 + ((head & 7) == RESULTS) * 8 + (head >> 9 & 1) * time + (head >> 10 & 1) * 2 + (head >> 11 & 1) * time;
      for (unsigned i = 0; i < SEU_STREAMS; i++) bytes += (head >> (12 + i) & 1) * sequence;
      return (int)bytes;
    case HANDED_OVER: return (int)(2 * sequence);
    case MARK_OUT: return 1;
    default: return -1;
  }
}

static void take_message(seu_link *link, unsigned head) {
  unsigned times = link->shape.timestamp_width;
  size_t time = bytes_of(times), sequence = bytes_of(link->shape.sequence_width);
  const uint8_t *at = link->message + 2;
  switch (head & 7) {
    case RESPONSE:
      link->answer = get_number(&at, 8);
      if (!link->refused) link->refused = head >> 3 & 15;
      if (link->pending) link->pending--;
      break;
    case RESULT:
    case RESULTS: {
      seu_result result = {head >> 12, UINT64_C(1) << (head >> 3 & 63), 0, 0, {0}};
      uint64_t step = get_number(&at, 1), age = 0;
      if ((head & 7) == RESULTS) result.queries = get_number(&at, 8);
      result.newest = head >> 9 & 1 ? get_number(&at, time) : low_bits(link->newest + step, times);
      if (head >> 10 & 1) age = get_number(&at, 2);
      result.oldest = head >> 11 & 1 ? get_number(&at, time) : low_bits(result.newest - age, times);
      for (unsigned i = 0; i < SEU_STREAMS; i++)
        if (result.carries >> i & 1) result.sequences[i] = get_number(&at, sequence);
      link->newest = result.newest;
      if (link->sink.result) link->sink.result(link->sink.context, &result);
      break;
    }
    case HANDED_OVER: {
      seu_handed_over left = {head >> 3 & 3, head >> 5 & 3, 0, 0};
      left.sequence = get_number(&at, sequence);
      left.taken_by = get_number(&at, sequence);
      if (link->sink.handed_over) link->sink.handed_over(link->sink.context, &left);
      break;
    }
    default: link->marked = *at;
  }
}

static void take_bytes(seu_link *link, const uint8_t *data, size_t bytes) {
  while (bytes-- && !link->broken) {
    link->message[link->filled++] = *data++;
    if (link->filled < 2) continue;
    unsigned head = get16(link->message);
    int length = message_bytes(link, head);
    if (length < 0) link->broken = true; /* out of step */
    if (link->filled == 2 + (size_t)length) {
      take_message(link, head);
      link->filled = 0;
    }
  }
}

static void take_data(seu_link *link, const uint8_t *body, size_t bytes) {
  uint16_t place = (uint16_t)get16(body + 3), ack = (uint16_t)get16(body + 5);
  uint16_t gone = (uint16_t)(ack - link->first);
  if (gone > link->waiting) return; /* from before the last acknowledgement */
  memmove(link->out, link->out + gone, link->waiting - gone);
  link->waiting -= gone;
  link->sent = link->sent > gone ? link->sent - gone : 0;
  link->first = ack;
  link->limit = (uint16_t)(ack + get16(body + 7));
  if (body[0] == GAP) link->sent = 0; /* the bytes after `ack` were lost */
  if (!bytes) return;
  if (place == link->next) {
    link->next = (uint16_t)(link->next + bytes);
    link->gap_asked = false;
    take_bytes(link, body + HEADER, bytes);
  } else if ((uint16_t)(place - link->next) <= CREDIT && !link->gap_asked) {
    link->gap = link->gap_asked = true;
  }
  link->owes = true;
}

/* Takes the bytes between two flags. */
static void take_frame(seu_link *link) {
  uint8_t *body = link->between;
  size_t n = 0;
  for (size_t i = 0; i < link->held; i++) {
    bool escaped = body[i] == ESCAPE;
    if (escaped && ++i == link->held) return;
    body[n++] = escaped ? body[i] ^ ESCAPED : body[i];
  }
  if (n < HEADER + TRAILER || n != (size_t)HEADER + body[HEADER - 1] + TRAILER) return;
  uint32_t crc = crc32_of(body, n - TRAILER);
  for (int i = 0; i < 4; i++)
    if (body[n - TRAILER + i] != (uint8_t)(crc >> 8 * i)) return;
  if (get16(body + 1) != link->number) return;
  link->heard = link->line.now(link->line.context);
  link->silent = false;
  if (body[0] == OPENED && (body[HEADER - 1] != SEU_IDENTITY || body[HEADER] != VERSION)) {
    link->broken = true;
  } else if (body[0] == OPENED) {
    memcpy(link->identity, body + HEADER, SEU_IDENTITY);
    link->limit = (uint16_t)(get16(body + 5) + get16(body + 7));
    link->opened = true;
  } else if (body[0] == LOST) {
    link->lost = link->opened;
  } else if ((body[0] == DATA || body[0] == GAP) && link->opened) {
    take_data(link, body, body[HEADER - 1]);
  }
}

static int listen(seu_link *link, unsigned milliseconds) {
  uint8_t data[1500];
  int n = link->line.read(link->line.context, data, sizeof data, milliseconds);
  if (n < 0) return SEU_LINE;
  for (int i = 0; i < n; i++) {
    if (data[i] == FLAG) {
      if (link->held && link->held < sizeof link->between) take_frame(link);
      link->held = 0;
    } else if (link->held < sizeof link->between) {
      link->between[link->held++] = data[i]; /* a longer run of bytes is no frame */
    }
  }
  return SEU_OK;
}

/* --- the session ------------------------------------------------------------------------------ */

static int transmit(seu_link *link) {
  for (;;) {
    uint16_t place = (uint16_t)(link->first + link->sent), room = (uint16_t)(link->limit - place);
    size_t bytes = link->waiting - link->sent;
    if (room > 0x8000) room = 0; /* the place is beyond the limit */
    if (bytes > room) bytes = room;
    if (bytes > link->most) bytes = link->most;
    if (!bytes || link->sent >= AHEAD * link->most) break;
    if (send_frame(link, DATA, place, link->out + link->sent, bytes) < 0) return SEU_LINE;
    link->sent += bytes;
  }
  return link->owes ? send_frame(link, DATA, (uint16_t)(link->first + link->sent), NULL, 0) : SEU_OK;
}

static int ask(seu_link *link) {
  link->asks_at = link->line.now(link->line.context) + link->waits;
  link->silent = true;
  return send_frame(link, ASK, (uint16_t)(link->first + link->sent), NULL, 0);
}

/* Sends as much as the board accepts, and takes what comes in. */
static int step(seu_link *link) {
  uint16_t next = link->next, first = link->first;
  int error = transmit(link);
  if (error) return error;
  uint64_t now = link->line.now(link->line.context);
  error = listen(link, link->asks_at > now ? (unsigned)(link->asks_at - now) : 0);
  if (error) return error;
  if (link->broken) return SEU_PROTOCOL;
  if (link->lost) return SEU_LOST;
  now = link->line.now(link->line.context);
  if (next != link->next || first != link->first) {
    link->waits = link->wait;
    link->asks_at = now + link->waits;
    if (first != link->first) link->most = link->most + STEP > MOST ? MOST : link->most + STEP;
  } else if (now >= link->asks_at) {
    if (now - link->heard > link->patience) return SEU_NO_ANSWER;
    link->waits = !link->silent ? link->wait : link->waits < 4 * link->wait ? 2 * link->waits : 8 * link->wait;
    if (link->sent) link->most = link->most / 2 < LEAST ? LEAST : link->most / 2;
    link->sent = 0; /* send all of it again */
    if ((error = ask(link))) return error;
  }
  if (link->gap) {
    link->gap = false;
    if ((error = ask(link))) return error;
  }
  return transmit(link);
}

static int put(seu_link *link, const uint8_t *data, size_t bytes) {
  /* While the host was elsewhere, nobody listened. */
  link->heard = link->line.now(link->line.context);
  link->asks_at = link->heard + link->wait;
  while (link->waiting + bytes > sizeof link->out) {
    int error = step(link);
    if (error) return error;
  }
  memcpy(link->out + link->waiting, data, bytes);
  link->waiting += bytes;
  return SEU_OK;
}

void seu_init(seu_link *link, const seu_line *line, const seu_shape *shape, const seu_sink *sink) {
  memset(link, 0, sizeof *link);
  link->line = *line, link->shape = *shape, link->sink = *sink;
  link->wait = 100, link->patience = 5000;
}

static int open_as(seu_link *link, uint16_t number) {
  uint64_t began = link->line.now(link->line.context);
  link->number = number;
  link->first = link->limit = link->next = 0;
  link->time = link->newest = link->now = 0;
  link->begun = false;
  memset(link->last, 0, sizeof link->last);
  link->waiting = link->sent = link->held = link->filled = 0;
  link->opened = link->lost = link->broken = link->gap = link->gap_asked = link->owes = false;
  link->most = MOST, link->waits = link->wait, link->pending = link->refused = 0;
  for (;;) {
    uint64_t now = link->line.now(link->line.context), until = now + link->waits;
    if (now - began > link->patience) return SEU_NO_ANSWER;
    int error = send_frame(link, OPEN, 0, NULL, 0);
    while (!error && !link->opened && !link->broken && (now = link->line.now(link->line.context)) < until)
      error = listen(link, (unsigned)(until - now));
    if (error) return error;
    if (link->broken) return SEU_PROTOCOL;
    if (link->opened) break;
    if (link->waits < 8 * link->wait) link->waits *= 2;
  }
  link->waits = link->wait;
  link->heard = link->line.now(link->line.context);
  link->asks_at = link->heard + link->wait;
  return SEU_OK;
}

/* --- messages --------------------------------------------------------------------------------- */

static int put_command(seu_link *link, const uint32_t words[3]) {
  uint8_t message[13] = {COMMAND}, *end = message + 2;
  put_number(&end, 3, words[0]);
  put_number(&end, 4, words[1]);
  put_number(&end, 4, words[2]);
  link->pending++;
  return put(link, message, sizeof message);
}

static int settle(seu_link *link) {
  int error = SEU_OK;
  while (!error && link->pending) error = step(link);
  return error ? error : (int)link->refused;
}

int seu_command(seu_link *link, const uint32_t words[3], uint64_t *data) {
  link->refused = 0;
  int error = put_command(link, words);
  if (!error) error = settle(link);
  if (!error && data) *data = link->answer;
  return error;
}

int seu_open(seu_link *link, uint16_t chance) {
  static const uint32_t clean[][3] = {{ABORT, 0, 0}, {RESUME, 0, 0}, {RESET, 0, 0}};
  uint16_t number = chance ? chance : 1;
  int error = open_as(link, number);
  if (!error) error = open_as(link, (uint16_t)(number % 0xffff + 1));
  for (int i = 0; !error && i < 3; i++) {
    error = seu_command(link, clean[i], NULL);
    if (error > 0 && i < 2) error = SEU_OK; /* there was nothing to abort or resume */
  }
  return error;
}

int seu_load(seu_link *link, const uint32_t *words, size_t commands) {
  static const uint32_t abort_load[3] = {ABORT, 0, 0};
  int error = SEU_OK;
  link->refused = 0;
  for (; !error && commands; commands--, words += 3) {
    /* Writes are pipelined; any other command waits until all of them have been answered. */
    bool write = (words[0] & 7) == WRITE;
    if (!write) error = settle(link);
    if (!error) error = put_command(link, words);
    if (!error && !write) error = settle(link);
  }
  if (!error) error = settle(link);
  if (error > 0) {
    int kept = error;
    error = seu_command(link, abort_load, NULL);
    if (error >= 0) error = kept;
  }
  return error;
}

enum { ADMIT = 1u << 5, FILLER = 1u << 6 };

static int put_raw(seu_link *link, unsigned kind, const seu_tuple *tuple, uint64_t timestamp) {
  const seu_shape *s = &link->shape;
  uint8_t message[40], *end = message + 2;
  uint64_t *last = &link->last[tuple->stream];
  uint64_t time = low_bits(timestamp, s->timestamp_width), number = low_bits(tuple->sequence, s->sequence_width);
  uint64_t step = low_bits(time - link->time, s->timestamp_width);
  bool far = step > 255, other = number != low_bits(*last + 1, s->sequence_width);
  unsigned head = RAW | tuple->stream << 3 | kind | (unsigned)far << 7 | (unsigned)other << 8;
  put_number(&end, 1, far ? 0 : step);
  if (far) put_number(&end, bytes_of(s->timestamp_width), time);
  if (other) put_number(&end, bytes_of(s->sequence_width), number);
  for (unsigned i = 0; i < SEU_ATTRIBUTES && kind != FILLER; i++) {
    uint64_t value = low_bits(tuple->attributes[i], s->attribute_width);
    if (!value) continue;
    put_number(&end, bytes_of(s->attribute_width), value);
    head |= 1u << (9 + i);
  }
  link->time = time, *last = number;
  message[0] = (uint8_t)head, message[1] = (uint8_t)(head >> 8);
  return put(link, message, (size_t)(end - message));
}

int seu_push(seu_link *link, const seu_tuple *tuple) {
  /* Before a leap by more than half the range of the board's clock, a filler moves it by half of that: every
   * stored tuple that the leap takes out of its window is gone by then, however far it is. */
  uint64_t half = UINT64_C(1) << (link->shape.timestamp_width - 1);
  int error = SEU_OK;
  if (link->begun && tuple->timestamp - link->now > half) error = put_raw(link, FILLER, tuple, link->now + half);
  if (!error) error = put_raw(link, tuple->admit ? ADMIT : 0, tuple, tuple->timestamp);
  link->begun = true, link->now = tuple->timestamp;
  return error;
}

int seu_finish(seu_link *link) {
  uint8_t message[3] = {MARK_IN, 0, ++link->mark};
  link->marked = -1;
  int error = put(link, message, sizeof message);
  while (!error && link->marked != link->mark) error = step(link);
  return error;
}
