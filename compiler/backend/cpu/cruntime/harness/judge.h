/* The protocol between the harness and the judge, which is the runner in another process. The judge names the data of inputs, reads outputs
 * from shared memory and verifies them. The harness has no reference results. */
#ifndef TILTH_JUDGE_H
#define TILTH_JUDGE_H
#include "bench.h"

enum judge_op {
  JUDGE_ARGUMENTS = 'a', /* to a process that serves: its command line follows, n bytes, with a zero behind each word */
  JUDGE_GO_ON = 'o', /* what was handed in is right, or is not looked at */
  JUDGE_WRONG = 'w',
  JUDGE_FILL = 'f', /* as JUDGE_RUN, but without running anything: what the rest takes */
  JUDGE_RUN = 'r',  /* fill the inputs with set after set, run, and hand the outputs in, each to a slot of its own */
  JUDGE_LOAD = 'l', /* load the candidate */
  JUDGE_ENOUGH = 'e', /* the candidate is examined */
};

/* What the judge says: 32 bytes. */
struct judge_word {
  uint64_t op;
  uint64_t seed; /* of the inputs' data; of the first set of several */
  uint64_t slot; /* that of the first set of several */
  uint64_t n;    /* how many */
};

/* Keeps standard input for the judge's words. 0 on success, else errno. */
int judge_open(void);

/* Waits for the next command line of a process that serves, which stands until the one after it. 0 on success; otherwise a message was reported. */
int judge_arguments(int *argc, char ***argv);

/* Maps the shared memory, whose size the judge determines from the workload. Returns 0, or reports an error. */
int judge_share(struct bench *b);

/* Unmaps it, in a serving process. */
void judge_unshare(void);

/* Waits for a command and fills the inputs with the data that it names. Exits if the judge has gone. */
struct judge_word judge_wait(struct bench *b);

/* Hands the outputs in. */
void judge_hand_in(const struct bench *b, uint64_t slot);

/* Carries out JUDGE_FILL or JUDGE_RUN. `l` is NULL for the former. -1 when there are no such slots, with a message. */
int judge_examine(struct bench *b, const struct loaded *l, const struct judge_word *w);

#endif
