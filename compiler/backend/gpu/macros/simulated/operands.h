/* Matrices in shared memory as the instructions of warpgroups read them, past the threads. */

enum { SIM_GROUP = 128 };

/* A matrix as kernels name it: by its first element. The lines of a turned one are its columns. */
struct sim_matrix {
  const struct sim_array *array;
  int64_t first;
  int turned;
};

/* A matrix as instructions know it. */
struct sim_operand {
  const struct sim_array *array;
  uint64_t descriptor;
  int turned, lines;
};

/* The term of a line of an operand, by its place in the array, as the hardware finds it by a descriptor. */
SIM_INLINE int64_t sim_term_at(const struct sim_block *b, const struct sim_operand *o, int line, int term) {
  uint64_t d = o->descriptor;
  uint32_t start = (uint32_t)(d & 0x3fff) << 4, leading = (uint32_t)(d >> 16 & 0x3fff) << 4;
  uint32_t stride = (uint32_t)(d >> 32 & 0x3fff) << 4, width = 256u >> (d >> 62);
  uint32_t size = (uint32_t)o->array->element_bytes, l = (uint32_t)line, k = (uint32_t)term;
  uint32_t at = o->turned ? start + l * size / width * leading + l * size % width + k / 8 * stride + k % 8 * width
                          : start + l / 8 * stride + l % 8 * width + k * size;
  at ^= (at >> 7 & (width / 16 - 1)) << 4;
  return ((int64_t)at - (o->array->memory - b->shared)) / size;
}

SIM_INLINE uint32_t sim_term(const struct sim_block *b, const struct sim_operand *o, int line, int term) {
  uint32_t bits = 0;
  int size = o->array->element_bytes;
  memcpy(&bits, o->array->memory + sim_term_at(b, o, line, term) * size, (size_t)size);
  return bits;
}

/* The descriptor of a matrix whose first element is i. */
SIM_STATIC struct sim_operand sim_operand_of(const struct sim_thread *sim, struct sim_matrix m, int lines, int terms,
                                             int line) {
  const struct sim_block *b = sim->block;
  const struct sim_array *a = m.array;
  int64_t i = m.first;
  int turned = m.turned;
  if (!a->row) sim_fail(b, "the product of line %d reads %s, which is no SWIZZLED_ARRAY", line, a->name);
  int columns = tilth_panel(a->element_bytes, a->row) / a->element_bytes;
  int row = (int)(i / a->row), column = (int)(i % a->row);
  int tall = turned ? terms : lines, wide = turned ? lines : terms;
  int whole = wide <= columns ? column % columns + wide <= columns : wide % columns == 0 && column % columns == 0;
  int within = row % 8 == 0 && row % a->rows + tall <= a->rows && column + wide <= a->row;
  if (!whole || !within || (turned && a->element_bytes != 2) || column * a->element_bytes % 16)
    sim_fail(b, "the product of line %d cannot read %d by %d elements from element %lld of %s on, whose rows have %d",
             line, tall, wide, (long long)i, a->name, a->row);
  sim_check_bounds(sim, a, i, 1, line);
  uint32_t address = (uint32_t)(a->memory - b->shared) + (uint32_t)(sim_place_of(a, i) * a->element_bytes);
  return (struct sim_operand){a, tilth_descriptor(address, a->element_bytes, a->row, a->rows, turned), turned, lines};
}

/* Checks that all threads of a warpgroup know that a bulk copy has ended. */
SIM_INLINE void sim_check_seen(const struct sim_thread *sim, const struct sim_cell *c, int line) {
  const struct sim_thread *first = sim - sim->number % SIM_GROUP;
  for (int t = 0; c->wrote >= sim->block->barrier && t < SIM_GROUP; t++)
    if (!sim_is_written_before(first + t, c))
      sim_fail(sim->block,
               "the product of line %d reads what the copy of line %d brings, and thread %d has not waited for it",
               line, c->write_line, first[t].number);
}

/* Checks that the matrix is there for instructions that read it past the threads, and notes that they do. */
SIM_STATIC void sim_begin_read(const struct sim_thread *sim, const struct sim_operand *o, int terms, int line) {
  const struct sim_block *b = sim->block;
  const struct sim_array *a = o->array;
  for (int l = 0; l < o->lines; l++)
    for (int k = 0; k < terms; k++) {
      int64_t at = sim_term_at(b, o, l, k);
      if (at < 0 || at >= a->elements) sim_outside(sim, a, at, 1, line);
      struct sim_cell *c = &a->cells[at];
      sim_check_arrived(sim, a, at, line);
      if (sim_is_bulk(c))
        sim_check_seen(sim, c, line);
      else if (c->wrote >= b->barrier)
        sim_race(sim, a, at, "multiplies", line, c->writer, "wrote", c->write_line);
      else if (!sim_is_fenced(b, c, 0))
        sim_fail(b,
                 "the product of line %d reads %s[%lld], and thread %d wrote it (line %d), with no FENCE_ASYNC and "
                 "barrier between", line, a->name, (long long)sim_element_at(a, at), c->writer, c->write_line);
      c->products++;
    }
}

/* Notes that the instructions have read a matrix, for a thread that knows and one of another warp. */
SIM_STATIC void sim_end_read(const struct sim_thread *sim, const struct sim_operand *o, int terms, int line) {
  const struct sim_thread *other = sim - sim->number % SIM_GROUP + (sim->number + SIM_WARP) % SIM_GROUP;
  for (int l = 0; l < o->lines; l++)
    for (int k = 0; k < terms; k++) {
      struct sim_cell *c = &o->array->cells[sim_term_at(sim->block, o, l, k)];
      c->products--;
      sim_keep_reader(sim, c, line);
      sim_keep_reader(other, c, line);
    }
}
