/* calibration/calibration.h - what the calibration program and the tracer share.
 *
 * The program calls a probed function in a known rhythm and notes the clock around
 * each of its ends; the tracer notes when it saw the stops. Together they tell what the
 * kernel's way into and out of a stop costs. Run as: trapline-calibration FD, FD a memory
 * file of sizeof(struct tl_calibration) bytes. */
#ifndef TL_CALIBRATION_CALIBRATION_H
#define TL_CALIBRATION_CALIBRATION_H

#include <stdint.h>

#define TL_CALIBRATION_FUNCTION "tl_calibration_probe"

enum { TL_CALIBRATION_STEPS = 8, TL_CALIBRATION_MOST = 8192 };

/* CLOCK_MONOTONIC ns: before the call, first thing inside, last thing inside, after. */
struct tl_calibration_call {
	uint64_t before, begin, end, after;
};

struct tl_calibration {
	/* In: how many calls, how long the program runs inside and outside of each. */
	struct {
		uint32_t calls, run_ns;
	} steps[TL_CALIBRATION_STEPS];
	uint32_t warm_up; /* calls that do not count, first */
	/* Out. */
	double plain_begin_ns, plain_end_ns; /* begin - before and after - end without a stop */
	uint32_t calls;			     /* of call[] */
	struct tl_calibration_call call[TL_CALIBRATION_MOST];
};

#endif
