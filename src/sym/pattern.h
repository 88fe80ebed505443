/* sym/pattern.h - one pattern as -f, -x, -l, --source take it: private to sym/. */
#ifndef TL_SYM_PATTERN_H
#define TL_SYM_PATTERN_H

#include "sym/image.h"
#include "sym/select.h"

const char *tl_pattern_text(const struct tl_pattern *p);
/* Whether the pattern picks its module itself (`libc::mem*') and picks this one. */
bool tl_pattern_names_module(const struct tl_pattern *p, const struct tl_image *img, bool is_main);
/* By the name alone, the pattern taken as a whole: `std::sort', not `module::name'. */
bool tl_pattern_matches_name(const struct tl_pattern *p, const struct tl_func *f);
/* The part behind `module::', whose module the caller has looked at. */
bool tl_pattern_matches_rest(const struct tl_pattern *p, const struct tl_func *f);
/* As a pattern for modules: short name, soname, base file name, path; `main'. */
bool tl_pattern_is_module(const struct tl_pattern *p, const struct tl_image *img, bool is_main);
/* As a pattern for source files: the path, or its end behind any slash. */
bool tl_pattern_is_source(const struct tl_pattern *p, const char *file);
/* What a person may have misspelt: the name without module and markup, or NULL (re:). */
const char *tl_pattern_word(const struct tl_pattern *p);

#endif
