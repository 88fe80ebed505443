#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"

/* A removed entry keeps its place, so that probing goes on behind it. */
#define TOMBSTONE ((void *)-1)

static uint64_t mix(uint64_t x)
{
	x ^= x >> 32;
	x *= 0x9e3779b97f4a7c15u;
	return x ^ x >> 29;
}

static struct tl_map_slot *find(const struct tl_map *m, uint64_t key)
{
	for (size_t i = mix(key);; i++) {
		struct tl_map_slot *s = &m->slots[i & m->mask];

		if (!s->value || (s->key == key && s->value != TOMBSTONE))
			return s;
	}
}

void *tl_map_get(const struct tl_map *m, uint64_t key)
{
	return m->n ? find(m, key)->value : NULL;
}

static void rehash(struct tl_map *m)
{
	struct tl_map old = *m;
	size_t size = 16;

	while (size < old.n * 4)
		size *= 2;
	*m = (struct tl_map){.slots = tl_calloc(size, sizeof *m->slots), .mask = size - 1};
	for (size_t i = 0; old.slots && i <= old.mask; i++) {
		void *v = old.slots[i].value;

		if (!v || v == TOMBSTONE)
			continue;
		*find(m, old.slots[i].key) = old.slots[i];
		m->n++;
		m->used++;
	}
	free(old.slots);
}

void tl_map_put(struct tl_map *m, uint64_t key, void *value)
{
	struct tl_map_slot *s;

	if (!m->slots || (m->used + 1) * 2 > m->mask + 1)
		rehash(m);
	s = find(m, key);
	if (!s->value) {
		m->n++;
		m->used++;
	}
	*s = (struct tl_map_slot){key, value};
}

void *tl_map_remove(struct tl_map *m, uint64_t key)
{
	struct tl_map_slot *s = m->n ? find(m, key) : NULL;
	void *was = s ? s->value : NULL;

	if (was) {
		s->value = TOMBSTONE;
		m->n--;
	}
	return was;
}

bool tl_map_next(const struct tl_map *m, size_t *pos, uint64_t *key, void **value)
{
	for (; m->slots && *pos <= m->mask; ++*pos) {
		struct tl_map_slot *s = &m->slots[*pos];

		if (!s->value || s->value == TOMBSTONE)
			continue;
		*key = s->key;
		*value = s->value;
		++*pos;
		return true;
	}
	return false;
}

void tl_map_fini(struct tl_map *m)
{
	free(m->slots);
	*m = (struct tl_map){0};
}

static uint64_t hash_of(const char *s)
{
	uint64_t h = 0xcbf29ce484222325u;

	while (*s)
		h = (h ^ (unsigned char)*s++) * 0x100000001b3u;
	return mix(h);
}

static struct tl_strmap_slot *strfind(const struct tl_strmap *m, const char *key, uint64_t hash)
{
	for (size_t i = hash;; i++) {
		struct tl_strmap_slot *s = &m->slots[i & m->mask];

		if (!s->value || (s->hash == hash && !strcmp(s->key, key)))
			return s;
	}
}

void *tl_strmap_get(const struct tl_strmap *m, const char *key)
{
	return m->n ? strfind(m, key, hash_of(key))->value : NULL;
}

static void strgrow(struct tl_strmap *m)
{
	struct tl_strmap old = *m;
	size_t size = old.slots ? (old.mask + 1) * 2 : 16;

	*m = (struct tl_strmap){tl_calloc(size, sizeof *m->slots), old.n, size - 1};
	for (size_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].value)
			*strfind(m, old.slots[i].key, old.slots[i].hash) = old.slots[i];
	free(old.slots);
}

void tl_strmap_put(struct tl_strmap *m, const char *key, void *value)
{
	uint64_t hash = hash_of(key);
	struct tl_strmap_slot *s;

	if (!m->slots || (m->n + 1) * 2 > m->mask + 1)
		strgrow(m);
	s = strfind(m, key, hash);
	if (!s->value)
		m->n++;
	*s = (struct tl_strmap_slot){key, hash, value};
}

void tl_strmap_fini(struct tl_strmap *m)
{
	free(m->slots);
	*m = (struct tl_strmap){0};
}
