package array

import "math"

// Quantise converts floats to i8 integers from lo to hi, with a float32 scale for each block of neighbours along an
// axis: an element is approximately its integer times its scale. Integers have the shape of w. If lo is -hi, the
// element of the largest magnitude in a block becomes hi, with its sign. If lo is one less, that element becomes lo,
// and its scale has the opposite sign, which gives smaller steps. Scales have one position for each block on the axis,
// of which the last may be shorter; that of a block of zeros is zero. Elements must be finite.
func Quantise(w *Array, axis int, block, lo, hi int64) (integers, scales *Array) {
	depth, inner := w.Shape[axis], Elements(w.Shape[axis+1:])
	shape := append([]int64{}, w.Shape...)
	shape[axis] = (depth + block - 1) / block
	integers, scales = New(Int8, w.Shape...), New(Float32, shape...)
	q := &quantiser{values: w.As(Float32).Float32s(), integers: integers.Data, scales: scales, inner: inner, min: float64(lo), max: float64(hi)}
	for outer := range Elements(w.Shape[:axis]) {
		for b := range shape[axis] {
			first := outer*depth + b*block
			q.block(first, min(first+block, (outer+1)*depth), outer*shape[axis]+b)
		}
	}
	return integers, scales
}

// quantiser processes rows of inner elements, which share blocks with those above and below.
type quantiser struct {
	values   []float32
	integers []byte
	scales   *Array
	inner    int64
	// min and max bound the integers.
	min, max float64
}

// block quantises the rows from first to end, whose scales also form a row.
func (q *quantiser) block(first, end, scales int64) {
	peaks, each := make([]float32, q.inner), make([]float64, q.inner)
	for k := first; k < end; k++ {
		for i, v := range q.values[k*q.inner : (k+1)*q.inner] {
			if max(v, -v) > max(peaks[i], -peaks[i]) || v != v {
				peaks[i] = v
			}
		}
	}
	for i, peak := range peaks {
		at := scales*q.inner + int64(i)
		q.scales.SetFloat(at, q.scale(float64(peak)))
		each[i] = q.scales.Float(at)
	}
	for k := first; k < end; k++ {
		to := q.integers[k*q.inner:]
		for i, v := range q.values[k*q.inner : (k+1)*q.inner] {
			if each[i] != 0 {
				to[i] = byte(int8(max(q.min, min(math.RoundToEven(float64(v)/each[i]), q.max))))
			}
		}
	}
}

// scale returns the scale of a block, given its element of the largest magnitude.
func (q *quantiser) scale(peak float64) float64 {
	if q.min == -q.max {
		return math.Abs(peak) / q.max
	}
	return peak / q.min
}

// Storage selects how a program stores factors of products: those in float32, and by Bytes those in 8 bits. The
// zero value leaves them unchanged.
type Storage struct {
	// Type is a 16-bit type; Invalid means float32.
	Type DType
	// Constants restricts this to constants known at compile time, such as weights: activations stay in float32.
	Constants bool
	// WeightBits is 4 or 8 to store weights of products as integers of that width; 0 disables this. Weights of
	// convolutions use 8 unless they are matrices.
	WeightBits int64
	// FloatKernels keeps convolution weights other than matrices in floating point, where instructions multiply
	// these faster than integers that are cast.
	FloatKernels bool
	// Bytes is the 8-bit type of integers that are multiplied by known ones; Invalid keeps the model's types.
	// Results are the same.
	Bytes DType
	// RowBytes is the desired alignment of rows of constant factors, if an axis order provides it, or 0.
	RowBytes int64
	// Unrolled unrolls loops, for machines whose programs are lists of kernels.
	Unrolled bool
}

// ElementBytes returns the size of a stored element.
func (s Storage) ElementBytes() int64 {
	if s.Type == Invalid {
		return Float32.Bytes()
	}
	return s.Type.Bytes()
}
