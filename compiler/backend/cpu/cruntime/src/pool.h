/* A pool of threads that runs parallel loops. One thread at a time may use a pool. */
#ifndef TILTH_POOL_H
#define TILTH_POOL_H
#include <pthread.h>

#include "tilth_kernel.h"

struct tilth_pool;

/* Starts workers - 1 threads; the caller of parallel() is worker 0. Those configure their tiles, if the process may use any. NULL, with errno set, when they cannot be started. */
struct tilth_pool *tilth_pool_create(int32_t workers);

/* What kernels get. Valid until the pool is destroyed. */
const struct tilth_runtime *tilth_pool_runtime(const struct tilth_pool *pool);

/* The thread of a worker, 0 < worker < workers. */
pthread_t tilth_pool_thread(const struct tilth_pool *pool, int32_t worker);

/* Ends the threads and waits for them. NULL is allowed. */
void tilth_pool_destroy(struct tilth_pool *pool);

#endif
