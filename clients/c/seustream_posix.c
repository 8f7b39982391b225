#define _POSIX_C_SOURCE 200809L
#include "seustream_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int read_file(void *context, uint8_t *to, size_t most, unsigned milliseconds) {
  struct pollfd file = {*(int *)context, POLLIN, 0};
  if (poll(&file, 1, (int)milliseconds) <= 0) return 0;
  ssize_t n = read(file.fd, to, most);
  if (n >= 0) return (int)n;
  /* If nothing listens there yet, it may still come up. */
  return errno == EAGAIN || errno == EINTR || errno == ECONNREFUSED ? 0 : -1;
}

static int write_file(void *context, const uint8_t *data, size_t bytes) {
  while (bytes) {
    ssize_t n = write(*(int *)context, data, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == ECONNREFUSED || errno == ENOBUFS ? 0 : -1; /* lost on the way */
    data += n, bytes -= (size_t)n;
  }
  return 0;
}

static uint64_t now(void *context) {
  struct timespec t;
  (void)context;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static seu_line line_of(int *file) {
  seu_line line = {*file < 0 ? NULL : read_file, write_file, now, file};
  return line;
}

seu_line seu_udp(const char *host, const char *port, int *file) {
  struct addrinfo want = {0}, *found = NULL;
  want.ai_socktype = SOCK_DGRAM;
  *file = -1;
  if (getaddrinfo(host, port, &want, &found)) errno = EHOSTUNREACH;
  for (struct addrinfo *each = found; each && *file < 0; each = each->ai_next) {
    *file = socket(each->ai_family, each->ai_socktype, each->ai_protocol);
    if (*file >= 0 && connect(*file, each->ai_addr, each->ai_addrlen)) {
      close(*file);
      *file = -1;
    }
  }
  if (found) freeaddrinfo(found);
  return line_of(file);
}

seu_line seu_serial(const char *device, int *file) {
  *file = open(device, O_RDWR | O_NOCTTY);
  return line_of(file);
}
