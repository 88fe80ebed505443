/* sym/glob.h - globs over names in which blanks do not count: private to sym/.
 *
 * `*' any run, `?' one character, `[a-z]' `[!x]' a set, `\c' that character; `[]' stands
 * for itself (operator[]), and a pattern that equals the name matches whatever it holds.
 * A blank in the pattern matches the `_' that it became in the name, or nothing; a `_' that
 * was one for sure (behind `)', `>', `*', `&', `]' or `}') need not be matched. */
#ifndef TL_SYM_GLOB_H
#define TL_SYM_GLOB_H

#include <stdbool.h>
#include <stddef.h>

struct tl_glob;

/* A negative errno for a pattern that is too long. */
int tl_glob_new(const char *pattern, struct tl_glob **out);
void tl_glob_free(struct tl_glob *g);
/* Anchored at both ends of the N bytes at S. */
bool tl_glob_match(const struct tl_glob *g, const char *s, size_t n);

#endif
