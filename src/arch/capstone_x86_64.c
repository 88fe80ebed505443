#include "arch/x86_64.h"

#include <capstone/capstone.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/err.h"

/* Opening a handle costs as much as decoding thousands of instructions: each thread opens its
 * own and the key closes them at the thread's end. These two are the price of a decode()
 * without a context. */
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Only functions with indirect jumps need details. */
enum { PLAIN, DETAIL, KINDS };

static void close_all(void *p)
{
	struct tl_capstone *c = p;

	for (int i = 0; i < KINDS; i++) {
		if (!c[i].insn)
			continue;
		cs_free(c[i].insn, 1);
		cs_close(&c[i].handle);
	}
	free(c);
}

static void make_key(void)
{
	if (pthread_key_create(&key, close_all))
		abort();
}

struct tl_capstone *tl_x86_capstone(bool detail)
{
	struct tl_capstone *c;

	pthread_once(&once, make_key);
	c = pthread_getspecific(key);
	if (!c) {
		c = tl_calloc(KINDS, sizeof *c);
		pthread_setspecific(key, c);
	}
	c += detail ? DETAIL : PLAIN;
	if (c->insn)
		return c;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &c->handle))
		return NULL;
	if (detail)
		cs_option(c->handle, CS_OPT_DETAIL, CS_OPT_ON);
	c->insn = cs_malloc(c->handle);
	return c;
}
