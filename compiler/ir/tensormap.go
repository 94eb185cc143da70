package ir

// TensorMap describes how boxes of a tensor in global memory are copied to swizzled buffers.
type TensorMap struct {
	// Dims lists the tensor's dimensions, starting with the innermost, contiguous one.
	Dims []Dim
	// PanelBytes is the size of a row of a box, which is that of a panel.
	PanelBytes int64
}

// Dim is a dimension of a tensor: its extent, its stride in elements, and the box's extent in it.
type Dim struct{ Extent, Stride, Box int64 }

// Elements returns the number of elements of a box.
func (m *TensorMap) Elements() int64 {
	n := int64(1)
	for _, d := range m.Dims {
		n *= d.Box
	}
	return n
}
