/* event/names_table.h - functions by name, and which id of the file means which.
 *
 * Two ids with one name are one function: that is how dprofpp counts. An id may be
 * given to another function on the way. */
#ifndef TL_EVENT_NAMES_TABLE_H
#define TL_EVENT_NAMES_TABLE_H

#include "base/map.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "trapline/reader.h"

struct tl_id {
	int64_t func; /* -1: not defined yet */
	char *about;  /* a `#! func' line that came before its `&' line */
};

struct tl_names {
	TL_VEC(struct tl_function_info) funcs;
	TL_VEC(struct tl_id) ids;
	struct tl_map short_ids; /* up to 8 bytes, packed: index + 1 */
	struct tl_strmap long_ids;
	struct tl_strmap by_name; /* function index + 1 */
	TL_VEC(char *) strings;	  /* what the tables above borrow */
	struct tl_strbuf scratch;
};

uint32_t tl_names_func(struct tl_names *t, const char *name, size_t n);
/* The function ID means now; "" for one that was never defined. */
uint32_t tl_names_of_id(struct tl_names *t, const char *id, size_t n);
void tl_names_define(struct tl_names *t, const char *id, size_t n, const char *name);
/* TEXT of a `#! func' line, behind the word func. */
void tl_names_about(struct tl_names *t, const char *text);
void tl_names_fini(struct tl_names *t);

#endif
