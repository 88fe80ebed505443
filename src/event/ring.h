/* event/ring.h - from one tracing thread to the recorder's thread.
 *
 * One producer, one consumer, in order, nothing lost: a full ring makes the producer wait.
 * Neither side makes a system call while there is room (producer) or something to take
 * (consumer). An entry is a record, or a message whose ownership moves to the consumer. */
#ifndef TL_EVENT_RING_H
#define TL_EVENT_RING_H

#include <stddef.h>

#include "event/record.h"

struct tl_ring_entry {
	void *message; /* NULL: a record */
	struct tl_record rec;
};

struct tl_ring;

/* SIZE entries, a power of two. */
struct tl_ring *tl_ring_new(size_t size);
void tl_ring_free(struct tl_ring *r);

/* Producer. REC is copied; MESSAGE not NULL. */
void tl_ring_push(struct tl_ring *r, const struct tl_record *rec);
void tl_ring_send(struct tl_ring *r, void *message);

/* Consumer. Entries that lie one behind the other, as many as there are: *OUT points to the
 * first; 0 when empty. They are valid until tl_ring_release() gives them back. */
size_t tl_ring_peek(struct tl_ring *r, const struct tl_ring_entry **out);
void tl_ring_release(struct tl_ring *r, size_t n);

#endif
