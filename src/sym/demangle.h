/* sym/demangle.h - names of C++, Rust and D, through libiberty. */
#ifndef TL_SYM_DEMANGLE_H
#define TL_SYM_DEMANGLE_H

#include <stdbool.h>

/* Demangled and without blanks as SPEC.md 1.4 advises; a clone suffix (.isra.0,
 * .constprop.1) kept at the end. PARAMETERS: with the parameter list. Never NULL;
 * owned by the caller. */
char *tl_demangle(const char *raw, bool parameters);

#endif
