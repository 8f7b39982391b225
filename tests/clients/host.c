/* Loads words, pushes tuples and prints what comes: `host PORT WORDS TUPLES`, the shape, and patience. */
#include <stdio.h>
#include <stdlib.h>

#include "seustream_posix.h"

static void result(void *context, const seu_result *r) {
  const seu_shape *shape = context;
  printf("result %llu %u %llu %llu", (unsigned long long)r->queries, r->carries, (unsigned long long)r->newest,
         (unsigned long long)r->oldest);
  for (unsigned i = 0; i < shape->streams; i++)
    printf(" %lld", r->carries >> i & 1 ? (long long)r->sequences[i] : -1LL);
  printf("\n");
}

static void handed_over(void *context, const seu_handed_over *left) {
  (void)context;
  printf("left %u %llu %u %llu\n", left->stream, (unsigned long long)left->sequence, left->taker,
         (unsigned long long)left->taken_by);
}

static int failed(const char *what, int error) {
  fprintf(stderr, "%s: %d\n", what, error);
  return 2;
}

int main(int argc, char **argv) {
  static uint32_t words[3 * 20000];
  static seu_link link;
  int file, error;
  if (argc != 9) return failed("arguments", argc);
  seu_shape shape = {(unsigned)atoi(argv[4]), (unsigned)atoi(argv[5]), (unsigned)atoi(argv[6]),
                     (unsigned)atoi(argv[7])};
  seu_sink sink = {result, handed_over, &shape};
  seu_line line = seu_udp("127.0.0.1", argv[1], &file);
  if (!line.read) return failed("socket", file);
  FILE *from = fopen(argv[2], "rb");
  size_t commands = fread(words, 12, 20000, from);
  fclose(from);
  seu_init(&link, &line, &shape, &sink);
  link.wait = 400;
  link.patience = (unsigned)atoi(argv[8]);
  if ((error = seu_open(&link, 4711))) return failed("open", error);
  if ((error = seu_load(&link, words, commands))) return failed("load", error);
  from = fopen(argv[3], "r");
  seu_tuple t;
  unsigned admit;
  unsigned long long timestamp, sequence;
  while (fscanf(from, "%u %u %llu %llu %u %u %u %u", &t.stream, &admit, &timestamp, &sequence,
                &t.attributes[0], &t.attributes[1], &t.attributes[2], &t.attributes[3]) == 8) {
    t.admit = admit, t.timestamp = timestamp, t.sequence = sequence;
    if ((error = seu_push(&link, &t))) return failed("push", error);
  }
  fclose(from);
  if ((error = seu_finish(&link))) return failed("finish", error);
  const uint32_t read_taken[3] = {7, 0, 0};
  uint64_t taken;
  if ((error = seu_command(&link, read_taken, &taken))) return failed("read", error);
  printf("taken %llu\n", (unsigned long long)taken);
  const uint32_t unknown[3] = {1, 0, 0}; /* a write outside of a load */
  printf("refused %d\n", seu_command(&link, unknown, NULL));
  return 0;
}
