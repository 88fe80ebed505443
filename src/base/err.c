#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char text[1024];

int tl_fail(int err, const char *fmt, ...)
{
	/* The arguments may be the old text: format aside first. */
	char next[sizeof text];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(next, sizeof next, fmt, ap);
	va_end(ap);
	memcpy(text, next, sizeof text);
	return err;
}

const char *tl_error_text(void)
{
	return text;
}

static void *checked(void *p)
{
	if (!p) {
		fputs("trapline: out of memory\n", stderr);
		abort();
	}
	return p;
}

void *tl_malloc(size_t n)
{
	return checked(malloc(n ? n : 1));
}

void *tl_calloc(size_t n, size_t size)
{
	return checked(calloc(n ? n : 1, size ? size : 1));
}

void *tl_realloc(void *p, size_t n)
{
	return checked(realloc(p, n ? n : 1));
}

char *tl_strdup(const char *s)
{
	return checked(strdup(s));
}

char *tl_strndup(const char *s, size_t n)
{
	return checked(strndup(s, n));
}

char *tl_asprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return checked(s);
}
