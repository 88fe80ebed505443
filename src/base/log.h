/* base/log.h - messages to the person at the terminal.
 *
 * Code below cli/ neither prints nor exits: it hands a message to the sink that
 * cli/ has set. Without a sink messages are dropped. */
#ifndef TL_BASE_LOG_H
#define TL_BASE_LOG_H

enum tl_log_level {
	TL_LOG_WARNING, /* something the user should know: always shown but with -q */
	TL_LOG_NOTE,	/* what is going on: with -v */
	TL_LOG_DEBUG,	/* for us: with -v -v */
};

typedef void tl_log_sink(enum tl_log_level level, const char *text);

/* Set before threads start. The text has no newline and no "trapline: ". */
void tl_log_set_sink(tl_log_sink *sink, enum tl_log_level most);

void tl_log(enum tl_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define tl_warn(...)  tl_log(TL_LOG_WARNING, __VA_ARGS__)
#define tl_note(...)  tl_log(TL_LOG_NOTE, __VA_ARGS__)
#define tl_debug(...) tl_log(TL_LOG_DEBUG, __VA_ARGS__)

#endif
