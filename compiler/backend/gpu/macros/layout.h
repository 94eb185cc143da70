/* Matrices in shared memory as the instructions of warpgroups read them (PTX ISA, "Asynchronous Warpgroup Level Matrix
 * Shared Memory Layout"): rows lie in panels of 32, 64 or 128 bytes, one panel behind the other, and pieces of 16
 * bytes change places within eight rows, so that eight threads that read or write a column use different banks. An
 * array has matrices of so many rows, a multiple of eight, and row elements in each of them. */
#define TILTH_LAYOUT static inline __attribute__((unused, always_inline))

/* The bytes of a panel's row. */
TILTH_LAYOUT int tilth_panel(int size, int row) { return row * size < 128 ? row * size : 128; }

/* Where element i lies, in elements. */
TILTH_LAYOUT int tilth_place(int i, int size, int row, int rows) {
  unsigned at = (unsigned)i, width = (unsigned)tilth_panel(size, row), columns = width / (unsigned)size;
  if (row * size > 128) {
    unsigned r = at / (unsigned)row, c = at % (unsigned)row;
    unsigned line = c / columns * (unsigned)rows + r % (unsigned)rows;
    at = r / (unsigned)rows * (unsigned)(rows * row) + line * columns + c % columns;
  }
  at *= (unsigned)size;
  at ^= (at >> 7 & (width / 16 - 1)) << 4;
  return (int)(at / (unsigned)size);
}

/* Returns the descriptor of a matrix in shared memory: the address of its first element, the strides between panels and
 * between groups of eight rows, and the swizzle mode. */
TILTH_LAYOUT unsigned long long tilth_descriptor(unsigned address, int size, int row, int rows, int turned) {
  unsigned long long width = (unsigned)tilth_panel(size, row), leading = turned ? (unsigned)rows * width : 16;
  unsigned long long stride = 8 * width, mode = width == 128 ? 1 : width == 64 ? 2 : 3;
  return (address & 0x3ffff) >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | mode << 62;
}
