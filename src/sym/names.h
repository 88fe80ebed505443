/* sym/names.h - spelling of names: private to sym/. */
#ifndef TL_SYM_NAMES_H
#define TL_SYM_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether it could be a mangled C++, Rust or D name. */
bool tl_name_is_mangled(const char *raw);
/* Length of a mangled name without the suffix that names a clone (.isra.0). */
size_t tl_name_stem(const char *raw);
/* Makes a name fit for a profile, in place (SPEC.md 1.4). */
void tl_name_clean(char *s);
/* Length of a (demangled) name without its clone suffixes: f.isra.0 -> 1. */
size_t tl_name_without_clone(const char *name);

#endif
