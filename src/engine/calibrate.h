/* engine/calibrate.h - measures what our own stops cost, on the calibration program.
 *
 * The program is run under the same session, engine and placement as the target will
 * be, so that the tables (clock/cost.h) hold for it. About 150 ms. */
#ifndef TL_ENGINE_CALIBRATE_H
#define TL_ENGINE_CALIBRATE_H

#include "clock/cost.h"

/* CPU: where the tracing thread will sit; -1: unpinned. SHORT: a third of the calls, for the check
 * after a run. A negative errno with a text when the calibration program is missing or
 * cannot be traced. */
int tl_calibrate(int cpu, bool brief, struct tl_costs *out);

/* Means of one stop, wall, both ways, beside the window: entry and exit together, halved. */
double tl_calibrate_stop_ns(const struct tl_costs *c);

#endif
