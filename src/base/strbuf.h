/* base/strbuf.h - a growing string, always terminated. Zero-initialised is "". */
#ifndef TL_BASE_STRBUF_H
#define TL_BASE_STRBUF_H

#include <stddef.h>

struct tl_strbuf {
	char *s; /* NULL while nothing was added: use tl_strbuf_text() */
	size_t n, cap;
};

void tl_strbuf_add(struct tl_strbuf *b, const void *s, size_t n);
void tl_strbuf_puts(struct tl_strbuf *b, const char *s);
void tl_strbuf_putc(struct tl_strbuf *b, char c);
void tl_strbuf_printf(struct tl_strbuf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
const char *tl_strbuf_text(const struct tl_strbuf *b);
void tl_strbuf_clear(struct tl_strbuf *b);
/* The caller owns the string; the buffer is empty afterwards. */
char *tl_strbuf_take(struct tl_strbuf *b);
void tl_strbuf_fini(struct tl_strbuf *b);

#endif
