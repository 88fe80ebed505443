/* base/err.h - done, gone, failed.
 *
 * A function that can fail returns TL_OK, TL_GONE (the task, process or module
 * vanished meanwhile: data, not an error) or a negative errno. The line that
 * fails writes the text with tl_fail(); those in the middle return the value;
 * the command line prints tl_error_text().
 *
 * The text belongs to the calling thread and lasts until its next tl_fail(). */
#ifndef TL_BASE_ERR_H
#define TL_BASE_ERR_H

#include <stddef.h>

enum { TL_OK = 0, TL_GONE = 1 };

/* Notes the text and returns ERR, a negative errno. The text says what failed,
 * why, and what to do about it, without "trapline: " and newline. */
int tl_fail(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3), cold));

/* The text of this thread's last tl_fail(), "" if none. */
const char *tl_error_text(void);

/* Allocation that cannot fail: aborts with a message when memory is out, which
 * no caller could do anything better about. */
void *tl_malloc(size_t n) __attribute__((malloc));
void *tl_calloc(size_t n, size_t size) __attribute__((malloc));
void *tl_realloc(void *p, size_t n);
char *tl_strdup(const char *s);
char *tl_strndup(const char *s, size_t n);
char *tl_asprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
