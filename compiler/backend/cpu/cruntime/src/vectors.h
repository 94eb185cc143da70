/* Vector registers whose length the code is made for, and a process may have others of. */
#ifndef TILTH_VECTORS_H
#define TILTH_VECTORS_H

/* Why this process cannot run code of this target: NULL when it can. The text is this thread's, until it asks again. To be asked before
 * anything else, since compilers use such registers anywhere. */
const char *tilth_vectors_unfit(void);

#endif
