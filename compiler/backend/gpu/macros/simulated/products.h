/* Products of matrices by warpgroups, four warps each, as the instruction wgmma of NVIDIA's GPUs has them: operands
 * are read from shared memory while threads go on, and sums are there for those threads that have waited for them. */

/* A thread has sums in up to so many columns of two rows. */
enum { SIM_GROUP_ROWS = 64, SIM_THREAD_COLUMNS = 64, SIM_MOST_PRODUCTS = 256 };

struct sim_product;

/* How instructions of a type multiply. */
struct sim_product_type {
  int terms;
  void (*multiply)(const struct sim_block *b, const struct sim_product *p, void *sums);
};

/* What the threads of a warpgroup ask for together. */
struct sim_product {
  const struct sim_product_type *type;
  struct sim_operand a, b;
  int apart, line;
  uint32_t group;
  /* Which threads have waited for it, and how many. */
  uint8_t waited[SIM_GROUP];
  int n_waited;
};

/* Sums under way: whose variables they were taken from, and belong to. */
struct sim_sums {
  uint32_t *of[SIM_GROUP];
  int n_waited, columns, apart, line;
  uint32_t group;
  uint32_t values[SIM_GROUP][2][SIM_THREAD_COLUMNS];
};

struct sim_group {
  int arrived;
  struct sim_product asked;
  uint32_t *of[SIM_GROUP];
  int n_products, n_sums;
  struct sim_product products[SIM_MOST_PRODUCTS];
  struct sim_sums *sums[SIM_MOST_PRODUCTS];
};

/* What is found in variables whose sums are under way: no number that a product gives, as a float or an integer. */
enum { SIM_AWAY = 0x7fe5a5a5 };

SIM_STATIC struct sim_group *sim_group_of(const struct sim_thread *sim) {
  struct sim_group **g = &sim->block->groups[sim->number / SIM_GROUP];
  if (!*g) *g = calloc(1, sizeof **g);
  if (!*g) sim_fail(sim->block, "there is no memory for products");
  return *g;
}

/* The sums of a thread that are under way; 0 when none are. */
SIM_STATIC const struct sim_sums *sim_sums_away(const struct sim_thread *t) {
  const struct sim_group *g = t->block->groups[t->number / SIM_GROUP];
  for (int k = 0; g && k < g->n_sums; k++)
    if (g->sums[k]->of[t->number % SIM_GROUP]) return g->sums[k];
  return 0;
}

SIM_STATIC void sim_check_products(const struct sim_thread *t) {
  const struct sim_sums *s = sim_sums_away(t);
  if (s) sim_fail(t->block, "thread %d ends before it has waited for the product of line %d", t->number, s->line);
}

/* Checks that what a thread stores is no sum that is under way. */
SIM_INLINE void sim_check_stored(const struct sim_thread *t, const void *value, size_t bytes, int line) {
  if (!t->products_committed || bytes != 4) return;
  uint32_t bits;
  memcpy(&bits, value, sizeof bits);
  if (bits == SIM_AWAY && sim_sums_away(t))
    sim_fail(t->block, "thread %d stores a sum (line %d) before it has waited for the product of line %d", t->number,
             line, sim_sums_away(t)->line);
}

/* Reports a write of what a product reads. */
SIM_RARE void sim_product_reads(const struct sim_thread *sim, const struct sim_array *a, int64_t i, int line) {
  int product = 0;
  for (int n = 0; n * SIM_GROUP < sim->block->launch->threads; n++) {
    const struct sim_group *g = sim->block->groups[n];
    for (int k = 0; g && k < g->n_products; k++)
      if (g->products[k].a.array == a || g->products[k].b.array == a) product = g->products[k].line;
  }
  sim_fail(sim->block,
           "thread %d writes %s[%lld] (line %d), and not all have waited for the product of line %d, which reads it",
           sim->number, a->name, (long long)sim_element_at(a, i), line, product);
}

/* The sums in the variables of a thread, in two rows: TAKE(variable, sum). */
#define SIM_EACH_SUM(thread, variables, s, TAKE) \
  for (int h = 0; h < 2; h++) \
    for (int j = 0; j < (s)->columns / 4; j++) { \
      uint32_t *variable = &(variables)[h * (s)->apart + j], *sum = &(s)->values[thread][h][j]; \
      TAKE; \
    }

