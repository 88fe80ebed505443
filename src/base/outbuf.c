#include "base/outbuf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

void tl_outbuf_init(struct tl_outbuf *o, int fd, size_t cap)
{
	*o = (struct tl_outbuf){.fd = fd, .cap = cap, .buf = tl_malloc(cap)};
}

static void write_all(struct tl_outbuf *o, const char *s, size_t n)
{
	while (n && !o->err) {
		ssize_t w = write(o->fd, s, n);

		if (w < 0) {
			if (errno != EINTR)
				o->err = -errno;
			continue;
		}
		s += w;
		n -= w;
		o->written += w;
	}
}

int tl_outbuf_flush(struct tl_outbuf *o)
{
	write_all(o, o->buf, o->n);
	o->n = 0;
	return o->err;
}

void tl_outbuf_write(struct tl_outbuf *o, const void *s, size_t n)
{
	if (n > o->cap - o->n)
		tl_outbuf_flush(o);
	if (n > o->cap) {
		write_all(o, s, n);
		return;
	}
	memcpy(o->buf + o->n, s, n);
	o->n += n;
}

void tl_outbuf_puts(struct tl_outbuf *o, const char *s)
{
	tl_outbuf_write(o, s, strlen(s));
}

void tl_outbuf_printf(struct tl_outbuf *o, const char *fmt, ...)
{
	char small[512], *s = small;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(small, sizeof small, fmt, ap);
	va_end(ap);
	if ((size_t)n >= sizeof small) {
		s = tl_malloc(n + 1);
		va_start(ap, fmt);
		vsnprintf(s, n + 1, fmt, ap);
		va_end(ap);
	}
	tl_outbuf_write(o, s, n);
	if (s != small)
		free(s);
}

void tl_outbuf_fini(struct tl_outbuf *o)
{
	free(o->buf);
	o->buf = NULL;
}
