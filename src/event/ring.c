#include "event/ring.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/err.h"

/* Each side's own words on a cache line of their own: the line of the other side is read
 * only when its last known position does not suffice. */
struct tl_ring {
	size_t mask;
	struct tl_ring_entry *at;
	_Alignas(64) _Atomic size_t head; /* next to write: the producer's */
	size_t tail_seen;
	_Alignas(64) _Atomic size_t tail; /* next to read: the consumer's */
	size_t head_seen;
};

/* Long enough for the consumer to free hundreds of entries. */
static const struct timespec full_pause = {.tv_nsec = 50000};

struct tl_ring *tl_ring_new(size_t size)
{
	struct tl_ring *r = aligned_alloc(64, sizeof *r);

	if (!r)
		abort();
	*r = (struct tl_ring){.mask = size - 1, .at = tl_calloc(size, sizeof *r->at)};
	return r;
}

void tl_ring_free(struct tl_ring *r)
{
	free(r->at);
	free(r);
}

static struct tl_ring_entry *claim(struct tl_ring *r, size_t head)
{
	while (head - r->tail_seen > r->mask) {
		r->tail_seen = atomic_load_explicit(&r->tail, memory_order_acquire);
		if (head - r->tail_seen > r->mask)
			nanosleep(&full_pause, NULL);
	}
	return &r->at[head & r->mask];
}

void tl_ring_push(struct tl_ring *r, const struct tl_record *rec)
{
	size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	struct tl_ring_entry *e = claim(r, head);

	e->message = NULL;
	e->rec = *rec;
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

void tl_ring_send(struct tl_ring *r, void *message)
{
	size_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	claim(r, head)->message = message;
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

size_t tl_ring_peek(struct tl_ring *r, const struct tl_ring_entry **out)
{
	size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	size_t n, straight = r->mask + 1 - (tail & r->mask);

	if (r->head_seen == tail)
		r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
	n = r->head_seen - tail;
	*out = &r->at[tail & r->mask];
	return n < straight ? n : straight;
}

void tl_ring_release(struct tl_ring *r, size_t n)
{
	size_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	atomic_store_explicit(&r->tail, tail + n, memory_order_release);
}
