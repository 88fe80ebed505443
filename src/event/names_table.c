#include "event/names_table.h"

#include <stdlib.h>
#include <string.h>

static char *keep(struct tl_names *t, char *s)
{
	tl_vec_push(&t->strings, s);
	return s;
}

uint32_t tl_names_func(struct tl_names *t, const char *name, size_t n)
{
	struct tl_function_info f = {0};
	uintptr_t at;

	tl_strbuf_clear(&t->scratch);
	tl_strbuf_add(&t->scratch, name, n);
	at = (uintptr_t)tl_strmap_get(&t->by_name, tl_strbuf_text(&t->scratch));
	if (at)
		return at - 1;
	f.name = keep(t, tl_strndup(name, n));
	tl_vec_push(&t->funcs, f);
	tl_strmap_put(&t->by_name, f.name, (void *)t->funcs.n);
	return t->funcs.n - 1;
}

/* Ids are short hex numbers in practice, but any word is one. */
static struct tl_id *id_slot(struct tl_names *t, const char *id, size_t n, bool make)
{
	uint64_t packed = 0;
	uintptr_t at;

	if (n <= sizeof packed) {
		memcpy(&packed, id, n);
		at = (uintptr_t)tl_map_get(&t->short_ids, packed);
	} else {
		tl_strbuf_clear(&t->scratch);
		tl_strbuf_add(&t->scratch, id, n);
		at = (uintptr_t)tl_strmap_get(&t->long_ids, tl_strbuf_text(&t->scratch));
	}
	if (at)
		return &t->ids.at[at - 1];
	if (!make)
		return NULL;
	tl_vec_push(&t->ids, (struct tl_id){.func = -1});
	if (n <= sizeof packed)
		tl_map_put(&t->short_ids, packed, (void *)t->ids.n);
	else
		tl_strmap_put(&t->long_ids, keep(t, tl_strndup(id, n)), (void *)t->ids.n);
	return &t->ids.at[t->ids.n - 1];
}

uint32_t tl_names_of_id(struct tl_names *t, const char *id, size_t n)
{
	const struct tl_id *slot = id_slot(t, id, n, false);

	return slot && slot->func >= 0 ? (uint32_t)slot->func : tl_names_func(t, "", 0);
}

static unsigned word(const char *value, const char *const *names, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!strcmp(value, names[i]))
			return i;
	return 0;
}

static void describe(struct tl_names *t, uint32_t func, const char *text)
{
	struct tl_function_info *f = &t->funcs.at[func];
	char *v;

	if ((v = tl_note_value(text, "module")))
		f->module = keep(t, v);
	if ((v = tl_note_value(text, "file")))
		f->file = keep(t, v);
	if ((v = tl_note_value(text, "addr"))) {
		f->addr = strtoull(v, NULL, 0);
		free(v);
	}
	if ((v = tl_note_value(text, "line"))) {
		f->line = strtoul(v, NULL, 10);
		free(v);
	}
	if ((v = tl_note_value(text, "how"))) {
		f->how = word(v, tl_how_names, 4);
		free(v);
	}
	if ((v = tl_note_value(text, "self"))) {
		f->self = word(v, tl_self_names, 2);
		free(v);
	}
}

void tl_names_define(struct tl_names *t, const char *id, size_t n, const char *name)
{
	uint32_t func = tl_names_func(t, name, strlen(name));
	struct tl_id *slot = id_slot(t, id, n, true);

	slot->func = func;
	if (slot->about)
		describe(t, func, slot->about);
	free(slot->about);
	slot->about = NULL;
}

void tl_names_about(struct tl_names *t, const char *text)
{
	size_t n = strcspn(text, " \t");
	char *name = tl_note_value(text, "name");
	struct tl_id *slot;

	if (name) { /* the dialect of 1997 has no ids */
		describe(t, tl_names_func(t, name, strlen(name)), text);
		free(name);
		return;
	}
	slot = id_slot(t, text, n, true);
	if (slot->func >= 0) {
		describe(t, slot->func, text);
		return;
	}
	free(slot->about);
	slot->about = tl_strdup(text);
}

void tl_names_fini(struct tl_names *t)
{
	for (size_t i = 0; i < t->ids.n; i++)
		free(t->ids.at[i].about);
	for (size_t i = 0; i < t->strings.n; i++)
		free(t->strings.at[i]);
	tl_vec_fini(&t->strings);
	tl_vec_fini(&t->funcs);
	tl_vec_fini(&t->ids);
	tl_map_fini(&t->short_ids);
	tl_strmap_fini(&t->long_ids);
	tl_strmap_fini(&t->by_name);
	tl_strbuf_fini(&t->scratch);
}
