/* The program that trapline measures its own cost on: see calibration.h. */
#include "calibration/calibration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PLAIN_CALLS = 2000, SPEED_ROUNDS = 200000 };

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint64_t spin(uint64_t rounds)
{
	uint64_t x = 1;

	while (rounds--) {
		x = x * 6364136223846793005u + 1;
		__asm__ volatile("" : "+r"(x));
	}
	return x;
}

/* The same code twice: one is probed, the other tells what it takes without stops. */
#define CALIBRATED(name)                                                                           \
	__attribute__((noinline, noclone)) void name(struct tl_calibration_call *, uint64_t);      \
	void name(struct tl_calibration_call *c, uint64_t rounds)                                  \
	{                                                                                          \
		c->begin = now();                                                                  \
		spin(rounds);                                                                      \
		c->end = now();                                                                    \
	}
CALIBRATED(tl_calibration_probe)
CALIBRATED(tl_calibration_plain)

static void call(void (*f)(struct tl_calibration_call *, uint64_t), struct tl_calibration_call *c,
		 uint64_t rounds)
{
	struct tl_calibration_call here;

	spin(rounds);
	here.before = now();
	f(&here, rounds);
	here.after = now();
	*c = here;
}

static void measure_plain(struct tl_calibration *k)
{
	struct tl_calibration_call c;

	for (int i = 0; i < PLAIN_CALLS; i++) {
		call(tl_calibration_plain, &c, 0);
		k->plain_begin_ns += (double)(c.begin - c.before) / PLAIN_CALLS;
		k->plain_end_ns += (double)(c.after - c.end) / PLAIN_CALLS;
	}
}

int main(int argc, char **argv)
{
	struct tl_calibration *k;
	uint64_t t;
	double rounds_per_ns;

	if (argc != 2) {
		fputs("trapline-calibration: started by trapline to measure its own cost\n", stderr);
		return 2;
	}
	k = mmap(NULL, sizeof *k, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, atoi(argv[1]), 0);
	if (k == MAP_FAILED)
		return 1;
	t = now();
	spin(SPEED_ROUNDS);
	rounds_per_ns = SPEED_ROUNDS / (double)(now() - t);
	measure_plain(k);
	for (uint32_t i = 0; i < k->warm_up; i++)
		call(tl_calibration_probe, &k->call[0], 0);
	for (int s = 0; s < TL_CALIBRATION_STEPS; s++) {
		uint64_t rounds = k->steps[s].run_ns * rounds_per_ns;

		for (uint32_t i = 0; i < k->steps[s].calls && k->calls < TL_CALIBRATION_MOST; i++)
			call(tl_calibration_probe, &k->call[k->calls++], rounds);
	}
	return 0;
}
