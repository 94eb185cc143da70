/* Registers for matrices, which a process must be allowed to use and each of its threads must configure. On targets that have none, and in
 * processes that asked for none, these functions do nothing. */
#ifndef TILTH_TILES_H
#define TILTH_TILES_H

/* Asks the kernel to let this process use tiles. 0 when it may; -1, with errno set, when it may not. Threads that are started later
 * configure theirs when they start. */
int tilth_tiles_permit(void);

/* Makes all tiles of this thread 16 rows of 64 bytes, as all kernels have them, and zero. They stay so. */
void tilth_tiles_configure(void);

/* Leaves the tiles of this thread to others, who need not save them then. */
void tilth_tiles_release(void);

#endif
