#include "event/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

enum { CHUNK = 1 << 18 };

void tl_lines_init(struct tl_lines *l, int fd)
{
	memset(l, 0, sizeof *l);
	l->fd = fd;
}

/* Moves what is left to the front and reads on. */
static int fill(struct tl_lines *l)
{
	ssize_t got;

	if (l->at) {
		memmove(l->buf, l->buf + l->at, l->end - l->at);
		l->end -= l->at;
		l->at = 0;
	}
	if (l->cap - l->end < CHUNK) {
		l->cap = l->cap ? l->cap * 2 : 2 * CHUNK;
		l->buf = tl_realloc(l->buf, l->cap + 1); /* room for a NUL */
	}
	do
		got = read(l->fd, l->buf + l->end, l->cap - l->end);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	l->eof = got == 0;
	l->end += got;
	return 0;
}

int tl_lines_next(struct tl_lines *l, char **line, size_t *n)
{
	size_t seen = 0;
	char *lf;

	while (!(lf = l->end > l->at + seen
			  ? memchr(l->buf + l->at + seen, '\n', l->end - l->at - seen)
			  : NULL)) {
		int r;

		if (l->eof)
			break;
		seen = l->end - l->at;
		r = fill(l);
		if (r < 0)
			return r;
	}
	if (!lf && l->at == l->end)
		return 0;
	*line = l->buf + l->at;
	*n = lf ? (size_t)(lf - *line) : l->end - l->at;
	l->at += *n + (lf ? 1 : 0);
	if (*n && (*line)[*n - 1] == '\r')
		--*n;
	(*line)[*n] = 0;
	l->number++;
	return 1;
}

void tl_lines_fini(struct tl_lines *l)
{
	free(l->buf);
	memset(l, 0, sizeof *l);
	l->fd = -1;
}
