/* base/map.h - hash tables: 64-bit keys or strings to pointers.
 *
 * Zero-initialised is empty. Values are borrowed; NULL means absent and cannot
 * be stored. String keys are borrowed too and must outlive the map. */
#ifndef TL_BASE_MAP_H
#define TL_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_map_slot {
	uint64_t key;
	void *value;
};
struct tl_map {
	struct tl_map_slot *slots;
	size_t n, used, mask; /* used counts tombstones too */
};

void *tl_map_get(const struct tl_map *m, uint64_t key);
/* Replaces what was there. */
void tl_map_put(struct tl_map *m, uint64_t key, void *value);
/* Returns what was there, or NULL. */
void *tl_map_remove(struct tl_map *m, uint64_t key);
/* Walks in no order; *POS starts at 0; false at the end. The map must not change meanwhile. */
bool tl_map_next(const struct tl_map *m, size_t *pos, uint64_t *key, void **value);
void tl_map_fini(struct tl_map *m);

struct tl_strmap_slot {
	const char *key;
	uint64_t hash;
	void *value;
};
struct tl_strmap {
	struct tl_strmap_slot *slots;
	size_t n, mask;
};

void *tl_strmap_get(const struct tl_strmap *m, const char *key);
void tl_strmap_put(struct tl_strmap *m, const char *key, void *value);
void tl_strmap_fini(struct tl_strmap *m);

#endif
