package macros

// Kernels for GPUs are printed in these macros, which each dialect defines:
//
//  - `TILTH_KERNEL(name, threads)(parameters)`: a kernel, with the number of threads of a block.
//  - `TID`, `BID`: index of the thread in its block, and of the block in the grid.
//  - `GLOBAL_ARRAY(a, n)`: declares the number of elements of a parameter.
//  - `ALIGNED_PARAMETER`: marks a parameter as aligned to 16 bytes.
//  - `GLOBAL_ALIGNED(a)`: has the simulator check that alignment.
//  - `SHARED_ARRAY(type, a, n)`: an array in shared memory.
//  - `SHARED_PART(type, a, n, offset)`: the same in dynamic shared memory, for kernels with more than 48 KiB.
//  - `SWIZZLED_ARRAY(type, a, n, row, rows)`, `SWIZZLED_PART(type, a, n, row, rows, offset)`: the same for matrices
//    in the swizzled layout of warpgroups; indices are row-major.
//  - `LOAD(a, i)`, `STORE(a, i, v)`: an element of a global or shared array, with a 32-bit index.
//  - `V(type, n)`, `LOADV(type, n, a, i)`, `STOREV(type, n, a, i, v)`: a vector of n adjacent elements with lanes
//    `v[k]`, of at most 16 bytes, aligned to its size.
//  - `ATOMIC_ADD(a, i, v)`: adds to a float or int32 in global memory.
//  - `BARRIER()`, `WARP_BARRIER()`: a barrier of the block, or of the warp.
//  - `SHUFFLE(v, lane)`, `SHUFFLE_XOR(v, mask)`, `SHUFFLE_DOWN(v, n)`: the value (4 or 8 bytes) of another lane of
//    the warp; past the last lane, `SHUFFLE_DOWN` returns the lane's own value.
//  - `ALIGNED(a)`: whether a global array is aligned to 16 bytes.
//  - `COPY(bytes, s, i, g, j, valid)`: copies 1, 2, 4, 8 or 16 bytes from global to shared memory, or zeros if
//    `valid` is 0.
//  - `COPY_ASYNC(bytes, s, i, g, j, valid)`: starts such a copy of 4, 8 or 16 bytes.
//  - `COPY_COMMIT()`, `COPY_WAIT(n)`: commits the thread's copies as a group; waits until at most n groups are
//    pending.
//  - `LDMATRIX_X1(r, s, i)`, `_X2`, `_X4`, and each with `_TRANS`: loads 8x8 matrices of 16-bit elements from
//    shared memory to `uint32_t r[]`; i is the row of the lane.
//  - `MMA_M16N8K16_BF16(d, apart, a, b)`, `_F16`, `MMA_M16N8K8_TF32`, `MMA_M16N8K32_S8`, `_U8`, `_S8_U8`, `_U8_S8`:
//    d += a b by a warp: `d[0]`, `d[1]`, `d[apart]`, `d[apart + 1]` (float or int32), `a[4]`, `b[2]` (uint32_t).
//  - `WGMMA(n, type, d, apart, a, i, a_turned, b, j, b_turned)`: starts d += a b on 64 by n sums of a warpgroup; a
//    and b are swizzled arrays with matrices at i and j, transposed if `turned`. Types: `BF16`, `F16`, `TF32`,
//    `S8`, `U8`, `S8_U8`, `U8_S8`.
//  - `WGMMA_FENCE(d, n)`, `WGMMA_COMMIT()`: precedes products that accumulate in d[n]; commits a group of them.
//  - `WGMMA_WAIT(n)`, `WGMMA_WAIT_ALL(d, n)`: waits until at most n groups of products, or none, are pending, so
//    that d[n] may be used.
//  - `FENCE_ASYNC()`: makes the thread's writes to shared memory visible to products and bulk copies after the next
//    barrier.
//  - `MBARRIER_INIT(m, i, arrivals)`, `MBARRIER_INVALIDATE(m, i)`: initialises and ends mbarrier i, a uint64_t in
//    shared memory.
//  - `MBARRIER_EXPECT(m, i, bytes)`: arrives, and adds bytes of bulk copies that the phase waits for.
//  - `MBARRIER_WAIT(m, i, parity)`: waits for the phase with that parity; the first one has 0.
//  - `COPY_BULK(bytes, s, i, g, j, m, k)`: starts a bulk copy of a multiple of 16 bytes that signals mbarrier k of
//    m; unused by schedules.
//  - `TENSOR_MAP`: the type of a tensor map parameter: address, dimensions, strides, boxes and swizzling.
//  - `TENSOR_MAP_OF(map, a, kernel, k)`: declares that parameter k of the kernel maps the array a.
//  - `COPY_TENSOR_2D(s, i, map, x, y, m, k)`, `_3D`, `_4D`, `_5D` with z, u and v behind y: starts a copy of the
//    box at x, y, ... (innermost dimension first) to element i of a swizzled array, which signals mbarrier k of m;
//    elements outside the tensor are zero.
//  - `TF32(x)`, `TF32_REST(x)`: the bits of a float rounded to TF32, and of the remainder.
//  - `BF16(x)`: the bits of a float rounded to bfloat16.
//  - `BF16X2(x, y)`: the bits of two floats rounded to bfloat16, x in the lower half.
//  - `PACK2(x, y)`, `PACK4(x, y, z, w)`: the bits of two 16-bit or four 8-bit elements, the first in the lowest
//    bits.
//  - `HALF(x)`, `FLOAT(x)`: a float rounded to float16, and a float16 as a float.
//  - `UNROLL`, `UNROLL_EIGHT`: unrolls the following loop, or eight iterations of it.
