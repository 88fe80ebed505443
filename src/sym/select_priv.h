/* sym/select_priv.h - the inside of a selection: private to sym/. */
#ifndef TL_SYM_SELECT_PRIV_H
#define TL_SYM_SELECT_PRIV_H

#include "base/vec.h"
#include "sym/select.h"

enum { TL_SELECT_KINDS = TL_SELECT_SOURCE + 1 };

typedef TL_VEC(struct tl_pattern *) tl_pattern_vec;

struct tl_select {
	tl_pattern_vec by[TL_SELECT_KINDS];
};

bool tl_select_by_library(const struct tl_select *s, const struct tl_image *img, bool is_main);

#endif
