#include "trapline/marks.h"

const char *const tl_how_names[4] = {"exact","bound","estimate","sampled"};
const char *const tl_self_names[2] = {"measured","upper"};
