#include "base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

static void reserve(struct tl_strbuf *b, size_t more)
{
	if (b->n + more + 1 <= b->cap)
		return;
	b->cap = (b->n + more + 1) * 2;
	b->s = tl_realloc(b->s, b->cap);
}

void tl_strbuf_add(struct tl_strbuf *b, const void *s, size_t n)
{
	reserve(b, n);
	memcpy(b->s + b->n, s, n);
	b->s[b->n += n] = 0;
}

void tl_strbuf_puts(struct tl_strbuf *b, const char *s)
{
	tl_strbuf_add(b, s, strlen(s));
}

void tl_strbuf_putc(struct tl_strbuf *b, char c)
{
	tl_strbuf_add(b, &c, 1);
}

void tl_strbuf_printf(struct tl_strbuf *b, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	reserve(b, n);
	va_start(ap, fmt);
	vsnprintf(b->s + b->n, n + 1, fmt, ap);
	va_end(ap);
	b->n += n;
}

const char *tl_strbuf_text(const struct tl_strbuf *b)
{
	return b->s ? b->s : "";
}

void tl_strbuf_clear(struct tl_strbuf *b)
{
	b->n = 0;
	if (b->s)
		b->s[0] = 0;
}

char *tl_strbuf_take(struct tl_strbuf *b)
{
	char *s = b->s ? b->s : tl_strdup("");

	*b = (struct tl_strbuf){0};
	return s;
}

void tl_strbuf_fini(struct tl_strbuf *b)
{
	free(b->s);
	*b = (struct tl_strbuf){0};
}
