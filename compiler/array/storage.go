package array

// Storage is how a program keeps factors of products in memory, those in float32 but for Bytes. Its zero value leaves
// them as they are.
type Storage struct {
	// Type is a type of 16 bits; Invalid = float32.
	Type DType
	// Constants is set where only what is known when the model is compiled is stored so, as its weights: activations
	// stay in float32.
	Constants bool
	// WeightBits is 4 or 8 where weights of products are kept in integers of so many bits; 0 where they are not. Those
	// of convolutions have 8 unless they are matrices.
	WeightBits int64
	// FloatKernels is set where weights of convolutions stay floats that are no matrices: instructions multiply these
	// faster than integers that are cast.
	FloatKernels bool
	// Bytes is the type of 8 bits in which integers are kept that are multiplied by known ones; Invalid where each
	// stays in the type that it has in the model. Results are the same.
	Bytes DType
	// RowBytes is what rows of constant factors are to be multiples of, where one order of their axes makes them so; 0
	// where it does not matter.
	RowBytes int64
}

// ElementBytes is the size of an element of what is stored so.
func (s Storage) ElementBytes() int64 {
	if s.Type == Invalid {
		return Float32.Bytes()
	}
	return s.Type.Bytes()
}
