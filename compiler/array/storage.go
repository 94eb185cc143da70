package array

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
}

// ElementBytes returns the size of a stored element.
func (s Storage) ElementBytes() int64 {
	if s.Type == Invalid {
		return Float32.Bytes()
	}
	return s.Type.Bytes()
}
