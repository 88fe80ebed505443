/* base/outbuf.h - buffered writing to a descriptor, errors kept until asked for.
 *
 * After a failed write everything is dropped; tl_outbuf_flush() tells. */
#ifndef TL_BASE_OUTBUF_H
#define TL_BASE_OUTBUF_H

#include <stddef.h>
#include <stdint.h>

struct tl_outbuf {
	int fd, err; /* err: 0 or a negative errno */
	size_t n, cap;
	uint64_t written; /* bytes that reached the descriptor */
	char *buf;
};

void tl_outbuf_init(struct tl_outbuf *o, int fd, size_t cap);
void tl_outbuf_write(struct tl_outbuf *o, const void *s, size_t n);
void tl_outbuf_puts(struct tl_outbuf *o, const char *s);
void tl_outbuf_printf(struct tl_outbuf *o, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* TL_OK, or the first error met since init, a negative errno (no text noted). */
int tl_outbuf_flush(struct tl_outbuf *o);
/* Does not flush, does not close. */
void tl_outbuf_fini(struct tl_outbuf *o);

#endif
