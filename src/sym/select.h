/* sym/select.h - which functions the user asked for: -f -x -l --source.
 *
 * Patterns are globs, anchored, on the demangled name without parameters (with
 * them when the pattern contains `('), blanks do not count; `module::' in front
 * picks a module; `re:' makes it a PCRE2 expression (unanchored, as usual there).
 * Any alias, the raw name and, for a clone (f.isra.0), its function's name match too.
 * A pattern with `module::' selects in that module whatever -l says; one without selects
 * in those that -l names, or in the executable when there is no -l. */
#ifndef TL_SYM_SELECT_H
#define TL_SYM_SELECT_H

#include "sym/image.h"

struct tl_select;

enum tl_select_kind { TL_SELECT_FUNCTION, TL_SELECT_EXCLUDE, TL_SELECT_LIBRARY, TL_SELECT_SOURCE };

struct tl_select *tl_select_new(void);
/* A negative errno with a text that names the pattern and what is wrong with it. */
int tl_select_add(struct tl_select *s, enum tl_select_kind kind, const char *pattern);
void tl_select_free(struct tl_select *s);

/* Whether any function of this module could match: others need not be read. */
bool tl_select_module(const struct tl_select *s, const struct tl_image *img, bool is_main);
/* Whether modules other than executables were asked for, which may be loaded at any time. */
bool tl_select_libraries(const struct tl_select *s);
bool tl_select_func(const struct tl_select *s, const struct tl_func *f, bool is_main);

/* One pattern, as --within, --start-on, --stop-on, --baseline take it; errors as above. */
struct tl_pattern;
int tl_pattern_new(const char *text, struct tl_pattern **out);
void tl_pattern_free(struct tl_pattern *p);
/* By any of its names; `module::' in front must fit its module. */
bool tl_pattern_matches(const struct tl_pattern *p, const struct tl_func *f, bool is_main);

/* When nothing matched: the text that says what would have (nearest names, other
 * modules, "no symbols at all"), for the modules given. Owned by the caller. */
char *tl_select_explain(const struct tl_select *s, struct tl_image *const *images, size_t n);

#endif
