/* event/lines.h - the lines of a file, in a large buffer.
 *
 * A line lasts until the next one is asked for. Its LF is not part of it, nor is a CR
 * before that; a last line without LF is one too. */
#ifndef TL_EVENT_LINES_H
#define TL_EVENT_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_lines {
	int fd;
	bool eof;
	uint64_t number; /* of the line returned last, from 1 */
	char *buf;
	size_t at, end, cap;
};

/* FD is borrowed. */
void tl_lines_init(struct tl_lines *l, int fd);
/* 1: a line, terminated by a NUL as well; 0: no more; a negative errno, no text noted. */
int tl_lines_next(struct tl_lines *l, char **line, size_t *n);
void tl_lines_fini(struct tl_lines *l);

#endif
