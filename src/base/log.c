#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

static tl_log_sink *the_sink;
static enum tl_log_level the_most;

void tl_log_set_sink(tl_log_sink *sink, enum tl_log_level most)
{
	the_sink = sink;
	the_most = most;
}

void tl_log(enum tl_log_level level, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	if (!the_sink || level > the_most)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	the_sink(level, text);
}
