/* model/tree.h - calls merged per path, from the leaves up.
 *
 * A frame has a node of its own while it is open; when it ends, that is merged into
 * its parent's. Each merge uses up a node, so a run costs as many as it has calls. */
#ifndef TL_MODEL_TREE_H
#define TL_MODEL_TREE_H

#include "model/profile.h"

struct tl_node *tl_node_new(struct tl_profile *p);
/* NODE, filed under NODE->func, becomes part of PARENT's. */
void tl_node_merge(struct tl_profile *p, struct tl_node *parent, struct tl_node *node);
/* All below too. */
void tl_node_free(struct tl_node *node);

#endif