/* The sums that a product adds to: those under way from the same variables, or those of the variables. */
SIM_STATIC struct sim_sums *sim_sums_of(const struct sim_thread *first, struct sim_group *g) {
  const struct sim_block *b = first->block;
  for (int k = 0; k < g->n_sums; k++) {
    struct sim_sums *s = g->sums[k];
    int same = 0;
    for (int t = 0; t < SIM_GROUP; t++) same += s->of[t] == g->of[t];
    if (!same) continue;
    if (same < SIM_GROUP || s->columns != g->asked.b.lines || s->apart != g->asked.apart)
      sim_fail(b,
               "the product of line %d adds to sums of that of line %d, for which some threads have waited, or which "
               "is of another size", g->asked.line, s->line);
    return s;
  }
  if (g->n_sums == SIM_MOST_PRODUCTS) sim_fail(b, "more than %d products are under way", SIM_MOST_PRODUCTS);
  struct sim_sums *s = malloc(sizeof *s);
  if (!s) sim_fail(b, "there is no memory for products");
  g->sums[g->n_sums++] = s;
  memcpy(s->of, g->of, sizeof s->of);
  s->n_waited = 0, s->columns = g->asked.b.lines, s->apart = g->asked.apart;
  for (int t = 0; t < SIM_GROUP; t++) SIM_EACH_SUM(t, s->of[t], s, (*sum = *variable, *variable = SIM_AWAY))
  return s;
}

SIM_INLINE int sim_same_product(const struct sim_product *p, const struct sim_product *q) {
  return p->type == q->type && p->line == q->line && p->apart == q->apart && p->group == q->group &&
         p->a.descriptor == q->a.descriptor && p->b.descriptor == q->b.descriptor && p->b.lines == q->b.lines;
}

/* Takes part in a product, which the last thread of the warpgroup to come begins for all. */
SIM_CALLED void sim_multiply(struct sim_thread *sim, const struct sim_product_type *type, int columns, void *d,
                             int apart, struct sim_matrix a, struct sim_matrix b, int line) {
  struct sim_block *block = sim->block;
  if (sim->number - sim->number % SIM_GROUP + SIM_GROUP > block->launch->threads)
    sim_fail(block, "the product of line %d needs a whole warpgroup, and thread %d is in none", line, sim->number);
  if (!sim->products_fenced)
    sim_fail(block, "thread %d begins the product of line %d with no WGMMA_FENCE before it", sim->number, line);
  struct sim_group *g = sim_group_of(sim);
  struct sim_product p = {.type = type, .apart = apart, .line = line, .group = sim->products_committed};
  p.a = sim_operand_of(sim, a, SIM_GROUP_ROWS, type->terms, line);
  p.b = sim_operand_of(sim, b, columns, type->terms, line);
  if (g->arrived && !sim_same_product(&p, &g->asked))
    sim_fail(block,
             "divergence: thread %d is at the product of line %d, but %d others of the warpgroup wait at that of line "
             "%d, or give it other operands", sim->number, line, g->arrived, g->asked.line);
  g->asked = p;
  g->of[sim->number % SIM_GROUP] = d;
  if (++g->arrived < SIM_GROUP) {
    sim_wait(sim, SIM_IN_GROUP, line);
    return;
  }
  g->arrived = 0;
  if (g->n_products == SIM_MOST_PRODUCTS) sim_fail(block, "more than %d products are under way", SIM_MOST_PRODUCTS);
  sim_begin_read(sim, &p.a, type->terms, line);
  sim_begin_read(sim, &p.b, type->terms, line);
  g->products[g->n_products++] = p;
  struct sim_sums *s = sim_sums_of(sim, g);
  s->group = p.group, s->line = line;
  type->multiply(block, &p, s->values);
  struct sim_thread *first = sim - sim->number % SIM_GROUP;
  for (int t = 1; t < SIM_GROUP; t++) sim_wake(first + (sim->number + t) % SIM_GROUP);
}

/* Gives a thread its sums. */
SIM_STATIC void sim_deliver(struct sim_thread *sim, struct sim_sums *s) {
  int me = sim->number % SIM_GROUP;
  SIM_EACH_SUM(me, s->of[me], s, {
    if (*variable != SIM_AWAY)
      sim_fail(sim->block, "thread %d has changed sums of the product of line %d before it waited for them",
               sim->number, s->line);
    *variable = *sum;
  })
  s->of[me] = 0;
  s->n_waited++;
}

/* Waits until at most n of the groups of products that were committed are under way. */
SIM_CALLED void sim_wait_for_products(struct sim_thread *sim, uint32_t n) {
  struct sim_group *g = sim_group_of(sim);
  int me = sim->number % SIM_GROUP;
  for (int k = 0; k < g->n_sums; k++) {
    struct sim_sums *s = g->sums[k];
    if (s->group + n >= sim->products_committed || !s->of[me]) continue;
    sim_deliver(sim, s);
    if (s->n_waited < SIM_GROUP) continue;
    free(s);
    g->sums[k--] = g->sums[--g->n_sums];
  }
  for (int k = 0; k < g->n_products; k++) {
    struct sim_product *p = &g->products[k];
    if (p->group + n >= sim->products_committed || p->waited[me]) continue;
    p->waited[me] = 1;
    if (++p->n_waited < SIM_GROUP) continue;
    sim_end_read(sim, &p->a, p->type->terms, p->line);
    sim_end_read(sim, &p->b, p->type->terms, p->line);
    g->products[k--] = g->products[--g->n_products];
  }
}

SIM_CALLED void sim_commit_products(struct sim_thread *sim) { sim->products_committed++, sim->products_fenced = 0; }
