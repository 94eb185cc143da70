package array

// Storage is how a program keeps factors of products in float32 in memory. Its zero value leaves them as they are.
type Storage struct {
	// Type is a type of 16 bits; Invalid = float32.
	Type DType
	// Constants is set where only what is known when the model is compiled is stored so, as its weights: activations
	// stay in float32.
	Constants bool
}
